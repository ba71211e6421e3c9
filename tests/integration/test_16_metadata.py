# SPDX-License-Identifier: Apache-2.0
"""Issue 4, point 4: metadata calls, names across grants, locks and watches as the supervisor judges
and makes them."""

import errno
import os
import pathlib
import shutil
import struct

import pytest

import harness
from checks import ok, python, quiet_ok, script

HERE = pathlib.Path(__file__).resolve().parent
RACE_SECONDS = 2
OTHER_GROUPS = [2000000001, 2000000002]


class WithGroups(harness.Account):
    """The tests' user with supplementary groups."""

    def popen_args(self):
        return {"user": self.uid, "group": self.gid, "extra_groups": OTHER_GROUPS}


def probe(name, *words):
    return [harness.PYTHON, "-c", (HERE / name).read_text(), *map(str, words)]


def outside(argv, cwd="/", code=0, **kw):
    r = harness.run(argv, cwd=cwd, **kw)
    assert r.code == code, f"{r!r}"
    return r.out


def fresh(place, name):
    shutil.rmtree(place.top / name, ignore_errors=True)
    return place.dir(name)


def open_closed(place):
    """So that the place can be removed."""
    for name in ("work/closed",):
        if (place.top / name).exists():
            (place.top / name).chmod(0o755)


def same(expected, got):
    a, b = expected.splitlines(), got.splitlines()
    assert [x for x in zip(a, b) if x[0] != x[1]][:5] == []
    assert len(a) == len(b)


# --- The same results as outside ------------------------------------------------------------------


# As on other kernels and under other filters: no copies of descriptors, no fchmodat2.
WAYS = {"base": None, "nobase": None, "inherited": None, "no-copies": f"438={errno.EPERM}",
        "no-fchmodat2": f"452={errno.ENOSYS}"}


@pytest.mark.parametrize("way", WAYS)
def test_every_metadata_call_answers_as_outside(place, way):
    fake = [harness.INSTALLED.tools["fake-kernel"], WAYS[way], "--"] if WAYS[way] else []
    work = fresh(place, "work")
    expected = outside([*fake, *probe("metadata_probe.py")], cwd=work)
    open_closed(place)
    work = fresh(place, "work")
    mode = harness.MODES["base" if way in ("base", "inherited") else "nobase"]
    argv = mode.command(["-w", work, "--cwd", work], probe("metadata_probe.py"))
    with open(place.file("given", "x"), "rb") as stdin:
        kw = {"stdin": stdin} if way == "inherited" else {}
        r = harness.run([*fake, *argv], **kw)
    open_closed(place)
    assert r.code == 0, f"{r!r}"
    same(expected, r.out)


def test_renames_and_links_between_two_grants_answer_as_outside(place):
    fresh(place, "a"), fresh(place, "b")
    expected = outside(probe("link_probe.py", place.top / "a", place.top / "b"))
    a, b = fresh(place, "a"), fresh(place, "b")
    r = quiet_ok(harness.sandbox(["-w", a, "-w", b], probe("link_probe.py", a, b)))
    same(expected, r.out)


OWNERS = """
import errno, os, struct, sys
def t(label, f, *a):
    try:
        print(label, f(*a))
    except OSError as e:
        print(label, errno.errorcode[e.errno])
one, two = map(int, sys.argv[2:4])
os.chdir(sys.argv[1])
open('f', 'w').close()
os.symlink('f', 'l')
t('group', os.chown, 'f', -1, one)
t('link', os.lchown, 'l', -1, two)
t('both', os.chown, 'f', os.getuid(), two)
t('own', os.chown, 'f', os.getuid(), os.getgid())
t('root', os.chown, 'f', 0, -1)
t('root group', os.chown, 'f', -1, 0)
fd = os.open('f', os.O_RDONLY)
t('descriptor', os.fchown, fd, -1, two)
t('not there', os.chown, 'nope', -1, two)
def acl(*rows):
    return struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *row) for row in rows)
NONE = 0xffffffff
good = acl((1, 6, NONE), (2, 4, os.getuid()), (2, 4, 77), (4, 4, NONE), (8, 6, one), (16, 6, NONE),
           (32, 4, NONE))
t('list', os.setxattr, 'f', 'system.posix_acl_access', good)
t('short list', os.setxattr, 'f', 'system.posix_acl_access', good[:-3])
t('default list', os.setxattr, '.', 'system.posix_acl_default', good)
t('default list of a file', os.setxattr, 'f', 'system.posix_acl_default', good)
t('plain attribute', os.setxattr, 'f', 'user.x', b'1')
"""


