# SPDX-License-Identifier: Apache-2.0
"""Issue 5, point 5: port virtualisation. Several sandboxes bind the same port, each sees its own
number everywhere, nobody shares with a stranger, and the real numbers are published."""

import json
import socket
import textwrap

import pytest

import harness
from checks import ok, python

HEAD = """
import errno, os, socket, sys
L = "127.0.0.1"
def attempt(f):
    try:
        return f()
    except OSError as e:
        return errno.errorcode[e.errno]
def bound(port, kind=socket.SOCK_STREAM, family=socket.AF_INET, options=(), host=None):
    s = socket.socket(family, kind)
    for level, name in options:
        s.setsockopt(level, name, 1)
    s.bind((host or ("::1" if family == socket.AF_INET6 else L), port))
    return s
REUSE = (socket.SOL_SOCKET, socket.SO_REUSEADDR)
GROUP = (socket.SOL_SOCKET, socket.SO_REUSEPORT)
ONLY6 = (socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
"""


@pytest.fixture(params=["base", "nobase"])
def supervised(request):
    return request.param


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Taken:
    """A port of the host that somebody has."""

    def __init__(self, kind=socket.SOCK_STREAM, options=()):
        self.sock = socket.socket(socket.AF_INET, kind)
        for name in options:
            self.sock.setsockopt(socket.SOL_SOCKET, name, 1)
        self.sock.bind(("127.0.0.1", 0))
        self.port = self.sock.getsockname()[1]
        if kind == socket.SOCK_STREAM:
            self.sock.listen(5)
            self.sock.settimeout(0)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.sock.close()

    def was_reached(self):
        try:
            self.sock.accept()[0].close()
            return True
        except BlockingIOError:
            return False


def flags(*ports):
    return ["--port-remap", "--net-allow-bind", ",".join(map(str, ports))]


def lines(mode, text, *ports, more=(), **kw):
    body = HEAD + textwrap.dedent(text)
    return ok(python([*flags(*ports), *more], body, mode=mode, **kw)).lines


# --- One sandbox --------------------------------------------------------------------------------

SERVE = """
s = bound(PORT, options=[REUSE])
s.listen(5)
c = socket.create_connection((L, PORT))
a, peer = s.accept()
c.send(b"x")
print(s.getsockname()[1] == a.getsockname()[1] == c.getpeername()[1] == PORT, a.recv(1),
      peer == c.getsockname())
"""


def test_a_free_port_stays_what_it_is(supervised):
    port = free_port()
    text = f"PORT = {port}" + SERVE
    assert lines(supervised, text, port)[0] == "True b'x' True"


def test_a_taken_port_is_replaced_and_looks_the_same(supervised):
    with Taken() as taken:
        text = f"PORT = {taken.port}" + SERVE
        assert lines(supervised, text, taken.port) == ["True b'x' True"]
        assert not taken.was_reached()


def test_without_the_flag_it_is_in_use(supervised):
    with Taken() as taken:
        text = HEAD + f"print(attempt(lambda: bound({taken.port})))"
        r = ok(python(["--net-allow-bind", str(taken.port)], text, mode=supervised))
        assert r.lines == ["EADDRINUSE"]


def test_version_6_and_both(supervised):
    with Taken() as taken:
        text = f"PORT = {taken.port}" + """
six = bound(PORT, family=socket.AF_INET6, options=[ONLY6])
four = bound(PORT)
six.listen(5), four.listen(5)
for s, to in (six, "::1"), (four, L):
    c = socket.create_connection((to, PORT))
    a, _ = s.accept()
    print(s.getsockname()[:2], a.getsockname()[1] == c.getpeername()[1] == PORT)
mapped = socket.socket(socket.AF_INET6)
mapped.connect(("::ffff:127.0.0.1", PORT))
print(mapped.getpeername()[1] == PORT)
"""
        assert lines(supervised, text, taken.port) == [
            f"('::1', {taken.port}) True", f"('127.0.0.1', {taken.port}) True", "True"]


def test_a_privileged_port_can_be_had(supervised):
    text = "PORT = 80" + SERVE
    assert lines(supervised, text, 80) == ["True b'x' True"]


