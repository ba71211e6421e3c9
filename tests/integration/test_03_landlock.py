# SPDX-License-Identifier: Apache-2.0
"""Issue 3, point 3: grants, ports and scopes by Landlock, in each mode."""

import errno
import os
import resource
import socket
import subprocess

import pytest

import harness
from checks import ok, python, quiet_ok, refused, script


@pytest.fixture
def listener():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(16)
    yield s.getsockname()[1]
    s.close()


@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_read_grant_is_read_list_and_execute(place, mode):
    ro = place.dir("ro")
    place.file("ro/f", "text")
    place.file("ro/run", "#!/bin/sh\necho ran\n", 0o755)
    r = quiet_ok(script(["-r", ro], f"cat {ro}/f && ls {ro} && {ro}/run", mode=mode))
    assert r.out == "textf\nrun\nran\n"


@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_write_grant_is_everything(place, mode):
    work = place.dir("work")
    text = (f"cd {work} && mkdir d && echo x > d/f && mv d/f g && ln -s g l && mkfifo p && "
            "ln g h && truncate -s 0 g && rm h p l && rmdir d && cp /bin/true t && ./t && ls")
    r = quiet_ok(script(["-w", work], text, mode=mode))
    assert r.out == "g\nt\n"


@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_rename_between_directories_of_a_grant(place, mode):
    work = place.dir("work")
    place.dir("work/a")
    place.dir("work/b")
    place.file("work/a/f", "x")
    quiet_ok(script(["-w", work], f"mv {work}/a/f {work}/b/ && mv {work}/a {work}/b/", mode=mode))
    assert sorted(os.listdir(work / "b")) == ["a", "f"]


@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_missing_read_path_warns(mode, place):
    missing = place.top / "nothing"
    r = ok(harness.sandbox(["-r", missing], ["/usr/bin/true"], mode=mode))
    assert str(missing) in r.err
    assert "warning" in r.err


def test_read_if_exists_is_silent(place):
    quiet_ok(harness.sandbox(["--fs-read-if-exists", place.top / "nothing"], ["/usr/bin/true"]))


@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_missing_write_path_is_an_error(mode, place):
    refused(harness.sandbox(["-w", place.top / "nothing"], ["/usr/bin/true"], mode=mode),
            str(place.top / "nothing"))


def test_fifo_as_rule_path_does_not_block(place):
    os.mkfifo(place.top / "fifo")
    place.account.own(place.top)
    quiet_ok(harness.sandbox(["-r", place.top / "fifo"], ["/usr/bin/true"]))


def test_unreadable_directory_as_rule_path(place):
    d = place.dir("d", 0o311)
    quiet_ok(harness.sandbox(["-r", d], ["/usr/bin/true"]))


@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_b69_write_grant_on_one_regular_file(place, mode):
    w = place.dir("w")
    allowed = place.file("w/allowed.txt", "")
    place.file("w/other", "")
    r = script(["-r", w, "-w", allowed], f"echo x >> {allowed} && echo y > {w}/other", mode=mode)
    assert r.code != 0
    assert allowed.read_text() == "x\n"
    assert (w / "other").read_text() == ""


@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_grant_through_a_symlink(place, mode):
    place.dir("real")
    place.file("real/f", "x")
    link = place.top / "link"
    os.symlink("real", link)
    assert quiet_ok(script(["-r", link], f"cat {link}/f", mode=mode)).out == "x"


@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_relative_grants_start_at_the_working_directory(place, mode):
    place.dir("d")
    place.file("d/f", "x")
    if mode == "nested":
        return
    assert quiet_ok(script(["-r", "d"], f"cat {place.top}/d/f", mode=mode,
                           cwd=str(place.top))).out == "x"


def connect_code(port):
    return ("import socket, sys\n"
            f"s = socket.socket()\nsys.exit(s.connect_ex(('127.0.0.1', {port})))\n")


@pytest.mark.parametrize("rule", ["tcp://:{}", ":{}", "tcp://*:{}"])
@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_tcp_port_rule(mode, rule, listener):
    r = ok(python(["--net-allow", rule.format(listener)], connect_code(listener), mode=mode))
    # Without a supervisor a rule that grants UDP as well is half a rule.
    if rule.startswith(":") and mode == "unsup":
        assert len(r.err_lines) == 1, f"{r!r}"
        assert "warning" in r.err and "TCP" in r.err
    elif not rule.startswith(":"):
        assert r.err == ""


@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_other_port_is_refused(mode, listener):
    other = listener + 1 if listener < 65535 else listener - 1
    r = python(["--net-allow", f"tcp://:{other}"], connect_code(listener), mode=mode)
    assert r.code == errno.EACCES, f"{r!r}"


