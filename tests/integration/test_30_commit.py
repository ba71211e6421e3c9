# SPDX-License-Identifier: Apache-2.0
"""Issue 6, points 4 to 7, where they need no sandbox: change sets of real overlayfs layers, commit,
undo, redo, recovery after a kill at every step and a failure at every step.

Invariant: trees are compared whole, metadata and links included, with the same operations on a
plain directory.
"""

import errno
import json
import os
import random
import subprocess

import pytest

import commit_host
import harness

SETUP = """
echo a > a; echo b > b; mkdir -p d/e; echo c > d/c; ln -s a s; echo h > h; ln h h2; echo q > q
mkdir rm; echo x > rm/x; mkfifo p; mkdir -p gone/deep; echo 1 > gone/deep/f; chmod 555 gone
seq 1 100 > lines; mkdir ro; echo r > ro/r; chmod 555 ro; echo same > same; chmod 640 b
find . -exec touch -h -d '2020-01-02 03:04:05.678901234' {} +
"""

RUN = """
echo z >> a; chmod 600 b; mv d/c d/c2; touch -h -d '2002-02-02' s; rm q; rm -r rm
mkdir rm; echo y > rm/y; mkdir n; ln a n/a2; chmod 640 p; mv b n/; mkfifo n/ff; mkdir n/sub
chmod 755 gone; rm -r gone; sed -i 's/^50$/fifty/;90d' lines; ln -s nowhere n/l
truncate -s 1G n/big; mkdir n/closed; echo k > n/closed/k; chmod 0 n/closed/k n/closed
chmod 755 ro; echo s > ro/s; rm ro/r; chmod 555 ro; cat same > copy; cat copy > same
"""

LISTED = """M  a
D  b
A  copy
D  d/c
A  d/c2
D  gone
D  gone/deep
D  gone/deep/f
M  lines
A  n
A  n/a2
A  n/b
A  n/big
A  n/closed
A  n/closed/k
A  n/ff
A  n/l
A  n/sub
M  p
D  q
D  rm/x
A  rm/y
D  ro/r
A  ro/s
M  s
M  same
"""


@pytest.fixture
def ws(place):
    yield commit_host.Workspace(place, SETUP)
    # Deeper than Python's own removal goes.
    subprocess.run(["rm", "-rf", place.top / "work", place.top / "state"], check=True)


def same(a, b):
    assert commit_host.difference(a, b) == {}


def expected(place, before_script, script):
    """The tree of a plain directory after both scripts, without times."""
    plain = place.dir("plain")
    for text in (before_script, script):
        subprocess.run(["sh", "-ec", text], cwd=plain, check=True, **place.account.popen_args())
    return commit_host.tree(plain, times=False)


def test_4_list(ws):
    before = ws.tree()
    ws.sandbox(RUN)
    assert ws.ok("changes", ws.id) == LISTED
    same(ws.tree(), before)


def test_4_nothing(ws):
    ws.sandbox("cat a; chmod 600 b; chmod 640 b; : >> lines; mkdir t; rmdir t")
    assert ws.ok("changes", ws.id) == ""
    assert ws.ok("changes", ws.id, "json") == "[]\n"
    before = ws.tree(times=False)
    assert ws.ok("apply", ws.id).split()[:2] == ["0", "0"]
    same(ws.tree(times=False), before)


def test_4_json(ws):
    ws.sandbox("rm a; mkdir a; echo new > f; rm s; ln -s b s; chmod 644 b")
    rows = {r["path"]: r for r in json.loads(ws.ok("changes", ws.id, "json"))}
    assert sorted(rows) == ["a", "b", "f", "s"]
    assert rows["a"]["what"] == ["type"]
    assert (rows["a"]["before"]["kind"], rows["a"]["after"]["kind"]) == ("file", "dir")
    assert rows["b"]["what"] == ["mode"]
    assert rows["f"]["before"] is None
    assert rows["f"]["after"]["sha256"] == \
        "7aa7a5359173d05b63cfd682e3c38487f3cb4f7f1d60659fe59fab1505977d4c"
    assert (rows["s"]["before"]["target"], rows["s"]["after"]["target"]) == ("a", "b")


