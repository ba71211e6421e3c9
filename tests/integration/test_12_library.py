# SPDX-License-Identifier: Apache-2.0
"""Issue 3, point 12 and the host's side of points 6 and 8: the library inside a program of its own.

Invariant: each test is a host program that runs alone, as a user of the library would write it, so
that its signals, children and threads are its own.
"""

import os
import pathlib
import shutil
import signal

import pytest

import harness

HERE = pathlib.Path(__file__).parent
VIEWS = ["namespace", "notify"]

PROLOGUE = """
import os, signal, sys, threading, time, subprocess
sys.path.insert(0, {here!r})
from host import *
lib = Library({library!r})
base = system_grants() + [("view", {view!r})]
"""


@pytest.fixture
def library():
    found = sorted(harness.INSTALLED.bin.glob("libsandlock.so*"))
    assert found, "the build has no libsandlock.so"
    return str(found[0])


def host(place, library, view, text):
    """The command line of a host program."""
    copy = place.top / "host.py"
    if not copy.exists():
        shutil.copy2(HERE / "host.py", copy)
    program = PROLOGUE.format(here=str(place.top), library=library, view=view) + text
    return [harness.PYTHON, place.file("program.py", program)]


def run(place, library, view, text):
    r = harness.run(host(place, library, view, text))
    assert r.code == 0, f"{r!r}"
    assert r.err == "", f"{r!r}"
    return r


@pytest.mark.parametrize("view", VIEWS)
def test_spawn_and_wait(place, library, view):
    r = run(place, library, view, """
p = lib.spawn(lib.policy(*base), ["/bin/sh", "-c", "echo hello; exit 3"])
outcome, result = lib.wait(p)
print(outcome, result.reason == EXITED, result.exit_code, result.signal)
print(lib.wait(p)[1].exit_code)
lib.free(p)
""")
    assert r.out == "hello\n0 True 3 0\n3\n"


@pytest.mark.parametrize("view", VIEWS)
def test_host_sees_no_child_and_no_sigchld(place, library, view):
    r = run(place, library, view, """
seen = []
signal.signal(signal.SIGCHLD, lambda *a: seen.append(1))
p = lib.spawn(lib.policy(*base), ["/bin/sh", "-c", "sleep 0.1 & wait; exit 3"])
try:
    os.waitpid(-1, os.WNOHANG)
    print("a child is visible")
except ChildProcessError:
    print("none")
outcome, result = lib.wait(p)
lib.free(p)
time.sleep(0.1)
print(result.exit_code, len(seen))
child = subprocess.Popen(["/bin/true"])
print(os.waitpid(-1, 0)[0] == child.pid, len(seen))
""")
    assert r.out == "none\n3 0\nTrue 1\n"


@pytest.mark.parametrize("view", VIEWS)
def test_hosts_own_children_are_untouched(place, library, view):
    r = run(place, library, view, """
child = subprocess.Popen(["/bin/sh", "-c", "sleep 0.3; exit 9"])
p = lib.spawn(lib.policy(*base), ["/bin/sh", "-c", "kill -9 -1 2>/dev/null"])
lib.wait(p)
lib.free(p)
print(child.wait())
""")
    assert r.out == "9\n"


@pytest.mark.parametrize("view", VIEWS)
def test_kill_ends_the_tree(place, library, view):
    r = run(place, library, view, """
p = lib.spawn(lib.policy(*base), ["/bin/sh", "-c", "setsid sleep 76.1 & sleep 76.1"])
print(lib.wait(p, 50)[0])
threading.Timer(0.1, lambda: lib.kill(p)).start()
outcome, result = lib.wait(p)
print(outcome, result.reason == KILLED, result.exit_code)
print(lib.kill(p), lib.pid(p))
lib.free(p)
""")
    assert r.out == "-8\n0 True -1\n0 0\n"


@pytest.mark.parametrize("view", VIEWS)
def test_free_without_wait_kills(place, library, view):
    run(place, library, view, """
p = lib.spawn(lib.policy(*base), ["/bin/sh", "-c", "setsid sleep 76.2 & sleep 76.2"])
lib.free(p)
""")


@pytest.mark.parametrize("view", VIEWS)
def test_timeout_option(place, library, view):
    r = run(place, library, view, """
p = lib.spawn(lib.policy(*base, ("timeout", "0.2")), ["/bin/sleep", "76.3"])
outcome, result = lib.wait(p)
print(outcome, result.reason == TIMED_OUT, result.run_ms >= 200)
lib.free(p)
""")
    assert r.out == "0 True True\n"


@pytest.mark.parametrize("view", VIEWS)
def test_many_at_once_from_threads(place, library, view):
    r = run(place, library, view, """
codes = []
def one(i):
    p = lib.spawn(lib.policy(*base), ["/bin/sh", "-c", f"exit {i}"])
    codes.append((i, lib.wait(p)[1].exit_code))
    lib.free(p)
threads = [threading.Thread(target=one, args=(i,)) for i in range(24)]
for t in threads: t.start()
for t in threads: t.join()
print(sorted(codes) == [(i, i) for i in range(24)])
""")
    assert r.out == "True\n"


