# SPDX-License-Identifier: Apache-2.0
"""Issue 5, points 1, 2, 4 and 9: destinations by address, UDP, ping, bind rules and loopback.

Everything is on loopback or in a network namespace that a test makes. An outcome is "ok" or the
name of an errno; what servers outside got tells whether a refusal was one.
"""

import contextlib
import errno
import http.server
import json
import os
import socket
import textwrap
import threading
import time

import pytest

import harness
from checks import ok, python, refused

RACE_SECONDS = "2"
HOST = "127.0.0.1"
HEAD = """
import errno, os, socket, struct, sys, threading, time
S, T, U = socket.socket, socket.SOCK_STREAM, socket.SOCK_DGRAM
V4, V6 = socket.AF_INET, socket.AF_INET6
def attempt(f):
    try:
        f()
        print("ok", flush=True)
    except OSError as e:
        print(errno.errorcode[e.errno], flush=True)
def tcp(host, port, family=V4):
    s = S(family, T)
    s.settimeout(20)
    s.connect((host, port))
    return s
def udp(host, port, family=V4):
    S(family, U).sendto(b"x", (host, port))
def linked(host, port, family=V4):
    s = S(family, U)
    s.connect((host, port))
    s.send(b"x")
def message(host, port, family=V4):
    S(family, U).sendmsg([b"a", b"b"], [], 0, (host, port))
"""


def outcomes(flags, calls, mode, **kw):
    text = HEAD + "".join(f"attempt(lambda: {c})\n" for c in calls)
    return ok(python(flags, text, mode=mode, **kw)).lines


class Listener:
    """TCP and UDP at one port of HOST: counts connections and datagrams; TCP answers LETTER."""

    def __init__(self, host=HOST, family=socket.AF_INET, letter=b"a"):
        self.connections = 0
        self.datagrams = []
        self.letter = letter
        while True:
            self.tcp = socket.socket(family, socket.SOCK_STREAM)
            self.udp = socket.socket(family, socket.SOCK_DGRAM)
            self.tcp.bind((host, 0))
            self.port = self.tcp.getsockname()[1]
            try:
                self.udp.bind((host, self.port))
                break
            except OSError:
                self.tcp.close()
                self.udp.close()
        self.tcp.listen(128)
        self.over = False
        self.threads = [threading.Thread(target=f, daemon=True)
                        for f in (self.accept, self.receive)]
        for s in (self.tcp, self.udp):
            s.settimeout(0.1)
        for t in self.threads:
            t.start()

    def accept(self):
        while True:
            try:
                peer, _ = self.tcp.accept()
            except TimeoutError:
                if self.over:
                    return
                continue
            self.connections += 1
            with contextlib.suppress(OSError):
                peer.send(self.letter)
            peer.close()

    def receive(self):
        while True:
            try:
                data, peer = self.udp.recvfrom(65536)
            except TimeoutError:
                if self.over:
                    return
                continue
            self.datagrams.append(data)
            self.udp.sendto(data, peer)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.over = True
        for t in self.threads:
            t.join()
        self.tcp.close()
        self.udp.close()


def free_port():
    with socket.socket() as s, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as u:
        s.bind((HOST, 0))
        u.bind((HOST, s.getsockname()[1]))
        return s.getsockname()[1]


# --- Point 1: exact endpoints -------------------------------------------------------------------


def test_one_endpoint_and_nothing_else(supervised):
    with Listener() as a, Listener() as b, Listener("127.0.0.2") as c:
        calls = [f"tcp({host!r}, {port})" for host, port in
                 ((HOST, a.port), (HOST, b.port), ("127.0.0.2", c.port))]
        calls += [f"{f}({host!r}, {port})" for f in ("udp", "linked", "message")
                  for host, port in ((HOST, a.port), (HOST, b.port), ("127.0.0.2", c.port))]
        got = outcomes(["--net-allow", f"{HOST}:{a.port}"], calls, supervised)
        assert got == ["ok", "ECONNREFUSED", "ECONNREFUSED"] * 4
    assert (a.connections, b.connections, c.connections) == (1, 0, 0)
    assert a.datagrams == [b"x", b"x", b"ab"]
    assert b.datagrams == c.datagrams == []


def test_a_rule_grants_its_protocol(supervised):
    with Listener() as a:
        calls = [f"tcp('{HOST}', {a.port})", f"udp('{HOST}', {a.port})", f"linked('{HOST}', {a.port})"]
        assert outcomes(["--net-allow", f"tcp://{HOST}:{a.port}"], calls, supervised) == \
            ["ok", "EPERM", "EPERM"]
        assert outcomes(["--net-allow", f"udp://{HOST}:{a.port}"], calls, supervised) == \
            ["EACCES", "ok", "ok"]
        assert outcomes(["--net-allow", f"udp://{HOST}:{a.port}", "--net-allow",
                         "tcp://127.0.0.2"], calls, supervised) == ["ECONNREFUSED", "ok", "ok"]
        assert outcomes(["--net-allow", f":{a.port}"], calls, supervised) == ["ok"] * 3
        assert outcomes([], calls, supervised) == ["EACCES", "EPERM", "EPERM"]


