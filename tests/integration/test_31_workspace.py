# SPDX-License-Identifier: Apache-2.0
"""Issue 6: workspaces in a running sandbox, namespace view."""

import json
import os
import pathlib
import shutil
import stat
import subprocess
import time

import pytest

import harness
from checks import ok, quiet_ok, refused

HERE = pathlib.Path(__file__).resolve().parent


def probe(name, *words):
    return [harness.PYTHON, "-c", (HERE / name).read_text(), *map(str, words)]


def look(top, times=True):
    """Everything of a tree that a program could see, by path; with all TIMES or the mode and such."""
    found = {}
    for path in [top, *sorted(pathlib.Path(top).rglob("*"))]:
        st = os.lstat(path)
        entry = [stat.filemode(st.st_mode), st.st_uid, st.st_gid, st.st_rdev]
        if not stat.S_ISDIR(st.st_mode):
            entry += [st.st_size, st.st_nlink]
        if times:
            entry += [st.st_ino, st.st_mtime_ns, st.st_ctime_ns, st.st_nlink]
        if stat.S_ISREG(st.st_mode):
            entry.append(path.read_bytes())
        if stat.S_ISLNK(st.st_mode):
            entry.append(os.readlink(path))
        else:
            entry += [(n, os.getxattr(path, n)) for n in sorted(os.listxattr(path))
                      if not n.startswith("security.")]
        found[str(path.relative_to(top))] = entry
    return found


class Workspace:
    """A workdir, and a home with the state directory."""

    def __init__(self, place, account=None):
        self.account = account or harness.USER
        self.mode = "root" if self.account.uid == 0 else "base"
        self.work = place.dir("work")
        self.home = place.dir("home")
        for path in (self.work, self.home):
            self.account.own(path)
        self.state = self.home / ".local/state/sandlock"
        self.env = {"HOME": str(self.home)}

    def outside(self, argv, cwd=None, code=0):
        r = harness.run(argv, cwd=cwd or self.work, account=self.account)
        assert r.code == code, f"{r!r}"
        return r

    def host(self, text):
        return self.outside(["/bin/sh", "-ec", text])

    def run(self, flags, argv, cwd="/", **kw):
        return harness.sandbox(["--workdir", self.work, *flags], argv, mode=self.mode,
                               env={**self.env, **kw.pop("env", {})}, cwd=cwd, **kw)

    def sh(self, flags, text, **kw):
        return self.run(flags, ["/bin/sh", "-ec", text], **kw)

    def sets(self):
        top = self.state / "changes"
        return sorted(os.listdir(top)) if top.exists() else []


@pytest.fixture
def ws(place):
    yield Workspace(place)
    subprocess.run(["rm", "-rf", place.top / "work", place.top / "home"], check=True)


@pytest.fixture
def root_ws(place):
    yield Workspace(place, harness.ROOT_USER)
    subprocess.run(["rm", "-rf", place.top / "work", place.top / "home"], check=True)


# --- 1: nothing reaches the real tree before the commit -------------------------------------------


def mutate(ws, how, flags, argv):
    ws.outside(probe("mutate_probe.py", "prepare"))
    before = look(ws.work)
    inside = ws.run(["--on-exit", "abort", *flags], argv).lines
    assert look(ws.work) == before
    return inside


# What a sandbox never has, and what overlayfs does otherwise (docs/workspace.md).
DIFFERS = {"handle", "fsetflags", "file_setattr", "reflink", "setxattrat", "removexattrat"}


@pytest.mark.parametrize("how", ["relative", "absolute"])
def test_1_no_call_changes_the_real_tree(place, ws, how):
    """Each call answers as in a plain directory, and leaves the real one as it is."""
    plain = place.dir("plain")
    ws.outside(probe("mutate_probe.py", "prepare"), cwd=plain)
    expected = ws.outside(probe("mutate_probe.py", how, plain), cwd=plain).lines
    inside = mutate(ws, how, [], probe("mutate_probe.py", how, ws.work))
    pairs = [p for p in zip(expected, inside, strict=True) if p[0].split()[0] not in DIFFERS]
    assert [p for p in pairs if p[0] != p[1]] == []
    assert ws.sets() == []