@pytest.mark.parametrize("mode", harness.SUPERVISED)
@pytest.mark.parametrize("groups", [False, True][:1 + (os.getuid() == 0)])
def test_owners_and_lists_mean_what_they_mean_outside(place, mode, groups):
    account = WithGroups(harness.USER.uid, harness.USER.gid) if groups else harness.USER
    words = map(str, OTHER_GROUPS)
    argv = [harness.PYTHON, "-c", OWNERS, place.top / "work", *words]

    def after():
        st, link = os.stat(work / "f"), os.lstat(work / "l")
        names = [(n, os.getxattr(work / "f", n)) for n in sorted(os.listxattr(work / "f"))]
        return st.st_uid, st.st_gid, link.st_gid, st.st_mode, names, os.listxattr(work)

    work = fresh(place, "work")
    expected, state = outside(argv, account=account), after()
    work = fresh(place, "work")
    r = harness.sandbox(["-w", work], argv, mode=mode, account=account)
    assert r.code == 0, f"{r!r}"
    if not groups and mode == "base":
        # Only its own id exists there: the kernel knows no other one.
        expected = expected.replace("EPERM", "EINVAL")
        lists = [line for line in expected.splitlines() if "list" in line]
        same("\n".join(x for x in expected.splitlines() if x not in lists),
             "\n".join(x for x in r.out.splitlines() if "list" not in x))
        return
    same(expected, r.out)
    assert after() == state


TOOLS = {
    "tar": "mkdir in out && echo x >in/f && chmod 751 in/f && ln -s f in/l && touch -d @1000 in/f && "
           "tar cf t.tar in && tar xpf t.tar -C out && stat -c '%n %a %Y %F' out/in/f && readlink out/in/l",
    "cp": "mkdir in && echo x >in/f && chmod 4751 in/f && ln in/f in/h && touch -d @1000 in/f in && "
          "cp -a in out && stat -c '%n %a %Y %h' out/f && stat -c %Y out",
    "install": "echo x >f && install -d -m 750 d/e && install -m 755 -p f d/e/f && stat -c '%n %a' d/e d/e/f",
    "git": "export HOME=$PWD && git init -q r && cd r && git config user.email a@b && git config user.name n && "
           "echo x >f && chmod +x f && git add f && git commit -qm m && git clone -q . ../s && "
           "stat -c '%n %A' ../s/f && git -C ../s status --porcelain",
    "make": "printf 'all: out\\nout: in\\n\\tcp in out\\ninstall: out\\n\\tinstall -m 644 out d/out\\n' >Makefile && "
            "mkdir d && touch -d @1000 in && make -s install && make -q && stat -c '%n %a' d/out",
    "mv": "mkdir a b && echo x >a/f && chmod 600 a/f && mv a/f b/f && mv b c && stat -c '%n %a' c/f",
    "rsync": "mkdir in && echo x >in/f && chmod 640 in/f && touch -d @1000 in/f && rsync -a in/ out/ && "
             "stat -c '%n %a %Y' out/f",
    "python": "/usr/bin/python3 -c \"import os, shutil; open('f', 'w').close(); os.utime('f', (5, 6)); "
              "shutil.copy2('f', 'g'); print(os.stat('g').st_mtime)\"",
}