def test_4_patch_applies(ws, place):
    """git makes the same tree from the patch, but for what git does not know."""
    ws.host("rm p; chmod 755 gone; rm -r gone; mkdir gone")
    copy = place.dir("copy")
    subprocess.run(["cp", "-a", f"{ws.work}/.", copy], check=True)
    ws.sandbox("echo z >> a; rm q; printf 'no end' > t; sed -i '1d;50d;99s/9/nine/' lines;"
               "chmod 755 d/c; rm s; ln -s q s; printf 'é \"q\"' > 'na\tme'; seq 5 60 > b")
    patch = ws.ok("changes", ws.id, "patch")
    subprocess.run(["git", "apply", "--whitespace=nowarn"], cwd=copy, check=True,
                   input=patch.encode(errors="surrogateescape"))
    ws.ok("apply", ws.id)
    mine = {p: v[5] for p, v in ws.tree().items()}
    theirs = {p: v[5] for p, v in commit_host.tree(copy).items()}
    assert mine == theirs


def test_5_commit_undo_redo(ws, place):
    before = ws.tree()
    ws.sandbox(RUN)
    ws.ok("apply", ws.id)
    after = ws.tree()
    same(ws.tree(times=False), expected(place, SETUP, RUN))
    ws.ok("undo", ws.id)
    same(ws.tree(), before)
    ws.ok("redo", ws.id)
    same(ws.tree(), after)
    ws.ok("undo", ws.id)
    same(ws.tree(), before)


def steps(ws, *words):
    code, _, err = ws.tool(*words, env={"TOOL_COUNT": "1"})
    assert code == 0, err
    return int(err.split()[-1])


@pytest.mark.parametrize("verb", ["apply", "undo", "redo"])
def test_5_killed_at_each_step(place, verb):
    """X2: after recovery the tree is the one before, or, at the very end, the one after."""
    ws = commit_host.Workspace(place, SETUP)
    ws.sandbox(RUN)
    start = ws.tree()
    n = steps(ws, "apply", ws.id)
    done = ws.tree()
    n = {"apply": n}.get(verb) or n
    if verb != "apply":
        n = steps(ws, "undo", ws.id)
    if verb == "redo":
        n = steps(ws, "redo", ws.id)
        ws.ok("undo", ws.id)
    elif verb == "undo":
        ws.ok("redo", ws.id)
    old, new = {"apply": (start, done), "undo": (done, start), "redo": (start, done)}[verb]
    landed = 0
    for at in range(1, n + 1):
        if verb == "apply":
            fresh(ws)
            old = ws.tree()
        code, _, err = ws.tool(verb, ws.id, env={"TOOL_KILL": str(at)})
        assert code == -9, (at, err)
        ws.ok("sweep")
        now = ws.tree()
        status = ws.ok("status", ws.id).strip()
        if commit_host.difference(now, old) == {}:
            assert status == {"apply": "kept", "undo": "committed", "redo": "undone"}[verb], at
            continue
        if verb != "apply":
            same(now, new)
        assert status == {"apply": "committed", "undo": "undone", "redo": "committed"}[verb], at
        landed += 1
        if verb != "apply":
            ws.ok("redo" if verb == "undo" else "undo", ws.id)
    assert 0 < landed < n


def fresh(ws):
    """The workdir and a layer anew."""
    subprocess.run(["sh", "-c", "chmod -R u+rwx . ; rm -rf ./* "], cwd=ws.work, check=True)
    if ws.residue():
        ws.ok("discard", ws.id)
    ws.host(SETUP)
    ws.sandbox(RUN)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_5_failed_at_each_step(place, code):
    """A failure anywhere leaves the tree as it was, and a later try lands."""
    ws = commit_host.Workspace(place, SETUP)
    ws.sandbox(RUN)
    n = steps(ws, "apply", ws.id)
    failed = 0
    for at in range(1, n + 1, 5):
        fresh(ws)
        old = ws.tree()
        env = {"TOOL_FAIL": str(at), "TOOL_ERRNO": str(code)}
        status, _, err = ws.tool("apply", ws.id, env=env)
        if status == 0:
            continue
        failed += 1
        ws.ok("sweep")
        same(ws.tree(), old)
        assert ws.ok("status", ws.id) == "kept\n"
        assert err.count("\n") == 1
        ws.ok("apply", ws.id)
    assert failed > n / 10