@pytest.mark.parametrize("flags", [["-w", "{work}"], ["-w", "{work}/..", "-w", "/tmp"],
                                   ["-w", "{work}/chmod", "-w", "{work}/write/f"],
                                   ["-w", "/"]], ids=" ".join)
def test_1_write_grants_do_not_go_round_the_layer(ws, flags):
    words = [w.format(work=ws.work) for w in flags]
    ws.outside(probe("mutate_probe.py", "prepare"))
    before = look(ws.work)
    ok(ws.run(["--on-exit", "abort", *words], probe("mutate_probe.py", "relative")))
    assert look(ws.work) == before


def test_1_no_call_changes_the_real_tree_of_root(root_ws):
    ws = root_ws
    inside = mutate(ws, "relative", [], probe("mutate_probe.py", "relative"))
    assert "write ok" in inside and "rename-dir ok" in inside


def test_1_what_was_written_is_seen(ws):
    ws.host("echo old > f; mkdir d; echo x > d/x")
    r = quiet_ok(ws.sh(["--on-exit", "abort"], "echo new > f; rm -r d; mkdir d; ls d; cat f; pwd"))
    assert r.lines == ["new", str(ws.work)]
    assert (ws.work / "f").read_text() == "old\n"


def test_1_commit_is_the_default_and_abort_after_a_failure(ws):
    ws.host("echo old > f")
    quiet_ok(ws.sh([], "echo new > f; echo a > a"))
    assert (ws.work / "f").read_text() == "new\n" and (ws.work / "a").read_text() == "a\n"
    r = ws.sh(["--quiet"], "echo bad > f; exit 3")
    assert r.code == 3 and (ws.work / "f").read_text() == "new\n"
    r = ws.sh(["--quiet", "--on-error", "commit"], "echo bad > f; kill -9 $$")
    assert r.code == 137 and (ws.work / "f").read_text() == "bad\n"


def test_1_a_time_out_is_a_failure(ws):
    r = ws.sh(["-t", "0.3"], "echo x > x; sleep 60")
    assert r.code == 124 and os.listdir(ws.work) == []
    assert ws.sets() == []


def test_1_no_layer_no_start(place, ws):
    """A storage that cannot hold a layer."""
    ran = place.dir("ran", 0o777)
    bad = place.dir("bad", 0o755)
    r = ws.run(["--fs-storage", bad, "-w", ran], ["/usr/bin/touch", ran / "x"])
    refused(r, "0700", str(bad))
    for flags in (["--view", "notify"], ["--workdir", "/"], ["--workdir", "/proc/self"],
                  ["--workdir", "/dev/shm"], ["--workdir", ws.work / "missing"]):
        refused(ws.run([*flags, "-w", ran], ["/usr/bin/touch", ran / "x"]), "--workdir")
    assert os.listdir(ran) == []


def test_1_without_the_base(ws):
    """No namespaces: refused, and never run without the layer."""
    fake = [harness.INSTALLED.tools["fake-kernel"], "165=1", "428=1", "--"]
    argv = harness.MODES["base"].command(["--workdir", ws.work], ["/usr/bin/touch", ws.work / "x"])
    r = harness.run([*fake, *argv], env=ws.env)
    assert r.code == 125 and os.listdir(ws.work) == [], f"{r!r}"


def test_1_shared_memory_as_workdir():
    top = pathlib.Path("/dev/shm") / f"sandlock-test-{os.getpid()}"
    top.mkdir()
    try:
        (top / "f").write_text("old")
        (top / "state").mkdir(mode=0o700)
        harness.USER.own(top)
        r = harness.sandbox(["--workdir", top, "--fs-storage", top / "../" / top.name / "state",
                             "--dry-run"], ["/bin/sh", "-c", "cat f; echo x > g; ls"])
        assert r.code == 0 and "A  g" in r.err_lines, f"{r!r}"
        assert sorted(os.listdir(top)) == ["f", "state"]
    finally:
        shutil.rmtree(top)


def test_1_several_workdirs(place, ws):
    other = place.dir("other")
    ws.host("mkdir sub; echo 1 > f")
    quiet_ok(ws.sh(["--workdir", other, "--workdir", ws.work / "sub"],
                   f"pwd; echo a > {other}/a; echo b > sub/b; mv f sub/f"))
    assert (other / "a").exists() and (ws.work / "sub/b").exists()
    assert (ws.work / "sub/f").read_text() == "1\n" and not (ws.work / "f").exists()
    r = ws.sh(["--workdir", other, "--dry-run"], f"rm {other}/a; echo x > x")
    assert sorted(r.err_lines) == sorted([f"D  {other}/a", f"A  {ws.work}/x"])


