# SPDX-License-Identifier: Apache-2.0
"""Issue 3, point 6, the terminal: foreground, ^C, ^Z and fg, window size, hang-up, --pty.

Invariant: each test has a terminal of its own and sees what a user would see.
"""

import os
import shlex
import signal
import subprocess
import termios
import time

import pytest

import harness

MODES = ["base", "nobase", "unsup"]


@pytest.fixture
def tty():
    t = harness.Terminal()
    yield t
    t.close()


def shell(tty, place):
    """A job-control shell on the terminal, with a prompt that nothing else prints."""
    running = tty.start(["/bin/bash", "--norc", "--noprofile", "-i"],
                        env={"PS1": "<ready>", "HISTFILE": "", "TERM": "dumb"},
                        cwd=str(place.top))
    tty.expect("<ready>")
    return running


def words(mode, *argv, flags=()):
    return shlex.join(harness.MODES[mode].command(list(flags), list(argv)))


def inside(tty, mode, flags=()):
    argv = harness.MODES[mode].command(list(flags), [harness.INSTALLED.tools["inside"]])
    with tty.start(argv) as running:
        assert running.proc.wait(30) == 0
        text = tty.expect("argv0=").replace("\r", "")
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


@pytest.mark.parametrize("mode", MODES)
def test_interactive_run_has_the_foreground(tty, mode):
    tty.resize(33, 99)
    s = inside(tty, mode)
    assert s["foreground"] == "1"
    assert s["window"] == "33 99"
    assert s["fds"].startswith("0:char 1:char 2:char")


@pytest.mark.parametrize("mode", MODES)
def test_dev_tty_works(tty, mode):
    assert inside(tty, mode)["dev_tty"] == "1"


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_ctrl_c_ends_the_command_as_without_a_sandbox(tty, place, mode):
    with shell(tty, place):
        tty.send(words(mode, "/bin/sh", "-c", "echo started; exec sleep 74.1") + "\n")
        tty.expect("started\r\n")
        tty.send("\x03")
        tty.expect("<ready>")
        tty.send("echo code=$?\n")
        tty.expect("code=130\r\n")


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_ctrl_c_that_the_command_handles(tty, place, mode):
    with shell(tty, place):
        text = "trap 'echo caught; exit 7' INT; echo started; while :; do sleep 0.1; done"
        tty.send(words(mode, "/bin/sh", "-c", text) + "\n")
        tty.expect("started\r\n")
        tty.send("\x03")
        tty.expect("caught")
        tty.expect("<ready>")
        tty.send("echo code=$?\n")
        tty.expect("code=7\r\n")


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_b45_ctrl_z_stops_and_fg_continues(tty, place, mode):
    with shell(tty, place):
        tty.send(words(mode, "/bin/sh", "-c", "echo started; exec cat") + "\n")
        tty.expect("started\r\n")
        tty.send("one\n")
        tty.expect("one\r\none\r\n")
        for word in ("two", "three"):
            tty.send("\x1a")
            tty.expect("Stopped")
            tty.expect("<ready>")
            tty.send("echo shell-alive\n")
            tty.expect("\r\nshell-alive\r\n")
            tty.send("fg\n")
            tty.expect("exec cat'\r\n")
            tty.send(word + "\n")
            tty.expect(f"{word}\r\n{word}\r\n")
        tty.send("\x04")
        tty.expect("<ready>")
        tty.send("echo code=$?\n")
        tty.expect("code=0\r\n")


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_background_and_fg(tty, place, mode):
    with shell(tty, place):
        tty.send(words(mode, "/bin/sh", "-c", "sleep 0.5; echo done-inside; exec cat") + " &\n")
        tty.expect("done-inside\r\n")
        # The job stops when cat asks for the terminal; a shell that is told so in the very moment of
        # its fg calls it stopped once more, as it does with any program.
        time.sleep(1)
        tty.send("fg\n")
        tty.expect("exec cat'\r\n")
        tty.send("line\n")
        tty.expect("line\r\nline\r\n")
        tty.send("\x04")
        tty.expect("<ready>")


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_foreground_is_given_back(tty, place, mode):
    with shell(tty, place):
        tty.send(words(mode, "/usr/bin/true") + "\n")
        tty.expect("<ready>")
        tty.send("read x && echo got=$x\n")
        tty.send("abc\n")
        tty.expect("got=abc\r\n")


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_foreground_is_given_back_after_a_time_out(tty, place, mode):
    with shell(tty, place):
        tty.send(words(mode, "/bin/sleep", "74.2", flags=["-t", "0.3"]) + "\n")
        tty.expect("<ready>")
        tty.send("read x && echo got=$x\n")
        tty.send("abc\n")
        tty.expect("got=abc\r\n")


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_pipeline_with_terminal_input(tty, place, mode):
    """Part of a pipeline: input from the terminal, output captured; nothing stops."""
    with shell(tty, place):
        tty.send(words(mode, "/bin/echo", "abc") + " | tr a-c x-z\n")
        tty.expect("xyz\r\n")
        tty.expect("<ready>")
        tty.send("echo abc | " + words(mode, "/usr/bin/tr", "a-c", "x-z") + "\n")
        tty.expect("xyz\r\n")


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_window_change_arrives(tty, mode):
    text = ("trap 'stty size; exit 0' WINCH; echo ready; i=0; "
            "while [ $i -lt 300 ]; do sleep 0.1; i=$((i+1)); done")
    argv = harness.MODES[mode].command([], ["/bin/bash", "-c", text])
    with tty.start(argv) as running:
        tty.expect("ready\r\n")
        tty.resize(11, 22)
        tty.expect("11 22\r\n")
        assert running.proc.wait(30) == 0


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_b89_hang_up_kills_all(tty, place, mode):
    """Closing the terminal ends the shell, sandlock and everything inside."""
    running = shell(tty, place)
    try:
        tty.send(words(mode, "/bin/sh", "-c",
                       "setsid sleep 74.3 & echo started; exec sleep 74.3") + "\n")
        tty.expect("started\r\n")
        tty.close()
        running.proc.wait(30)
        left = harness.gone_within(running.tag)
        assert left == [], harness.describe(left)
    finally:
        running.stop()


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_b89_hang_up_with_deaf_processes(tty, mode):
    argv = harness.MODES[mode].command([], ["/bin/sh", "-c",
                                            "trap '' HUP TERM; echo started; "
                                            "while :; do sleep 74.3; done"])
    running = tty.start(argv)
    try:
        tty.expect("started\r\n")
        tty.close()
        running.proc.wait(30)
        left = harness.gone_within(running.tag)
        assert left == [], harness.describe(left)
    finally:
        running.stop()