def test_5_conflicts(ws):
    ws.sandbox("echo mine >> a; echo mine > new; rm -r rm; rm q;"
               "chmod 600 lines; echo 2 >> d/c")
    ws.host("echo theirs >> a; echo theirs > new; echo more > rm/more; rm q; rm d/c")
    theirs = ws.tree()
    code, _, err = ws.tool("apply", ws.id)
    assert code == 1
    assert "changed by other programs since the run began" in err
    same(ws.tree(), theirs)
    assert ws.ok("status", ws.id) == "kept\n"
    rows = {r["path"]: r.get("conflict") for r in json.loads(ws.ok("changes", ws.id, "json"))}
    assert rows == {"a": "changed", "d/c": "removed", "lines": None, "new": "changed",
                    "rm": "changed", "rm/more": "changed", "rm/x": None}
    ws.ok("apply", ws.id, "--on-conflict", "theirs")
    left = ws.tree()
    assert left.pop(b"lines")[0] == "0o100600"
    theirs.pop(b"lines")
    same(left, theirs)


def test_5_conflicts_ours(ws):
    ws.sandbox("echo mine >> a; rm -r rm")
    ws.host("echo theirs >> a; echo more > rm/more")
    theirs = ws.tree()
    ws.ok("apply", ws.id, "--on-conflict", "ours")
    assert ws.tree()[b"a"][5] == b"a\nmine\n"
    assert not (ws.work / "rm").exists()
    ws.ok("undo", ws.id)
    same(ws.tree(), theirs)


def test_6_undo_refuses_changed(ws):
    ws.sandbox("echo mine >> a; mkdir n; echo f > n/f")
    ws.ok("apply", ws.id)
    ws.host("echo later > n/later")
    now = ws.tree()
    code, _, err = ws.tool("undo", ws.id)
    assert (code, "was changed since" in err) == (1, True)
    same(ws.tree(), now)
    ws.ok("undo", ws.id, "--force")
    assert not (ws.work / "n").exists()


def test_6_only(ws):
    ws.sandbox("echo mine >> a; mkdir -p n/m; echo f > n/m/f; echo g > n/g; rm q")
    ws.ok("apply", ws.id, "--only", "n/m/**")
    assert sorted(os.listdir(ws.work / "n")) == ["m"]
    assert ws.ok("changes", ws.id) == "M  a\nA  n/g\nD  q\n"
    assert ws.ok("status", ws.id) == "kept\n"
    ws.ok("apply", ws.id)
    assert (ws.work / "n/g").read_text() == "g\n"
    assert not (ws.work / "q").exists()


def test_5_hard_links(ws, place):
    """Names of one file stay, or become, names of one file."""
    run = "ln a l1; mkdir n; ln same n/l2; echo more > x; ln x y; ln x n/z; chmod 600 h; chmod 600 h2"
    ws.sandbox(run)
    ws.ok("apply", ws.id)
    same(ws.tree(times=False), expected(place, SETUP, run))
    ino = (ws.work / "h").stat().st_ino
    layer = ws.layer()
    ws.sandbox("echo 2 >> h", layer)
    ws.ok("apply", ws.id)
    assert (ws.work / "h").stat().st_ino == ino
    assert (ws.work / "h2").read_text() == "h\n2\n"