def test_1_the_first_workdir_is_the_working_directory(place, ws):
    other = place.dir("other")
    assert quiet_ok(ws.sh(["--workdir", other], "pwd")).lines == [str(ws.work)]
    assert quiet_ok(ws.sh(["--cwd", other], "pwd")).lines == [str(other)]


def test_1_through_a_link(place, ws):
    link = place.top / "link"
    link.symlink_to(ws.work)
    ws.host("mkdir d; echo 1 > d/f")
    r = harness.sandbox(["--workdir", link, "-w", link / "d", "-r", link / "d/f", "--on-exit",
                         "abort"], ["/bin/sh", "-ec", f"echo 2 > {link}/d/f; cat {ws.work}/d/f"],
                        env=ws.env)
    assert quiet_ok(r).lines == ["2"]
    assert (ws.work / "d/f").read_text() == "1\n"


def test_1_inherited_files_of_the_workdir(ws):
    """What a shell opened is the host's: it is written to, and nothing else is done to it."""
    ws.host("echo in > in; chmod 644 in")
    text = "cat; chmod 600 /dev/stdin || echo refused; truncate -s 0 /proc/self/fd/0 || echo refused"
    before = look(ws.work)
    with open(ws.work / "in") as f:
        r = ws.run(["-w", ws.work], ["/bin/sh", "-c", text], stdin=f)
    assert r.lines == ["in", "refused", "refused"], f"{r!r}"
    assert look(ws.work) == before
    with open(ws.work / "in") as f:
        refused(ws.run(["-w", ws.work.parent], ["/bin/sh", "-c", text], stdin=f), "past the layer")
    assert look(ws.work) == before


# --- 4, 5, 6: what becomes of it ------------------------------------------------------------------


def test_4_dry_run(ws):
    ws.host("echo 1 > m; echo 1 > gone; mkdir dir; echo 1 > from; ln -s x l")
    before = look(ws.work)
    r = ws.sh(["--dry-run"], "echo 2 > m; rm gone; mkdir new; echo 1 > new/f; mv from to; chmod 700 dir;"
                             "rm l; mkdir l")
    assert r.code == 0 and r.out == ""
    assert sorted(r.err_lines) == ["A  new", "A  new/f", "A  to", "D  from", "D  gone", "M  dir",
                                   "M  l", "M  m"]
    assert look(ws.work) == before and ws.sets() == []
    out = ws.home / "out.json"
    ok(ws.sh(["--dry-run", "--format", "json", "--diff-output", out], "echo 2 > m"))
    assert [e["path"] for e in json.loads(out.read_text())] == ["m"]
    r = ws.sh(["--dry-run", "--format", "patch"], "echo 2 > m; exit 7")
    assert r.code == 7 and "+2" in r.err


def test_4_dry_run_needs_no_right_to_write(place, root_ws):
    """A directory that is not the user's."""
    ws = root_ws
    ws.host("echo 1 > f; chmod 755 .; chmod 644 f")
    before = look(ws.work)
    home = place.dir("own")
    r = harness.sandbox(["--workdir", ws.work, "--dry-run"], ["/bin/sh", "-c", "echo x > new"],
                        env={"HOME": str(home)})
    assert r.code == 0 and r.err_lines == ["A  new"], f"{r!r}"
    assert look(ws.work) == before


def test_5_a_conflict_keeps_all(place, ws):
    flag = place.dir("flag", 0o777)
    ws.host("echo old > f")
    argv = harness.MODES["base"].command(
        ["--workdir", ws.work, "--status-fd", "1", "-r", flag],
        ["/bin/sh", "-c", f"echo mine > f; until [ -e {flag}/go ]; do sleep 0.05; done"])
    with harness.Running(argv, env=ws.env) as running:
        harness.wait_until(lambda: ws.sets() and list(ws.state.glob("changes/*/layers/0/upper/f")))
        (ws.work / "f").write_text("theirs\n")
        (flag / "go").touch()
        r = running.finish()
    status = json.loads(r.lines[-1])
    assert r.code == 125 and status["reason"] == "commit_failed", f"{r!r}"
    assert (ws.work / "f").read_text() == "theirs\n"
    [kept] = ws.sets()
    assert kept in status["error"] and kept in r.err
    quiet_ok(ws.sh([], "true"))
    assert ws.sets() == [kept]