@pytest.mark.parametrize("rule", ["127.0.0.0/8:{}", "127.0.0.1:1-65535", "127.0.0.1", "0.0.0.0/0",
                                  "::ffff:127.0.0.1", "*", ":{}", "*:*"])
def test_forms_of_rules(rule):
    with Listener() as a:
        calls = [f"tcp('{HOST}', {a.port})", f"udp('{HOST}', {a.port})",
                 f"tcp('::ffff:127.0.0.1', {a.port}, V6)", f"udp('::ffff:127.0.0.1', {a.port}, V6)",
                 f"linked('::ffff:127.0.0.1', {a.port}, V6)"]
        assert outcomes(["--net-allow", rule.format(a.port)], calls, "base") == ["ok"] * 5


@pytest.mark.parametrize("rule", ["[::1]:{}", "::1", "::/0"])
def test_ipv6(rule):
    with Listener("::1", socket.AF_INET6) as a, Listener() as b:
        calls = [f"tcp('::1', {a.port}, V6)", f"udp('::1', {a.port}, V6)",
                 f"linked('::', {a.port}, V6)", f"tcp('{HOST}', {b.port})",
                 f"udp('::ffff:127.0.0.1', {b.port}, V6)"]
        got = outcomes(["--net-allow", rule.format(a.port)], calls, "base")
        assert got == ["ok", "ok", "ok", "ECONNREFUSED", "ECONNREFUSED"]
    assert b.datagrams == []


def test_addresses_that_mean_loopback(supervised):
    """The unspecified addresses, mapped ones and odd lengths are judged as what they reach."""
    with Listener() as a:
        raw = "struct.pack('=HH', {family}, socket.htons({port})) + bytes({tail})"

        def call(family, tail, length, kind="U"):
            address = raw.format(family=family, port=a.port, tail=tail)
            return f"raw({address}, {length}, {kind})"

        zero = "[0] * 12"
        calls = [
            f"tcp('0.0.0.0', {a.port})", f"udp('0.0.0.0', {a.port})",
            f"tcp('::ffff:0.0.0.0', {a.port}, V6)", f"linked('::ffff:0.0.0.0', {a.port}, V6)",
            call(2, "[127, 0, 0, 1] + [0] * 8", 16), call(0, "[127, 0, 0, 1] + [0] * 8", 16),
            call(2, "[127, 0, 0, 1] + [0] * 120", 128), call(2, zero, 15), call(2, zero, 0),
            call(10, "[0] * 24", 28), call(1, zero, 16), call(2, "[0] * 130", 129),
        ]
        text = HEAD + textwrap.dedent("""
            import ctypes
            libc = ctypes.CDLL(None, use_errno=True)
            def raw(address, length, kind):
                s = S(V4, kind)
                if libc.sendto(s.fileno(), b"x", 1, 0, address, length) != 1:
                    raise OSError(ctypes.get_errno(), "")
        """) + "".join(f"attempt(lambda: {c})\n" for c in calls)
        got = ok(python(["--net-allow", "10.0.0.1", "--net-allow", "udp://::1"], text,
                        mode=supervised)).lines
        assert got == ["ECONNREFUSED"] * 7 + ["EINVAL", "EDESTADDRREQ"] + \
            ["EAFNOSUPPORT", "EAFNOSUPPORT", "EINVAL"] or got[8] in ("EINVAL", "EDESTADDRREQ")
        assert got[:8] == ["ECONNREFUSED"] * 7 + ["EINVAL"]
        assert got[9:] == ["EAFNOSUPPORT", "EAFNOSUPPORT", "EINVAL"]
        assert a.datagrams == []
        got = ok(python(["--net-allow", HOST], text, mode=supervised)).lines
        assert got[:7] == ["ok"] * 7
    assert a.connections == 2


def test_deny_beats_allow(supervised):
    """Handed cases B34 and B82: all but one host, and a network."""
    with Listener() as a, Listener("127.0.0.2") as b:
        calls = [f"tcp('{HOST}', {a.port})", f"tcp('127.0.0.2', {b.port})",
                 f"udp('127.0.0.2', {b.port})", f"tcp('::ffff:127.0.0.2', {b.port}, V6)"]
        for flags in (["--net-deny", "127.0.0.2"], ["--net-allow", "*", "--net-deny", "127.0.0.2/31"],
                      ["--net-allow", "127.0.0.0/8", "--net-deny", f":{b.port}"]):
            assert outcomes(flags, calls, supervised) == ["ok"] + ["ECONNREFUSED"] * 3
        assert outcomes(["--net-deny", "tcp://127.0.0.2"], calls, supervised) == \
            ["ok", "ECONNREFUSED", "ok", "ECONNREFUSED"]
        assert outcomes(["--net-allow", f"{HOST}:{a.port}", "--net-deny", "127.0.0.2"], calls,
                        supervised) == ["ok"] + ["ECONNREFUSED"] * 3
    assert b.connections == 0
    assert b.datagrams == [b"x"] * 1