def test_5_other_file_system(place):
    """The storage on another file system than the workdir: copies instead of renames."""
    shm = "/dev/shm/sandlock-test-commit"
    subprocess.run(["rm", "-rf", shm], check=True)
    os.mkdir(shm, 0o700)
    place.account.own(shm)
    try:
        ws = commit_host.Workspace(place, SETUP, state=__import__("pathlib").Path(shm))
        before = ws.tree()
        run = RUN.replace("chmod 0 n/closed/k n/closed", ":").replace("ln a n/a2", "cp a n/a2")
        ws.sandbox(run)
        n = steps(ws, "apply", ws.id)
        after = ws.tree()
        same(ws.tree(times=False), expected(place, SETUP, run))
        ws.ok("undo", ws.id)
        same(ws.tree(), before)
        for at in range(1, n, 5):
            if ws.ok("status", ws.id) != "undone\n":
                break
            if ws.tool("redo", ws.id, env={"TOOL_KILL": str(at)})[0] == 0:
                break
            ws.ok("sweep")
            if ws.ok("status", ws.id) == "committed\n":
                same(ws.tree(), after)
                ws.ok("undo", ws.id)
            same(ws.tree(), before)
    finally:
        subprocess.run(["rm", "-rf", shm], check=True)


def test_7_sweep(ws):
    before = ws.tree()
    dead = ws.ok("create", "--running", ws.work).strip()
    assert ws.residue() == [dead]
    ws.ok("sweep")
    assert ws.residue() == []
    same(ws.tree(), before)


def test_5_attributes(ws, place):
    """User attributes and ACLs are carried; the file system's own are not."""
    code = """
import os
os.setxattr("a", "user.mine", b"1"); os.setxattr("d", "user.dir", b"2")
open("new", "w").close(); os.setxattr("new", "user.new", bytes(2000))
os.setxattr("d", "user.overlay.opaque", b"y")
open("hide", "w").close(); os.setxattr("hide", "user.overlay.whiteout", b"y")
"""
    ws.inside([harness.PYTHON, "-c", code])
    ws.ok("apply", ws.id)
    tree = ws.tree()
    assert tree[b"a"][4] == (("user.mine", b"1"),)
    assert tree[b"d"][4] == (("user.dir", b"2"),)
    assert tree[b"new"][4] == (("user.new", bytes(2000)),)
    assert tree[b"hide"][4] == ()
    assert [n for n, row in tree.items() if any("overlay" in x[0] for x in row[4])] == []


def test_4_names(ws):
    code = r"""
import os
for name in (b"\xff\xfe", b"a\nb", b"\x1b[31m", b"n" * 255, "\u202e".encode()):
    open(name, "w").close()
d = b"x" * 255
for _ in range(40):
    os.mkdir(d); os.chdir(d)
open("end", "w").close()
"""
    ws.inside([harness.PYTHON, "-c", code])
    text = ws.ok("changes", ws.id)
    assert "A  a\\x0Ab\n" in text or "A  a\\x0ab\n" in text
    assert "\x1b" not in text and "\u202e" not in text
    ws.ok("apply", ws.id)
    os.chdir(ws.work)
    for _ in range(40):
        os.chdir("x" * 255)
    assert os.listdir() == ["end"]
    os.chdir("/")
    ws.ok("undo", ws.id)
    assert b"\xff\xfe" not in ws.tree()


def test_5_deep(ws):
    """4,096 levels, added and taken back."""
    code = """
import os
for _ in range(4096):
    os.mkdir("x"); os.chdir("x")
open("end", "w").close()
"""
    ws.inside([harness.PYTHON, "-c", code])
    ws.ok("apply", ws.id)
    ws.ok("undo", ws.id)
    assert not (ws.work / "x").exists()


OPS = ["write", "append", "mkdir", "rmdir", "unlink", "rename", "link", "symlink", "chmod", "touch",
       "fifo", "xattr", "truncate"]