@pytest.mark.parametrize("action", ["keep", "defer"])
def test_6_keep(ws, action):
    """Deferred is kept where nobody decides later."""
    r = ws.sh(["--on-exit", action], "echo 1 > f")
    [kept] = ws.sets()
    assert r.code == 0 and kept in r.err
    assert os.listdir(ws.work) == []
    quiet_ok(ws.sh([], "true"))
    assert ws.sets() == [kept]


def changes(ws, *words):
    return ok(harness.sandlock("changes", *words, env=ws.env))


def test_6_kept_then_applied_and_taken_back(place, ws):
    """The command that a run prints does it."""
    storage = place.dir("storage", 0o700)
    for flags in ([], ["--fs-storage", storage]):
        ws.host("rm -rf *; echo old > f")
        r = ok(ws.sh(["--on-exit", "keep", *flags], "echo new > f; mkdir d; mv d e"))
        words = r.err.split('"')[1].split()
        assert words[:3] == ["sandlock", "changes", "apply"]
        assert "new" in changes(ws, "show", words[3], "--format", "patch", *words[4:]).out
        changes(ws, *words[2:])
        assert (ws.work / "f").read_text() == "new\n" and (ws.work / "e").is_dir()
        changes(ws, "undo", *words[4:])
        assert (ws.work / "f").read_text() == "old\n" and not (ws.work / "e").exists()


def test_6_a_commit_at_the_end_can_be_taken_back(ws):
    ws.host("mkdir -p d/s; echo 1 > d/s/f; echo 2 > g")
    before = look(ws.work, times=False)
    quiet_ok(ws.sh([], "mv d e; echo 3 > e/s/f; rm g; ln -s x l"))
    after = look(ws.work, times=False)
    changes(ws, "undo")
    assert look(ws.work, times=False) == before
    changes(ws, "redo")
    assert look(ws.work, times=False) == after


def test_6_nothing_done_leaves_nothing(ws):
    ws.host("echo 1 > f")
    before = look(ws.work)
    ok(ws.sh([], "cat f > /dev/null; ls"))
    assert look(ws.work) == before
    assert json.loads(changes(ws, "list", "--json").out) == []


def test_6_state_is_hidden(ws):
    """Even where the whole home is the workdir, and also from runs without one."""
    ok(ws.sh(["--on-exit", "keep"], "echo 1 > f"))
    kept = ws.sets()
    text = f"ls -A {ws.state}; touch {ws.state}/x; rmdir {ws.state}; mv {ws.state} {ws.home}/y"
    for flags in (["--workdir", ws.home], ["-w", ws.home]):
        r = harness.sandbox([*flags, "--quiet"], ["/bin/sh", "-c", text], env=ws.env)
        assert r.out == "" and r.code != 0 and ws.sets() == kept, f"{r!r}"
    r = harness.sandbox(["--workdir", ws.home, "--quiet"],
                        ["/bin/sh", "-c", "rm -rf .local; mv .local x; echo 1 > new"], env=ws.env)
    assert r.code == 0 and ws.sets()[:1] == kept, f"{r!r}"
    assert (ws.home / "new").exists()


# --- 7: nothing is left, and runs do not see each other -------------------------------------------


def test_7_two_runs_on_one_directory(ws):
    ws.host("echo 0 > f")
    wait = "until [ -e /dev/shm/never ] || read x; do :; done"
    argv = [harness.MODES["base"].command(["--workdir", ws.work, "--on-exit", "abort"],
                                          ["/bin/sh", "-c", f"echo {i} > f; echo {i} > n{i}; "
                                           f"echo ready; {wait}; cat f; ls"]) for i in "12"]
    with harness.Running(argv[0], env=ws.env, stdin=subprocess.PIPE) as a, \
            harness.Running(argv[1], env=ws.env, stdin=subprocess.PIPE) as b:
        for r in (a, b):
            assert r.proc.stdout.readline() == b"ready\n"
        assert a.finish(data=b"\n").lines == ["1", "f", "n1"]
        assert b.finish(data=b"\n").lines == ["2", "f", "n2"]
    assert look(ws.work, times=False)["f"][-1] == b"0\n"