def test_it_can_be_bound_again_but_not_twice(supervised):
    with Taken() as taken:
        text = f"PORT = {taken.port}" + """
for options in (), (REUSE,):
    s = bound(PORT, options=options)
    s.listen(5)
    print(attempt(lambda: bound(PORT, options=options)), attempt(lambda: s.bind((L, PORT))),
          flush=True)
    c = socket.create_connection((L, PORT))
    a, _ = s.accept()
    a.close(), s.close(), c.close()
s = bound(PORT, options=[REUSE])
if os.fork() == 0:
    print(attempt(lambda: bound(PORT)), flush=True)
    os._exit(0)
os.wait()
s.close()
print(bound(PORT).getsockname()[1] == PORT)
"""
        got = lines(supervised, text, taken.port)
        assert got == ["EADDRINUSE EINVAL"] * 2 + ["EADDRINUSE", "True"]


def test_groups_share_within_the_sandbox(supervised):
    with Taken() as taken:
        text = f"PORT = {taken.port}" + """
group = [bound(PORT, options=[GROUP]) for _ in range(4)]
[s.listen(50) for s in group]
print({s.getsockname()[1] == PORT for s in group}, attempt(lambda: bound(PORT)))
kept = [socket.create_connection((L, PORT)) for _ in range(100)]
[s.settimeout(0) for s in group]
n = 0
for s in group:
    while not isinstance(attempt(s.accept), str):
        n += 1
print(n)
"""
        assert lines(supervised, text, taken.port) == ["{True} EADDRINUSE", "100"]
        assert not taken.was_reached()


@pytest.mark.parametrize("option", [socket.SO_REUSEPORT, socket.SO_REUSEADDR], ids=["port", "addr"])
def test_nobody_joins_the_group_of_a_stranger(option):
    """The host's socket has the option set, too, and the same user."""
    account = harness.USER
    server = ("import socket, sys\ns = socket.socket()\n"
              f"s.setsockopt(socket.SOL_SOCKET, {option}, 1)\n"
              "s.bind(('127.0.0.1', 0))\ns.listen(9)\nprint(s.getsockname()[1], flush=True)\n"
              "sys.stdin.read()\ns.settimeout(0)\n"
              "try:\n    s.accept()\n    print('reached')\nexcept BlockingIOError:\n    print('not')")
    import subprocess
    with harness.Running([harness.PYTHON, "-c", server], account=account,
                         stdin=subprocess.PIPE) as host:
        port = int(host.proc.stdout.readline())
        text = f"PORT, OPTION = {port}, {int(option)}" + """
s = bound(PORT, options=[(socket.SOL_SOCKET, OPTION)])
s.listen(50)
print(s.getsockopt(socket.SOL_SOCKET, OPTION))
kept = [socket.create_connection((L, PORT)) for _ in range(40)]
for _ in kept:
    s.accept()
print("all")
"""
        assert lines("base", text, port) == ["1", "all"]
        assert host.finish(data=b"").lines == ["not"]


def test_rules_still_hold(supervised):
    with Taken() as taken:
        other = free_port()
        text = f"PORT, OTHER = {taken.port}, {other}" + """
print(attempt(lambda: bound(OTHER)), attempt(lambda: bound(0)), bound(PORT).getsockname()[1] == PORT)
"""
        assert lines(supervised, text, taken.port) == ["EACCES EACCES True"]


def test_alone_it_allows_no_bind(supervised):
    text = HEAD + f"print(attempt(lambda: bound({free_port()})))"
    assert ok(python(["--port-remap"], text, mode=supervised)).lines == ["EACCES"]


def test_the_port_of_the_host_is_not_reached_by_its_number(supervised):
    """Before the bind, after it, and when the listener has gone and the number leads nowhere."""
    with Taken() as taken:
        text = f"PORT = {taken.port}" + """
def reach():
    return attempt(lambda: socket.create_connection((L, PORT)).getpeername()[1] == PORT)
print(reach())
s = bound(PORT, options=[REUSE])
print(reach())
s.listen(5)
print(reach())
s.close()
print(reach())
"""
        assert lines(supervised, text, taken.port) == ["EACCES", "EACCES", "True", "EACCES"]
        assert not taken.was_reached()


