# SPDX-License-Identifier: Apache-2.0
"""Trees that are hard to end, starts that are killed half-way, terminals and limits turned against
sandlock: what an attacker of our own tried beside the corpus of escape/table.py.

Invariant: every program here fights until it is killed, and a test passes only if nothing of it is
left and sandlock itself has said how the run ended.
"""

import fcntl
import os
import random
import resource
import signal
import struct
import subprocess
import termios
import time

import pytest

import harness

SUPERVISED = ["base", "nobase"]

# Each makes itself hard to kill and stays. "deaf" ignores and blocks what can be.
DEAF = """
import os, signal, sys, time
def deaf():
    for sig in range(1, 65):
        try:
            signal.signal(sig, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
def stay():
    while True:
        time.sleep(60)
def libc():
    import ctypes
    return ctypes.CDLL(None, use_errno=True)
"""

TREES = {
    "deaf": "deaf(); stay()",
    "daemons": """
for _ in range(30):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            deaf()
            stay()
        os._exit(0)
deaf(); stay()
""",
    "subreaper": """
libc().prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
for _ in range(30):
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            deaf()
            stay()
        os._exit(0)
deaf(); stay()
""",
    "vfork": """
os.mkfifo(sys.argv[1])
deaf()
# The child waits in open(2) between vfork and exec, the parent in vfork.
os.posix_spawn("/bin/true", ["true"], {},
               file_actions=[(os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)])
stay()
""",
    "traced": """
call = libc().ptrace
for _ in range(20):
    if os.fork() == 0:
        call(0, 0, 0, 0)  # PTRACE_TRACEME
        os.kill(os.getpid(), signal.SIGSTOP)
        stay()
deaf(); stay()
""",
    "tracer": """
me = os.getpid()
if os.fork() == 0:
    deaf()
    libc().ptrace(16, me, 0, 0)  # PTRACE_ATTACH
    stay()
stay()
""",
    "stopped": """
for _ in range(50):
    if os.fork() == 0:
        os.setsid()
        os.kill(os.getpid(), signal.SIGSTOP)
        stay()
os.kill(os.getpid(), signal.SIGSTOP)
stay()
""",
    "stop-storm": """
me = os.getpid()
for _ in range(2):
    if os.fork() == 0:
        deaf()
        while True:
            os.kill(me, signal.SIGSTOP)
            os.kill(me, signal.SIGCONT)
stay()
""",
    "no-descriptors": """
try:
    while True:
        os.dup(0)
except OSError:
    pass
deaf(); stay()
""",
    "no-cwd": """
os.mkdir(sys.argv[1])
os.chdir(sys.argv[1])
os.rmdir(sys.argv[1])
deaf(); stay()
""",
}


def command(mode, flags, argv):
    return harness.MODES[mode].command(flags, argv)


def tree_command(mode, name, flags, place):
    work = place.dir("work")
    script = DEAF + "print('up', flush=True)\n" + TREES[name]
    return command(mode, ["--extra-allow-syscall", "ptrace", "-w", work, *flags],
                   [harness.PYTHON, "-c", script, work / "x"])


def assert_gone(running):
    left = harness.gone_within(running.tag)
    words = harness.describe(left)
    harness.kill_tagged(running.tag)
    assert left == [], words


@pytest.mark.parametrize("tree", sorted(TREES))
@pytest.mark.parametrize("mode", SUPERVISED)
def test_time_out_ends_every_tree(mode, tree, place):
    result = harness.run(tree_command(mode, tree, ["-t", "1"], place), leftovers=False)
    assert result.code == 124, result
    assert result.out == "up\n"
    assert "timeout" in result.err


# A tree that is asked to end has two seconds for it: three kinds are enough.
ASKED = ["deaf", "stopped", "tracer"]


@pytest.mark.parametrize("sig,tree", [(signal.SIGKILL, t) for t in sorted(TREES)] +
                         [(signal.SIGTERM, t) for t in ASKED])
@pytest.mark.parametrize("mode", SUPERVISED)
def test_signal_to_sandlock_ends_every_tree(mode, tree, sig, place):
    with harness.Running(tree_command(mode, tree, [], place)) as running:
        assert running.proc.stdout.readline() == b"up\n"
        running.proc.send_signal(sig)
        code = running.proc.wait(60)
        assert code == (-9 if sig == signal.SIGKILL else 143)
        assert_gone(running)


@pytest.mark.parametrize("flags", [[], ["--name", "hunted"], ["--pty"]],
                         ids=["plain", "named", "pty"])
@pytest.mark.parametrize("mode", SUPERVISED)
def test_kill_at_any_moment_of_the_start(mode, flags):
    """Moments are drawn from a fixed seed; whatever the machine's speed, they lie in the start."""
    before = harness.residue()
    rng = random.Random(7)
    hostile = "(setsid sleep 300 &); (trap '' TERM HUP INT; setsid sleep 300 &); sleep 300"
    for _ in range(12):
        with harness.Running(command(mode, flags, ["/bin/sh", "-c", hostile])) as running:
            time.sleep(rng.random() * 0.015)
            running.proc.kill()
            running.proc.wait(30)
            assert_gone(running)
    harness.wait_until(lambda: not [p for p in harness.residue() - before
                                    if not os.path.isdir(p) or p.startswith("/tmp/")],
                       what="clean-up")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(word) for word in f.read().split()]


def test_kill_of_the_guardian_program_itself():
    """Without a base the guardian is a grandchild of sandlock; its end is still the tree's end."""
    hostile = "(setsid sleep 300 &); (setsid sleep 300 &); echo up; sleep 300"
    with harness.Running(command("nobase", [], ["/bin/sh", "-c", hostile])) as running:
        assert running.proc.stdout.readline() == b"up\n"
        keeper, = children(running.pid)
        guardian, = children(keeper)
        os.kill(guardian, signal.SIGKILL)
        assert running.proc.wait(60) == 137
        assert_gone(running)