@pytest.mark.parametrize("who", ["host", "guardian"])
def test_7_killed(ws, who):
    """Whoever is killed: the directory is as before, and the next run sweeps the storage."""
    ws.host("echo 0 > f")
    before = look(ws.work)
    argv = harness.MODES["base"].command(["--workdir", ws.work],
                                         ["/bin/sh", "-c", "echo 1 > f; echo ready; sleep 60"])
    with harness.Running(argv, env=ws.env) as running:
        assert running.proc.stdout.readline() == b"ready\n"
        if who == "host":
            running.proc.kill()
        else:
            for pid in reversed(harness.processes()):
                with open(f"/proc/{pid}/stat") as f:
                    if f.read().rsplit(")", 1)[1].split()[1] == str(running.pid):
                        os.kill(pid, 9)
        running.proc.wait(timeout=30)
        assert harness.gone_within(running.tag) == []
    assert look(ws.work) == before
    quiet_ok(ws.sh(["--on-exit", "abort"], "cat f"))
    assert ws.sets() == []


def test_7_a_living_run_is_not_swept(ws):
    argv = harness.MODES["base"].command(["--workdir", ws.work],
                                         ["/bin/sh", "-c", "echo 1 > f; echo ready; read x; cat f"])
    with harness.Running(argv, env=ws.env, stdin=subprocess.PIPE) as running:
        assert running.proc.stdout.readline() == b"ready\n"
        quiet_ok(ws.sh(["--on-exit", "abort"], "true"))
        assert len(ws.sets()) == 1
        r = running.finish(data=b"\n")
    assert r.lines == ["1"] and (ws.work / "f").read_text() == "1\n"


def test_7_no_residue(ws):
    before = harness.residue(), harness.mounts()
    ok(ws.sh(["--dry-run"], "mkdir -p a/b; echo x > a/b/c; mkfifo p; chmod 0 a/b"))
    assert (harness.residue(), harness.mounts()) == before
    assert os.listdir(ws.work) == [] and ws.sets() == []


# --- 3: as in a plain directory -------------------------------------------------------------------


def both(place, ws, part):
    plain = place.dir("plain/work")
    harness.USER.own(place.top / "plain")
    ws.outside(probe("layer_probe.py", "prepare"), cwd=plain)
    ws.outside(probe("layer_probe.py", "prepare"))
    before = look(ws.work)
    expected = ws.outside(probe("layer_probe.py", part), cwd=plain).lines
    r = ok(ws.run(["--on-exit", "keep", "--quiet"], probe("layer_probe.py", part)))
    assert look(ws.work) == before
    return expected, r.lines


# docs/workspace.md, "What differs".
KNOWN = {"open": ["unlinked, read EEXIST EEXIST"],
         "links": ["write hard False", "chmod 0o100644", "same name ok False", "new 2 False"]}


@pytest.mark.parametrize("part", ["rename", "dirs", "open", "links"])
def test_3_as_in_a_plain_directory(place, ws, part):
    expected, got = both(place, ws, part)
    differs = [p[1] for p in zip(expected, got, strict=True) if p[0] != p[1]]
    assert differs == KNOWN.get(part, [])


