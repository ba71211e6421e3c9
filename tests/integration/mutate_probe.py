# SPDX-License-Identifier: Apache-2.0
"""Makes every call that changes files, each in a directory of its own below the working directory
(argument 1: `relative`) or below the directory of argument 2 (`absolute`), and prints what each of
them answered. `prepare` makes those directories. Nothing is imported that is not Python's own."""

import array
import ctypes
import errno
import fcntl
import mmap
import os
import re
import socket
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
CWD = -100
# The same on all architectures.
NEWER = {"fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "file_setattr": 469,
         "openat2": 437}


def numbers():
    found = dict(NEWER)
    for path in ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
                 "/usr/include/asm-generic/unistd.h"):
        try:
            with open(path) as f:
                text = f.read()
        except OSError:
            continue
        for name, number in re.findall(r"#define __NR(?:3264)?_(\w+) (\d+)$", text, re.M):
            found.setdefault(name, int(number))
        return found
    return found


NR = numbers()


def call(name, *args):
    """The system call by name; raises its errno. Calls that this machine never had pass."""
    if name not in NR:
        return 0
    words = [a if isinstance(a, (bytes, ctypes.Array, ctypes.c_void_p)) or a is None
             else ctypes.c_long(a) for a in args]
    r = LIBC.syscall(ctypes.c_long(NR[name]), *words)
    if r < 0:
        raise OSError(ctypes.get_errno(), name)
    return r


def closing(name, *args):
    os.close(call(name, *args))


def dir_fd(top):
    return os.open(top, os.O_RDONLY | os.O_DIRECTORY)


def b(top, name):
    return os.fsencode(os.path.join(top, name))


def opened(flags, then, name="f"):
    def run(top):
        fd = os.open(os.path.join(top, name), flags, 0o640)
        try:
            return then(fd)
        finally:
            os.close(fd)
    return run


def at(then):
    def run(top):
        fd = dir_fd(top or ".")
        try:
            return then(fd)
        finally:
            os.close(fd)
    return run


def shared_mapping(fd):
    with mmap.mmap(fd, 4) as m:
        m[0:4] = b"MMAP"
        m.flush()


def bind_socket(top):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(os.path.join(top, "sock"))


def tmpfile(top):
    fd = os.open(top or ".", os.O_TMPFILE | os.O_WRONLY, 0o600)
    os.write(fd, b"tmp")
    call("linkat", CWD, f"/proc/self/fd/{fd}".encode(), CWD, b(top, "named"), 0x400)
    os.close(fd)


def set_flags(fd):
    old = array.array("i", [0])
    fcntl.ioctl(fd, 0x80086601, old)
    fcntl.ioctl(fd, 0x40086602, array.array("i", [old[0] | 0x40]))


def two_paths(name, *flags):
    return lambda top: call(name, b(top, "f"), b(top, "new"), *flags)


def handle(top):
    """A file by its handle, which no sandbox may open."""
    size = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount = (ctypes.c_int * 1)()
    call("name_to_handle_at", CWD, b(top, "f"), size, mount, 0)
    fd = dir_fd(top or ".")
    closing("open_by_handle_at", fd, size, os.O_WRONLY | os.O_TRUNC)


TIMES = struct.pack("qqqq", 1, 2, 3, 4)
HOW = struct.pack("QQQ", os.O_WRONLY | os.O_TRUNC, 0, 0)
XATTR = ctypes.create_string_buffer(struct.pack("QII", 0, 0, 0), 16)