@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_bind_grant(mode):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    code = ("import socket, sys\n"
            "s = socket.socket()\n"
            f"s.bind(('127.0.0.1', {port}))\ns.listen(1)\n"
            "try:\n    socket.socket().bind(('127.0.0.1', 0))\n"
            "except PermissionError as e:\n    sys.exit(e.errno)\n")
    r = python(["--net-allow-bind", str(port)], code, mode=mode)
    assert r.code == errno.EACCES, f"{r!r}"


def test_bind_range_and_star(place):
    code = "import socket\nsocket.socket().bind(('127.0.0.1', 0))\n"
    quiet_ok(python(["--net-allow-bind", "*"], code))
    quiet_ok(python(["--net-allow-bind", "0"], code))


@pytest.mark.parametrize("protection", ["fs-truncate", "net-tcp", "fs-ioctl-dev", "signal-scope",
                                        "abstract-unix-socket-scope"])
@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_allow_degraded_is_silent_where_the_kernel_has_it(mode, protection):
    quiet_ok(harness.sandbox(["--allow-degraded", protection], ["/usr/bin/true"], mode=mode))


@pytest.mark.parametrize("protection", ["fs-truncate", "net-tcp", "fs-ioctl-dev",
                                        "abstract-unix-socket-scope"])
def test_disable_in_flags_and_profile(place, protection):
    ok(harness.sandbox(["--disable", protection], ["/usr/bin/true"]))
    profile = place.file("p.toml", f'[protections]\ndisable = ["{protection}"]\n')
    ok(harness.sandbox(["--profile-file", profile], ["/usr/bin/true"]))


def test_disabled_net_tcp_lets_connect_through(listener):
    ok(python(["--disable", "net-tcp"], connect_code(listener)))


def test_disabled_signal_scope_without_pid_namespace_is_refused():
    refused(harness.sandbox(["--disable", "signal-scope"], ["/usr/bin/true"], mode="nobase"),
            "signal scope")




@pytest.mark.parametrize("code,words", [(errno.ENOSYS, ["Landlock"]),
                                        (errno.EOPNOTSUPP, ["Landlock"]),
                                        (errno.EPERM, ["Landlock"])],
                         ids=["ENOSYS", "EOPNOTSUPP", "EPERM"])
def test_b56_b71_no_landlock_is_said_and_refused(code, words):
    """Kernel too old, LSM not enabled, or blocked by an outer filter: said apart, no abort."""
    argv = harness.MODES["base"].command([], ["/usr/bin/true"])
    r = harness.run([harness.INSTALLED.tools["fake-kernel"], f"444={code}", "--", *argv])
    refused(r, *words)


def test_b56_the_three_causes_read_differently():
    said = set()
    for code in (errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
        argv = harness.MODES["base"].command([], ["/usr/bin/true"])
        r = harness.run([harness.INSTALLED.tools["fake-kernel"], f"444={code}", "--", *argv])
        said.add(r.err)
    assert len(said) == 3, said


def test_b48_the_lsm_list_file_is_not_needed(is_root):
    """Landlock is found by its system call where /sys/kernel/security cannot be seen."""
    if not is_root:
        return
    argv = harness.MODES["base"].command([], ["/usr/bin/true"])
    hide = ("mount -t tmpfs none /sys/kernel/security 2>/dev/null; "
            f"exec setpriv --reuid {harness.USER.uid} --regid {harness.USER.gid} --clear-groups "
            + " ".join(argv))
    r = harness.run(["/usr/bin/unshare", "-m", "/bin/sh", "-c", hide],
                    account=harness.ROOT_USER)
    quiet_ok(r)


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_h7_12_want_of_descriptors_never_opens_the_sandbox(place, mode):
    """At every small limit the start is refused in one line, or the sandbox is whole."""
    secret = place.file("secret", "the secret")
    argv = harness.MODES[mode].command([], ["/bin/cat", secret])
    outcomes = set()
    for n in range(3, 48):
        r = harness.run(argv, preexec=lambda n=n: resource.setrlimit(resource.RLIMIT_NOFILE,
                                                                     (n, n)))
        assert "the secret" not in r.out, f"{n}{r!r}"
        assert r.code != 0, f"{n}{r!r}"
        outcomes.add(r.code)
    assert 1 in outcomes, "no run was started at all"


def test_same_sandbox_signals_work():
    r = ok(script([], "sleep 50 & kill $! && wait $! 2>/dev/null; echo $?", mode="nobase"))
    assert r.out == "143\n"


@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_signal_scope_holds_outwards(mode):
    """The other direction: a process outside may signal one inside."""
    victim = subprocess.Popen(["/bin/sleep", "60"], **harness.USER.popen_args())
    try:
        r = script([], f"kill -TERM {victim.pid}", mode=mode)
        assert r.code != 0
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()