TOOLS = {
    "git": """
        git init -q .; git config user.email a@b; git config user.name n
        seq 100 > a; mkdir d; seq 50 > d/b; git add .; git commit -qm one
        git mv d e; git commit -qm two; git checkout -q -b side; echo x >> a; git commit -qam three
        git checkout -q -; git merge -q side; git rm -q a; git stash -q; git stash pop -q
        git gc -q; git clone -q . clone; git -C clone log --format=%s; git status --short
        git worktree add -q ../work/tree side; mv clone copy; git -C copy fsck --no-dangling""",
    "tar": """
        mkdir -p t/a/b; seq 1000 > t/a/x; ln -s x t/a/y; ln t/a/x t/a/z; touch -d 2001-02-03 t/a/b
        chmod 750 t/a/b; tar cf t.tar t; mv t old; tar xf t.tar; diff -r t old; rm -rf old
        cp -a t u; rsync -a t/ v; mv u/a u/c; find . | sort; tar tvf t.tar | awk '{print $1, $6}'""",
    "make": """
        printf 'int main(void){return 0;}' > m.c
        printf 'all: m\\nm: m.c\\n\\tgcc -o $@ $<\\nclean:\\n\\trm -f m\\n' > Makefile
        make -s; ./m; make; touch m.c; make -q || echo again; make -s; make -s clean; ls""",
    "npm": """
        mkdir -p pkg app; cd pkg; echo '{"name":"pkg","version":"1.0.0"}' > package.json
        echo 'module.exports = 41' > index.js; npm pack --silent; cd ../app
        echo '{"name":"app","version":"1.0.0"}' > package.json
        npm install --silent --no-audit --no-fund --offline ../pkg/pkg-1.0.0.tgz
        node -p 'require("pkg") + 1'
        npm install --silent --no-audit --no-fund --offline ../pkg/pkg-1.0.0.tgz
        npm uninstall --silent --no-audit --no-fund pkg; find . -name node_modules -prune -o -print""",
    "pip": """
        mkdir -p src/mod; echo 'x = 1' > src/mod/__init__.py
        printf '[metadata]\\nname=mod\\nversion=1.0\\n[options]\\npackages=mod\\n' > src/setup.cfg
        echo 'import setuptools; setuptools.setup()' > src/setup.py
        for i in 1 2; do pip3 install -q --no-build-isolation --no-index --upgrade --no-deps \\
            --disable-pip-version-check --no-warn-script-location --break-system-packages \\
            --target t ./src; done
        PYTHONPATH=t python3 -c 'import mod; print(mod.x)'; rm -rf src/build; find t -type d | sort""",
    "sqlite": """
        sqlite3 db 'create table t(a); insert into t values(1)'; sqlite3 db 'pragma journal_mode=wal'
        sqlite3 db 'insert into t values(2); select sum(a) from t; vacuum; pragma integrity_check'
        ls""",
    "dpkg": """
        mkdir -p p/DEBIAN p/usr/share/x; echo hello > p/usr/share/x/f; mkdir root admin
        printf 'Package: x\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@b>\\nDescription: x\\n' \\
            > p/DEBIAN/control
        dpkg-deb -b p x.deb >/dev/null; dpkg-deb -x x.deb root; find root; rm -rf root; find . | sort""",
}


@pytest.mark.parametrize("tool", TOOLS)
def test_3_tools_work_as_outside(place, ws, tool):
    """In two runs, so that the second meets in the lower layer what the first has committed."""
    text = "exec 2>&1; export HOME=$PWD/home TMPDIR=$PWD/home XDG_CACHE_HOME=$PWD/cache; mkdir -p home;" + TOOLS[tool]
    plain = place.dir("plain/work")
    harness.USER.own(place.top / "plain")
    expected = ws.outside(["/bin/sh", "-ec", text], cwd=plain)
    r = ok(ws.sh(["-w", place.top / "work"], text, timeout=120))

    def of(text):
        return [line for line in text.splitlines() if "ms" not in line.split()]

    assert of(r.out.replace(str(ws.work), "W")) == of(expected.out.replace(str(plain), "W"))
    again = "for d in *; do [ ! -d $d ] || { mv $d $d.x; mv $d.x $d; }; done; rm -rf *"
    before = look(ws.work)
    ok(ws.sh(["--dry-run", "--quiet"], again))
    assert look(ws.work) == before
    quiet_ok(ws.sh([], "for d in *; do mv $d $d.x; done"))
    assert sorted(f"{n}.x" for n in os.listdir(plain) if n[0] != ".") == \
        sorted(n for n in os.listdir(ws.work) if n[0] != ".")
    quiet_ok(ws.sh([], "rm -rf *"))
    assert [n for n in os.listdir(ws.work) if n[0] != "."] == []


def same_content(a, b):
    """Two trees but for what differs between any two."""
    def of(top):
        out = {}
        for path, e in look(top, times=False).items():
            st = os.lstat(top / path)
            is_dir = stat.S_ISDIR(st.st_mode)
            # ext4 says how many directories are in one; a file's time is what it was given.
            out[path] = (e, None if is_dir or st.st_mtime_ns > 10**12 else st.st_mtime_ns)
        return out
    assert of(a) == of(b)