# What is done, and the object that it should have changed.
CALLS = {
    "open-create": lambda t: closing("open", b(t, "new"), os.O_CREAT | os.O_WRONLY, 0o640),
    "open-trunc": lambda t: closing("open", b(t, "f"), os.O_TRUNC | os.O_WRONLY, 0),
    "open-trunc-ro": lambda t: closing("openat", CWD, b(t, "f"), os.O_TRUNC | os.O_RDONLY, 0),
    "open-link": lambda t: closing("openat", CWD, b(t, "s"), os.O_TRUNC | os.O_WRONLY, 0),
    "openat": at(lambda d: closing("openat", d, b"new", os.O_CREAT | os.O_WRONLY, 0o600)),
    "openat2": lambda t: closing("openat2", CWD, b(t, "f"), HOW, 24),
    "creat": lambda t: closing("creat", b(t, "f"), 0o600),
    "write": opened(os.O_WRONLY, lambda fd: os.write(fd, b"W")),
    "append": opened(os.O_WRONLY | os.O_APPEND, lambda fd: os.write(fd, b"W")),
    "pwrite": opened(os.O_RDWR, lambda fd: os.pwrite(fd, b"W", 2)),
    "pwritev2": opened(os.O_RDWR, lambda fd: os.pwritev(fd, [b"W"], 2, os.RWF_DSYNC)),
    "mmap": opened(os.O_RDWR, shared_mapping),
    "ftruncate": opened(os.O_RDWR, lambda fd: os.ftruncate(fd, 1)),
    "truncate": lambda t: os.truncate(os.path.join(t, "f"), 2),
    "fallocate": opened(os.O_RDWR, lambda fd: os.posix_fallocate(fd, 0, 8192)),
    "punch": opened(os.O_RDWR, lambda fd: call("fallocate", fd, 3, 0, 2)),
    "copy_file_range": opened(os.O_RDWR, lambda fd: os.copy_file_range(fd, fd, 2, 0, 2)),
    "sendfile": opened(os.O_RDWR, lambda fd: os.sendfile(fd, os.open("/etc/passwd", 0), 0, 3)),
    "reflink": opened(os.O_RDWR, lambda fd: fcntl.ioctl(fd, 0x40049409, fd)),
    "fsetflags": opened(os.O_RDONLY, set_flags),
    "tmpfile": tmpfile,
    "mkdir": lambda t: call("mkdir", b(t, "new"), 0o750),
    "mkdirat": at(lambda d: call("mkdirat", d, b"new", 0o750)),
    "rmdir": lambda t: call("rmdir", b(t, "d")),
    "rmdir-full": lambda t: call("rmdir", b(t, "e")),
    "rmdir-file": lambda t: call("rmdir", b(t, "f")),
    "unlink": lambda t: call("unlink", b(t, "f")),
    "unlink-dir": lambda t: call("unlink", b(t, "d")),
    "unlinkat": at(lambda d: call("unlinkat", d, b"f", 0)),
    "unlinkat-dir": at(lambda d: call("unlinkat", d, b"d", 0x200)),
    "mknod": lambda t: call("mknod", b(t, "new"), 0o10640, 0),
    "mknodat": at(lambda d: call("mknodat", d, b"new", 0o100640, 0)),
    "mknod-device": lambda t: call("mknodat", CWD, b(t, "new"), 0o20640, 0x103),
    "symlink": lambda t: call("symlink", b"target", b(t, "new")),
    "symlinkat": at(lambda d: call("symlinkat", b"target", d, b"new")),
    "link": two_paths("link"),
    "linkat": lambda t: call("linkat", CWD, b(t, "f"), CWD, b(t, "new"), 0),
    "linkat-fd": opened(os.O_RDONLY, lambda fd: call(
        "linkat", CWD, f"/proc/self/fd/{fd}".encode(), fd, b"new", 0x400)),
    "rename": two_paths("rename"),
    "renameat": at(lambda d: call("renameat", d, b"f", d, b"new")),
    "renameat2": at(lambda d: call("renameat2", d, b"f", d, b"new", 0)),
    "rename-over": lambda t: call("renameat2", CWD, b(t, "f"), CWD, b(t, "g"), 0),
    "rename-noreplace": lambda t: call("renameat2", CWD, b(t, "f"), CWD, b(t, "g"), 1),
    "rename-exchange": lambda t: call("renameat2", CWD, b(t, "f"), CWD, b(t, "g"), 2),
    "rename-dir": lambda t: call("renameat2", CWD, b(t, "e"), CWD, b(t, "new"), 0),
    "rename-dir-over": lambda t: call("renameat2", CWD, b(t, "e"), CWD, b(t, "d"), 0),
    "rename-dir-full": lambda t: call("renameat2", CWD, b(t, "d"), CWD, b(t, "e"), 0),
    "rename-dir-file": lambda t: call("renameat2", CWD, b(t, "d"), CWD, b(t, "f"), 0),
    "rename-dir-into": lambda t: call("renameat2", CWD, b(t, "e"), CWD, b(t, "e/x/y"), 0),
    "rename-dir-swap": lambda t: call("renameat2", CWD, b(t, "e"), CWD, b(t, "d"), 2),
    "rename-dir-noreplace": lambda t: call("renameat2", CWD, b(t, "e"), CWD, b(t, "d"), 1),
    "rename-swap-mixed": lambda t: call("renameat2", CWD, b(t, "e"), CWD, b(t, "f"), 2),
    "chmod": lambda t: call("chmod", b(t, "f"), 0o600),
    "fchmod": opened(os.O_RDONLY, lambda fd: call("fchmod", fd, 0o600)),
    "fchmodat": at(lambda d: call("fchmodat", d, b"f", 0o600)),
    "fchmodat2": at(lambda d: call("fchmodat2", d, b"f", 0o600, 0x100)),
    "chmod-dir": lambda t: call("chmod", b(t, "e"), 0o700),
    "chmod-self": lambda t: call("chmod", b(t, "."), 0o700),
    "chown": lambda t: call("chown", b(t, "f"), os.getuid(), os.getgid()),
    "lchown": lambda t: call("lchown", b(t, "s"), os.getuid(), os.getgid()),
    "fchown": opened(os.O_RDONLY, lambda fd: call("fchown", fd, os.getuid(), -1)),
    "fchownat": at(lambda d: call("fchownat", d, b"f", -1, os.getgid(), 0)),
    "utime": lambda t: call("utime", b(t, "f"), struct.pack("qq", 1, 2)),
    "utimes": lambda t: call("utimes", b(t, "f"), TIMES),
    "futimesat": at(lambda d: call("futimesat", d, b"f", TIMES)),
    "utimensat": at(lambda d: call("utimensat", d, b"s", TIMES, 0x100)),
    "futimens": opened(os.O_RDONLY, lambda fd: call("utimensat", fd, None, TIMES, 0)),
    "setxattr": lambda t: os.setxattr(os.path.join(t, "f"), "user.a", b"1"),
    "lsetxattr": lambda t: call("lsetxattr", b(t, "f"), b"user.a", b"1", 1, 0),
    "fsetxattr": opened(os.O_RDONLY, lambda fd: os.setxattr(fd, "user.a", b"1")),
    "setxattrat": lambda t: call("setxattrat", CWD, b(t, "f"), 0, b"user.a", XATTR, 16),
    "removexattr": lambda t: os.removexattr(os.path.join(t, "g"), "user.x"),
    "fremovexattr": opened(os.O_RDONLY, lambda fd: os.removexattr(fd, "user.x"), "g"),
    "removexattrat": lambda t: call("removexattrat", CWD, b(t, "g"), 0, b"user.x"),
    "file_setattr": lambda t: call("file_setattr", CWD, b(t, "f"), bytes(24), 24, 0),
    "bind": bind_socket,
    "fifo": lambda t: os.close(os.open(os.path.join(t, "p"), os.O_RDWR | os.O_NONBLOCK)),
    "handle": handle,
    "lock": opened(os.O_RDWR, lambda fd: fcntl.lockf(fd, fcntl.LOCK_EX)),
    "through-link": lambda t: call("truncate", b(t, "sd/x"), 1),
    "up-and-down": lambda t: call("truncate", b(t, "e/../f"), 1),
    "proc-fd": opened(os.O_RDONLY, lambda fd: closing(
        "openat", CWD, f"/proc/self/fd/{fd}".encode(), os.O_WRONLY | os.O_TRUNC, 0)),
    "proc-root": lambda t: call("truncate", b"/proc/self/root" + os.path.abspath(b(t, "f")), 1),
    "proc-cwd": lambda t: call("truncate", b"/proc/self/cwd/" + b(t, "f"), 1),
}


def prepare(name):
    os.mkdir(name)
    for path, text in (("f", "data f"), ("g", "data g"), ("h", "data h")):
        with open(f"{name}/{path}", "w") as f:
            f.write(text)
    os.link(f"{name}/h", f"{name}/h2")
    os.setxattr(f"{name}/g", "user.x", b"x")
    os.mkdir(f"{name}/d")
    os.mkdir(f"{name}/e")
    with open(f"{name}/e/x", "w") as f:
        f.write("x")
    os.symlink("f", f"{name}/s")
    os.symlink("e", f"{name}/sd")
    os.mkfifo(f"{name}/p")


def answer(run, top):
    try:
        run(top)
        return "ok"
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e.errno))


def main():
    if sys.argv[1] == "prepare":
        for name in CALLS:
            prepare(name)
        return
    for name, run in CALLS.items():
        if sys.argv[1] == "relative":
            os.chdir(name)
            print(name, answer(run, ""))
            os.chdir("..")
        else:
            print(name, answer(run, os.path.join(sys.argv[2], name)))


main()