@pytest.mark.parametrize("mode", harness.SUPERVISED)
@pytest.mark.parametrize("tool", [t for t in TOOLS if t in ("install", "python") or shutil.which(t)])
def test_tools_that_set_metadata_work(place, mode, tool):
    text = f"cd {place.top}/work && umask 022 && {TOOLS[tool]}"
    fresh(place, "work")
    expected = outside(["/bin/sh", "-c", text])
    work = fresh(place, "work")
    assert quiet_ok(script(["-w", work], text, mode=mode)).out == expected


@pytest.mark.parametrize("tool", ["mv -f a/f b/g", "mv a/d b/d", "ln a/f b/g", "cp -al a b/c"])
def test_tools_between_two_grants(place, tool):
    text = f"cd {place.top} && {tool} && find a b -type f | sort && find a b -printf '%n %i\\n' | wc -l"
    results = []
    for inside in (False, True):
        a, b = fresh(place, "a"), fresh(place, "b")
        place.dir("a/d")
        place.file("a/f", "x")
        place.file("a/d/g", "y")
        ino = os.stat(a / "f").st_ino
        flags = ["-r", place.top, "-w", a, "-w", b]
        results.append(quiet_ok(script(flags, text)).out if inside else outside(["/bin/sh", "-c", text]))
        if "f b/g" in tool:
            assert os.stat(b / "g").st_ino == ino
    assert results[0] == results[1]


def test_what_was_granted_by_itself_is_not_moved(place):
    a, b, sub = place.dir("a"), place.dir("b"), place.dir("a/sub")
    f = place.file("a/f", "x")
    text = (f"cd {place.top}; mv -T a/sub b/x; mv -T b a/sub; mv a/f b/; ln a/f b/g; ls a b b/x; "
            "echo y >a/z; mv a/z a/sub/ && mv a/sub/z b/z && ls b")
    r = script(["-r", place.top, "-w", a, "-w", b, "-w", sub, "-w", f], text)
    assert "mv: cannot move 'a/sub' to 'b/x': Device or resource busy" in r.err, f"{r!r}"
    assert "mv: cannot move 'a/f' to 'b/f': Device or resource busy" in r.err, f"{r!r}"
    assert sorted(os.listdir(a)) == ["f", "sub"]
    assert "z" in os.listdir(b) and "x" not in os.listdir(b)


# --- Refused elsewhere ----------------------------------------------------------------------------

REFUSED = """
import ctypes, errno, os, sys
f = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open(f, os.O_RDONLY)
dirfd = os.open(os.path.dirname(f), os.O_RDONLY)
link = sys.argv[2]
os.symlink(f, link)
os.symlink(f'/proc/self/fd/{fd}', link + '2')
os.chdir(os.path.dirname(f))
codes = set()
def t(label, call, *a, **kw):
    try:
        call(*a, **kw)
        print('done:', label)
    except OSError as e:
        codes.add(errno.errorcode[e.errno])
for p in (f, link, link + '2', f'/proc/self/fd/{fd}', f'/dev/fd/{fd}', f'/proc/self/root{f}', 'f', './/f',
          f'/proc/thread-self/fd/{dirfd}/f', f'/proc/{os.getpid()}/cwd/f', f'/proc/self/cwd/../out/f',
          '../' * 40 + f[1:], fd):
    t(f'chmod {p}', os.chmod, p, 0o600)
    t(f'chown {p}', os.chown, p, os.getuid(), os.getgid())
    t(f'utime {p}', os.utime, p, (1, 1))
    t(f'setxattr {p}', os.setxattr, p, 'user.x', b'1')
    t(f'removexattr {p}', os.removexattr, p, 'user.x')
t('dirfd', os.chmod, 'f', 0o600, dir_fd=dirfd)
t('nofollow', os.utime, f, (1, 1), follow_symlinks=False)
t('directory', os.chmod, os.path.dirname(f), 0o700)
t('lchown', os.lchown, f, os.getuid(), -1)
print(*sorted(codes))
sys.exit(3)
"""


