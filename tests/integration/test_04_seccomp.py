# SPDX-License-Identifier: Apache-2.0
"""Issue 3, point 4: the system call filter beyond what the escape corpus tries: what still works,
the extra lists, and started as root.
"""

import errno
import os

import pytest

import harness
from checks import ok, python, quiet_ok, script

SYSCALL = ("import ctypes, os, sys\nlibc = ctypes.CDLL(None, use_errno=True)\n"
           "def call(*a):\n"
           "    r = libc.syscall(*[ctypes.c_long(x) if isinstance(x, int) else x for x in a])\n"
           "    return 0 if r >= 0 else ctypes.get_errno()\n")


@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_what_programs_need_works(mode):
    text = ("import multiprocessing, os, socket, threading, subprocess, mmap, select, signal\n"
            "t = threading.Thread(target=lambda: None)\nt.start()\nt.join()\n"
            "a, b = socket.socketpair()\na.send(b'x')\nassert b.recv(1) == b'x'\n"
            "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
            "socket.send_fds(a, [b'x'], [0])\n"
            "assert len(socket.recv_fds(b, 1, 1)[1]) == 1\n"
            "assert subprocess.run(['/bin/true']).returncode == 0\n"
            "os.sched_setaffinity(0, os.sched_getaffinity(0))\n"
            "os.setpriority(os.PRIO_PROCESS, 0, 1)\n"
            "os.memfd_create('x')\nselect.epoll()\n"
            "os.pidfd_open(os.getpid())\n"
            "signal.setitimer(signal.ITIMER_REAL, 100)\n"
            "print('fine')\n")
    assert quiet_ok(python([], text, mode=mode)).out == "fine\n"


@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_extra_deny_by_name(mode):
    r = ok(python(["--extra-deny-syscall", "mkdirat", "--extra-deny-syscall", "mkdir"],
                  SYSCALL + "print(call(83, b'/x', 0o755), call(258, -100, b'/x', 0o755))\n",
                  mode=mode))
    assert r.out == f"{errno.EPERM} {errno.EPERM}\n"


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_extra_allow_ptrace_works_inside(mode):
    text = SYSCALL + (
        "import signal\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    signal.pause()\n"
        "assert call(101, 16, pid, 0, 0) == 0\n"  # PTRACE_ATTACH
        "os.waitpid(pid, 0)\n"
        "assert call(101, 17, pid, 0, 0) == 0\n"
        "os.kill(pid, 9)\nos.waitpid(pid, 0)\n"
        "print('traced')\n")
    assert quiet_ok(python(["--extra-allow-syscall", "ptrace"], text, mode=mode)).out == "traced\n"


@pytest.mark.parametrize("mode", ["nobase", "unsup"])
def test_extra_allow_ptrace_stays_inside(mode):
    with harness.Running(["/bin/sleep", "60"]) as victim:
        text = SYSCALL + (f"print(call(101, 16, {victim.pid}, 0, 0))\n"
                          "class V(ctypes.Structure):\n"
                          "    _fields_ = [('p', ctypes.c_void_p), ('n', ctypes.c_size_t)]\n"
                          "buf = ctypes.create_string_buffer(8)\n"
                          "v = V(ctypes.addressof(buf), 8)\n"
                          f"print(call(310, {victim.pid}, ctypes.byref(v), 1, ctypes.byref(v), 1,"
                          " 0))\n")
        r = ok(python(["--extra-allow-syscall", "ptrace"], text, mode=mode))
        assert r.lines == [str(errno.EPERM)] * 2


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_sandbox_cannot_be_traced_by_its_own_kind(mode):
    """Another sandbox of the same user cannot trace, signal or read this one."""
    m = harness.MODES[mode]
    with harness.Running(m.command([], ["/bin/sleep", "61.5"])) as other:
        harness.wait_until(lambda: len(harness.tagged(other.tag)) >= 1)
        pids = harness.tagged(other.tag)
        text = SYSCALL + "".join(f"print(call(62, {pid}, 0))\n" for pid in pids)
        r = ok(python([], text, mode=mode))
        assert set(r.lines) <= {str(errno.EPERM), str(errno.ESRCH)}


