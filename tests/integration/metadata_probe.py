# SPDX-License-Identifier: Apache-2.0
"""Every call of the metadata family with good and bad arguments, in the directory that it is run in:
prints a line for each, result and state, the same wherever the kernel or somebody for it answers.
Run by test_16_metadata.py inside and outside of sandboxes. Words: the supplementary group to use."""

import ctypes
import errno
import mmap
import os
import platform
import socket
import struct
import sys
import tempfile

X86 = platform.machine() == "x86_64"
NR = {"fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "fchown": (93, 55),
      "fchownat": (260, 54), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6),
      "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15),
      "fremovexattr": (199, 16), "setxattrat": (463, 463), "removexattrat": (466, 466)}
NR = {name: pair[0 if X86 else 1] for name, pair in NR.items()}
if X86:
    NR.update({"chmod": 90, "chown": 92, "lchown": 94, "utime": 132, "utimes": 235, "futimesat": 261})
libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, NOFOLLOW, EMPTY = -100, 0x100, 0x1000
NOW, OMIT = (1 << 30) - 1, (1 << 30) - 2
UNMAPPED, KERNEL = 0x10, 0xffff888000000000
M64 = (1 << 64) - 1
keep = []


def raw(name, *args):
    words = []
    for a in args:
        if isinstance(a, str):
            a = a.encode()
        if isinstance(a, bytes):
            keep.append(ctypes.create_string_buffer(a))
            a = ctypes.addressof(keep[-1])
        words.append(ctypes.c_ulong((0 if a is None else a) & M64))
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(NR[name]), *words)
    return errno.errorcode[ctypes.get_errno()] if r == -1 else str(r)


def spec(*numbers):
    return struct.pack(f"{len(numbers)}q", *numbers)


def state(*names):
    out = []
    for name in names:
        st = os.lstat(name) if isinstance(name, str) else os.fstat(name)
        out.append(f"{st.st_mode:o} {st.st_uid == os.getuid()} {st.st_atime_ns if st.st_atime < 10**6 else 'now'}"
                   f" {st.st_mtime_ns if st.st_mtime < 10**6 else 'now'}")
    return "; ".join(out)


def tell(label, result, *names):
    print(f"{label}: {result} [{state(*names)}]")


def at_page_end(text):
    """The address of TEXT, behind which nothing is mapped."""
    area = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    addr = ctypes.addressof(ctypes.c_char.from_buffer(area))
    keep.append(area)
    ctypes.memmove(addr + mmap.PAGESIZE - len(text), text, len(text))
    assert libc.munmap(ctypes.c_void_p(addr + mmap.PAGESIZE), ctypes.c_size_t(mmap.PAGESIZE)) == 0
    return addr + mmap.PAGESIZE - len(text)


def make():
    os.umask(0o022)
    for name in ("f", "d/g", "other"):
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "w", encoding="ascii") as file:
            file.write("x")
    os.symlink("f", "l")
    os.symlink("d", "ld")
    os.symlink("nowhere", "dang")
    os.symlink("loop", "loop")
    os.mkfifo("fifo")
    os.mkdir("closed")
    with open("closed/f", "w", encoding="ascii"):
        pass
    os.chmod("closed", 0)


FD = {}


def descriptors():
    FD["r"] = os.open("f", os.O_RDONLY)
    FD["w"] = os.open("f", os.O_WRONLY)
    FD["path"] = os.open("f", os.O_PATH)
    FD["lpath"] = os.open("l", os.O_PATH | os.O_NOFOLLOW)
    FD["d"] = os.open("d", os.O_RDONLY)
    FD["pipe"] = os.pipe()[0]
    FD["sock"] = socket.socketpair()[0].detach()
    FD["memfd"] = os.memfd_create("x")
    fd, name = tempfile.mkstemp(dir=".")
    os.unlink(name)
    FD["gone"] = fd
    os.mkdir("gonedir")
    FD["gonedir"] = os.open("gonedir", os.O_RDONLY)
    os.rmdir("gonedir")
    FD["bad"] = 777
    FD["neg"] = -1
    FD["huge"] = 1 << 30