def untouched(path):
    st = os.stat(path)
    return st.st_mode & 0o7777, st.st_mtime, os.listxattr(path)


@pytest.mark.parametrize("way", ["base", "nobase", "inherited"])
def test_nothing_outside_the_write_grants_is_changed(place, way):
    work, out = place.dir("work"), place.dir("out")
    f = place.file("out/f", "x")
    os.utime(f, (1000, 1000))
    before = untouched(f)
    kw = {"stdin": open(f, "rb")} if way == "inherited" else {}
    argv = [harness.PYTHON, "-c", REFUSED, f, work / "l"]
    r = harness.sandbox(["-w", work, "-r", out], argv, mode="nobase" if way == "nobase" else "base", **kw)
    assert r.code == 3, f"{r!r}"
    assert r.out == ("EPERM\n" if way == "nobase" else "EPERM EROFS\n" if way == "inherited" else "EROFS\n")
    assert untouched(f) == before
    assert os.stat(out).st_mode & 0o7777 == 0o755
    if way != "base":
        assert f"allow it with -w {f}" in r.err


@pytest.mark.parametrize("path", ["/proc/self/fd/0", "/dev/stdin", "/dev/fd/0", "link"])
def test_an_inherited_file_is_refused_by_every_name(place, path):
    work, f = place.dir("work"), place.file("given", "x")
    os.symlink("/dev/stdin", work / "link")
    with open(f, "rb") as stdin:
        r = script(["-w", work, "--cwd", work], f"chmod 600 {path}", stdin=stdin)
    assert r.code == 1
    assert "Operation not permitted" in r.err
    assert f"allow it with -w {f}" in r.err
    assert os.stat(f).st_mode & 0o7777 == 0o644
    with open(f, "rb") as stdin:
        quiet_ok(script(["-w", work, "-w", f, "--cwd", work], f"chmod 600 {path}", stdin=stdin))
    assert os.stat(f).st_mode & 0o7777 == 0o600


def test_processes_outside_lend_nothing_by_their_links(place):
    """A process of the same user has a file without a name; by its number its mode could be changed."""
    work = place.dir("work")
    holder = harness.Running([harness.PYTHON, "-c", "import os, sys\nfd = os.memfd_create('x')\n"
                              "os.fchmod(fd, 0o644)\nos.dup2(fd, 9)\nprint('ready', flush=True)\n"
                              "os.chdir(sys.argv[1])\nsys.stdin.read()", work], stdin=-1)
    with holder:
        assert holder.proc.stdout.readline() == b"ready\n"
        text = f"chmod 600 /proc/{holder.pid}/fd/9; chmod 700 /proc/{holder.pid}/cwd; true"
        ok(script(["-r", "/proc", "-w", work], text, mode="nobase"))
        assert os.stat(f"/proc/{holder.pid}/fd/9").st_mode & 0o777 == 0o644
        assert os.stat(work).st_mode & 0o777 == 0o755


def test_the_guardian_lends_nothing_by_its_links(place):
    work, f = place.dir("work"), place.file("given", "x")
    text = "for l in exe cwd root fd/0 fd/1 fd/2; do chmod 755 /proc/1/$l && echo done $l; done; true"
    with open(f, "rb") as stdin:
        assert ok(script(["-w", work], text, stdin=stdin)).out == ""


def test_relatives_can_be_reached_by_their_links(place):
    work = place.dir("work")
    place.file("work/f", "x")
    text = (f"cd {work} && sleep 20 <f & p=$!; sleep 0.2; chmod 600 /proc/$p/fd/0 && stat -c %a {work}/f; "
            "kill $p")
    for mode in harness.SUPERVISED:
        os.chmod(work / "f", 0o644)
        assert ok(script(["-w", work, "-r", "/proc"], text, mode=mode)).out == "600\n"


