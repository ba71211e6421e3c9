# SPDX-License-Identifier: Apache-2.0
"""What overlayfs does otherwise than a plain directory, in the working directory, which `prepare`
has filled. Prints one line for each observation."""

import errno
import fcntl
import os
import signal
import stat
import struct
import sys
import tempfile


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def read(path):
    with open(path) as f:
        return f.read()


def prepare():
    for name in ("dir", "deep/a/b", "swap1", "swap2", "closed/in", "list", "held/sub", "merge/in"):
        os.makedirs(name)
    for name in ("dir/x", "deep/a/b/c", "swap1/1", "swap2/2", "closed/in/f", "held/sub/f", "file",
                 "open", "mapped", "locked", "list/1", "list/2", "list/3", "merge/in/low", "times"):
        write(name, name)
    for name in ("hard", "hard-chmod", "hard-rename", "single"):
        write(name, name)
    for name in ("hard", "hard-chmod", "hard-rename"):
        os.link(name, name + "2")
    os.symlink("c", "deep/a/b/link")
    os.setxattr("deep/a", "user.of", b"a")
    os.chmod("deep/a", 0o2751)
    os.utime("deep/a", ns=(10**18, 10**18 + 7))
    os.utime("times", ns=(10**18, 10**18 + 7))
    os.chmod("closed/in", 0o555)
    os.chmod("closed", 0o755)


def answer(fn, *args, **kw):
    try:
        r = fn(*args, **kw)
        return "ok" if r is None else r
    except OSError as e:
        return errno.errorcode[e.errno]


def tree(top):
    out = []
    for path, dirs, files in os.walk(top):
        dirs.sort()
        st = os.lstat(path)
        out.append((path, oct(st.st_mode), st.st_mtime_ns if path.endswith("deep2/a") else 0,
                    sorted(files), sorted(os.listxattr(path))))
    return out


def rename_dirs():
    yield "rename", answer(os.rename, "dir", "dir2"), os.listdir("dir2"), os.path.exists("dir")
    yield "deep", answer(os.rename, "deep", "deep2"), tree("deep2"), read("deep2/a/b/link")
    yield "back", answer(os.rename, "deep2", "deep"), os.path.isdir("deep/a/b")
    yield "closed", answer(os.rename, "closed", "closed2"), tree("closed2")
    fd = os.open("held/sub/f", os.O_RDWR)
    ino = os.fstat(fd).st_ino
    yield "open file", answer(os.rename, "held", "held2"), os.pread(fd, 99, 0)
    os.pwrite(fd, b"HELD", 0)
    yield "written", read("held2/sub/f"), os.stat("held2/sub/f").st_ino == ino
    write("merge/new", "new")
    yield "merged", answer(os.rename, "merge", "merge2"), tree("merge2")
    os.mkdir("merge")
    yield "made again", os.listdir("merge"), answer(os.rename, "merge2", "merge"), tree("merge")
    os.makedirs("fresh/sub")
    yield "fresh", answer(os.rename, "fresh", "fresh2"), os.listdir("fresh2")


def hard_links():
    write("hard", "changed")
    yield "write", read("hard2"), os.stat("hard").st_ino == os.stat("hard2").st_ino
    os.chmod("hard-chmod", 0o600)
    yield "chmod", oct(os.stat("hard-chmod2").st_mode)
    yield "same name", answer(os.rename, "hard-rename", "hard-rename2"), os.path.exists("hard-rename")
    os.link("single", "single2")
    yield "new", os.stat("single").st_nlink, os.stat("single").st_ino == os.stat("single2").st_ino
    os.chmod("single", 0o600)
    yield "chmod of new", oct(os.stat("single2").st_mode)


def open_files():
    fd = os.open("open", os.O_RDWR)
    os.unlink("open")
    yield "unlinked", os.pread(fd, 4, 0), answer(os.ftruncate, fd, 2), answer(os.fchmod, fd, 0o600)
    fd = os.open("file", os.O_RDONLY)
    os.unlink("file")
    yield "unlinked, read", answer(os.fchmod, fd, 0o600), answer(os.utime, fd)
    a = os.open("locked", os.O_RDONLY)
    fcntl.flock(a, fcntl.LOCK_EX | fcntl.LOCK_NB)
    b = os.open("locked", os.O_RDWR)
    yield "locks", answer(fcntl.flock, b, fcntl.LOCK_EX | fcntl.LOCK_NB)
    st = os.stat("times")
    os.close(os.open("times", os.O_WRONLY))
    yield "times", os.stat("times").st_mtime_ns == st.st_mtime_ns, os.stat("times").st_ino == st.st_ino


def directories():
    yield "listing", sorted(os.listdir("list"))
    with os.scandir("list") as it:
        for e in it:
            os.unlink(e.path)
    yield "emptied", os.listdir("list"), answer(os.rmdir, "list"), answer(os.listdir, "list")
    os.mkdir("list")
    yield "made again", os.listdir("list")
    yield "umask", oct(os.umask(0o027)), oct(os.umask(0o022))
    for name in ("n" * 255, b"\xff\xfe name", "n" * 256):
        yield "name", answer(os.mkdir, name)
    yield "loop", answer(os.symlink, "loop", "loop"), answer(os.open, "loop", os.O_RDONLY)
    yield "not a directory", answer(os.listdir, "times/x")
    os.mkdir("sticky")
    os.chmod("sticky", 0o3777)
    yield "setgid", oct(os.stat("sticky").st_mode), answer(os.mkdir, "sticky/d"), \
        oct(os.stat("sticky/d").st_mode)
    write("holes", "")
    os.truncate("holes", 1 << 20)
    yield "holes", os.stat("holes").st_blocks
    yield "fifo", answer(os.mkfifo, "fifo"), stat.filemode(os.lstat("fifo").st_mode)
    write("script", "#!/bin/sh\necho ran\n")
    os.chmod("script", 0o755)
    yield "exec", os.popen("./script").read()
    yield "getcwd", os.path.basename(os.getcwd())
    os.mkdir("here")
    os.chdir("here")
    yield "cwd", os.path.basename(os.getcwd())
    os.rename("../here", "../there")
    yield "cwd renamed", os.path.basename(os.getcwd())
    os.chdir("..")


def main():
    if sys.argv[1] == "prepare":
        prepare()
        return
    parts = {"rename": rename_dirs, "links": hard_links, "open": open_files, "dirs": directories}
    for line in parts[sys.argv[1]]():
        print(*line)


main()
