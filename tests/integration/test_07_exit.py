# SPDX-License-Identifier: Apache-2.0
"""Issue 3, point 7: exit codes (decisions 1) and --status-fd (decisions 2)."""

import json
import os
import resource
import signal
import subprocess
import time

import pytest

import harness
from checks import quiet_ok, refused, script

ALL = ["base", "nobase", "unsup", "nested"]
KEYS = {"exit_code", "reason", "timed_out", "run_ms", "peak_rss_bytes", "peak_scope"}


@pytest.mark.parametrize("code", [0, 1, 2, 42, 124, 125, 126, 127, 128, 255])
@pytest.mark.parametrize("mode", ALL)
def test_the_commands_code(mode, code):
    r = script([], f"exit {code}", mode=mode)
    assert r.code == code


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGSEGV,
                                 signal.SIGABRT, signal.SIGPIPE, signal.SIGHUP, signal.SIGUSR1])
@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_death_by_signal_is_128_plus_n(mode, sig):
    r = script([], f"kill -{int(sig)} $$", mode=mode)
    assert r.code == 128 + sig, f"{r!r}"


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_timeout_is_124_and_says_so(mode):
    r = script(["-t", "0.3"], "echo before; sleep 73.7", mode=mode)
    assert r.code == 124
    assert r.out == "before\n"
    assert len(r.err_lines) == 1 and "0.3" in r.err, f"{r!r}"


def with_status(flags, argv, mode="base", **kw):
    r, w = os.pipe()
    try:
        result = harness.sandbox(["--status-fd", str(w), *flags], argv, mode=mode, pass_fds=(w,),
                                 **kw)
    finally:
        os.close(w)
    with os.fdopen(r) as f:
        text = f.read()
    lines = text.splitlines()
    assert len(lines) == 1, (text, result)
    assert text.endswith("\n")
    return result, json.loads(lines[0])


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_status_of_an_exit(mode):
    result, status = with_status([], ["/bin/sh", "-c", "exit 3"], mode)
    assert result.code == 3
    assert set(status) == KEYS
    assert status["exit_code"] == 3
    assert status["reason"] == "exited"
    assert status["timed_out"] is False
    assert status["run_ms"] >= 0
    assert status["peak_rss_bytes"] > 100000
    assert status["peak_scope"] in ("process", "tree")


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_status_of_a_signal(mode):
    result, status = with_status([], ["/bin/sh", "-c", "kill -TERM $$"], mode)
    assert result.code == 143
    assert set(status) == KEYS | {"signal"}
    assert status["exit_code"] == -1
    assert status["signal"] == 15
    assert status["reason"] == "signaled"


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_status_of_a_timeout(mode):
    result, status = with_status(["-t", "0.2"], ["/bin/sleep", "73.7"], mode)
    assert result.code == 124
    assert status["exit_code"] == -1
    assert status["reason"] == "timeout"
    assert status["timed_out"] is True
    assert status["run_ms"] >= 200


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_status_of_a_failed_start(mode):
    result, status = with_status([], ["/no/such/program"], mode)
    assert result.code == 127
    assert status["reason"] == "start_failed"
    assert "/no/such/program" in status["error"]
    assert status["timed_out"] is False


def test_status_of_bad_input():
    result, status = with_status(["--max-open-files", "x"], ["/usr/bin/true"])
    assert result.code == 125
    assert status["reason"] == "start_failed"
    assert "--max-open-files" in status["error"] or "x" in status["error"]


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_status_of_a_killed_run(mode):
    r, w = os.pipe()
    m = harness.MODES[mode]
    running = harness.Running(m.command(["--status-fd", str(w)], ["/bin/sleep", "73.8"]),
                              pass_fds=(w,))
    os.close(w)
    harness.wait_until(lambda: len(harness.tagged(running.tag)) >= 2, what="the start")
    time.sleep(0.2)
    os.kill(running.pid, signal.SIGTERM)
    result = running.finish()
    with os.fdopen(r) as f:
        status = json.loads(f.read())
    assert result.code == 128 + signal.SIGTERM
    assert status["reason"] in ("killed", "signaled")
    assert status["exit_code"] == -1
    assert harness.tagged(running.tag) == []


def test_status_fd_is_not_seen_inside():
    r, w = os.pipe()
    try:
        m = harness.MODES["base"]
        result = harness.run(m.command(["--status-fd", str(w)],
                                       [harness.INSTALLED.tools["inside"]]), pass_fds=(w,))
    finally:
        os.close(w)
        os.close(r)
    assert "fds=0:char 1:pipe 2:pipe \n" in result.out


def test_status_on_standard_output():
    r = harness.sandlock("run", "--status-fd", "1", *harness.SYSTEM, "--", "/bin/echo", "x")
    assert r.code == 0
    assert r.lines[0] == "x"
    assert json.loads(r.lines[1])["exit_code"] == 0


def test_closed_status_pipe_does_not_change_the_run():
    r, w = os.pipe()
    os.close(r)
    try:
        result = harness.sandbox(["--status-fd", str(w)], ["/bin/sh", "-c", "exit 4"],
                                 pass_fds=(w,))
    finally:
        os.close(w)
    assert result.code == 4, f"{result!r}"


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_run_ms_is_of_the_command(mode):
    _, status = with_status([], ["/bin/sleep", "0.3"], mode)
    assert status["run_ms"] >= 300


def test_peak_memory_is_of_the_largest_process():
    code = "x = bytearray(80 * 1024 * 1024)"
    _, status = with_status([], [harness.PYTHON, "-c", code])
    assert status["peak_rss_bytes"] >= 80 * 1024 * 1024


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_b20_large_output_on_both_streams(mode):
    text = "head -c 3000000 /dev/zero & head -c 3000000 /dev/zero >&2; wait"
    r = script(["-t", "60"], text, mode=mode)
    assert r.code == 0
    assert len(r.out) == 3000000
    assert len(r.err) == 3000000


def test_success_is_silent():
    quiet_ok(harness.sandbox([], ["/usr/bin/true"]))


def test_sandlock_without_a_controlling_terminal_or_descriptors():
    argv = harness.MODES["base"].command([], ["/usr/bin/true"])
    running = harness.Running(argv, stdin=None, stdout=None, stderr=None,
                              preexec=lambda: [os.close(fd) for fd in range(3)])
    assert running.finish().code == 0


def test_limit_on_processes_of_the_user_is_told(is_root):
    """A start that fails for want of processes says so."""
    if not is_root:
        return


    def none():
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))

    extra = harness.THIRD
    with harness.Running(["/bin/sleep", "60"], account=extra):
        r = harness.run(harness.MODES["base"].command([], ["/usr/bin/true"]), account=extra,
                        preexec=none)
    assert r.code == 125, f"{r!r}"
    assert len(r.err_lines) == 1
    refused(r, "process")


def test_unwritable_standard_output_is_the_commands_business():
    with open("/dev/full", "w") as full:
        running = harness.Running(harness.MODES["base"].command([], ["/bin/echo", "x"]),
                                  stdout=full, stderr=subprocess.PIPE)
        assert running.finish().code == 1