PATHS = ["f", "l", "ld/g", "d/../f", "./f", "d", "d/", "f/", "l/", "ld/", "dang", "dang/", "nope", "nope/x",
         "f/x", "loop", "loop/x", "", "closed/f", "closed/", "fifo", "x" * 255, "x" * 256, "y" * 4095,
         "./" * 2047 + "f", "./" * 2048 + "f", "/proc/self/cwd/f", "/proc/self/root/proc/self/cwd/f",
         "/proc/thread-self/cwd/l", "/proc/self/../self/cwd/d", "//proc//self//cwd//f"]


def fd_paths():
    for name, fd in FD.items():
        for form in ("/proc/self/fd/%d", "/dev/fd/%d", "/proc/thread-self/fd/%d"):
            yield f"{form % 0}{name}", form % fd


def modes():
    for p in PATHS:
        mode = 0o700 if len(p) % 2 else 0o740
        if X86:
            tell(f"chmod {p[:40]} {len(p)}", raw("chmod", p, mode), "f", "d")
        tell(f"fchmodat {p[:40]} {len(p)}", raw("fchmodat", AT_FDCWD, p, mode | 0o20), "f", "d")
        for flags in (0, NOFOLLOW, EMPTY, EMPTY | NOFOLLOW, 1):
            tell(f"fchmodat2 {p[:40]} {len(p)} {flags:x}",
                 raw("fchmodat2", AT_FDCWD, p, mode | 0o10, flags), "f", "d")
        os.chmod("d", 0o755)
    for label, p in fd_paths():
        tell(f"fchmodat {label}", raw("fchmodat", AT_FDCWD, p, 0o754), "f")
    for name, fd in FD.items():
        tell(f"fchmod {name}", raw("fchmod", fd, 0o4711), "f", "d")
        tell(f"fchmodat dirfd {name}", raw("fchmodat", fd, "g", 0o701), "d/g")
        tell(f"fchmodat dirfd {name} ..", raw("fchmodat", fd, "../f", 0o702), "f")
        tell(f"fchmodat dirfd {name} absolute", raw("fchmodat", fd, os.path.abspath("f"), 0o703), "f")
        tell(f"fchmodat2 empty {name}", raw("fchmodat2", fd, "", 0o704, EMPTY), "f")
        os.chmod("d", 0o755)
        tell(f"fchmodat2 null {name}", raw("fchmodat2", fd, None, 0o705, EMPTY), "f")
        os.chmod("d", 0o755)
    tell("wide mode", raw("fchmod", FD["r"], 0xdeadbeef00000000 | 0o177777), "f")
    tell("wide descriptor", raw("fchmod", 0xdeadbeef00000000 | FD["r"], 0o600), "f")
    for label, p in (("null", None), ("unmapped", UNMAPPED), ("kernel", KERNEL),
                     ("page end", at_page_end(b"f\0")), ("no end", at_page_end(b"ffff")),
                     ("long no end", at_page_end(b"f" * 4090))):
        tell(f"fchmodat {label}", raw("fchmodat", AT_FDCWD, p, 0o640), "f")
    for name in ("memfd", "pipe", "sock", "gone"):
        raw("fchmod", FD[name], 0o640)
        print(name, oct(os.fstat(FD[name]).st_mode))