@pytest.mark.parametrize("seed", range(5))
def test_3_random_operations(place, ws, seed):
    """Each answers as in a plain directory; the commit makes the same tree. 2 x 1,000 operations."""
    plain = place.dir("plain/work")
    harness.USER.own(place.top / "plain")
    for i in range(2):
        argv = probe("random_probe.py", 2 * seed + i, 1000)
        expected = ws.outside(argv, cwd=plain).lines
        got = ok(ws.run([], argv, timeout=120)).lines
        assert [p for p in zip(expected, got, strict=True) if p[0] != p[1]][:3] == []
        same_content(plain, ws.work)


def test_3_directories_renamed_while_files_are_made(ws):
    """Nothing that was made is lost, and nothing hangs."""
    ws.host("mkdir -p d/s; for i in $(seq 200); do echo $i > d/s/$i; done")
    code = """
import os, threading, time
made, end = [], time.monotonic() + 2
def make(n):
    i = 0
    while time.monotonic() < end:
        i += 1
        for top in ("d", "e"):
            try:
                open(f"{top}/s/{n}-{i}", "x").close()
                made.append(f"{n}-{i}")
                break
            except FileNotFoundError:
                pass
            except FileExistsError:
                break
threads = [threading.Thread(target=make, args=(n,)) for n in "xy"]
[t.start() for t in threads]
n = busy = 0
while time.monotonic() < end:
    for a, b in (("d", "e"), ("e", "d")):
        try:
            os.rename(a, b)
            n += 1
        except OSError as e:
            busy += 1
            assert e.errno in (16, 2), e
[t.join() for t in threads]
assert n > 0
names = [f for _, _, files in os.walk(".") for f in files]
assert len(names) == len(set(names)), "twice"
assert set(names) == set(made) | set(map(str, range(1, 201))), "lost"
assert [n for n in os.listdir(".") if n.startswith(".sandlock")] == []
"""
    ok(ws.run(["--on-exit", "abort"], [harness.PYTHON, "-c", code]))


def test_3_planted_attributes(ws):
    """What overlayfs would obey in the lower layer is no deletion, and no way to one."""
    ws.host("mkdir d; touch d/f; echo 1 > g")
    for path, name, value in (("d", "opaque", b"x"), ("d/f", "whiteout", b"y"), ("g", "metacopy", b""),
                              ("d", "redirect", b"/etc")):
        os.setxattr(ws.work / path, f"user.overlay.{name}", value)
    before = look(ws.work)
    ok(ws.sh([], "ls d; cat g || :; echo x > new"))
    (ws.work / "new").unlink()
    after = look(ws.work)
    assert {k: v for k, v in after.items() if k != "."} == \
        {k: v for k, v in before.items() if k != "."}
    r = ws.run(["--dry-run"], [harness.PYTHON, "-c", "import os;"
                               "os.setxattr('d', 'user.overlay.opaque', b'y');"
                               "open('n', 'w').close();"
                               "os.setxattr('n', 'user.overlay.whiteout', b'y')"])
    assert [line for line in r.err_lines if line.startswith("D")] == [], f"{r!r}"


def test_3_a_renamed_directory_with_a_mount_in_it(ws):
    """The hidden state directory: refused, and all is as before, metadata included."""
    ok(ws.sh(["--on-exit", "keep", "--quiet"], "true > x"))
    os.chmod(ws.home / ".local", 0o751)
    os.utime(ws.home / ".local", ns=(10**18, 10**18))
    r = harness.sandbox(["--workdir", ws.home], ["/bin/sh", "-c", "mv .local x; ls -A . .local; "
                                                 "stat -c '%a %Y' .local"], env=ws.env)
    assert r.lines == [".:", ".local", "", ".local:", "state", "751 1000000000"], f"{r!r}"


# --- Handed cases ---------------------------------------------------------------------------------


def test_b12_a_fifo_in_a_commit(ws):
    quiet_ok(ws.sh([], "mkfifo p", timeout=20))
    assert stat.S_ISFIFO(os.lstat(ws.work / "p").st_mode)
    quiet_ok(ws.sh([], "rm p; mkfifo q; mkdir d; mv q d", timeout=20))
    quiet_ok(ws.sh([], "mv d e; echo x > /dev/null", timeout=20))
    assert sorted(os.listdir(ws.work / "e")) == ["q"]