def test_few_descriptors_are_enough_for_many_calls(place):
    work = place.dir("work")
    text = ("import os\nos.chdir(__import__('sys').argv[1])\nopen('f', 'w').close()\nfd = os.open('f', 0)\n"
            "for i in range(600):\n    os.chmod('f', 0o600 + i % 8)\n    os.fchmod(fd, 0o640)\n"
            "    try:\n        os.chmod('/usr/bin', 0o755)\n    except OSError:\n        pass\n"
            "    os.utime('f')\nprint('done')\n")
    argv = harness.MODES["nobase"].command(["-w", work], [harness.PYTHON, "-c", text, work])
    r = harness.run(["/bin/sh", "-c", 'ulimit -n 64; exec "$@"', "sh", *argv])
    assert ok(r).out == "done\n"


@pytest.mark.parametrize("user", [None, "4711:4712"])
@pytest.mark.parametrize("view", ["auto", "notify"])
def test_roots_supervisor_acts_with_the_tasks_rights(root_place, user, view):
    """Root could change everything; a sandbox of root's, or of a user that root starts it as, not."""
    work = root_place.dir("work")
    uid, gid = map(int, user.split(":")) if user else (0, 0)
    for name, owner in (("own", uid), ("other", 4713), ("dir/f", 4713)):
        root_place.file(name, "x") if "/" not in name else None
        path = work / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
        path.chmod(0o666)
        os.chown(path, owner, owner and gid)
    os.chown(work, uid, gid)
    os.chown(work / "dir", 4713, 4713)
    os.chmod(work / "dir", 0o700)
    text = (f"cd {work}; for f in own other dir/f; do chmod 600 $f && echo mode $f; touch -d @1 $f && echo time $f; "
            "chown 4711 $f && echo owner $f; chgrp 1 $f && echo group $f; done 2>/dev/null")
    given = root_place.file("given", "x")
    flags = ["--view", view, "-w", work] + (["--user", user] if user else [])
    with open(given, "rb") as stdin:
        r = script(flags, text, mode="root", stdin=stdin)
    done = ["mode own", "time own"] + (["owner own"] if user else [])
    assert r.lines == done, f"{r!r}"
    for name in ("other", "dir/f"):
        st = os.stat(work / name)
        assert (st.st_mode & 0o777, st.st_uid, st.st_gid) == (0o666, 4713, gid)


# --- Locks and leases -----------------------------------------------------------------------------

LOCKS = """
import errno, fcntl, os, sys
def t(label, f, *a):
    try:
        print(label, f(*a))
    except OSError as e:
        print(label, errno.errorcode[e.errno])
own, out, tmp = sys.argv[1:4]
r, w, o = os.open(own, os.O_RDONLY), os.open(own, os.O_RDWR), os.open(out, os.O_RDONLY)
EX, SH, NB, UN = fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_NB, fcntl.LOCK_UN
t('own', fcntl.flock, r, EX)
t('own again', fcntl.flock, w, EX | NB)
t('own free', fcntl.flock, r, UN)
t('own writable', fcntl.flock, w, EX | NB)
t('own free', fcntl.flock, w, UN)
t('directory', fcntl.flock, os.open(os.path.dirname(own), os.O_RDONLY), EX | NB)
t('memory', fcntl.flock, os.memfd_create('x'), EX | NB)
t('path', fcntl.flock, os.open(own, os.O_PATH), EX | NB)
t('shared', fcntl.flock, o, SH | NB)
t('foreign', fcntl.flock, o, EX | NB)
t('foreign waiting', fcntl.flock, o, EX)
t('bad', fcntl.flock, 777, EX)
t('strange', fcntl.flock, r, EX | SH)
os.close(w)
t('lease', fcntl.fcntl, r, fcntl.F_SETLEASE, fcntl.F_RDLCK)
t('lease is', fcntl.fcntl, r, fcntl.F_GETLEASE)
t('owner', lambda: fcntl.fcntl(r, fcntl.F_GETOWN) in (os.getpid(), 0))
t('no lease', fcntl.fcntl, r, fcntl.F_SETLEASE, fcntl.F_UNLCK)
t('foreign lease', fcntl.fcntl, o, fcntl.F_SETLEASE, fcntl.F_RDLCK)
sys.exit(3)
"""


