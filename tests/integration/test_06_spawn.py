# SPDX-License-Identifier: Apache-2.0
"""Issue 3, point 6: what the command finds when it starts: descriptors, signals, environment,
directory, limits, name; and how a failing exec is told.
"""

import errno
import os
import resource
import shutil
import signal
import subprocess

import pytest

import harness
from checks import inside, ok, python, quiet_ok, refused, script, state

ALL = ["base", "nobase", "unsup", "nested"]


def closing(*fds):
    def preexec():
        for fd in fds:
            os.close(fd)
    return preexec


@pytest.mark.parametrize("mode", ALL)
def test_no_descriptor_is_inherited(mode):
    r, w = os.pipe()
    try:
        s = state(mode=mode, pass_fds=(r, w))
    finally:
        os.close(r)
        os.close(w)
    assert s["fds"] == "0:char 1:pipe 2:pipe "


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
@pytest.mark.parametrize("fds", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)], ids=str)
def test_b104_closed_standard_descriptors(place, mode, fds):
    """A closed descriptor becomes /dev/null inside, and no other one lands on its number."""
    out = place.file("out")
    text = (f"import os, stat\n"
            "kinds = []\n"
            "for fd in range(3):\n"
            "    st = os.fstat(fd)\n"
            "    kinds.append('null' if st.st_rdev == os.makedev(1, 3) else "
            "'pipe' if stat.S_ISFIFO(st.st_mode) else '?')\n"
            f"open('{out}', 'w').write(' '.join(kinds))\n")
    argv = harness.MODES[mode].command(["-w", out], [harness.PYTHON, "-c", text])
    kw = {name: subprocess.PIPE for i, name in enumerate(("stdin", "stdout", "stderr"))
          if i not in fds}
    running = harness.Running(argv, preexec=closing(*fds), **{
        **{n: None for n in ("stdin", "stdout", "stderr")}, **kw})
    r = running.finish(data=b"" if 0 not in fds else None)
    assert r.code == 0, f"{r!r}"
    want = ["null" if i in fds else "pipe" for i in range(3)]
    assert out.read_text() == " ".join(want)


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_low_descriptors_in_any_order(place, mode):
    """Standard descriptors that are the same file, or were made in reverse order."""
    out = place.file("out")
    fd = os.open(out, os.O_WRONLY | os.O_APPEND)
    try:
        running = harness.Running(
            harness.MODES[mode].command([], ["/bin/sh", "-c", "echo a; echo b >&2"]),
            stdout=fd, stderr=fd)
        assert running.finish().code == 0
    finally:
        os.close(fd)
    assert out.read_text() == "a\nb\n"


@pytest.mark.parametrize("mode", ALL)
def test_descriptor_modes_are_kept(mode):
    s = state(mode=mode)
    assert s["modes"].split()[1:] == ["1", "1"]


@pytest.mark.parametrize("mode", ALL)
def test_signal_dispositions_and_mask_are_reset(mode):
    def spoil():
        for sig in range(1, 65):
            try:
                signal.signal(sig, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))

    s = state(mode=mode, preexec=spoil)
    assert s["ignored"] == ""
    assert s["blocked"] == ""


@pytest.mark.parametrize("mode", ALL)
def test_sigpipe_works(mode):
    r = script([], "yes | head -1 >/dev/null; echo done", mode=mode)
    assert r.out == "done\n"
    assert r.err == ""


@pytest.mark.parametrize("mode", ALL)
def test_identity(mode):
    s = state(mode=mode)
    assert s["uid"] == f"{harness.USER.uid} {harness.USER.uid}"
    assert s["gid"] == f"{harness.USER.gid} {harness.USER.gid}"
    assert s["no_new_privs"] == "1"


def test_base_guardian_is_pid_1():
    s = state()
    assert s["ppid"] == "1"
    assert int(s["pid"]) in (2, 3)


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_own_process_group(mode):
    assert state(mode=mode)["leader"] == "1"


@pytest.mark.parametrize("mode", ALL)
def test_umask_is_inherited(mode):
    assert state(mode=mode, umask=0o077)["umask"] == "077"


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_cwd_flag(place, mode):
    work = place.dir("work")
    assert state(["-w", work, "--cwd", work], mode=mode)["cwd"] == str(work)


@pytest.mark.parametrize("mode", ALL)
def test_cwd_is_kept_without_the_flag(place, mode):
    work = place.dir("work")
    assert state(["-w", work], mode=mode, cwd=str(work))["cwd"] == str(work)


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_cwd_relative_to_the_callers(place, mode):
    place.dir("a/b")
    s = state(["-w", place.top, "--cwd", "a/b"], mode=mode, cwd=str(place.top))
    assert s["cwd"] == str(place.top / "a/b")


