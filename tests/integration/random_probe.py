# SPDX-License-Identifier: Apache-2.0
"""Random operations in the working directory, SEED and COUNT given: prints what each answered, and
the tree at the end. Links between files are left out: docs/workspace.md says what differs there."""

import errno
import os
import random
import sys

NAMES = ["a", "b", "c", "d", "e"]


def path(r):
    return "/".join(r.choice(NAMES) for _ in range(r.choice([1, 1, 2, 2, 3, 4])))


def write(p, text, flags):
    # A FIFO would wait for a reader.
    fd = os.open(p, flags | os.O_NONBLOCK, 0o644)
    os.write(fd, text)
    os.close(fd)


def remove_tree(p):
    for top, dirs, files in os.walk(p, topdown=False):
        for name in files:
            os.unlink(os.path.join(top, name))
        for name in dirs:
            q = os.path.join(top, name)
            os.unlink(q) if os.path.islink(q) else os.rmdir(q)
    os.rmdir(p)


def make_tree(r, p):
    for name in NAMES:
        os.makedirs(f"{p}/{name}", exist_ok=True)
        write(f"{p}/{name}/{r.choice(NAMES)}", b"t", os.O_WRONLY | os.O_CREAT)


def exchange(p, q):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, p.encode(), -100, q.encode(), 2) < 0:
        raise OSError(ctypes.get_errno(), "exchange")


def one(r, i):
    p, q = path(r), path(r)
    text = f"{i} {r.random()}".encode()
    ops = {
        "create": lambda: write(p, text, os.O_WRONLY | os.O_CREAT | os.O_EXCL),
        "write": lambda: write(p, text, os.O_WRONLY | os.O_TRUNC),
        "append": lambda: write(p, text, os.O_WRONLY | os.O_APPEND | os.O_CREAT),
        "mkdir": lambda: os.mkdir(p),
        "tree": lambda: make_tree(r, p),
        "rmdir": lambda: os.rmdir(p),
        "rmtree": lambda: remove_tree(p),
        "unlink": lambda: os.unlink(p),
        "rename": lambda: os.rename(p, q),
        "rename2": lambda: os.rename(p, q),
        "exchange": lambda: exchange(p, q),
        "symlink": lambda: os.symlink(q, p),
        "chmod": lambda: os.path.islink(p) or os.chmod(p, 0o755 if os.path.isdir(p) else 0o600),
        "utime": lambda: os.utime(p, ns=(i, i), follow_symlinks=False),
        "truncate": lambda: os.truncate(p, i % 7),
        "xattr": lambda: os.setxattr(p, "user.r", text, follow_symlinks=False),
        "fifo": lambda: os.mkfifo(p),
        "list": lambda: print(sorted(os.listdir(p))),
    }
    op = r.choice(list(ops))
    try:
        ops[op]()
        said = "ok"
    except OSError as e:
        said = errno.errorcode[e.errno]
    print(i, op, p, q, said)


def main():
    r = random.Random(int(sys.argv[1]))
    for i in range(int(sys.argv[2])):
        one(r, i)


main()
