# SPDX-License-Identifier: Apache-2.0
"""Tries the calls that standard input names, one JSON list of [function, arguments...] each, and
prints a JSON list with what each came to: the name of the errno, or "ok". Run by test_18_explain.py
in sandboxes."""

import ctypes
import errno
import fcntl
import json
import os
import platform
import signal
import socket
import struct
import sys

X86 = platform.machine() == "x86_64"
NR = {"ptrace": (101, 117), "personality": (135, 92), "adjtimex": (159, 171), "shmget": (29, 194),
      "semget": (64, 190), "msgget": (68, 186), "process_vm_readv": (310, 270),
      "process_vm_writev": (311, 271), "kcmp": (312, 272), "clock_adjtime": (305, 266),
      "name_to_handle_at": (303, 264), "mount": (165, 40), "unshare": (272, 97), "bpf": (321, 280),
      "keyctl": (250, 219), "clone": (56, 220), "execveat": (322, 281), "sendmmsg": (307, 269),
      "chroot": (161, 51), "truncate": (76, 45), "linkat": (265, 37), "renameat2": (316, 276)}
NR = {name: pair[0 if X86 else 1] for name, pair in NR.items()}
NR.update(openat2=437, pidfd_getfd=438, fchmodat2=452, memfd_secret=447)
if X86:
    NR.update(open=2, creat=85, mkdir=83, rmdir=84, unlink=87, rename=82, link=86, symlink=88,
              mknod=133, chmod=90, chown=92, lchown=94, utime=132)
libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, EMPTY = -100, 0x1000
keep = []


def raw(name, *args):
    words = []
    for a in args:
        if isinstance(a, str):
            a = a.encode()
        if isinstance(a, bytes):
            keep.append(ctypes.create_string_buffer(a))
            a = ctypes.addressof(keep[-1])
        words.append(ctypes.c_ulong(a & (1 << 64) - 1))
    r = libc.syscall(ctypes.c_long(NR[name]), *words)
    if r < 0:
        raise OSError(ctypes.get_errno(), name)
    return r


def address(data):
    keep.append(ctypes.create_string_buffer(data, len(data)))
    return ctypes.addressof(keep[-1])


def path_fd(path):
    return os.open(path, os.O_PATH)


# --- Files ------------------------------------------------------------------------------------


def open_(path, flags, mode=0o644):
    os.close(os.open(path, flags, mode))


def open_relative(directory, name, flags):
    os.chdir(directory)
    try:
        open_(name, flags)
    finally:
        os.chdir("/")


def open_at(directory, name, flags):
    os.close(os.open(name, flags, dir_fd=path_fd(directory)))


def open2(path, flags):
    raw("openat2", AT_FDCWD, path, struct.pack("QQQ", flags, 0, 0), 24)


def list_(path):
    os.listdir(path)


def truncate(path):
    raw("truncate", path, 1)


def mkdir_at(directory, name):
    os.mkdir(name, dir_fd=path_fd(directory))


def unlink_at(directory, name):
    os.unlink(name, dir_fd=path_fd(directory))


def mknod(path):
    os.mknod(path, 0o100644)


def bind_unix(path):
    socket.socket(socket.AF_UNIX).bind(path)


def rename2(old, new, flags):
    raw("renameat2", AT_FDCWD, old, AT_FDCWD, new, flags)


def fchmod(path):
    os.fchmod(os.open(path, os.O_RDONLY), 0o600)


def fchown(path):
    os.fchown(os.open(path, os.O_RDONLY), os.getuid(), -1)


def chown(path):
    os.chown(path, os.getuid(), -1)


def lchown(path):
    os.lchown(path, os.getuid(), -1)


def futimens(path):
    os.utime(os.open(path, os.O_RDONLY), (1, 1))


def lutime(path):
    os.utime(path, (1, 1), follow_symlinks=False)


def setxattr(path):
    os.setxattr(path, "user.x", b"1")


def removexattr(path):
    os.removexattr(path, "user.y")


def flock(path):
    fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)