def test_terminal_settings_survive_a_killed_command(tty, place):
    with shell(tty, place):
        before = tty_settings(tty)
        tty.send(words("base", "/bin/sh", "-c", "kill -9 $$") + "\n")
        tty.expect("<ready>")
        assert tty_settings(tty) == before


def tty_settings(tty):
    return termios.tcgetattr(tty.master)[:4]


# --- --pty -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_pty_flag_gives_a_terminal_of_its_own(tty, mode):
    tty.resize(21, 43)
    s = inside(tty, mode, flags=["--pty"])
    assert s["foreground"] == "1"
    assert s["session_leader"] == "1"
    assert s["window"] == "21 43"
    assert s["tty"] == "named"


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_pty_relays_both_ways_and_ctrl_c(tty, place, mode):
    with shell(tty, place):
        tty.send(words(mode, "/bin/cat", flags=["--pty"]) + "\n")
        tty.send("hello\n")
        tty.expect("hello\r\nhello\r\n")
        tty.send("\x03")
        tty.expect("<ready>")
        tty.send("echo code=$?\n")
        tty.expect("code=130\r\n")


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_pty_window_change(tty, mode):
    text = ("trap 'stty size; exit 0' WINCH; echo ready; i=0; "
            "while [ $i -lt 300 ]; do sleep 0.1; i=$((i+1)); done")
    argv = harness.MODES[mode].command(["--pty"], ["/bin/bash", "-c", text])
    with tty.start(argv) as running:
        tty.expect("ready\r\n")
        tty.resize(12, 34)
        tty.expect("12 34\r\n")
        assert running.proc.wait(30) == 0


def test_pty_without_a_terminal():
    """With standard input from nowhere the command still has a terminal."""
    r = harness.sandbox(["--pty"], ["/bin/sh", "-c", "test -t 1 && echo yes"])
    assert r.code == 0, f"{r!r}"
    assert r.out.replace("\r", "") == "yes\n"