BLOCKING = """
def kinds(host, port):
    import select
    for how in ("blocking", "timeout", "nonblocking", "epoll"):
        s = S(V4, T)
        if how == "blocking":
            code = s.connect_ex((host, port))
        elif how == "timeout":
            s.settimeout(10)
            code = s.connect_ex((host, port))
        else:
            s.setblocking(False)
            code = s.connect_ex((host, port))
            if code == errno.EINPROGRESS and how == "epoll":
                e = select.epoll()
                e.register(s, select.EPOLLOUT)
                assert e.poll(10)
                code = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            elif code == errno.EINPROGRESS:
                select.select([], [s], [], 10)
                code = s.connect_ex((host, port))
                code = 0 if code == errno.EISCONN else code
        print(how, errno.errorcode.get(code, code))
"""


def test_blocking_and_other_clients(supervised):
    closed = free_port()
    with Listener() as a, Listener() as b:
        text = HEAD + BLOCKING + "".join(f"kinds('{HOST}', {p})\n" for p in (a.port, b.port, closed))
        r = ok(python(["--net-allow", f"{HOST}:{a.port},{closed}"], text, mode=supervised))
    got = [line.split()[1] for line in r.lines]
    assert got == ["0"] * 4 + ["ECONNREFUSED"] * 8
    assert (a.connections, b.connections) == (4, 0)


def test_every_way_to_send(supervised):
    """sendmmsg with mixed destinations stops at the first refused one and tells what was sent."""
    text = HEAD + textwrap.dedent("""
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        class Iov(ctypes.Structure):
            _fields_ = [("base", ctypes.c_char_p), ("len", ctypes.c_size_t)]
        class Msg(ctypes.Structure):
            _fields_ = [("name", ctypes.c_char_p), ("namelen", ctypes.c_int),
                        ("iov", ctypes.POINTER(Iov)), ("iovlen", ctypes.c_size_t),
                        ("control", ctypes.c_char_p), ("controllen", ctypes.c_size_t),
                        ("flags", ctypes.c_int), ("pad", ctypes.c_int),
                        ("len", ctypes.c_uint)]
        def batch(ports, data=b"mm", control=None):
            s = S(V4, U)
            msgs = (Msg * len(ports))()
            for m, p in zip(msgs, ports):
                m.name = struct.pack("=HH4s8x", 2, socket.htons(p), bytes([127, 0, 0, 1]))
                m.namelen = 16
                m.iov = ctypes.pointer(Iov(data, len(data)))
                m.iovlen = 1
                if control:
                    m.control = control
                    m.controllen = len(control)
            n = libc.sendmmsg(s.fileno(), msgs, len(ports), 0)
            print(n if n >= 0 else errno.errorcode[ctypes.get_errno()])
        own, foreign = int(sys.argv[1]), int(sys.argv[2])
        batch([own] * 20)
        batch([own, own, foreign, own])
        batch([foreign, own])
        # Segments of one datagram that the kernel cuts (UDP_SEGMENT), as QUIC senders do.
        batch([own], b"abcdef", struct.pack("=QiiH6x", 18, 17, 103, 2))
        # A route in a message.
        batch([own], b"r", struct.pack("=Qii8s", 24, 0, 7, bytes([131, 7, 4, 127, 0, 0, 2, 0])))
    """)
    with Listener() as a, Listener() as b:
        r = ok(harness.sandbox(["--net-allow", f"{HOST}:{a.port}"],
                               [harness.PYTHON, "-c", text, a.port, b.port], mode=supervised))
        assert r.lines == ["20", "2", "ECONNREFUSED", "1", "EPERM"]
    assert sorted(a.datagrams) == sorted([b"mm"] * 22 + [b"ab", b"cd", b"ef"])
    assert b.datagrams == []


def test_routes_in_options_are_refused(supervised):
    calls = [
        "S(V4, U).setsockopt(0, 4, bytes([131, 7, 4, 127, 0, 0, 2, 0]))",
        "S(V4, T).setsockopt(0, 4, bytes([131, 7, 4, 127, 0, 0, 2, 0]))",
        "S(V6, U).setsockopt(41, 57, bytes(24))",
        "S(V6, U).setsockopt(41, 6, bytes(24))",
        "S(V6, U).setsockopt(41, 32, bytes(32))",
        "S(V6, U).setsockopt(41, 26, 1)",
        "S(V4, U).setsockopt(0, 1, 16)",
    ]
    assert outcomes(["--net-allow", HOST], calls, supervised) == ["EPERM"] * 5 + ["ok"] * 2


def test_connected_udp_sends_are_not_mediated(supervised):
    """They work while the supervisor would refuse the address in a message."""
    text = HEAD + textwrap.dedent("""
        s = S(V4, U)
        s.connect((sys.argv[1], int(sys.argv[2])))
        for _ in range(1000):
            s.send(b"y")
            s.recv(10)
        os.write(s.fileno(), b"z")
        assert s.recv(10) == b"z"
    """)
    with Listener() as a:
        ok(harness.sandbox(["--net-allow", f"udp://{HOST}:{a.port}"],
                           [harness.PYTHON, "-c", text, HOST, a.port], mode=supervised))
    assert len(a.datagrams) == 1001