def test_b50_the_start_does_not_depend_on_the_size(ws):
    """No call for each file: a directory that the user may not even list is no matter."""
    ws.host("mkdir -p big; echo 1 > big/f; chmod 311 big")
    r = ws.sh(["--dry-run"], "echo 2 > big/f; cat big/f")
    ws.host("chmod 755 big")
    assert r.code == 0 and r.lines == ["2"] and r.err_lines == ["M  big/f"], f"{r!r}"


def test_b126_removed_and_made_again(ws):
    ws.host("mkdir -p d/e; echo 1 > d/f; echo 1 > d/e/g; echo 1 > x")
    quiet_ok(ws.sh([], "rm -r d; mkdir -p d/e; echo 2 > d/e/h; mv d d2; mkdir d; mv x d/x; rm d/x;"
                       "mv d2 d/d3; mv d/d3/e e; rm -r d; mkdir d"))
    assert sorted(str(p.relative_to(ws.work)) for p in ws.work.rglob("*")) == ["d", "e", "e/h"]


def test_sockets_and_fifos_of_the_real_tree_are_not_reached(ws):
    """A writer inside does not wake a reader outside."""
    ws.host("mkfifo p")
    fd = os.open(ws.work / "p", os.O_RDONLY | os.O_NONBLOCK)
    ok(ws.run(["--on-exit", "abort"], [harness.PYTHON, "-c", """
import os
fd = os.open("p", os.O_RDWR | os.O_NONBLOCK)
os.write(fd, b"x")
"""]))
    assert os.read(fd, 1) == b""
    os.close(fd)


def test_explained_in_a_workspace(ws):
    r = ws.run(["--explain"], ["/bin/sh", "-c", "echo x > f; mkdir a; mv a b; chmod 600 f; "
                               "cat /root/.profile; exit 1"])
    assert r.code == 1 and str(ws.work) not in r.err, f"{r!r}"


def test_1_no_grant_by_another_mount_of_it(place, root_ws):
    """What is mounted twice: a write grant by the other name would be the real directory."""
    ws = root_ws
    alias = place.dir("alias")
    ws.host("mkdir d; echo 1 > d/f")
    for source, grant in ((ws.work, alias), (ws.work / "d", alias), (ws.work.parent, alias),
                          (ws.work, alias.parent)):
        argv = harness.MODES["root"].command(
            ["--workdir", ws.work, "--on-exit", "abort", "-w", grant], ["/bin/true"])
        mount = ["/usr/bin/unshare", "-m", "/bin/sh", "-ec",
                 'mount --bind "$0" "$1"; shift; exec "$@"', source, alias]
        r = harness.run([*mount, *argv], env=ws.env, account=ws.account)
        assert r.code == 125 and "past its layer" in r.err, f"{r!r}"
        argv = harness.MODES["root"].command(
            ["--workdir", ws.work, "--on-exit", "abort", "-r", grant, "-w", place.top / "home"],
            ["/bin/true"])
        ok(harness.run([*mount, *argv], env=ws.env, account=ws.account))


def test_1_root_with_another_user(root_ws):
    ws = root_ws
    ws.host("echo 1 > f; chmod 666 f; chmod 777 .")
    user = f"{harness.USER.uid}:{harness.USER.gid}"
    quiet_ok(ws.sh(["--user", user], "echo 2 > f; echo 3 > new; mkdir d; mv d e; id -u"))
    assert (ws.work / "f").read_text() == "2\n"
    assert [os.lstat(ws.work / n).st_uid for n in ("f", "new", "e")] == [0, *[harness.USER.uid] * 2]


@pytest.mark.parametrize("mode", ["nobase", "unsup"])
def test_6_state_in_a_write_grant_without_the_base_is_warned_of(ws, mode):
    ok(ws.sh(["--on-exit", "keep", "--quiet"], "echo 1 > f"))
    r = ok(harness.sandbox(["-w", ws.home], ["/bin/true"], mode=mode, env=ws.env))
    assert len(r.err_lines) == 1 and str(ws.state) in r.err, f"{r!r}"
    quiet_ok(harness.sandbox(["-w", ws.work], ["/bin/true"], mode=mode, env=ws.env))
