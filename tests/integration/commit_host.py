# SPDX-License-Identifier: Apache-2.0
"""What test_30_commit.py stands on: trees as values, a workdir under a real overlay, and the program
commit_tool, which drives src/fs.

Invariant: a tree's value holds all that a program could see of it but access times, change times
and inode numbers, of which only which names share one.
"""

import os
import stat
import subprocess

import harness

OVERLAY = """
mount -t overlay overlay -o userxattr,lowerdir="$1",upperdir="$2/upper",workdir="$2/work" "$1" &&
cd "$1" && shift 2 && exec "$@"
"""


def xattrs(path):
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError:
        return ()
    return tuple(sorted((n, os.getxattr(path, n, follow_symlinks=False)) for n in names))


def tree(top, times=True):
    """{path: what is there} of TOP and all below it."""
    top = os.fsencode(top)
    out = {}
    links = {}
    todo = [b""]
    while todo:
        rel = todo.pop()
        path = os.path.join(top, rel) if rel else top
        st = os.lstat(path)
        kind = stat.S_IFMT(st.st_mode)
        body = None
        if kind == stat.S_IFREG:
            with open(path, "rb") as f:
                body = f.read() if st.st_size < 1 << 24 else (st.st_size, st.st_blocks)
        elif kind == stat.S_IFLNK:
            body = os.readlink(path)
        elif kind == stat.S_IFDIR:
            todo += [os.path.join(rel, name) for name in os.listdir(path)]
        if kind != stat.S_IFDIR:
            links.setdefault(st.st_ino, []).append(rel)
        out[rel] = [oct(st.st_mode), st.st_uid, st.st_gid, st.st_mtime_ns if times else None,
                    xattrs(path), body]
    for names in links.values():
        for name in names:
            out[name].append(tuple(sorted(names)))
    return out


def difference(a, b):
    """The paths at which two trees differ, with both values: short, for a failed assertion."""
    return {p: (a.get(p), b.get(p)) for p in sorted(set(a) | set(b)) if a.get(p) != b.get(p)}


class Workspace:
    """A workdir, a state directory, and a layer over the former."""

    def __init__(self, place, setup, state=None):
        self.account = place.account
        self.work = place.dir("work")
        self.state = state or place.dir("state", 0o700)
        self.id = None
        if setup:
            self.host(setup)

    def host(self, script):
        """Runs a shell script in the workdir itself, as its user."""
        self.check(["sh", "-ec", script], cwd=self.work)

    def check(self, argv, **kw):
        done = subprocess.run(argv, capture_output=True, check=False,
                              **self.account.popen_args(), **kw)
        assert done.returncode == 0, (argv, done.stderr)
        return done.stdout

    def tool(self, *words, env=None):
        """Runs the program; (exit status, output, errors)."""
        argv = [harness.INSTALLED.tools["commit-tool"], self.state, *map(str, words)]
        done = subprocess.run(argv, capture_output=True, check=False, errors="surrogateescape",
                              env={**os.environ, **(env or {})}, **self.account.popen_args())
        return done.returncode, done.stdout, done.stderr

    def ok(self, *words, **kw):
        code, out, err = self.tool(*words, **kw)
        assert (code, err) == (0, ""), (words, code, err)
        return out

    def layer(self):
        self.id = self.ok("create", self.work).strip()
        return self.state / "changes" / self.id / "layers" / "0"

    def inside(self, argv, layer=None):
        """Runs ARGV in the workdir under an overlay, which ends with it."""
        layer = layer or self.layer()
        return self.check(["unshare", "-Urm", "sh", "-c", OVERLAY, "sh", self.work, layer, *argv])

    def sandbox(self, script, layer=None):
        return self.inside(["sh", "-ec", script], layer)

    def tree(self, times=True):
        return tree(self.work, times)

    def residue(self):
        """What is left in the state directory besides its locks."""
        return sorted(os.listdir(self.state / "changes"))