def owners():
    uid, gid = os.getuid(), os.getgid()
    for p in PATHS:
        if X86:
            tell(f"chown {p[:40]}", raw("chown", p, uid, gid), "f")
            tell(f"lchown {p[:40]}", raw("lchown", p, uid, gid), "f", "l")
        for flags in (0, NOFOLLOW, EMPTY, EMPTY | NOFOLLOW, 0x400, 0x40000000):
            tell(f"fchownat {p[:40]} {flags:x}", raw("fchownat", AT_FDCWD, p, uid, -1, flags), "f")
    for label, p in fd_paths():
        tell(f"fchownat {label}", raw("fchownat", AT_FDCWD, p, -1, gid, 0), "f")
    os.chmod("f", 0o6755)
    tell("clears bits", raw("fchownat", AT_FDCWD, "f", uid, gid, 0), "f")
    for name, fd in FD.items():
        tell(f"fchown {name}", raw("fchown", fd, uid, gid), "f")
        tell(f"fchown {name} none", raw("fchown", fd, -1, -1), "f")
        tell(f"fchownat {name} empty", raw("fchownat", fd, "", uid, gid, EMPTY), "f")
        tell(f"fchownat {name} null", raw("fchownat", fd, None, uid, gid, EMPTY), "f")
    tell("unmapped", raw("fchownat", AT_FDCWD, UNMAPPED, uid, gid, 0), "f")
    if len(sys.argv) > 1 and sys.argv[1] != "-":
        for ids in ((-1, int(sys.argv[1])), (uid, int(sys.argv[1])), (0, -1), (-1, 0), (12345, 12345)):
            print("foreign", ids, raw("fchownat", AT_FDCWD, "other", *ids, 0))
            print("foreign fd", ids, raw("fchown", FD["r"], *ids))


def times():
    for p in PATHS:
        for flags in (0, NOFOLLOW, EMPTY, 1):
            tell(f"utimensat {p[:40]} {flags:x}",
                 raw("utimensat", AT_FDCWD, p, spec(7, 8, 9, 10), flags), "f", "l", "d")
        if X86:
            tell(f"utime {p[:40]}", raw("utime", p, spec(11, 12)), "f")
            tell(f"utimes {p[:40]}", raw("utimes", p, spec(13, 14, 15, 16)), "f")
            tell(f"futimesat {p[:40]}", raw("futimesat", AT_FDCWD, p, spec(17, 18, 19, 20)), "f")
    for label, p in fd_paths():
        tell(f"utimensat {label}", raw("utimensat", AT_FDCWD, p, spec(1, 2, 3, 4), 0), "f")
    for name, fd in FD.items():
        tell(f"futimens {name}", raw("utimensat", fd, None, spec(21, 22, 23, 24), 0), "f")
        tell(f"futimens {name} flags", raw("utimensat", fd, None, spec(21, 22, 23, 24), NOFOLLOW), "f")
        tell(f"utimensat {name} empty", raw("utimensat", fd, "", spec(25, 26, 27, 28), EMPTY), "f")
        tell(f"utimensat {name} null empty", raw("utimensat", fd, None, spec(5, 6, 7, 8), EMPTY), "f")
        if X86:
            tell(f"futimesat {name} null", raw("futimesat", fd, None, spec(29, 30, 31, 32)), "f")
    tell("no path", raw("utimensat", AT_FDCWD, None, spec(1, 1, 1, 1), 0), "f")
    for a in (0, 5, 999999999, 1000000000, -1, NOW, OMIT, NOW - 2):
        for b in (0, NOW, OMIT, 1000000000):
            tell(f"nsec {a} {b}", raw("utimensat", AT_FDCWD, "f", spec(1, a, 2, b), 0), "f")
            tell(f"nsec {a} {b} nowhere", raw("utimensat", AT_FDCWD, "nope", spec(1, a, 2, b), 0), "f")
    tell("now", raw("utimensat", AT_FDCWD, "f", None, 0), "f")
    for addr in (UNMAPPED, KERNEL, at_page_end(b"x" * 31)):
        tell("bad times", raw("utimensat", AT_FDCWD, "f", addr, 0), "f")
        tell("bad times nowhere", raw("utimensat", AT_FDCWD, "nope", addr, 0), "f")
        if X86:
            tell("bad times", raw("utimes", "f", addr), "f")
            tell("bad times", raw("utime", "f", addr if addr != KERNEL else UNMAPPED), "f")
    if X86:
        for us in (0, 999999, 1000000, -1):
            tell(f"usec {us}", raw("utimes", "f", spec(1, us, 2, 0)), "f")
            tell(f"usec {us} nowhere", raw("futimesat", AT_FDCWD, "nope", spec(1, us, 2, 0)), "f")
        tell("now", raw("utime", "f", None), "f")
        tell("now", raw("utimes", "f", None), "f")