@pytest.mark.parametrize("mode", harness.SUPERVISED)
def test_exclusive_locks_and_leases_take_a_write_grant(place, mode):
    work, out = place.dir("work"), place.dir("out")
    own, f = place.file("work/f", "x"), place.file("out/f", "x")
    argv = [harness.PYTHON, "-c", LOCKS, own, f, work]
    expected = outside(argv, code=3)
    r = harness.sandbox(["-w", work, "-r", out], argv, mode=mode)
    assert r.code == 3, f"{r!r}"
    for name in ("foreign", "foreign waiting"):
        expected = expected.replace(f"{name} None", f"{name} EACCES")
    expected = expected.replace("foreign lease 0", "foreign lease EACCES")
    same(expected, r.out)
    assert f"allow it with -w {f}" in r.err


@pytest.mark.parametrize("mode", harness.SUPERVISED)
def test_locks_and_watches_without_copies_say_so(place, mode):
    work = place.dir("work")
    f = place.file("work/f", "x")
    text = f"""
import ctypes, errno, fcntl, os, sys
fd = os.open('{f}', os.O_RDWR)
fcntl.flock(fd, fcntl.LOCK_SH)
fcntl.lockf(fd, fcntl.LOCK_EX)
try:
    fcntl.flock(fd, fcntl.LOCK_EX)
except OSError as e:
    print(errno.errorcode[e.errno])
libc = ctypes.CDLL(None, use_errno=True)
r = libc.inotify_add_watch(libc.inotify_init(), b'{f}', 2)
print(r, errno.errorcode[ctypes.get_errno()])
sys.exit(3)
"""
    fake = [harness.INSTALLED.tools["fake-kernel"], f"438={errno.EPERM}", "--"]
    argv = harness.MODES[mode].command(["-w", work], [harness.PYTHON, "-c", text])
    r = harness.run([*fake, *argv])
    assert r.lines == ["ENOTSUP", "-1 ENOTSUP"], f"{r!r}"
    assert r.err.count("pidfd_getfd is barred here") == 2, f"{r!r}"


@pytest.mark.parametrize("mode", harness.SUPERVISED)
def test_locks_are_waited_for_and_signals_end_the_wait(place, mode):
    work = place.dir("work")
    place.file("work/f", "x")
    text = f"""
import fcntl, os, signal, time
a = os.open('{work}/f', os.O_RDWR)
b = os.open('{work}/f', os.O_RDWR)
fcntl.flock(a, fcntl.LOCK_EX)
class Rung(Exception):
    pass
def ring(*_):
    raise Rung
signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    fcntl.flock(b, fcntl.LOCK_EX)
    print('locked')
except Rung:
    print('rung')
if os.fork() == 0:
    os.close(b)
    time.sleep(0.3)
    fcntl.flock(a, fcntl.LOCK_UN)
    os._exit(0)
fcntl.flock(b, fcntl.LOCK_EX)
print('locked')
os.wait()
"""
    assert quiet_ok(python(["-w", work], text, mode=mode)).out == "rung\nlocked\n"


# --- Watches --------------------------------------------------------------------------------------

WATCHES = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
MODIFY, ONLYDIR, DONT_FOLLOW, CREATE, ATTRIB = 2, 0x1000000, 0x2000000, 0x100, 4
fd = libc.inotify_init1(os.O_NONBLOCK)
def t(label, path, mask=MODIFY, to=None):
    ctypes.set_errno(0)
    r = libc.inotify_add_watch(fd if to is None else to, path.encode(), mask)
    print(label, errno.errorcode[ctypes.get_errno()] if r < 0 else 'watched')
    return r