def test_udp_can_be_disconnected_and_connected_anew(supervised):
    text = HEAD + textwrap.dedent("""
        import ctypes
        libc = ctypes.CDLL(None)
        s = S(V4, U)
        a, b = int(sys.argv[1]), int(sys.argv[2])
        s.connect(("127.0.0.1", a))
        s.send(b"1")
        assert libc.connect(s.fileno(), struct.pack("=H14x", 0), 16) == 0
        attempt(lambda: s.send(b"2"))
        attempt(lambda: s.connect(("127.0.0.1", b)))
        attempt(lambda: s.send(b"3"))
    """)
    with Listener() as a, Listener() as b:
        r = ok(harness.sandbox(["--net-allow", f"udp://{HOST}:{a.port}"],
                               [harness.PYTHON, "-c", text, a.port, b.port], mode=supervised))
        assert r.lines == ["EDESTADDRREQ", "ECONNREFUSED", "EDESTADDRREQ"]
    assert (a.datagrams, b.datagrams) == ([b"1"], [])


def test_big_datagrams(supervised):
    calls = [f"S(V4, U).sendto(bytes({n}), ('{HOST}', PORT))" for n in (0, 1, 65507, 65508, 1 << 23)]
    with Listener() as a:
        calls = [c.replace("PORT", str(a.port)) for c in calls]
        assert outcomes(["--net-allow", HOST], calls, supervised) == ["ok"] * 3 + ["EMSGSIZE"] * 2
    assert [len(d) for d in a.datagrams] == [0, 1, 65507]


def test_sockets_from_outside_are_judged_as_own_ones(place, supervised):
    """What comes by SCM_RIGHTS, of any kind."""
    w = place.dir("w")
    text = HEAD + textwrap.dedent("""
        u = S(socket.AF_UNIX)
        u.connect(sys.argv[1])
        _, fds, _, _ = socket.recv_fds(u, 10, 4)
        t, d = (S(fileno=fd) for fd in fds)
        own, foreign = (("127.0.0.1", int(p)) for p in sys.argv[2:4])
        attempt(lambda: t.connect(foreign))
        attempt(lambda: t.connect(own))
        attempt(lambda: d.sendto(b"x", foreign))
        attempt(lambda: d.connect(foreign))
        attempt(lambda: d.sendto(b"x", own))
        attempt(lambda: d.bind(("127.0.0.1", foreign[1] ^ 1)))
    """)
    with Listener() as a, Listener() as b, socket.socket(socket.AF_UNIX) as giver:
        giver.bind(str(w / "s"))
        os.chmod(w / "s", 0o777)
        giver.listen()

        def give():
            peer, _ = giver.accept()
            with socket.socket() as t, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as d:
                socket.send_fds(peer, [b"x"], [t.fileno(), d.fileno()])
            peer.close()

        thread = threading.Thread(target=give)
        thread.start()
        r = ok(harness.sandbox(["-w", w, "--net-allow", f"{HOST}:{a.port}"],
                               [harness.PYTHON, "-c", text, w / "s", a.port, b.port],
                               mode=supervised))
        thread.join()
        assert r.lines == ["ECONNREFUSED", "ok", "ECONNREFUSED", "ECONNREFUSED", "ok", "EACCES"]
    assert (b.connections, b.datagrams) == (0, [])


FORKSERVER = """
import multiprocessing as m, socket, array, os
def work(q):
    q.put("done")
if __name__ == "__main__":
    m.set_start_method("forkserver")
    q = m.Queue()
    p = m.Process(target=work, args=(q,))
    p.start()
    assert q.get(timeout=30) == "done"
    p.join()
    with m.Manager() as manager:
        d = manager.dict()
        d["x"] = 1
        assert d["x"] == 1
    a, b = socket.socketpair()
    r, w = os.pipe()
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [w]))])
    assert socket.recv_fds(b, 1, 1)[1]
    print("all")
"""


@pytest.mark.parametrize("flags", [[], ["--net-allow", "tcp://:80"], ["--net-allow", "127.0.0.1:80"],
                                   ["--net-deny", "10.0.0.0/8"], ["--net-allow", "icmp://*"],
                                   ["--net-allow", "udp://*", "--net-allow-bind", "*"],
                                   ["--net-deny-bind", "80"]], ids=" ".join)
def test_forkservers_and_passed_descriptors(place, supervised, flags):
    """Handed cases B23 and B136: no network policy touches Unix sockets and pairs."""
    w = place.dir("w")
    f = place.file("w/fork.py", FORKSERVER)
    r = harness.sandbox(["-w", w, "-w", "/tmp", *flags], [harness.PYTHON, f], mode=supervised,
                        env={"TMPDIR": str(w)})
    assert ok(r).lines == ["all"]


class Web(http.server.ThreadingHTTPServer):
    """Says "hello" to whoever asks."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked += 1
            self.send_response(200)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *args):
            pass

    def __init__(self, host, family=socket.AF_INET):
        self.address_family = family
        self.asked = 0
        super().__init__((host, 0), self.Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *exc):
        self.shutdown()
        super().__exit__(*exc)


NODE = """
require('http').get(process.argv[1], r => r.on('data', d => process.stdout.write(d)))
    .on('error', e => { console.log(e.code); process.exit(7) })