def test_cwd_lies_on_the_writable_mount_of_the_base(place):
    """The directory that the command starts in must be the granted one, not the read-only one."""
    work = place.dir("work")
    quiet_ok(script(["-w", work], "echo x > new", cwd=str(work)))
    quiet_ok(script(["-w", place.dir("w2"), "--cwd", place.top / "w2"], "echo x > new"))


def test_h7_8_cwd_on_a_covered_mount_is_left():
    """A directory of the host's /dev/shm cannot be reached by name in the base, nor by staying."""
    top = f"/dev/shm/h4-{os.getpid()}"
    os.mkdir(top, 0o755)
    try:
        with open(top + "/f", "w") as f:
            f.write("secret of the host")
        harness.USER.own(top)
        r = script(["-r", "/"], "cat f; pwd", cwd=top)
        assert "secret" not in r.out
        assert r.out == "/\n"
    finally:
        shutil.rmtree(top)


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_env_flag(mode):
    r = quiet_ok(script(["--env", "A=1", "--env", "B=x=y", "--env", "A=2", "--env", "EMPTY="],
                        "echo $A $B ${EMPTY-unset}.", mode=mode, env={"A": "0"}))
    assert r.out == "2 x=y .\n"


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_environment_is_inherited(mode):
    assert quiet_ok(script([], "echo $SOME_NAME", mode=mode,
                           env={"SOME_NAME": "here"})).out == "here\n"


@pytest.mark.parametrize("mode", ["base", "unsup"])
def test_clean_env_keeps_the_small_documented_set(mode):
    env = {"SECRET": "x", "LD_PRELOAD": "/nonexistent.so", "TERM": "dumb", "USER": "u",
           "LANG": "C.UTF-8", "LC_ALL": "C", "PYTHONPATH": "/x", "BASH_ENV": "/x"}
    r = harness.sandbox(["--clean-env", "--env", "MINE=1"], ["/usr/bin/env"], mode=mode, env=env)
    assert r.code == 0, f"{r!r}"
    got = dict(line.split("=", 1) for line in r.lines)
    assert got["MINE"] == "1"
    assert got["PATH"]
    assert got["HOME"] == "/nonexistent"
    assert got["TERM"] == "dumb"
    assert got["LANG"] == "C.UTF-8"
    for name in ("SECRET", "LD_PRELOAD", "PYTHONPATH", "BASH_ENV", harness.TAG):
        assert name not in got


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_b17_open_file_limit(mode):
    r = quiet_ok(script(["--max-open-files", "32"], "ulimit -n; ulimit -Hn", mode=mode))
    assert r.out == "32\n32\n"


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_b17_open_file_limit_never_raises(mode):
    def small():
        resource.setrlimit(resource.RLIMIT_NOFILE, (60, 64))

    s = state(["--max-open-files", "1000"], mode=mode, preexec=small)
    assert s["nofile"] in ("60 60", "60 64")


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_limits_flags(mode):
    s = state(["--no-coredump", "--cpu-cores", "0", "--no-huge-pages", "--no-randomize-memory"],
              mode=mode)
    # One byte stops files and piped dumps alike (core(5)); 0 would not stop the latter.
    assert s["core"] == ("1 1" if resource.getrlimit(resource.RLIMIT_CORE)[1] else "0 0")
    assert s["cpus"] == "0 "
    assert s["thp_disable"] == "1"
    assert s["no_randomize"] == "1"


def test_without_the_flags_nothing_changes():
    bare = inside(harness.run([harness.INSTALLED.tools["inside"]]))
    s = state()
    for key in ("core", "cpus", "thp_disable", "no_randomize", "nofile", "umask", "cwd"):
        assert s[key] == bare[key], key


def test_name_is_the_host_name_in_the_base():
    assert state(["--name", "my-box.local"])["host"] == "my-box.local"


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_live_name_cannot_be_used_twice(place, mode):
    env = {"XDG_RUNTIME_DIR": str(place.dir("run", 0o700))}
    m = harness.MODES[mode]
    with harness.Running(m.command(["--name", "twice"], ["/bin/cat"]), env=env,
                         stdin=subprocess.PIPE) as first:
        harness.wait_until(lambda: (place.top / "run/sandlock/twice").exists(), what="the name")
        refused(harness.sandbox(["--name", "twice"], ["/usr/bin/true"], mode=mode, env=env),
                "twice")
        quiet_ok(harness.sandbox(["--name", "other"], ["/usr/bin/true"], mode=mode, env=env))
        first.proc.stdin.close()
        assert first.proc.wait(30) == 0
    quiet_ok(harness.sandbox(["--name", "twice"], ["/usr/bin/true"], mode=mode, env=env))
    assert [p.name for p in (place.top / "run").glob("sandlock/*")] == []


