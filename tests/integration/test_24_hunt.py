# SPDX-License-Identifier: Apache-2.0
"""Holes that an attacker of our own found in the supervisor, one test each, under the number that
the attacker gave them (hk-N).
"""

import os
import socket
import subprocess

import pytest

import harness
from checks import ok, python

SUPERVISED = ["base", "nobase"]
TCP = ["--net-allow-loopback", "own", "--net-allow-bind", "0"]

# A socket that lingers, with data that its peer does not read, is left to the supervisor's copy
# alone: the task that waits in sendmsg closes its own and is killed.
LINGERING = """
import os, signal, socket, struct, threading, time
listener = socket.create_server(("127.0.0.1", 0))
r, w = os.pipe()
pid = os.fork()
if pid == 0:
    s = socket.create_connection(listener.getsockname())
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    s.setblocking(False)
    try:
        while True:
            s.send(bytes(65536))
    except BlockingIOError:
        s.setblocking(True)
    threading.Thread(target=lambda: s.sendmsg([bytes(100000)]), daemon=True).start()
    time.sleep(0.3)
    os.close(s.fileno())
    os.write(w, b"x")
    time.sleep(3600)
peer, _ = listener.accept()
os.read(r, 1)
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
for _ in range(10):
    time.sleep(0.02)
    try:
        socket.socket(socket.AF_UNIX).connect("/nonexistent")
    except FileNotFoundError:
        print("answered")
"""


@pytest.mark.parametrize("flags", [[], ["--explain"]], ids=str)
@pytest.mark.parametrize("mode", SUPERVISED)
def test_hk_1_lingering_sockets_stop_nobody(mode, flags):
    assert ok(python([*TCP, *flags], LINGERING, mode=mode)).lines == ["answered"] * 10


@pytest.mark.parametrize("mode", SUPERVISED)
def test_hk_1_what_is_set_of_lingering(mode):
    text = """
import errno, socket, struct
def ask(s, on, time):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", on, time))
    print(*struct.unpack("ii", s.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)))
tcp = socket.socket()
for value in ((1, 0), (1, 5), (1, -1), (0, 0)):
    ask(tcp, *value)
ask(socket.socket(socket.AF_UNIX), 1, 5)
try:
    tcp.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"1234")
except OSError as e:
    print(errno.errorcode[e.errno])
"""
    expected = ["1 0", "0 0", "0 0", "0 0", "1 5", "EINVAL"]
    assert ok(python([], text, mode=mode)).lines == expected


WAITERS = """
import collections, errno, fcntl, os, sys
fd = os.open(sys.argv[1] + "/lock", os.O_CREAT | os.O_RDWR)
fcntl.flock(fd, fcntl.LOCK_EX)
pids = []
for _ in range(80):
    pids.append(os.fork())
    if pids[-1] == 0:
        os.close(fd)
        own = os.open(sys.argv[1] + "/lock", os.O_RDWR)
        try:
            fcntl.flock(own, fcntl.LOCK_EX)
        except OSError as e:
            os._exit(e.errno)
        os._exit(0)
codes = collections.Counter()
for _ in range(80 - int(sys.argv[2])):
    codes[os.waitstatus_to_exitcode(os.wait()[1])] += 1
os.close(fd)
for _ in range(int(sys.argv[2])):
    codes[os.waitstatus_to_exitcode(os.wait()[1])] += 1
print(codes[0], codes[errno.ENOLCK])
"""


@pytest.mark.parametrize("mode", SUPERVISED)
def test_hk_3_calls_that_wait_leave_the_host_descriptors(place, mode):
    """Each keeps one of the supervisor's: a sandbox has a quarter of what there can be."""
    work = place.dir("work")
    argv = harness.MODES[mode].command(["-w", work], [harness.PYTHON, "-c", WAITERS, work, "50"])
    result = ok(harness.run(["/bin/sh", "-c", 'ulimit -n 200 && exec "$@"', "sh", *argv]))
    assert result.out == "50 30\n"