"""
PYTHON_GET = """
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1]).read().decode(), end="")
except urllib.error.URLError as e:
    print(e.reason)
    sys.exit(7)
"""
CLIENTS = {
    "curl": ["/usr/bin/curl", "-sg", "--noproxy", "*"],
    "node": ["/usr/bin/node", "-e", NODE],
    "python": [harness.PYTHON, "-c", PYTHON_GET],
}


@pytest.mark.parametrize("client", CLIENTS)
def test_real_clients(supervised, client):
    """Handed case B34: one rule, one command."""
    with Web(HOST) as a, Web("::1", socket.AF_INET6) as b, Web("127.0.0.2") as c:
        flags = ["--net-allow", f"{HOST}:{a.server_port}", "--net-allow", f"[::1]:{b.server_port}"]
        for host, web, code in ((HOST, a, 0), ("[::1]", b, 0), ("127.0.0.2", c, 7)):
            r = harness.sandbox(flags, [*CLIENTS[client], f"http://{host}:{web.server_port}/"],
                                mode=supervised)
            assert (r.code, r.out == "hello") == (code, code == 0), f"{r!r}"
        assert (a.asked, b.asked, c.asked) == (1, 1, 0)


# --- Point 2: protocols -------------------------------------------------------------------------

PROTOCOLS = ["S(V4, U)", "S(V6, U, 17)", "S(V4, U, 1)", "S(V6, U, 58)", "S(V4, U, 136)",
             "S(V4, socket.SOCK_RAW, 1)", "S(V6, socket.SOCK_RAW, 58)", "S(V4, socket.SOCK_RAW, 17)",
             "S(17, socket.SOCK_RAW, 0)", "S(V4, T, 262)", "S(V4, T, 132)"]
CLOSED = ["EPERM"] * 4 + ["EAFNOSUPPORT"] + ["EPROTONOSUPPORT"] * 2


@pytest.mark.parametrize("rule, udp, ping", [
    (None, False, False), ("tcp://*", False, False), ("tcp://127.0.0.1:80", False, False),
    ("udp://127.0.0.1:80", True, False), (":80", True, False), ("icmp://127.0.0.1", True, True),
])
def test_protocols_need_their_rules(supervised, rule, udp, ping):
    flags = ["--net-allow", rule] if rule else []
    got = outcomes(flags, PROTOCOLS, supervised)
    assert got[:2] == ["ok" if udp else "EPERM"] * 2
    # The kernel's own answer where no group may use them.
    assert all(g in (("ok", "EACCES") if ping else ("EPERM",)) for g in got[2:4])
    assert got[4:] == CLOSED


NETNS = """
set -e
ip link set lo up
echo '0 2147483647' > /proc/sys/net/ipv4/ping_group_range
exec setpriv --reuid {uid} --regid {gid} --clear-groups -- "$@"
"""

PING = HEAD + textwrap.dedent("""
    def ping(host, family=V4, proto=1):
        s = S(family, U, proto)
        s.settimeout(5)
        s.sendto(struct.pack(">BBHHH", 8 if family == V4 else 128, 0, 0, 0, 1) + b"data",
                 (host, 0))
        assert b"data" in s.recv(100)
    def source(host):
        s = S(V4, U)
        s.connect((host, 1025))
        print(s.getsockname()[0])
        s.send(b"x")
    attempt(lambda: ping("127.0.0.1"))
    attempt(lambda: ping("127.0.0.2"))
    attempt(lambda: ping("::1", V6, 58))
    attempt(lambda: udp("127.0.0.1", 9))
    attempt(lambda: source("127.0.0.1"))
    attempt(lambda: source("127.0.0.2"))