work, read, out = sys.argv[1:4]
os.symlink('f', work + '/l')
os.symlink(out, work + '/lo')
os.chdir(work)
own = t('own', work + '/f')
t('relative', 'f')
t('link', 'l')
t('link itself', 'l', MODIFY | ATTRIB | DONT_FOLLOW)
t('directory', '.', CREATE | ONLYDIR)
t('no directory', 'f', CREATE | ONLYDIR)
t('readable', read)
t('descriptor', f'/proc/self/fd/{os.open("f", os.O_RDONLY)}')
t('nothing', 'nope')
t('empty', '')
t('no mask', 'f', 0)
t('no inotify', 'f', MODIFY, os.open('f', os.O_RDONLY))
t('no descriptor', 'f', MODIFY, 777)
t('foreign', out)
t('foreign by link', 'lo')
t('foreign link itself', 'lo', ATTRIB | DONT_FOLLOW)
t('foreign entry', out + '/f')
t('foreign not there', out + '/nope')
with open('f', 'a') as file:
    file.write('y')
print(int.from_bytes(os.read(fd, 4096)[:4], 'little') == own)
sys.exit(3)
"""


@pytest.mark.parametrize("mode", harness.SUPERVISED)
def test_watches_take_a_grant(place, mode):
    read, out = place.dir("read"), place.dir("out")
    place.file("out/f", "x")

    def argv():
        work = fresh(place, "work")
        place.file("work/f", "x")
        return [harness.PYTHON, "-c", WATCHES, work, read, out]

    expected = outside(argv(), code=3)
    r = harness.sandbox(["-w", place.top / "work", "-r", read], argv(), mode=mode)
    assert r.code == 3, f"{r!r}"
    for name in ("foreign", "foreign by link", "foreign entry"):
        expected = expected.replace(f"{name} watched", f"{name} EACCES")
    same(expected, r.out)
    assert f"allow it with -r {out}" in r.err


# --- Races ----------------------------------------------------------------------------------------

RACES = ["text", "link", "dir", "fd", "fdpath", "cwd", "lock"]


def race(place, kind, command):
    """Prints of path-race: asked, own and foreign."""
    own, foreign = fresh(place, "racea"), fresh(place, "raceb")
    fresh(place, "racea2")
    place.file("racea/f", "x")
    place.file("raceb/f", "x")
    r = command([kind, own, foreign, RACE_SECONDS])
    assert r.code == 0, f"{r!r}"
    found = (foreign / "f").exists() and os.stat(foreign / "f").st_mode & 0o7777 == 0o644
    return dict((k, int(v)) for k, v in (word.split("=") for word in r.out.split())), found


@pytest.mark.parametrize("kind", RACES)
def test_race_control_loses(place, kind):
    tool = harness.INSTALLED.tools["path-race"]
    got, _ = race(place, kind, lambda words: harness.run([tool, "--control", *words]))
    assert got["foreign"] == 1


@pytest.mark.parametrize("way", ["nobase", "inherited"])
@pytest.mark.parametrize("kind", RACES)
def test_what_was_judged_is_what_is_changed(place, kind, way):
    tool = harness.INSTALLED.tools["path-race"]

    def command(words):
        flags = ["-w", words[1], "-r", words[2]]
        if way == "nobase":
            return harness.sandbox(flags, [tool, *words], mode="nobase")
        with open(words[2] / "f", "rb") as stdin:
            return harness.sandbox(flags, [tool, *words], stdin=stdin)

    got, unharmed = race(place, kind, command)
    assert got["foreign"] == 0 and unharmed
    assert got["own"] > 0 and got["asked"] > got["own"]


def test_rename_race_control_loses(place):
    tool = harness.INSTALLED.tools["path-race"]
    got, _ = race(place, "rename", lambda words: harness.run([tool, *words]))
    assert got["foreign"] == 1


def test_renames_between_grants_stay_in_them(place):
    tool = harness.INSTALLED.tools["path-race"]
    got, unharmed = race(place, "rename", lambda words: harness.sandbox(
        ["-w", words[1], "-w", f"{words[1]}2", "-r", words[2]], [tool, *words]))
    assert got["foreign"] == 0 and unharmed
    assert got["own"] > 0 and got["asked"] > got["own"]