def test_pty_settings_are_restored(tty, place):
    with shell(tty, place):
        before = tty_settings(tty)
        tty.send(words("base", "/bin/sh", "-c", "stty raw -echo", flags=["--pty"]) + "\n")
        tty.expect("<ready>")
        assert tty_settings(tty) == before


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_h7_5_pty_with_a_closed_reader(tty, place, mode):
    """`sandlock run --pty … yes | head -1` ends, and the terminal is as before."""
    with shell(tty, place):
        before = tty_settings(tty)
        tty.send(words(mode, "/usr/bin/yes", flags=["--pty"]) + " | head -1\n")
        tty.expect("\ny\r")
        tty.expect("<ready>")
        assert tty_settings(tty) == before


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_h7_6_end_of_a_background_job_leaves_the_terminal(tty, place, mode):
    with shell(tty, place):
        # One process: a shell in its vfork would not stop, with or without a sandbox.
        code = "import time; print('started', flush=True); time.sleep(1); print('finished')"
        tty.send(words(mode, harness.PYTHON, "-c", code) + "\n")
        tty.expect("started\r\n")
        tty.send("\x1a")
        tty.expect("Stopped")
        tty.expect("<ready>")
        tty.send("bg\n")
        tty.expect("finished\r\n")
        tty.send("wait; read x && echo got=$x\n")
        tty.send("abc\n")
        tty.expect("got=abc\r\n")


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_h7_22_what_the_command_does_to_the_terminal_is_undone(tty, place, mode):
    """Output stopped, the terminal made non-blocking, raw mode and a violent end."""
    code = ("import fcntl, os, sys, termios, tty\n"
            "fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_NONBLOCK)\n"
            "tty.setraw(0)\n"
            "termios.tcflow(1, termios.TCOOFF)\n"
            "os.kill(os.getpid(), 9)\n")
    with shell(tty, place):
        before = tty_settings(tty)
        script = place.file("rude.py", code)
        tty.send(words(mode, harness.PYTHON, script, flags=["-r", str(script)]) + "\n")
        tty.expect("<ready>")
        assert tty_settings(tty) == before
        tty.send("read x && echo got=$x\n")
        tty.send("abc\n")
        tty.expect("got=abc\r\n")


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_h7_33_own_terminal_can_be_opened_again(tty, mode):
    """less, git and ssh-add reopen the terminal that they were given."""
    text = "exec 3<>/dev/tty && echo by-tty"
    if mode == "base":
        text += " && exec 4<>/proc/self/fd/0 && echo by-number"
    argv = harness.MODES[mode].command([], ["/bin/sh", "-c", text])
    for _ in range(15):
        with tty.start(argv) as running:
            assert running.proc.wait(30) == 0
            tty.expect("by-number" if mode == "base" else "by-tty")


STOPPING_PARENT = """
import subprocess, sys
print("code", subprocess.call(sys.argv[1:]), flush=True)
"""


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_h7_34_stop_on_a_terminal_below_a_plain_parent(tty, place, mode):
    """make and the like do not continue what stops: the time limit must."""
    parent = place.file("parent.py", STOPPING_PARENT)
    argv = harness.MODES[mode].command(["-t", "1"], ["/bin/sh", "-c", "kill -TSTP $$; sleep 30"])
    with tty.start([harness.PYTHON, parent, *argv]) as running:
        tty.expect("code 124")
        assert running.proc.wait(30) == 0


@pytest.mark.parametrize("mode", ["base"])
def test_b112_ptys_inside(mode):
    code = "import pty, sys\nsys.exit(pty.spawn('/bin/true'))"
    r = harness.sandbox([], [harness.PYTHON, "-c", code], mode=mode)
    assert r.code == 0, f"{r!r}"
    r = harness.sandbox([], ["/usr/bin/script", "-qec", "true", "/dev/null"], mode=mode)
    assert r.code == 0, f"{r!r}"


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_sigtstp_from_inside(tty, place, mode):
    """A command that stops itself stops the job; fg continues it."""
    with shell(tty, place):
        tty.send(words(mode, "/bin/sh", "-c", "echo a; kill -TSTP $$; echo b") + "\n")
        tty.expect("Stopped")
        tty.expect("<ready>")
        tty.send("fg\n")
        tty.expect("b\r\n")
        tty.expect("<ready>")


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_not_in_the_foreground_nothing_is_taken(tty, place, mode):
    """Standard input is the terminal, but the group is a background one."""
    with shell(tty, place):
        tty.send("(" + words(mode, "/bin/echo", "from-bg") + " &) ; read x; echo got=$x\n")
        tty.expect("from-bg")
        tty.send("abc\n")
        tty.expect("got=abc\r\n")


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGHUP])
def test_signal_to_sandlock_gives_the_terminal_back(tty, place, sig):
    with shell(tty, place) as running:
        tty.send(words("base", "/bin/sh", "-c", "echo started; exec sleep 74.4") + "\n")
        tty.expect("started\r\n")
        pids = subprocess.run(["/usr/bin/pgrep", "-P", str(running.pid)], capture_output=True,
                              text=True, check=True).stdout.split()
        os.kill(int(pids[0]), sig)
        tty.expect("<ready>")
        tty.send("read x && echo got=$x\n")
        tty.send("abc\n")
        tty.expect("got=abc\r\n")
