# SPDX-License-Identifier: Apache-2.0
"""Holes that an attacker of our own found while the foundation was built, one test each; those about
death, the terminal, exec and Landlock stand with their topics under the same numbers (h7-N).
"""

import glob
import os
import resource
import shutil
import socket
import subprocess
import threading
import time

import pytest

import harness
from checks import ok, python, refused

SUPERVISED = ["base", "nobase"]
IPPROTO_MPTCP = 262


def private_dirs():
    """Directories in /tmp that runs of the test account made for themselves."""
    found = []
    for entry in os.scandir("/tmp"):
        if entry.name.startswith("sandlock-") and entry.stat(follow_symlinks=False).st_uid == \
                harness.USER.uid:
            found.append(entry.name)
    return found


def test_h7_10_host_that_becomes_another_program(place):
    """A host that executes another program has given the sandbox up: the tree ends."""
    shutil.copy2(os.path.join(os.path.dirname(__file__), "host.py"), place.top / "host.py")
    library = sorted(harness.INSTALLED.bin.glob("libsandlock.so*"))[0]
    program = place.file("p.py", f"""
import os, sys
sys.path.insert(0, {str(place.top)!r})
from host import *
lib = Library({str(library)!r})
p = lib.spawn(lib.policy(*system_grants()), ["/bin/sh", "-c", "setsid sleep 77.1 & sleep 77.1"])
os.execv("/bin/sh", ["sh", "-c", "echo became; exec sleep 77.2"])
""")
    with harness.Running([harness.PYTHON, program]) as running:
        assert running.proc.stdout.readline() == b"became\n"
        harness.wait_until(lambda: harness.tagged(running.tag) == [running.pid],
                           what="the end of the sandbox")


def test_h7_13_killed_starts_leave_no_directory_in_tmp():
    argv = harness.MODES["nobase"].command([], ["/bin/true"])
    before = private_dirs()
    tags = []
    for i in range(60):
        running = harness.Running(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.0001 * i)
        running.proc.kill()
        running.proc.wait(30)
        tags.append(running.tag)
    for tag in tags:
        assert harness.gone_within(tag) == []
    harness.wait_until(lambda: private_dirs() == before, what="the removal")