@pytest.mark.parametrize("flags", [[], ["--view", "notify"]], ids=str)
def test_hk_4_connect_searches_directories_with_the_rights_of_the_task(is_root, place, flags):
    """What lies in a directory of root's is nothing that connect may tell its user."""
    if not is_root:
        return
    shut = place.dir("shut", 0o700)
    (shut / "file").touch()
    os.chown(shut, 0, 0)
    text = f"""
import errno, socket
for name in ("file", "none", "."):
    try:
        socket.socket(socket.AF_UNIX).connect({str(shut)!r} + "/" + name)
    except OSError as e:
        print(errno.errorcode[e.errno])
"""
    uid = harness.USER.uid
    argv = [harness.INSTALLED.sandlock, "run", *flags, *harness.SYSTEM, "--user", f"{uid}:{uid}", "--",
            harness.PYTHON, "-c", text]
    result = ok(harness.run(argv, account=harness.ROOT_USER))
    assert result.lines == ["EACCES"] * 3


EVERYBODYS = ["/proc/locks", "/proc/sysvipc", "/proc/sysvipc/shm", "/proc/self/../locks"]


@pytest.mark.parametrize("flags,answer", [
    ([], "EACCES"), (["-r", "/proc"], "EACCES"), (["-r", "/"], "EACCES"),
    (["-r", "/proc/locks", "-r", "/proc/sysvipc"], "opened"),
], ids=str)
def test_hk_5_lists_of_what_other_programs_have(flags, answer):
    """Without namespaces they show everybody's locks and shared memory."""
    text = f"""
import errno, os
for path in {EVERYBODYS}:
    try:
        os.close(os.open(path, os.O_RDONLY))
        print("opened")
    except OSError as e:
        print(errno.errorcode[e.errno])
"""
    assert ok(python(flags, text, mode="nobase")).lines == [answer] * len(EVERYBODYS)
    assert ok(python([], text, mode="base")).lines == ["opened"] * len(EVERYBODYS)


FLOOD = """
import os, sys
paths = ["./" * n + "f" for n in range(1500, 2000)]
os.chdir(sys.argv[1])
for _ in range(45):
    for path in paths:
        try:
            os.chmod(path, 0)
        except PermissionError:
            pass
"""


def test_hk_6_events_do_not_fill_the_disk(place):
    """A sandbox can be refused as fast as it can ask: one run writes 64 MiB and says so."""
    shut = place.dir("shut")
    place.file("shut/f")
    events = place.file("events")
    argv = harness.MODES["nobase"].command(["-q", "-r", shut, "--events", events],
                                           [harness.PYTHON, "-c", FLOOD, shut])
    result = ok(harness.run(argv, timeout=120))
    assert len(result.err_lines) == 1 and "no more events are written" in result.err, f"{result!r}"
    text = events.read_text()
    assert 64 << 20 < len(text) < 65 << 20 and text.endswith("}\n")


RENAMED = """
import ctypes, errno, os, socket, sys
work = sys.argv[1]
def attempt(name, fn):
    try:
        fn()
        print(name, "ok")
    except OSError as e:
        print(name, errno.errorcode[e.errno])
def watch(path):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.inotify_add_watch(libc.inotify_init(), path.encode(), 0x100) < 0:
        raise OSError(ctypes.get_errno(), path)
print("ready", flush=True)
sys.stdin.readline()
attempt("chmod", lambda: os.chmod(work + "/file", 0o666))
attempt("connect", lambda: socket.socket(socket.AF_UNIX).connect(work + "/sock"))
attempt("watch", lambda: watch(work))
"""


@pytest.mark.parametrize("mode", SUPERVISED)
@pytest.mark.parametrize("outer", [False, True])
def test_hk_7_a_name_that_is_another_directory_now(place, mode, outer):
    """The kernel's rules stay with the directory that was granted; so does the supervisor, unless a
    grant above covers the new one as well."""
    top = place.dir("top")
    work = place.dir("top/work")
    argv = harness.MODES[mode].command([*(["-w", top] if outer else []), "-w", work],
                                       [harness.PYTHON, "-c", RENAMED, work])
    with harness.Running(argv, stdin=subprocess.PIPE) as running, \
            socket.socket(socket.AF_UNIX) as listener:
        assert running.proc.stdout.readline() == b"ready\n"
        work.rename(top / "old")
        place.dir("top/work")
        place.file("top/work/file", mode=0o600)
        listener.bind(str(work / "sock"))
        listener.listen()
        os.chmod(work / "sock", 0o777)
        running.proc.stdin.write(b"\n")
        running.proc.stdin.flush()
        r = ok(running.finish(30))
    refused = "EROFS" if mode == "base" else "EPERM"
    if outer:
        assert r.lines == ["chmod ok", "connect ok", "watch ok"]
    else:
        assert r.lines == [f"chmod {refused}", "connect EACCES", "watch EACCES"]