def attributes():
    def show(label, result):
        names = {n: os.getxattr("f", n) for n in sorted(os.listxattr("f"))}
        print(label, result, {n: v[:8] for n, v in names.items()})

    for p in PATHS:
        show(f"setxattr {p[:40]}", raw("setxattr", p, "user.a", b"1", 1, 0))
        show(f"lsetxattr {p[:40]}", raw("lsetxattr", p, "user.b", b"2", 1, 0))
        show(f"removexattr {p[:40]}", raw("removexattr", p, "user.a"))
        show(f"lremovexattr {p[:40]}", raw("lremovexattr", p, "user.b"))
        for flags in (0, NOFOLLOW, EMPTY, 1):
            show(f"setxattrat {p[:40]} {flags:x}",
                 raw("setxattrat", AT_FDCWD, p, flags, "user.c", attr_args(b"34", 2, 0), 16))
            show(f"removexattrat {p[:40]} {flags:x}", raw("removexattrat", AT_FDCWD, p, flags, "user.c"))
    for name, fd in FD.items():
        show(f"fsetxattr {name}", raw("fsetxattr", fd, "user.d", b"x", 1, 0))
        show(f"fremovexattr {name}", raw("fremovexattr", fd, "user.d"))
        for p in ("", None, "g"):
            show(f"setxattrat {name} {p}",
                 raw("setxattrat", fd, p, EMPTY, "user.e", attr_args(b"x", 1, 0), 16))
            show(f"removexattrat {name} {p}", raw("removexattrat", fd, p, EMPTY, "user.e"))
    for label, p in fd_paths():
        show(f"setxattr {label}", raw("setxattr", p, "user.f", b"1", 1, 0))
        show(f"removexattr {label}", raw("removexattr", p, "user.f"))
    for n in ("", "a", "user.", "user", "nope.x", "trusted.x", "security.x", "system.x", "user." + "n" * 250,
              "user." + "n" * 251, "user." + "n" * 300, None, UNMAPPED, KERNEL):
        label = n[:20] + str(len(n)) if isinstance(n, str) else n
        show(f"name {label}", raw("setxattr", "f", n, b"v", 1, 0))
        show(f"name {label} nowhere", raw("setxattr", "nope", n, b"v", 1, 0))
        show(f"remove {label}", raw("removexattr", "f", n))
    for size in (0, 1, 3000, 65536, 65537, 1 << 31, 1 << 32, M64):
        show(f"size {size}", raw("setxattr", "f", "user.s", b"v" * min(size, 70000), size, 0)
             if size <= 3000 or size > 65536 else "-")
        show(f"size {size} remove", raw("removexattr", "f", "user.s"))
    for value in (None, UNMAPPED, KERNEL):
        show("bad value", raw("setxattr", "f", "user.v", value, 5, 0))
        show("bad value, none", raw("setxattr", "f", "user.v", value, 0, 0))
    for flags in (1, 2, 3, 4, 1 << 31, 1 << 32):
        show(f"flags {flags}", raw("setxattr", "f", "user.v", b"1", 1, flags))
    for size in (0, 8, 15, 16, 17, 24, 4096, 4097, 1 << 40):
        args = attr_args(b"q", 1, 0) + b"\0" * 5000
        show(f"args {size}", raw("setxattrat", AT_FDCWD, "f", 0, "user.w", args, size))
        show(f"args {size} tail",
             raw("setxattrat", AT_FDCWD, "f", 0, "user.w", args[:16] + b"\1" * 5000, size))
    show("args bad", raw("setxattrat", AT_FDCWD, "f", 0, "user.w", UNMAPPED, 16))


def attr_args(value, size, flags):
    keep.append(ctypes.create_string_buffer(value))
    return struct.pack("QII", ctypes.addressof(keep[-1]), size, flags)


make()
descriptors()
for part in (modes, owners, times, attributes):
    print("==", part.__name__)
    part()
