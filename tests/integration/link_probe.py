# SPDX-License-Identifier: Apache-2.0
"""Renames and links of many kinds from directory A to directory B, the two words: prints a line for
each, result and tree, the same wherever the kernel or somebody for it answers. Run by
test_16_metadata.py inside and outside of sandboxes."""

import ctypes
import errno
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, FOLLOW, EMPTY = -100, 0x400, 0x1000
A, B = sys.argv[1:3]
FROM = ["f", "d", "d/", "f/", "l", "l/", "ld", "ld/", "dang", "nope", "nope/x", ".", "d/..", "", "d/g",
        "ld/g", "f/x", "d/."]
TO = ["new", "new/", "t", "t/", "full", "empty", "empty/", ".", "empty/..", "", "nope/x", "t/x", "toa/z",
      "n" * 255, "n" * 256]
CALLS = [("renameat2", flags) for flags in (0, 1, 2, 3, 8)] + [("linkat", flags) for flags in (0, FOLLOW, 1)]


def call(name, *args):
    ctypes.set_errno(0)
    r = getattr(libc, name)(*(a.encode() if isinstance(a, str) else a for a in args))
    return errno.errorcode[ctypes.get_errno()] if r == -1 else str(r)


def tree():
    out = []
    for top in (A, B):
        for where, dirs, files in os.walk(top):
            for name in dirs + files:
                path = os.path.join(where, name)
                target = os.readlink(path).replace(A, "A") if os.path.islink(path) else ""
                out.append(os.path.relpath(path, os.path.dirname(top)) + target)
    return " ".join(sorted(out))


def fresh():
    for top in (A, B):
        for where, dirs, files in os.walk(top, topdown=False):
            for name in files + dirs:
                path = os.path.join(where, name)
                (os.rmdir if os.path.isdir(path) and not os.path.islink(path) else os.unlink)(path)
    for name in (A + "/d/e", B + "/full/x", B + "/empty"):
        os.makedirs(name)
    for name in (A + "/f", A + "/d/g", B + "/t"):
        with open(name, "w", encoding="ascii") as file:
            file.write(name)
    for target, name in (("f", "l"), ("nowhere", "dang"), ("d", "ld")):
        os.symlink(target, f"{A}/{name}")
    os.symlink(A, B + "/toa")


def below(top, name):
    return top + "/" + name if name else ""


for source in FROM:
    for target in TO:
        for name, flags in CALLS:
            fresh()
            result = call(name, AT_FDCWD, below(A, source), AT_FDCWD, below(B, target), flags)
            print(name, flags, source, target[:10], len(target), result, tree())
fresh()
print(call("rename", A + "/f", B + "/q"), call("link", B + "/q", A + "/q2"), tree())
os.chdir(B)
path_fd = os.open(A, os.O_PATH)
read_fd = os.open(B + "/empty", os.O_RDONLY)
print(call("renameat2", path_fd, "d", read_fd, "moved", 0), tree())
print(call("renameat2", path_fd, "nope/", read_fd, "moved", 0), call("renameat2", -1, "x", read_fd, "y", 0))
print(call("rename", "q", "toa/ld2"), call("rename", "../a/l", "k"), tree())
fd = os.open(B + "/t", os.O_RDONLY)
print(call("linkat", AT_FDCWD, f"/proc/self/fd/{fd}", AT_FDCWD, A + "/byfd", FOLLOW), tree())
gone = os.open(B + "/gone", os.O_RDWR | os.O_CREAT)
os.unlink(B + "/gone")
print(call("linkat", AT_FDCWD, "/proc/self/fd/999", AT_FDCWD, A + "/x", FOLLOW), tree())