def lease(path):
    fcntl.fcntl(os.open(path, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)


def watch(path):
    fd = libc.inotify_init1(0)
    if libc.inotify_add_watch(fd, path.encode(), 2) < 0:
        raise OSError(ctypes.get_errno(), "inotify_add_watch")


# --- Programs ---------------------------------------------------------------------------------


def in_child(fn):
    """What FN, which executes something, fails with; nothing if it does execute."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            fn()
        except OSError as e:
            os.write(writer, bytes([e.errno]))
        os._exit(1)
    os.close(writer)
    code = os.read(reader, 1)
    os.waitpid(pid, 0)
    os.close(reader)
    if code:
        raise OSError(code[0], "exec")


def execute(path):
    in_child(lambda: os.execv(path, [path]))


def execute_at(directory, name):
    argv = struct.pack("QQ", address(name.encode() + b"\0"), 0)
    in_child(lambda: raw("execveat", path_fd(directory), name, argv, struct.pack("Q", 0), 0))


def execute_fd(path):
    argv = struct.pack("QQ", address(path.encode() + b"\0"), 0)
    in_child(lambda: raw("execveat", path_fd(path), "", argv, struct.pack("Q", 0), EMPTY))


# --- Sockets ----------------------------------------------------------------------------------

TYPES = {"stream": socket.SOCK_STREAM, "dgram": socket.SOCK_DGRAM, "seq": socket.SOCK_SEQPACKET}


def unix(kind):
    return socket.socket(socket.AF_UNIX, TYPES[kind])


def connect_unix(kind, path):
    unix(kind).connect(path)


def connect_abstract(kind, name):
    unix(kind).connect("\0" + name)


def sendto_unix(path):
    unix("dgram").sendto(b"x", path)


def sendmsg_unix(path):
    unix("dgram").sendmsg([b"x"], [], 0, path)


def pair_sendto(path):
    socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", path)


def sendmmsg_unix(path):
    name = struct.pack("H", socket.AF_UNIX) + path.encode() + b"\0"
    iov = struct.pack("QQ", address(b"x"), 1)
    message = struct.pack("QIxxxxQQQQixxxx", address(name), len(name), address(iov), 1, 0, 0, 0)
    s = unix("dgram")
    raw("sendmmsg", s.fileno(), message + b"\0" * 8, 1, 0)


def connect_tcp(host, port):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    socket.socket(family).connect((host, port))


def bind_tcp(host, port):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((host, port))


def listen_unbound():
    socket.socket().listen(1)


def socket_(family, kind, protocol):
    socket.socket(family, kind, protocol)


def option(level, name):
    socket.socket().setsockopt(level, name, 1)


# --- Processes and the rest -------------------------------------------------------------------


def vm(name):
    data = address(b"abc")
    iov = struct.pack("QQ", data, 3)
    raw(name, os.getpid(), iov, 1, iov, 1, 0)


def getfd():
    raw("pidfd_getfd", os.pidfd_open(os.getpid()), 1, 0)


def traceme():
    # In a child, so that nobody has a tracer that does not wait for it.
    in_child(lambda: raw("ptrace", 0, 0, 0, 0) and None)


def kcmp():
    raw("kcmp", os.getpid(), os.getpid(), 0, 0, 0)


def adjtimex():
    raw("adjtimex", b"\0" * 512)


def clock_adjtime():
    raw("clock_adjtime", 0, b"\0" * 512)


def handle(path):
    raw("name_to_handle_at", AT_FDCWD, path, struct.pack("Ii", 128, 0) + b"\0" * 128, b"\0" * 8, 0)


def kill(pid):
    os.kill(pid, 0)


def rt_kill(pid):
    signal.pidfd_send_signal(os.pidfd_open(pid), 0)


def ioctl(request):
    fcntl.ioctl(os.open("/dev/null", os.O_RDONLY), request, 0)


def ioctl_flags(path):
    fcntl.ioctl(os.open(path, os.O_RDONLY), 0x40086602, struct.pack("Q", 0))


def prctl(number):
    if libc.prctl(number, 0, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "prctl")


def limit(pid):
    # The lowest half of the pair is enough: the filter looks at the number alone.
    if libc.prlimit(pid, 7, None, None) < 0:
        raise OSError(ctypes.get_errno(), "prlimit64")


def main():
    found = []
    for name, *args in json.load(sys.stdin):
        fn = getattr(os, name[3:]) if name.startswith("os_") else globals().get(name)
        try:
            fn(*args) if callable(fn) else raw(name, *args)
            found.append("ok")
        except OSError as e:
            found.append("EOPNOTSUPP" if e.errno == errno.EOPNOTSUPP else errno.errorcode[e.errno])
    print(json.dumps(found))


main()