""")


def in_namespace(words):
    """Runs WORDS as the user of the tests in a network namespace that lets everybody ping."""
    text = NETNS.format(uid=harness.USER.uid, gid=harness.USER.gid)
    return harness.run(["/usr/bin/unshare", "-n", "/bin/sh", "-c", text, "sh", *words],
                       account=harness.ROOT_USER)


@pytest.mark.parametrize("mode", harness.SUPERVISED)
def test_ping_needs_an_icmp_rule(mode):
    """And learns its source address from a UDP socket that reaches nothing, as ping(8) does."""
    m = harness.MODES[mode]
    command = m.command(["--net-allow", "icmp://127.0.0.1"], [harness.PYTHON, "-c", PING])
    assert ok(in_namespace(command)).lines == [
        "ok", "ECONNREFUSED", "ECONNREFUSED", "ECONNREFUSED", "127.0.0.1", "EDESTADDRREQ",
        "ECONNREFUSED"]
    command = m.command(["--net-allow", "icmp://*"], [harness.PYTHON, "-c", PING])
    assert ok(in_namespace(command)).lines[:3] == ["ok"] * 3


def test_address_sorting_of_getaddrinfo(supervised):
    """Trap 118: a UDP socket is connected to each address just to sort them."""
    text = HEAD + textwrap.dedent("""
        got = socket.getaddrinfo("localhost", None, type=T)
        print(sorted({x[4][0] for x in got})[0])
        s = S(V4, U)
        s.connect(("127.0.0.1", 0))
        print(s.getsockname()[0])
        attempt(lambda: s.send(b"x"))
    """)
    for rule in ("127.0.0.1:80", "127.0.0.0/8", ":80"):
        r = ok(python(["--net-allow", rule], text, mode=supervised))
        assert r.lines[0] == "127.0.0.1" and r.lines[1] == "127.0.0.1", f"{r!r}"


# --- Bind ---------------------------------------------------------------------------------------


def binds(port, family="V4", host=HOST):
    return [f"S({family}, {kind}).bind(({host!r}, {port}))" for kind in ("T", "U")]


def test_bind_rules_hold_for_tcp_and_udp(supervised):
    """Handed case B14: whatever else is allowed."""
    port, other = free_port(), free_port()
    calls = binds(port) + binds(other) + binds(other, "V6", "::") + [
        "S(V4, U).bind(('0.0.0.0', 0))", "S(V4, T).bind(('0.0.0.0', 0))"]
    for rule in (["--net-allow", "*"], ["--net-allow", "127.0.0.1:*"], ["--net-deny", "10.0.0.0/8"]):
        got = outcomes(["--net-allow-bind", str(port), *rule], calls, supervised)
        assert got == ["ok"] * 2 + ["EACCES"] * 4 + ["ok", "EACCES"]
    assert outcomes(["--net-allow-bind", "*", "--net-allow", "*"], calls, supervised) == ["ok"] * 8
    assert outcomes(["--net-allow", "*"], calls, supervised) == \
        ["EACCES"] * 6 + ["ok", "EACCES"]


def test_deny_bind(supervised):
    port, other = free_port(), free_port()
    calls = binds(port) + binds(other) + binds(port, "V6", "::")
    udp = ["--net-allow", "udp://*"]
    for flags in (["--net-deny-bind", str(port)],
                  ["--net-allow-bind", "*", "--net-deny-bind", f"{port}"],
                  ["--net-allow-bind", f"{port},{other}", "--net-deny-bind", str(port)]):
        got = outcomes([*udp, *flags], calls, supervised)
        assert got == ["EACCES"] * 2 + ["ok"] * 2 + ["EACCES"] * 2
    assert outcomes(["--net-deny-bind", str(port)], [calls[0], calls[2]], supervised) == \
        ["EACCES", "ok"]
    assert outcomes([*udp, "--net-deny-bind", "*"], calls, supervised) == ["EACCES"] * 6


def test_listen_without_a_bind_is_port_0(supervised):
    calls = ["S(V4, T).listen()", "S(V6, T).listen()"]
    for flags, expected in ((["--net-allow-bind", "80"], "EACCES"), (["--net-allow-bind", "0"], "ok"),
                            (["--net-deny-bind", "80"], "ok"), (["--net-deny-bind", "0"], "EACCES")):
        assert outcomes(flags, calls, supervised) == [expected] * 2


def test_udp_server(supervised):
    """A bound UDP socket gets what is sent to it; its port filter cannot be taken off."""
    port = free_port()
    text = HEAD + textwrap.dedent("""
        s = S(V4, U)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", int(sys.argv[1])))
        attempt(lambda: s.setsockopt(socket.SOL_SOCKET, 27, 0))
        s.settimeout(20)
        data, peer = s.recvfrom(100)
        print(data.decode(), flush=True)
        attempt(lambda: s.sendto(b"back", peer))
    """)
    flags = ["--net-allow", "udp://127.0.0.1", "--net-allow-bind", str(port)]
    command = supervised.command(flags, [harness.PYTHON, "-c", text, port])
    with harness.Running(command) as run, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(0.05)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            client.sendto(b"there", (HOST, port))
            with contextlib.suppress(TimeoutError, ConnectionRefusedError):
                assert client.recv(100) == b"back"
                break
        assert ok(run.finish()).lines == ["EPERM", "there", "ok"]


# --- Point 4: loopback --------------------------------------------------------------------------

OWN = HEAD + textwrap.dedent("""
    port, foreign = int(sys.argv[1]), int(sys.argv[2])
    def served(family, bound, asked):
        s = S(family, T)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == V6:
            s.setsockopt(41, 26, 0)
        s.bind((bound, port))
        s.listen()
        with s:
            c = tcp(asked, port, V6 if ":" in asked else V4)
            s.settimeout(20)
            d, _ = s.accept()
            d.sendall(b"own")
            assert c.recv(10) == b"own"
            d.close()
            c.close()
    attempt(lambda: served(V4, "127.0.0.1", "127.0.0.1"))
    attempt(lambda: served(V4, "0.0.0.0", "127.0.0.1"))
    attempt(lambda: served(V4, "0.0.0.0", "0.0.0.0"))
    attempt(lambda: served(V4, "0.0.0.0", "::ffff:127.0.0.1"))
    attempt(lambda: served(V6, "::", "127.0.0.1"))
    attempt(lambda: served(V6, "::1", "::1"))
    attempt(lambda: tcp("127.0.0.1", foreign))