def test_name_of_a_killed_sandbox_is_free_again(place):
    env = {"XDG_RUNTIME_DIR": str(place.dir("run", 0o700))}
    with harness.Running(harness.MODES["base"].command(["--name", "n"], ["/bin/sleep", "62.5"]),
                         env=env) as first:
        harness.wait_until(lambda: (place.top / "run/sandlock/n").exists(), what="the name")
        first.proc.kill()
        first.proc.wait(30)
        assert harness.gone_within(first.tag) == []
    quiet_ok(harness.sandbox(["--name", "n"], ["/usr/bin/true"], env=env))


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_user_flag_maps_ids(mode):
    if mode == "nobase":
        return
    s = state(["--user", "1234:5678"], mode=mode)
    assert s["uid"] == "1234 1234"
    assert s["gid"] == "5678 5678"


@pytest.mark.parametrize("flags", [[], ["--view", "notify"], ["--no-supervisor"]], ids=str)
def test_user_flag_as_root_changes_ids(is_root, flags):
    if not is_root:
        return
    uid = harness.USER.uid
    r = harness.run([harness.INSTALLED.sandlock, "run", *flags, *harness.SYSTEM, "-r",
                     harness.INSTALLED.bin, "--user", f"{uid}:{uid + 1}", "--",
                     harness.INSTALLED.tools["inside"]], account=harness.ROOT_USER)
    s = inside(r)
    assert s["uid"] == f"{uid} {uid}"
    assert s["gid"] == f"{uid + 1} {uid + 1}"
    assert s["groups"] == "0"


def test_exec_shell_flag():
    r = quiet_ok(harness.sandlock("run", *harness.SYSTEM, "-e", "echo $((1 + 2))"))
    assert r.out == "3\n"


def test_interactive_flag_changes_nothing():
    quiet_ok(harness.sandlock("run", "-i", *harness.SYSTEM, "--", "/usr/bin/true"))


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_program_is_found_by_path(mode):
    assert quiet_ok(harness.sandbox([], ["echo", "x"], mode=mode)).out == "x\n"


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_path_of_the_sandbox_counts(place, mode):
    place.dir("bin")
    place.file("bin/mine", "#!/bin/sh\necho mine\n", 0o755)
    r = quiet_ok(harness.sandbox(["-r", place.top, "--env", f"PATH={place.top}/bin:/usr/bin:/bin"],
                                 ["mine"], mode=mode))
    assert r.out == "mine\n"


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_script_without_interpreter_line(place, mode):
    place.file("s", "echo shell\n", 0o755)
    r = quiet_ok(harness.sandbox(["-r", place.top], [place.top / "s"], mode=mode))
    assert r.out == "shell\n"


# --- exec failures -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_exec_not_found_is_127(mode):
    for argv in (["no-such-program"], ["/no/such/program"]):
        r = harness.sandbox([], argv, mode=mode)
        assert r.code == 127, f"{r!r}"
        assert len(r.err_lines) == 1 and argv[0] in r.err


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_exec_not_executable_is_126(place, mode):
    f = place.file("f", "#!/bin/sh\n", 0o644)
    r = harness.sandbox(["-r", place.top], [f], mode=mode)
    assert r.code == 126, f"{r!r}"
    assert len(r.err_lines) == 1 and str(f) in r.err


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_exec_of_a_directory_is_126(place, mode):
    r = harness.sandbox(["-r", place.top], [place.dir("d")], mode=mode)
    assert r.code == 126, f"{r!r}"


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_exec_without_grant_names_the_grant(place, mode):
    f = place.file("f", "#!/bin/sh\n", 0o755)
    r = harness.sandbox([], [f], mode=mode)
    assert r.code == 126, f"{r!r}"
    assert len(r.err_lines) == 1
    assert str(f) in r.err and "-r" in r.err


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_missing_interpreter_is_named(place, mode):
    f = place.file("f", "#!/no/such/interpreter\n", 0o755)
    r = harness.sandbox(["-r", place.top], [f], mode=mode)
    assert r.code in (126, 127), f"{r!r}"
    assert len(r.err_lines) == 1
    assert "/no/such/interpreter" in r.err


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_interpreter_without_grant_is_named(place, mode):
    d = place.dir("interp")
    place.dir("s")
    interp = d / "sh"
    shutil.copy2("/bin/sh", interp)
    f = place.file("s/f", f"#!{interp}\n", 0o755)
    r = harness.sandbox(["-r", place.top / "s"], [f], mode=mode)
    assert r.code == 126, f"{r!r}"
    assert len(r.err_lines) == 1
    assert str(interp) in r.err


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_loader_without_grant_is_named(place, mode):
    """Granted the program alone, the dynamic loader is what is missing."""
    f = place.top / "true"
    with open(f, "wb") as out, open("/bin/true", "rb") as src:
        out.write(src.read())
    os.chmod(f, 0o755)
    m = harness.MODES[mode]
    r = harness.run(m.command(["-r", place.top], [f], system=False))
    assert r.code == 126, f"{r!r}"
    assert len(r.err_lines) == 1
    assert "ld-linux" in r.err


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_wrong_format_is_126(place, mode):
    f = place.top / "f"
    f.write_bytes(b"\x7fELF" + b"\0" * 60)
    f.chmod(0o755)
    r = harness.sandbox(["-r", place.top], [f], mode=mode)
    assert r.code == 126, f"{r!r}"
    assert len(r.err_lines) == 1 and str(f) in r.err