def test_extra_allow_sysv_ipc_in_the_base():
    text = SYSCALL + ("print(call(29, 0, 4096, 0o1600))\n"
                      "print(call(64, 0, 1, 0o1600), call(68, 0, 0o1600))\n")
    r = ok(python(["--extra-allow-syscall", "sysv_ipc"], text))
    assert r.out == "0\n0 0\n"
    shm = open("/proc/sysvipc/shm").read().splitlines()[1:]
    ours = [line.split() for line in shm if line.split()[7] == str(harness.USER.uid)]
    assert [words for words in ours if words[0] == "0"] == []


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_refused_calls_never_signal(mode):
    """B132: nothing is answered by a signal; callers can fall back."""
    numbers = [425, 426, 427, 435, 101, 165, 272, 308, 321, 323, 600, 447]
    text = SYSCALL + f"print([call(n, 0, 0, 0, 0, 0, 0) for n in {numbers}])\n"
    r = quiet_ok(python([], text, mode=mode))
    got = eval(r.out)
    assert set(got) <= {errno.EPERM, errno.ENOSYS}
    assert got[:4] == [errno.ENOSYS] * 4


def test_deep_extra_lists_still_answer_right():
    """A long list must not make a wrong jump: every name refused, its neighbours not."""
    names = ["sync", "syncfs", "getitimer", "times", "getpriority", "sysinfo", "personality",
             "fdatasync", "fsync", "msync", "mincore", "alarm", "pause", "getrusage", "ustat",
             "readahead", "tee", "vmsplice", "splice", "sync_file_range", "getcpu"]
    flags = [w for n in names for w in ("--extra-deny-syscall", n)]
    r = ok(python(flags, SYSCALL + "print(call(162), call(100, 0), call(36, 0, 0), call(39), "
                                   "call(24), call(99, 0))\n"))
    assert r.out == "1 1 1 0 0 1\n"


@pytest.mark.parametrize("flags", [[], ["--view", "notify"], ["--no-supervisor"]], ids=str)
def test_started_as_root_everything_is_dropped(is_root, root_place, flags):
    if not is_root:
        return
    work = root_place.dir("work")
    text = "cat /proc/self/status"
    r = harness.run([harness.INSTALLED.sandlock, "run", *flags, *harness.SYSTEM, "-r", "/proc",
                     "-w", work, "--", "/bin/sh", "-c", text], account=harness.ROOT_USER)
    ok(r)
    status = dict(line.split(":\t", 1) for line in r.lines if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, (name, status[name])
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"


@pytest.mark.parametrize("flags", [[], ["--no-coredump"]], ids=str)
def test_in_the_user_namespace_everything_is_dropped(flags):
    r = ok(script(flags, "cat /proc/self/status"))
    status = dict(line.split(":\t", 1) for line in r.lines if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, (name, status[name])


def test_started_as_root_a_system_write_grant_warns(is_root):
    if not is_root:
        return
    r = ok(harness.run([harness.INSTALLED.sandlock, "run", *harness.SYSTEM, "-w", "/usr/local/share", "--",
                        "/bin/true"], account=harness.ROOT_USER))
    assert "/usr/local/share" in r.err and "root" in r.err, f"{r!r}"
    r = ok(harness.run([harness.INSTALLED.sandlock, "run", *harness.SYSTEM, "-w", "/usr/local/share",
                        "--user", f"{harness.USER.uid}:{harness.USER.gid}", "--", "/bin/true"],
                       account=harness.ROOT_USER))
    assert r.err == "", f"{r!r}"


@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_b57_setuid_program_gets_a_hint(mode):
    if not os.access("/usr/bin/sudo", os.X_OK):
        program = "/usr/bin/su"
    else:
        program = "/usr/bin/sudo"
    argv = [program, "-n", "true"] if program.endswith("sudo") else [program, "-c", "true"]
    if mode != "base":
        r = harness.sandbox([], argv, mode=mode)
        assert r.code != 0
        return
    r = harness.sandbox([], argv, mode=mode)
    assert r.code != 0
    assert "set-user-ID" in r.err or "setuid" in r.err, f"{r!r}"