def test_udp(supervised):
    with Taken(socket.SOCK_DGRAM) as taken:
        text = f"PORT = {taken.port}" + """
D = socket.SOCK_DGRAM
s = bound(PORT, D)
c = socket.socket(socket.AF_INET, D)
c.connect((L, PORT))
c.send(b"one")
data, peer = s.recvfrom(10)
print(data, s.getsockname()[1] == c.getpeername()[1] == PORT, peer == c.getsockname())
u = socket.socket(socket.AF_INET, D)
u.sendto(b"two", (L, PORT))
u.sendmsg([b"three"], [], 0, (L, PORT))
print(s.recv(10), s.recv(10), attempt(lambda: bound(PORT, D)))
s.sendto(b"back", u.getsockname() if u.getsockname()[0] == L else (L, u.getsockname()[1]))
print(u.recvfrom(10) == (b"back", (L, PORT)))
s.sendto(b"again", (L, u.getsockname()[1]))
print(u.recvmsg(10)[3] == (L, PORT))
"""
        got = lines(supervised, text, taken.port, more=["--net-allow", "udp://192.0.2.1:9"])
        assert got == ["b'one' True True", "b'two' b'three' EADDRINUSE", "True", "True"]


def test_threads_that_bind_at_once_get_one(supervised):
    with Taken() as taken:
        text = f"PORT = {taken.port}" + """
import collections, threading
for _ in range(20):
    got = []
    def one():
        got.append(attempt(lambda: bound(PORT)))
    threads = [threading.Thread(target=one) for _ in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    won = [g for g in got if not isinstance(g, str)]
    assert len(won) == 1 and set(got) - set(won) == {"EADDRINUSE"}, got
    won[0].close()
print("ok")
"""
        assert lines(supervised, text, taken.port) == ["ok"]


# --- Several ------------------------------------------------------------------------------------

SERVER = """
import sys
s = bound(PORT, options=[REUSE])
s.listen(5)
print(s.getsockname()[1], flush=True)
sys.stdin.readline()
c = socket.create_connection((L, PORT))
a, _ = s.accept()
a.send(sys.argv[1].encode())
print(c.recv(10), flush=True)
sys.stdin.readline()
"""


def start(name, port, text, *argv, account=None, more=()):
    import subprocess
    command = harness.MODES["base"].command(
        [*flags(port), "--name", name, *more], [harness.PYTHON, "-c", text, *argv])
    return harness.Running(command, stdin=subprocess.PIPE, account=account or harness.USER)


def listed(account):
    r = ok(harness.sandlock("ps", "--json", account=account))
    return {row["name"]: row["ports"] for row in json.loads(r.out)}


def test_several_sandboxes_have_one_port_and_ps_tells_the_real_ones():
    port = free_port()
    text = HEAD + f"PORT = {port}" + SERVER
    runs = [start(f"remap-{i}", port, text, str(i)) for i in range(4)]
    try:
        for run in runs:
            assert run.proc.stdout.readline() == b"%d\n" % port
        names = [f"remap-{i}" for i in range(4)]
        harness.wait_until(lambda: set(names) <= set(listed(harness.USER)), what="listing")
        ports = listed(harness.USER)
        real = [ports[name][str(port)] for name in names]
        assert port in real and len(set(real)) == 4
        human = ok(harness.sandlock("ps")).out
        for number in real:
            assert f"{port}→{number}" in human
        for i, run in enumerate(runs):
            run.proc.stdin.write(b"\n")
            run.proc.stdin.flush()
            assert run.proc.stdout.readline() == b"b'%d'\n" % i
    finally:
        for run in runs:
            run.stop()


def test_starting_at_once_they_never_collide():
    """bind, then listen: two that have bound with SO_REUSEADDR would fail at the second listen."""
    port = free_port()
    text = HEAD + f"PORT = {port}" + """
for _ in range(200):
    s = bound(PORT, options=[REUSE])
    s.listen(1)
    s.close()
print("ok")
"""
    command = harness.MODES["base"].command(flags(port), [harness.PYTHON, "-c", text])
    runs = [harness.Running(command) for _ in range(4)]
    try:
        for run in runs:
            r = run.finish()
            assert (r.code, r.lines) == (0, ["ok"]), f"{r!r}"
    finally:
        for run in runs:
            run.stop()