def test_exec_failure_text_is_escaped():
    r = harness.sandbox([], ["/no\x1b[31m\n/such"])
    assert r.code == 127
    assert "\x1b" not in r.err and len(r.err_lines) == 1


# --- handed cases ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_b53_kinds_of_programs(place, mode):
    """Static, PIE and script programs run under the grants of the system directories."""
    work = place.dir("work")
    place.file("work/a.c", "int main(void) { return 7; }\n")
    for name, flags in (("static", ["-static"]), ("pie", ["-pie", "-fPIE"]),
                        ("runpath", ["-Wl,-rpath,/opt/odd,--enable-new-dtags"])):
        subprocess.run(["/usr/bin/cc", *flags, "-o", work / name, work / "a.c"], check=True)
        r = harness.sandbox(["-r", work], [work / name], mode=mode)
        assert r.code == 7, f"{r!r}"
    place.file("work/s", "#!/usr/bin/env python3\nprint('script')\n", 0o755)
    assert quiet_ok(harness.sandbox(["-r", work], [work / "s"], mode=mode)).out == "script\n"


def test_b53_static_program_needs_no_other_grant(place):
    work = place.dir("work")
    place.file("work/a.c", "int main(void) { return 7; }\n")
    subprocess.run(["/usr/bin/cc", "-static", "-o", work / "a", work / "a.c"], check=True)
    for mode in ("base", "nobase", "unsup"):
        r = harness.run(harness.MODES[mode].command(["-r", work], [work / "a"], system=False))
        assert r.code == 7, f"{r!r}"


def test_b66_our_binary_in_home_and_argv0_relative(place):
    """Installed below a home directory that the policy does not grant, called by a relative name."""
    home = place.dir("home")
    shutil.copytree(harness.INSTALLED.bin, home / "bin", symlinks=True)
    place.account.own(place.top)
    r = harness.run(["./sandlock", "run", *harness.SYSTEM, "--", "/bin/echo", "x"],
                    cwd=str(home / "bin"), env={"HOME": str(home)})
    assert quiet_ok(r).out == "x\n"
    r = harness.run(["sandlock", "run", *harness.SYSTEM, "--", "/bin/echo", "x"],
                    cwd="/", env={"HOME": str(home), "PATH": f"{home}/bin:/usr/bin"})
    assert quiet_ok(r).out == "x\n"


def test_b131_named_fifo_jobserver(place):
    work = place.dir("work")
    place.file("work/Makefile", "all: a b c\n%: ; @echo $@ > $@\n")
    quiet_ok(harness.sandbox(["-w", work], ["make", "-s", "-j4"], cwd=str(work),
                             env={"TMPDIR": str(work)}))
    quiet_ok(script(["-w", work], "mkfifo p && (echo x > p & cat p)", cwd=str(work)))
    assert sorted(os.listdir(work))[:2] == ["Makefile", "a"]


def test_b132_node_reads_a_file_and_io_uring_is_enosys():
    text = ("import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
            "print(libc.syscall(425, 1, 0), ctypes.get_errno())\n")
    for mode in ("base", "nobase", "unsup"):
        assert ok(python([], text, mode=mode)).out == f"-1 {errno.ENOSYS}\n"
    if os.access("/usr/bin/node", os.X_OK):
        code = "require('fs').promises.readFile('/etc/hostname').then(() => console.log('read'))"
        for mode in ("base", "nobase", "unsup"):
            assert ok(harness.sandbox([], ["/usr/bin/node", "-e", code], mode=mode)).out == "read\n"