FUZZ = """
import os, random, sys
r = random.Random(int(sys.argv[1]))
names = ["a", "b", "c", "d"]
def path():
    return "/".join(r.choice(names) for _ in range(r.randint(1, 3)))
for _ in range(int(sys.argv[2])):
    p, q, op = path(), path(), r.choice(sys.argv[3].split(","))
    n = r.randint(0, 9)
    try:
        if op == "write": open(p, "w").write("w" * n)
        elif op == "append": open(p, "a").write("a" * n)
        elif op == "mkdir": os.mkdir(p)
        elif op == "rmdir": os.rmdir(p)
        elif op == "unlink": os.unlink(p)
        elif op == "rename" and not os.path.isdir(p): os.rename(p, q)
        elif op == "link" and sys.argv[4] == "links": os.link(p, q)
        elif op == "symlink": os.symlink(q, p)
        elif op == "chmod" and not os.path.islink(p):
            os.chmod(p, r.choice([0o755, 0o700] if os.path.isdir(p) else [0o644, 0o600, 0o755]))
        elif op == "touch": os.utime(p, ns=(n, n * 1000), follow_symlinks=False)
        elif op == "fifo": os.mkfifo(p)
        elif op == "xattr": os.setxattr(p, "user.x", b"x" * n, follow_symlinks=False)
        elif op == "truncate": os.truncate(p, n)
    except (OSError, ValueError):
        pass
"""


@pytest.mark.parametrize("seed", range(12))
def test_4_random(place, seed):
    """The same operations on a plain directory and under an overlay, committed: the same tree; the
    undone one is the one before."""
    make = [harness.PYTHON, "-c", FUZZ, str(seed), "150", ",".join(OPS), "no"]
    # O_WRONLY on a FIFO would wait: those of the first half are never opened by name.
    ops = ",".join(o for o in OPS if o not in ("fifo",))
    make[5] = ops
    change = [harness.PYTHON, "-c", FUZZ, str(seed + 1000), "150", ops, "no"]
    ws = commit_host.Workspace(place, None)
    plain = place.dir("plain")
    for top in (ws.work, plain):
        subprocess.run(make, cwd=top, check=True, **place.account.popen_args())
    before = ws.tree()
    subprocess.run(change, cwd=plain, check=True, **place.account.popen_args())
    ws.inside(change)
    same(ws.tree(), before)
    ws.ok("apply", ws.id)
    after = ws.tree()
    same(ws.tree(times=False), commit_host.tree(plain, times=False))
    if ws.residue() and ws.ok("status", ws.id) == "committed\n":
        ws.ok("undo", ws.id)
        same(ws.tree(), before)
        ws.ok("redo", ws.id)
        same(ws.tree(), after)


def changes(ws, *words):
    return harness.sandlock("changes", *words, "--fs-storage", ws.state, account=ws.account)


def test_6_command(ws):
    """The subcommand from end to end, and what it says to wrong words."""
    before = ws.tree()
    assert changes(ws).out == "No change sets.\n"
    ws.sandbox("echo z >> a; rm q; mkdir n")
    rows = json.loads(changes(ws, "list", "--json").out)
    assert [(r["id"], r["status"], r["workdirs"]) for r in rows] == [(ws.id, "kept", [str(ws.work)])]
    assert f"{ws.id} kept" in " ".join(changes(ws, "list").out.split())
    assert changes(ws, "show").out == "M  a\nA  n\nD  q\n"
    assert changes(ws, "show", ws.id, "--format=stat").out.endswith(
        "1 added, 1 modified, 1 deleted, 4 -> 4 bytes\n")
    r = changes(ws, "apply", ws.id)
    assert (r.code, r.out) == (
        0, f"Applied; 'sandlock changes undo {ws.id}' takes it back.\n")
    assert changes(ws, "show", ws.id).out == "M  a\nA  n\nD  q\n"
    assert changes(ws, "show", ws.id, "--format", "json").code == 1
    after = ws.tree()
    assert changes(ws, "undo").code == 0
    same(ws.tree(), before)
    assert changes(ws, "redo").code == 0
    same(ws.tree(), after)
    ws.host("echo later >> a")
    r = changes(ws, "undo", ws.id)
    assert (r.code, "was changed since" in r.err) == (1, True)
    assert changes(ws, "recover").code == 0
    assert changes(ws, "discard", ws.id).code == 0
    assert changes(ws).out == "No change sets.\n"
    for words in (["bogus"], ["apply"], ["list", "x"], ["undo", "--only", "x"]):
        assert changes(ws, *words).code == 2, words
    for words in (["apply", "../x"], ["undo", "nothing"], ["show"], ["apply", ".", "--only", "a"]):
        assert changes(ws, *words).code == 1, words