@pytest.mark.parametrize("flags", [[], ["--allow-metadata"]], ids=str)
def test_h7_14_undeletable_private_directory(flags):
    """Deep trees and directories without write permission are removed, and soon."""
    text = ("import os\n"
            "os.chdir(os.environ['TMPDIR'])\n"
            "os.mkdir('ro')\nopen('ro/f', 'w').close()\n"
            "try:\n    os.chmod('ro', 0o555)\nexcept OSError:\n    pass\n"
            "os.mkdir('.deep')\n"
            "for i in range(400):\n"
            "    os.mkdir('d' * 200)\n    os.chdir('d' * 200)\n")
    before = private_dirs()
    ok(python(flags, text, mode="nobase", timeout=30))
    assert private_dirs() == before


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
@pytest.mark.parametrize("size", [0, 4096, 1 << 20])
def test_h7_21_file_size_limit_of_the_caller(mode, size):
    """A small RLIMIT_FSIZE never kills sandlock by SIGXFSZ: it runs, or says why not."""
    r = harness.run(harness.MODES[mode].command([], ["/bin/true"]),
                    preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
    assert r.code == 0 or (r.code == 125 and len(r.err_lines) == 1), f"{r!r}"


def descendants(pid):
    found = []
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            for child in f.read().split():
                found += [int(child), *descendants(int(child))]
    except OSError:
        pass
    return found


def program(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


@pytest.mark.parametrize("mode", SUPERVISED)
def test_h7_30_killed_guardian_takes_the_tree_along(mode):
    """Whichever of our processes an out-of-memory killer chooses, nothing goes on alone."""
    m = harness.MODES[mode]
    for which in range(3):
        with harness.Running(m.command([], ["/bin/sh", "-c",
                                            "setsid sleep 77.3 & echo up; sleep 77.3"])) as running:
            assert running.proc.stdout.readline() == b"up\n"
            ours = [pid for pid in descendants(running.pid) if program(pid).startswith("sandlock")]
            if which >= len(ours):
                assert which > 0, "no process of ours was found"
                return
            os.kill(ours[which], 9)
            running.proc.wait(30)
            left = harness.gone_within(running.tag)
            assert left == [], harness.describe(left)


@pytest.mark.parametrize("path", ["/proc", "/sys", "/dev", "/etc", "/usr"])
def test_h7_16_root_and_a_grant_on_the_system_warn(is_root, path):
    if not is_root:
        return
    r = harness.run([harness.INSTALLED.sandlock, "run", *harness.SYSTEM, "-w", path, "--",
                     "/bin/sh", "-c", "(exec 3>>/proc/sys/kernel/core_pattern) 2>/dev/null"],
                    account=harness.ROOT_USER)
    assert "warning" in r.err and path in r.err, f"{r!r}"


def test_h7_16_core_pattern_cannot_be_opened_even_with_the_grant(is_root):
    if not is_root:
        return
    r = harness.run([harness.INSTALLED.sandlock, "run", *harness.SYSTEM, "-w", "/proc", "--",
                     "/bin/sh", "-c", "exec 3>>/proc/sys/kernel/core_pattern"],
                    account=harness.ROOT_USER)
    assert r.code != 0, f"{r!r}"


@pytest.mark.parametrize("family,kind,proto", [
    (socket.AF_UNIX, socket.SOCK_DGRAM, 0), (socket.AF_INET, socket.SOCK_DGRAM, 0),
    (socket.AF_UNIX, socket.SOCK_STREAM, 0), (socket.AF_NETLINK, socket.SOCK_RAW, 0),
    (socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP),
], ids=["unix-dgram", "udp", "unix-unconnected", "netlink", "mptcp"])
@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_sockets_that_lead_elsewhere_are_refused_as_stdin(mode, family, kind, proto):
    with socket.socket(family, kind, proto) as s:
        r = harness.run(harness.MODES[mode].command([], ["/bin/true"]), stdin=s.fileno())
    refused(r, "socket")


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_h7_17_connected_mptcp_socket_as_stdin(mode):
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(4)
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    client.connect(listener.getsockname())
    accepted, _ = listener.accept()
    try:
        r = harness.run(harness.MODES[mode].command([], ["/bin/true"]), stdin=accepted.fileno())
        refused(r, "socket")
    finally:
        for s in (listener, client, accepted):
            s.close()


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_connected_pairs_and_tcp_work_as_stdin(mode):
    a, b = socket.socketpair()
    threading.Thread(target=lambda: (b.sendall(b"text"), b.close())).start()
    r = harness.run(harness.MODES[mode].command([], ["/bin/cat"]), stdin=a.fileno())
    a.close()
    assert ok(r).out == "text"
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        peer, _ = server.accept()
        client.sendall(b"text")
        client.close()
        text = ("import socket\n"
                "s = socket.socket(fileno=0)\n"
                "print(s.recv(10).decode())\n"
                "try:\n"
                f"    s.connect(('127.0.0.1', {server.getsockname()[1]}))\n"
                "except OSError as e:\n    print(type(e).__name__)\n")
        r = harness.run(harness.MODES[mode].command([], [harness.PYTHON, "-c", text]),
                        stdin=peer.fileno())
        peer.close()
    assert ok(r).lines[0] == "text"
    assert r.lines[1] in ("PermissionError", "OSError"), f"{r!r}"


@pytest.mark.parametrize("flags", [[], ["--view", "notify"], ["--no-supervisor"]], ids=str)
def test_h7_18_root_with_user_drops_everything(is_root, flags):
    if not is_root:
        return
    uid = harness.USER.uid
    r = ok(harness.run([harness.INSTALLED.sandlock, "run", *flags, *harness.SYSTEM, "-r", "/proc",
                        "--user", f"{uid}:{uid}", "--", "/bin/cat", "/proc/self/status"],
                       account=harness.ROOT_USER))
    status = dict(line.split(":\t", 1) for line in r.lines if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, (name, status[name])
    assert status["Uid"].split() == [str(uid)] * 4
    assert status["Gid"].split() == [str(uid)] * 4


@pytest.mark.parametrize("mode", SUPERVISED)
def test_limits_lowered_by_the_command_do_not_reach_the_guardian(mode):
    """h7-7: what the command does to number 1 leaves the clean-up whole."""
    text = ("import resource\n"
            "for pid in (1,):\n"
            "    for what in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU):\n"
            "        try:\n            resource.prlimit(pid, what, (1, 1))\n"
            "            print('reached')\n"
            "        except OSError as e:\n            print(type(e).__name__)\n")
    r = ok(python([], text, mode=mode))
    assert r.lines == [{"base": "PermissionError", "nobase": "ProcessLookupError"}[mode]] * 2


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_want_of_address_space_never_opens_the_sandbox(place, mode):
    """Like the want of descriptors: every start is refused or whole."""
    secret = place.file("secret", "the secret")
    argv = harness.MODES[mode].command([], ["/bin/cat", secret])
    for mib in (1, 2, 3, 4, 6, 8, 12, 20):
        limit = mib << 20
        r = harness.run(argv, preexec=lambda n=limit: resource.setrlimit(resource.RLIMIT_AS,
                                                                         (n, n)))
        assert "the secret" not in r.out
        assert r.code != 0


@pytest.mark.parametrize("mode", SUPERVISED)
def test_every_call_of_the_start_may_fail(place, mode):
    """An outer filter fails one call at a time: the sandbox starts whole or not at all."""
    secret = place.file("secret", "the secret")
    argv = harness.MODES[mode].command([], ["/bin/cat", secret])
    calls = [3, 5, 9, 10, 16, 32, 33, 41, 53, 54, 56, 61, 72, 80, 89, 95, 96, 97, 105, 106, 109,
             110, 116, 117, 119, 126, 157, 160, 161, 165, 166, 186, 202, 213, 217, 228, 231, 232,
             233, 247, 257, 258, 262, 263, 270, 271, 281, 288, 289, 290, 291, 292, 293, 302, 317,
             318, 319, 424, 428, 429, 430, 431, 432, 434, 436, 437, 438, 439, 442, 444, 445, 446]
    for nr in calls:
        for code in (1, 12, 22, 38):
            r = harness.run([harness.INSTALLED.tools["fake-kernel"], f"{nr}={code}", "--", *argv],
                            timeout=20)
            assert "the secret" not in r.out, f"{nr}={code}{r!r}"
            assert r.code != 0, f"{nr}={code}{r!r}"
    # Where what removes files is refused as well, private directories stay: not a fault of ours.
    for name in private_dirs():
        shutil.rmtree(os.path.join("/tmp", name))
    for path in glob.glob("/dev/shm/sandlock-*-box"):
        if os.stat(path).st_uid in harness.OURS:
            shutil.rmtree(path)
