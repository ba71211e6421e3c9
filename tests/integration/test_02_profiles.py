# SPDX-License-Identifier: Apache-2.0
"""Issue 3, point 2: the built-in profiles run their tools, and the standard devices work."""

import os

import pytest

import harness
from checks import ok, python, quiet_ok, refused, script

C_PROGRAM = '#include <stdio.h>\nint main(void) { puts("built"); return 0; }\n'


def test_system_profile_runs_a_shell():
    r = quiet_ok(harness.sandlock("run", "-p", "system", "--", "/bin/sh", "-c", "echo $((6 * 7))"))
    assert r.out == "42\n"


def test_system_profile_grants_no_writing(place):
    r = harness.sandlock("run", "-p", "system", "--", "/bin/sh", "-c", f"echo x > {place.top}/new")
    assert r.code != 0
    assert not (place.top / "new").exists()


def test_system_profile_knows_time_zone_and_certificates():
    r = ok(harness.sandlock("run", "-p", "system", "--", "/bin/sh", "-c",
                            "test -r /etc/localtime -o ! -e /etc/localtime && "
                            "test -r /usr/share/zoneinfo/UTC -o ! -e /usr/share/zoneinfo && "
                            "test -r /etc/ssl/certs -o ! -e /etc/ssl/certs && echo fine"))
    assert r.out == "fine\n"


@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_python_profile(place, mode):
    work = place.dir("work")
    m = harness.MODES[mode]
    code = "import json, ssl, subprocess, tempfile; print(json.dumps({'a': 1}))"
    argv = m.command(["-p", "python", "-w", work], [harness.PYTHON, "-c", code])
    if not m.nested:
        argv = [str(harness.INSTALLED.sandlock), "run", *m.flags, "-p", "python", "-w", str(work),
                "--", harness.PYTHON, "-c", code]
    r = quiet_ok(harness.run(argv, cwd=str(work)))
    assert r.out == '{"a": 1}\n'


def test_python_profile_builds_a_venv(place):
    work = place.dir("work")
    quiet_ok(harness.sandlock("run", "-p", "python", "-w", work, "--", harness.PYTHON, "-m",
                              "venv", "--without-pip", "v", cwd=str(work)))
    assert (work / "v/bin/python").exists()


def test_node_profile(place):
    if not os.access("/usr/bin/node", os.X_OK):
        pytest.skip("Debian's nodejs is not installed")
    work = place.dir("work")
    code = ("require('fs').promises.readFile('/etc/hostname')"
            ".then(b => console.log(b.length > 0))")
    r = quiet_ok(harness.sandlock("run", "-p", "node", "-w", work, "--", "/usr/bin/node", "-e",
                                  code, cwd=str(work)))
    assert r.out == "true\n"


@pytest.mark.parametrize("flags", [[], ["--view", "notify", "--allow-metadata"]], ids=str)
def test_c_build_profile(place, flags):
    """Without the base a linker needs --allow-metadata: it makes its output executable by chmod."""
    work = place.dir("work")
    place.file("work/a.c", C_PROGRAM)
    place.file("work/Makefile", "a: a.c\n\tcc -O2 -g -o a a.c\n")
    quiet_ok(harness.sandlock("run", *flags, "-p", "c-build", "-w", work, "--", "make",
                              "-s", "-j2", cwd=str(work)))
    r = quiet_ok(harness.sandlock("run", "-p", "c-build", "-w", work, "--", work / "a"))
    assert r.out == "built\n"


def test_c_build_profile_cannot_see_home(place):
    home = place.dir("home")
    place.file("home/id_rsa", "key", 0o600)
    r = harness.sandlock("run", "-p", "c-build", "--", "/bin/cat", home / "id_rsa",
                         env={"HOME": str(home)})
    assert r.code == 1
    assert "Permission denied" in r.err


@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_standard_devices(mode):
    text = ("import os\n"
            "for name in ('null', 'zero', 'full', 'random', 'urandom'):\n"
            "    fd = os.open('/dev/' + name, os.O_RDWR)\n"
            "    if name not in ('null',):\n"
            "        assert len(os.read(fd, 4)) == 4\n"
            "    os.close(fd)\n"
            "open('/dev/null', 'w').write('x')\n"
            "print('fine')\n")
    r = quiet_ok(python([], text, mode=mode))
    assert r.out == "fine\n"


def test_base_has_ptys_shm_and_proc_of_its_own():
    text = ("import os, pty\n"
            "m, s = pty.openpty()\n"
            "assert os.ttyname(s) == '/dev/pts/0', os.ttyname(s)\n"
            "open('/dev/shm/mine', 'w').write('x')\n"
            "assert os.listdir('/dev/shm') == ['mine']\n"
            "pids = sorted(int(d) for d in os.listdir('/proc') if d.isdigit())\n"
            "assert os.getpid() in pids and len(pids) <= 3, pids\n"
            "print(open('/proc/self/comm').read().strip())\n")
    r = quiet_ok(python([], text))
    assert r.out == "python3\n"
    assert not os.path.exists("/dev/shm/mine")


@pytest.mark.parametrize("path", ["/proc", "/dev/pts", "/dev/shm"])
def test_unsupervised_shared_places_are_closed(path):
    """With a supervisor they show what is the sandbox's own (test_17_plain.py)."""
    r = python([], f"import os\nos.listdir('{path}')\n", mode="unsup")
    assert r.code == 1
    assert "Permission denied" in r.err


def test_unsupervised_has_no_tmpdir_of_its_own():
    """Nobody stays who could remove it."""
    assert ok(script([], "echo ${TMPDIR-unset}", mode="unsup")).out == "unset\n"


def test_without_base_tmpdir_is_private_and_removed():
    before = set(os.listdir("/tmp"))
    r = ok(python([], "import os, tempfile\n"
                      "d = os.environ['TMPDIR']\n"
                      "open(os.path.join(d, 'x'), 'w').close()\n"
                      "tempfile.mkdtemp()\n"
                      "assert tempfile.gettempdir() == d\n"
                      "assert os.stat(d).st_mode & 0o777 == 0o700\n"
                      "print(d)\n", mode="nobase"))
    assert not os.path.exists(r.out.strip())
    assert r.out.strip().rsplit("/", 1)[1] not in set(os.listdir("/tmp")) - before


@pytest.mark.parametrize("mode", ["nobase"])
def test_tmpdir_is_left_alone_where_set_or_tmp_granted(mode, place):
    work = place.dir("work")
    r = ok(script(["-w", work], "echo $TMPDIR", mode=mode, env={"TMPDIR": str(work)}))
    assert r.out == f"{work}\n"
    r = ok(script(["-w", "/tmp"], "echo ${TMPDIR-unset}", mode=mode))
    assert r.out == "unset\n"


def test_gcc_works_without_a_base(place):
    work = place.dir("work")
    place.file("work/a.c", C_PROGRAM)
    quiet_ok(script(["-w", work, "--allow-metadata"], "cc -o a a.c && ./a > out", mode="nobase",
                    cwd=str(work)))
    assert (work / "out").read_text() == "built\n"


def test_unknown_builtin(place):
    refused(harness.sandlock("run", "-p", "builtin:x", "--", "/usr/bin/true"), '"x"')