def test_6_storage_is_private(ws, place):
    """A state directory that another may write, or that is a link, is refused."""
    open_dir = place.dir("open", 0o777)
    code, _, err = commit_host.Workspace.tool(ws, "list")
    assert code == 0
    for path in (open_dir, place.top / "link"):
        if path.name == "link":
            path.symlink_to(ws.state)
        r = harness.sandlock("changes", "--fs-storage", path, account=ws.account)
        assert r.code == 1
        assert "state directory" in r.err


def test_5_exclusive(ws):
    """Two commits at once on one directory: each lands whole, or says that it was changed."""
    layers = [ws.layer(), ws.layer()]
    ids = [p.parent.parent.name for p in layers]
    for i, layer in enumerate(layers):
        ws.sandbox(f"for n in $(seq 50); do echo {i} > f$n; done", layer)
    tool = harness.INSTALLED.tools["commit-tool"]
    running = [subprocess.Popen([tool, ws.state, "apply", i], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **ws.account.popen_args()) for i in ids]
    codes = [p.wait(60) for p in running]
    for p in running:
        p.stdout.close()
        p.stderr.close()
    assert sorted(codes) == [0, 1]
    values = {(ws.work / f"f{n}").read_text() for n in range(1, 51)}
    assert values == {f"{codes.index(0)}\n"}


def test_6_retention(ws):
    for i in range(4):
        ws.sandbox(f"echo {i} > f{i}")
        ws.ok("apply", ws.id)
    ids = ws.residue()
    ws.sandbox("echo kept > k")
    ws.ok("retain", "2")
    assert ws.residue() == [*ids[2:], ws.id]


def test_5_refused_as_a_whole(ws):
    """A directory that may not be searched, one that is a file by now, a workdir that is another."""
    ws.host("mkdir shut; echo f > shut/f; chmod 600 shut")
    ws.sandbox("echo g > shut/g; echo z >> a")
    before = (ws.work / "a").read_text()
    code, _, err = ws.tool("apply", ws.id)
    assert (code, "shut" in err, "Permission denied" in err) == (1, True, True)
    assert (ws.work / "a").read_text() == before
    ws.sandbox("echo g > d/g; echo z >> a")
    ws.host("mv d d.old; echo file > d")
    now = ws.tree()
    code, _, err = ws.tool("apply", ws.id)
    assert (code, "was changed by" in err or "were changed by" in err) == (1, True)
    same(ws.tree(), now)
    ws.host("cd ..; mv work work.old; mkdir work")
    code, _, err = ws.tool("apply", ws.id)
    assert (code, "is not the directory" in err) == (1, True)
    assert list(ws.work.iterdir()) == []
    ws.host("cd ..; rmdir work; mv work.old work")
    same(ws.tree(), now)
    assert ws.ok("status", ws.id) == "kept\n"


def test_4_planted(ws):
    """Attributes and devices that somebody put below before the run do not lead a commit astray."""
    code = """
import os
os.setxattr("a", "user.overlay.whiteout", b"y"); os.setxattr("d", "user.overlay.opaque", b"y")
os.setxattr("d", "user.overlay.redirect", b"/etc"); os.setxattr("lines", "user.overlay.metacopy", b"")
"""
    ws.check([harness.PYTHON, "-c", code], cwd=ws.work)
    before = ws.tree()
    ws.sandbox("echo 2 > d/new; echo q >> q")
    ws.ok("apply", ws.id)
    after = ws.tree()
    assert sorted(commit_host.difference(before, after)) == [b"d", b"d/new", b"q"]
    assert [row[:3] for row in (before[b"d"], after[b"d"])][0] == after[b"d"][:3]
    ws.ok("undo", ws.id)
    same(ws.tree(), before)