""")


def own(flags, mode, port, foreign):
    return ok(harness.sandbox([*flags, "--net-allow-bind", port],
                              [harness.PYTHON, "-c", OWN, port, foreign], mode=mode)).lines


def test_own_listeners_are_reached_and_others_are_not(supervised):
    """Handed case B82: separate rights for own and host's listeners."""
    port = free_port()
    with Listener() as host:
        assert own([], supervised, port, host.port) == ["ok"] * 6 + ["EACCES"]
        assert own(["--net-allow-loopback", "own"], supervised, port, host.port) == \
            ["ok"] * 6 + ["EACCES"]
        assert own(["--net-allow-loopback", "none"], supervised, port, host.port) == ["EACCES"] * 7
        assert host.connections == 0
        assert own(["--net-allow-loopback", "all"], supervised, port, host.port) == ["ok"] * 7
        assert own(["--net-allow", "10.0.0.1"], supervised, port, host.port) == \
            ["ok"] * 6 + ["ECONNREFUSED"]
        assert own(["--net-deny", "127.0.0.0/8", "--net-allow-loopback", "own"], supervised, port,
                   host.port) == ["ECONNREFUSED"] * 5 + ["ok", "ECONNREFUSED"]
    assert host.connections == 1


def test_a_shared_port_is_not_own(supervised):
    """SO_REUSEPORT: the kernel would pick one of the two listeners."""
    text = HEAD + textwrap.dedent("""
        s = S(V4, T)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind((sys.argv[2], int(sys.argv[1])))
        s.listen()
        for _ in range(20):
            attempt(lambda: tcp("127.0.0.1", int(sys.argv[1])))
    """)
    holder = textwrap.dedent(f"""
        import os, socket, sys
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind(("127.0.0.1", 0))
        s.listen()
        print(s.getsockname()[1], flush=True)
        sys.stdin.read()
    """)
    import subprocess
    with harness.Running([harness.PYTHON, "-c", holder], stdin=subprocess.PIPE) as host:
        port = int(host.proc.stdout.readline())
        for bound in (HOST, "0.0.0.0"):
            r = ok(harness.sandbox(["--net-allow-bind", port],
                                   [harness.PYTHON, "-c", text, port, bound], mode=supervised))
            assert r.lines == ["EACCES"] * 20
        host.proc.stdin.close()
        host.proc.stdin = None
        host.finish()


def test_own_udp_servers(supervised):
    text = HEAD + textwrap.dedent("""
        port, foreign = int(sys.argv[1]), int(sys.argv[2])
        s = S(V4, U)
        s.bind(("127.0.0.1", port))
        s.settimeout(20)
        def talk(c):
            c.settimeout(20)
            data, peer = s.recvfrom(10)
            s.sendto(data.upper(), peer)
            assert c.recv(10) == data.upper()
        c = S(V4, U)
        attempt(lambda: [c.sendto(b"a", ("127.0.0.1", port)), talk(c)])
        c = S(V4, U)
        attempt(lambda: [c.connect(("127.0.0.1", port)), c.send(b"b"), talk(c)])
        attempt(lambda: udp("127.0.0.1", foreign))
        attempt(lambda: linked("127.0.0.1", foreign))
    """)
    port = free_port()
    with Listener() as host:
        r = ok(harness.sandbox(["--net-allow-bind", port, "--net-allow", "udp://10.0.0.1"],
                               [harness.PYTHON, "-c", text, port, host.port], mode=supervised))
        assert r.lines == ["ok", "ok", "ECONNREFUSED", "ECONNREFUSED"]
    assert host.datagrams == []


def test_two_sandboxes_do_not_reach_each_other(supervised):
    port, other = free_port(), free_port()
    server = HEAD + textwrap.dedent("""
        s = S(V4, T)
        s.bind(("127.0.0.1", int(sys.argv[1])))
        s.listen()
        print("up", flush=True)
        sys.stdin.read()
    """)
    import subprocess
    m = supervised
    command = m.command(["--net-allow-bind", port], [harness.PYTHON, "-c", server, port])
    with harness.Running(command, stdin=subprocess.PIPE) as first:
        assert first.proc.stdout.readline() == b"up\n"
        assert outcomes(["--net-allow-bind", str(other)], [f"tcp('{HOST}', {port})"], supervised) == \
            ["EACCES"]
        assert outcomes(["--net-allow", f"{HOST}:{port}"], [f"tcp('{HOST}', {port})"], supervised) == \
            ["ok"]
        first.proc.stdin.close()
        first.proc.stdin = None
        ok(first.finish())


# --- Point 9: events ----------------------------------------------------------------------------