# --- The terminal afterwards ---------------------------------------------------------------------

SPOILERS = {
    "output stopped": "termios.tcflow(1, termios.TCOOFF)",
    "exclusive": "fcntl.ioctl(0, termios.TIOCEXCL)",
    "non-blocking": "os.set_blocking(0, False); os.set_blocking(1, False)",
    "asynchronous": "fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)",
    "raw and killed": "tty.setraw(0); os.kill(os.getpid(), signal.SIGKILL)",
}


def end_on(terminal, running):
    """Reads the terminal until the command that runs on it has ended."""
    def ended():
        terminal.pump(0.01)
        return running.proc.poll() is not None
    harness.wait_until(ended, 60, "the end of the command")


@pytest.mark.parametrize("spoiler", sorted(SPOILERS))
@pytest.mark.parametrize("mode", SUPERVISED)
def test_terminal_is_as_before(mode, spoiler):
    script = ("import fcntl, os, signal, sys, termios, tty\ntry:\n    " + SPOILERS[spoiler] +
              "\nexcept OSError:\n    pass\n")
    terminal = harness.Terminal(harness.USER)
    try:
        watch = os.open(os.ttyname(terminal.slave), os.O_RDWR | os.O_NOCTTY)
        flags = fcntl.fcntl(terminal.slave, fcntl.F_GETFL)
        modes = termios.tcgetattr(watch)
        running = terminal.start(command(mode, [], [harness.PYTHON, "-c", script]))
        end_on(terminal, running)
        assert termios.tcgetattr(watch) == modes
        assert fcntl.fcntl(terminal.slave, fcntl.F_GETFL) == flags
        os.close(os.open(os.ttyname(terminal.slave), os.O_RDWR | os.O_NOCTTY))
        os.set_blocking(watch, False)
        assert os.write(watch, b"prompt\r\n") == 8
        os.close(watch)
        running.stop()
    finally:
        terminal.close()


# --- Limits and words ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_few_descriptors_refuse_or_confine(mode, place):
    """Under every open-file limit the start is refused with a line, or is whole."""
    secret = place.file("secret", "hidden\n", 0o600)
    worked = 0
    for limit in range(3, 64):
        def lower(n=limit):
            resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))
        result = harness.run(command(mode, ["-q"], ["/bin/cat", secret]), preexec=lower)
        assert "hidden" not in result.out, (limit, result)
        if result.code == 125:
            assert len(result.err_lines) == 1, (limit, result)
        else:
            assert result.code == 1 and "Permission denied" in result.err, (limit, result)
            worked += 1
    assert worked > 0


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_small_file_size_limit_is_no_end_of_sandlock(mode):
    def lower():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    result = harness.run(command(mode, [], ["/bin/echo", "fine"]), preexec=lower)
    if mode == "nobase":  # its guardian gets the job through a file, which the limit forbids
        assert (result.code, result.out, len(result.err_lines)) == (125, "", 1), result
        assert "File too large" in result.err
    else:
        assert (result.code, result.out, result.err) == (0, "fine\n", ""), result


WORDS = {
    "one long word": (["/bin/sh", "-c", "echo ${#1}", "x", "b" * 131071], 0, "131071\n"),
    "many empty words": (["/bin/sh", "-c", "echo $#", "x"] + [""] * 100000, 0, "100000\n"),
    "no word": ([""], 127, ""),
    "a directory": (["/usr"], 126, ""),
    "control characters": (["/bin/\x1b]0;evil\x07\n"], 127, ""),
    "a dash": (["-sh"], 127, ""),
}


@pytest.mark.parametrize("words", sorted(WORDS))
@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_odd_command_lines(mode, words):
    argv, code, out = WORDS[words]
    result = harness.run(command(mode, [], argv))
    assert (result.code, result.out) == (code, out), result
    assert code == 0 or len(result.err_lines) == 1
    assert "\x1b" not in result.err and "\x07" not in result.err


@pytest.mark.parametrize("view", ["base", "nobase"])
def test_pty_into_a_pipe_that_nobody_reads(view):
    """The end is told, and nobody waits for the reader, though the command floods the terminal."""
    read_end, write_end = os.pipe()
    status_read, status_write = os.pipe()
    try:
        os.set_blocking(write_end, False)
        try:
            while True:
                os.write(write_end, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(write_end, True)
        with harness.Running(
                command(view, ["--pty", "-q", "-t", "1", "--status-fd", status_write],
                        ["/bin/sh", "-c", "while :; do echo aaaaaaaaaaaaaaaaaaaaaa; done"]),
                stdout=write_end, stderr=subprocess.DEVNULL, pass_fds=(status_write,)) as running:
            assert running.proc.wait(60) == 124
            assert b'"reason":"timeout"' in os.read(status_read, 4096)
            assert_gone(running)
    finally:
        for fd in (read_end, write_end, status_read, status_write):
            os.close(fd)


def test_window_size_reaches_pty_although_hostile(place):
    """A size of nothing, set from inside, stays inside the command's own terminal."""
    terminal = harness.Terminal(harness.USER, rows=24, cols=80)
    script = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSWINSZ, bytes(8))"
    try:
        running = terminal.start(command("base", ["--pty"], [harness.PYTHON, "-c", script]))
        end_on(terminal, running)
        size = fcntl.ioctl(terminal.master, termios.TIOCGWINSZ, bytes(8))
        assert struct.unpack("HHHH", size)[:2] == (24, 80)
        running.stop()
    finally:
        terminal.close()