@pytest.mark.parametrize("view", VIEWS)
def test_descriptors_of_the_host_do_not_grow(place, library, view):
    r = run(place, library, view, """
def once():
    policy = lib.policy(*base)
    p = lib.spawn(policy, ["/bin/true"])
    lib.wait(p)
    lib.free(p)
    lib.free_policy(policy)
for _ in range(3): once()
before = sorted(os.listdir("/proc/self/fd"))
for _ in range(20): once()
print(sorted(os.listdir("/proc/self/fd")) == before)
""")
    assert r.out == "True\n"


@pytest.mark.parametrize("view", VIEWS)
def test_spawning_thread_may_end(place, library, view):
    """The sandbox hangs on the process, not on the thread that made it."""
    r = run(place, library, view, """
box = []
t = threading.Thread(target=lambda: box.append(
    lib.spawn(lib.policy(*base), ["/bin/sh", "-c", "sleep 0.4; exit 6"])))
t.start(); t.join()
print(lib.wait(box[0])[1].exit_code)
""")
    assert r.out == "6\n"


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_killed_host_takes_the_tree_along(place, library, view, sig):
    argv = host(place, library, view, """
worker = os.fork()  # a forked worker holds every descriptor of the host
if worker == 0:
    time.sleep(60)
p = lib.spawn(lib.policy(*base), ["/bin/sh", "-c", "setsid sleep 76.4 & echo up; sleep 76.4"])
print(worker, flush=True)
lib.wait(p)
""")
    with harness.Running(argv) as running:
        lines = {running.proc.stdout.readline(), running.proc.stdout.readline()}
        assert b"up\n" in lines
        worker = int((lines - {b"up\n"}).pop())
        running.proc.send_signal(sig)
        running.proc.wait(30)
        harness.wait_until(lambda: set(harness.tagged(running.tag)) <= {worker},
                           what="the end of the tree")


@pytest.mark.parametrize("view", VIEWS)
def test_fork_worker_of_the_host_may_die(place, library, view):
    """A fork of the host that ends is not the host's end."""
    r = run(place, library, view, """
p = lib.spawn(lib.policy(*base), ["/bin/sh", "-c", "sleep 0.5; exit 8"])
worker = os.fork()
if worker == 0:
    os._exit(0)
os.waitpid(worker, 0)
print(lib.wait(p)[1].exit_code)
""")
    assert r.out == "8\n"


@pytest.mark.parametrize("view", VIEWS)
def test_errors_are_told_and_nothing_is_printed(place, library, view):
    r = run(place, library, view, """
for argv, in ((["/no/such"],), (["/etc/passwd"],), ([sys.argv[0]],)):
    try:
        lib.spawn(lib.policy(*base), argv)
        print("started")
    except OSError as e:
        print(e.errno, argv[0] in e.strerror)
try:
    lib.policy(("max-open-files", "x"))
except ValueError as e:
    print(e.args[1], "x" in e.args[0])
try:
    lib.policy(("nonsense", "x"))
except ValueError as e:
    print(e.args[1])
""")
    assert r.out == "2 True\n3 True\n3 True\n1 True\n2\n"


@pytest.mark.parametrize("view", VIEWS)
def test_signal_mask_and_dispositions_of_the_host_stay(place, library, view):
    r = run(place, library, view, """
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
def state():
    return [signal.getsignal(s) for s in range(1, 32)], signal.pthread_sigmask(signal.SIG_BLOCK, [])
before = state()
p = lib.spawn(lib.policy(*base), ["/bin/sh", "-c", "kill -USR1 $$; exit 1"])
print(lib.wait(p)[1].signal == signal.SIGUSR1, state() == before)
""")
    assert r.out == "True True\n"


def test_relative_library_does_not_run_a_guardian_of_the_cwd(place, library):
    """A hostile project's ./sandlock-guardian is not ours, whatever name the library was loaded by."""
    evil = place.dir("evil")
    marker = place.top / "marker"
    place.file("evil/sandlock-guardian", f"#!/bin/sh\nid > {marker}\n", 0o755)
    shutil.copy2(HERE / "host.py", place.top / "host.py")
    text = f"""
import os, sys
sys.path.insert(0, {str(place.top)!r})
from host import *
os.chdir({os.path.dirname(library)!r})
lib = Library("./" + {os.path.basename(library)!r})
os.chdir({str(evil)!r})
try:
    p = lib.spawn(lib.policy(*system_grants(), ("view", "notify")), ["/bin/true"])
    lib.wait(p)
except OSError as e:
    print(e)
"""
    harness.run([harness.PYTHON, place.file("p.py", text)])
    assert not marker.exists()