def events(place, flags, calls, mode):
    path = place.top / "events"
    path.unlink(missing_ok=True)
    outcomes(["--events", path, *flags], calls, mode)
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def test_refusals_name_the_rule_that_would_allow(place, supervised):
    with Listener() as a, Listener("::1", socket.AF_INET6) as b:
        calls = [f"tcp('{HOST}', {a.port})", f"udp('{HOST}', {a.port})",
                 f"message('::1', {b.port}, V6)", f"S(V4, U).bind(('{HOST}', {a.port}))"]
        flags = ["--net-allow", "10.0.0.1"]
        got = {(e["op"], e["object"]): e for e in events(place, flags, calls, supervised)}
        allow = {key: e.get("allow") for key, e in got.items()}
        assert allow == {
            ("connect", f"{HOST}:{a.port}"): f"--net-allow tcp://{HOST}:{a.port}",
            ("sendto", f"{HOST}:{a.port}"): f"--net-allow udp://{HOST}:{a.port}",
            ("sendmsg", f"[::1]:{b.port}"): f"--net-allow 'udp://[::1]:{b.port}'",
            ("bind", f"{HOST}:{a.port} (UDP)"): f"--net-allow-bind {a.port}",
        }
        assert {e["errno"] for e in got.values()} == {"ECONNREFUSED", "EACCES"} or \
            {e["errno"] for e in got.values()} == {errno.ECONNREFUSED, errno.EACCES}
        # What each names does allow it.
        words = [w.strip("'") for text in allow.values() for w in text.split()]
        final = outcomes([*flags, *words], calls[:3], supervised)
        assert final == ["ok"] * 3
        denied = events(place, ["--net-deny", HOST], calls[:1], supervised)
        assert [(e["rule"], e.get("allow")) for e in denied] == \
            [(f"--net-deny {HOST} covers it", None)]


# --- Attacks ------------------------------------------------------------------------------------


def race(mode, attack, flags, own_port, foreign_port):
    r = harness.sandbox(flags, [harness.INSTALLED.tools["net-race"], attack, own_port, foreign_port,
                                RACE_SECONDS], mode=mode)
    said = dict(line.split("=") for line in ok(r).lines)
    assert int(said["asked"]) > 50
    return int(said["reached"]), int(said["foreign"])


@pytest.mark.parametrize("attack", ["connect", "send", "fd"])
def test_races_are_lost(supervised, attack):
    with Listener() as a, Listener(letter=b"f") as b:
        reached, foreign = race(supervised, attack, ["--net-allow", f"{HOST}:{a.port}"], a.port, b.port)
    assert (foreign, b.connections, b.datagrams) == (0, 0, [])
    if attack != "fd":
        assert reached > 0


@pytest.mark.parametrize("attack", ["connect", "send", "fd"])
def test_the_races_are_attacks(attack):
    """The control: with both allowed, both are reached."""
    with Listener() as a, Listener(letter=b"f") as b:
        race("base", attack, ["--net-allow", HOST], a.port, b.port)
    assert b.connections + len(b.datagrams) > 0


class Sender:
    """Sends datagrams to a port all the time."""

    def __init__(self, port):
        self.port = port
        self.over = False
        self.thread = threading.Thread(target=self.send, daemon=True)

    def send(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            while not self.over:
                s.sendto(b"!", (HOST, self.port))
                time.sleep(0.0005)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *exc):
        self.over = True
        self.thread.join()


def low_port():
    """One that the kernel does not choose by itself."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        first = int(f.read().split()[0])
    for port in range(first - 1, 1024, -1):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s, \
                contextlib.suppress(OSError):
            s.bind((HOST, port))
            return port
    raise AssertionError("no free port")


def test_a_raced_bind_receives_nothing(supervised):
    port = low_port()
    with Sender(port):
        _, foreign = race(supervised, "bind", ["--net-allow", "udp://10.0.0.1"], port, port)
    assert foreign == 0


def test_the_raced_bind_is_an_attack():
    port = low_port()
    with Sender(port):
        _, foreign = race("base", "bind", ["--net-allow", "udp://10.0.0.1", "--net-allow-bind",
                                           str(port)], port, port)
    assert foreign > 0


# --- Bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("flags, words", [
    (["--net-allow", "10.0.0.0/33"], ["--net-allow", "10.0.0.0/33", "character 1"]),
    (["--net-allow", "tcp://10.0.0.1:80,x"], ["character 19"]),
    (["--net-allow", "[::1:80"], ["character 1", "bracket"]),
    (["--net-allow", "sctp://10.0.0.1"], ["character 1", "protocol"]),
    (["--net-allow", "icmp://10.0.0.1:80"], ["character 16", "icmp"]),
    (["--net-allow", "10.0.0.1:0"], ["character 10", "65535"]),
    (["--net-deny", "1::2:3:80:"], ["--net-deny"]),
    (["--net-deny", "10.0.0.1:70000"], ["--net-deny", "character 10"]),
    (["--net-deny-bind", "80-"], ["--net-deny-bind", "character"]),
    (["--net-allow-loopback", "some"], ["--net-allow-loopback", "some", "own"]),
    (["--no-supervisor", "--net-deny", "10.0.0.1"], ["--no-supervisor", "--net-deny"]),
    (["--no-supervisor", "--net-allow", "10.0.0.1:80"], ["--no-supervisor", "10.0.0.1:80"]),
], ids=lambda x: " ".join(x))
def test_bad_rules_start_nothing(flags, words):
    refused(harness.sandbox(flags, ["/bin/echo", "ran"]), *words)
