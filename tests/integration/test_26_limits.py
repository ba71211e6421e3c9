# SPDX-License-Identifier: Apache-2.0
"""Issue 5, point 8: --net-rate and --net-max-bytes. Servers are on loopback, outside."""

import contextlib
import json
import socket
import textwrap
import threading
import time

import pytest

import harness
from checks import ok, python, refused
from test_22_names import OTHER, PUBLIC, SERVER, World

HOST = "127.0.0.1"
SEND_BUFFER = 64 * 1024
WINDOW = 256 * 1024
HEAD = """
import errno, os, select, socket, struct, sys, threading, time
def connect(port, host="127.0.0.1", family=socket.AF_INET):
    s = socket.socket(family)
    s.connect((host, port))
    return s
def name(e):
    return errno.errorcode[e.errno]
def drain(s, most=1 << 40):
    got = 0
    try:
        while got < most:
            data = s.recv(min(65536, most - got))
            if not data:
                return got, "end"
            got += len(data)
    except OSError as e:
        return got, name(e)
    return got, "enough"
def attempt(f):
    try:
        print(f() or "ok", flush=True)
    except OSError as e:
        print(name(e), flush=True)
"""


class Server:
    """Runs WORK(server, socket) for each connection; what it counts is for the test to read."""

    def __init__(self, work, host=HOST, family=socket.AF_INET):
        self.work = work
        self.sent = self.got = 0
        self.peers = []
        self.ends = []
        self.lock = threading.Lock()
        self.sock = socket.socket(family)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        self.sock.bind((host, 0))
        self.sock.listen(64)
        self.port = self.sock.getsockname()[1]
        self.threads = []
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                peer, address = self.sock.accept()
                self.peers.append(address[:2])
                t = threading.Thread(target=self.serve, args=(peer,), daemon=True)
                self.threads.append(t)
                t.start()

    def serve(self, peer):
        with peer:
            try:
                self.work(self, peer)
            except OSError as e:
                self.ends.append(type(e).__name__)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        self.thread.join()
        for t in self.threads:
            t.join(20)
            assert not t.is_alive()


def pour(total):
    def work(server, peer):
        left = total
        while left:
            n = peer.send(bytes(min(8192, left)))
            left -= n
            with server.lock:
                server.sent += n
    return work


def swallow(server, peer):
    while data := peer.recv(65536):
        with server.lock:
            server.got += len(data)
    server.ends.append("end")


def echo(server, peer):
    while data := peer.recv(65536):
        peer.sendall(data)


def run(flags, text, mode="base", *args):
    return harness.sandbox(flags, [harness.PYTHON, "-c", HEAD + textwrap.dedent(text), *args],
                           mode=mode)


# --- --net-max-bytes ----------------------------------------------------------------------------


def test_a_received_stream_stops_within_one_window(supervised):
    limit = 1 << 20
    with Server(pour(1 << 30)) as s:
        r = ok(run(["--net-allow", f"tcp://{HOST}", "--net-max-bytes", "1M"], """
            s = connect(int(sys.argv[1]))
            got, end = drain(s)
            print(got, end)
            attempt(lambda: s.send(b"x"))
            attempt(lambda: connect(int(sys.argv[1])))
        """, supervised, s.port))
    got, end = r.lines[0].split()
    assert int(got) <= limit and end == "ECONNRESET"
    assert r.lines[1:] == ["EPIPE", "EDQUOT"]
    assert int(got) > limit - 2 * WINDOW
    assert s.sent <= limit + WINDOW + 2 * SEND_BUFFER
    assert s.ends == ["ConnectionResetError"]


def test_a_sent_stream_stops_at_the_byte(supervised):
    limit = 300000
    with Server(swallow) as s:
        r = ok(run(["--net-allow", f"tcp://{HOST}", "--net-max-bytes", str(limit)], """
            s = connect(int(sys.argv[1]))
            def send():
                while True:
                    s.send(bytes(10000))
            attempt(send)
            attempt(lambda: connect(int(sys.argv[1])))
        """, supervised, s.port))
    assert r.lines[0] in ("ECONNRESET", "EPIPE")
    assert r.lines[1] == "EDQUOT"
    assert s.got <= limit
    assert s.ends == ["ConnectionResetError"]


def test_exactly_the_limit_passes_and_not_a_byte_more(supervised):
    with Server(pour(250000)) as s:
        r = ok(run(["--net-allow", f"tcp://{HOST}", "--net-max-bytes", "500000"], """
            for _ in range(2):
                print(*drain(connect(int(sys.argv[1]))))
            attempt(lambda: connect(int(sys.argv[1])))
        """, supervised, s.port))
    assert r.lines == ["250000 end", "250000 end", "EDQUOT"]
    assert s.sent == 500000


def test_both_ways_and_all_processes_count():
    with Server(echo) as s:
        r = ok(run(["--net-allow", f"tcp://{HOST}", "--net-max-bytes", "100000"], """
            def round_trip(n):
                s = connect(int(sys.argv[1]))
                s.sendall(bytes(n))
                s.shutdown(socket.SHUT_WR)
                return " ".join(map(str, drain(s)))
            attempt(lambda: round_trip(20000))
            if not os.fork():
                attempt(lambda: round_trip(20000))
                os._exit(0)
            os.wait()
            attempt(lambda: round_trip(10000))
            attempt(lambda: round_trip(1))
        """, "base", s.port))
    assert r.lines == ["20000 end", "20000 end", "10000 end", "EDQUOT"]


def test_other_connections_end_too_and_one_event_tells(place):
    file = place.file("events")
    with Server(echo) as idle, Server(pour(1 << 30)) as s:
        r = run(["--net-allow", f"tcp://{HOST}", "--net-max-bytes", "100K", "--events", file], """
            other = connect(int(sys.argv[2]))
            other.sendall(b"x")
            other.recv(1)
            print(drain(connect(int(sys.argv[1])))[1])
            print(drain(other)[1])
            attempt(lambda: connect(int(sys.argv[1])))
            sys.exit(3)
        """, "base", s.port, idle.port)
    assert r.lines == ["ECONNRESET", "ECONNRESET", "EDQUOT"]
    assert r.code == 3
    events = [json.loads(line) for line in file.read_text().splitlines()]
    spent = [e for e in events if e["errno"] == "EDQUOT"]
    assert [(e["op"], e["object"], e["layer"], e["count"]) for e in spent] == \
        [("transfer", "--net-max-bytes 100K", "limit", 1)]


# --- --net-rate ---------------------------------------------------------------------------------


def test_a_rate_is_never_exceeded(supervised):
    """A tenth of a second may come at once; the rest takes its time, whoever asks."""
    with Server(pour(96 * 1024)) as s:
        start = time.monotonic()
        r = ok(run(["--net-allow", f"tcp://{HOST}", "--net-rate", f"tcp://{HOST}=128K/s"], """
            def one():
                print(*drain(connect(int(sys.argv[1]))))
            threads = [threading.Thread(target=one) for _ in range(3)]
            for t in threads: t.start()
            for t in threads: t.join()
        """, supervised, s.port))
        took = time.monotonic() - start
    assert r.lines == [f"{96 * 1024} end"] * 3
    assert took >= 3 * 96 / 128 - 0.1


def test_a_sender_is_held_up_within_one_window():
    with Server(pour(1 << 30)) as s:
        r = ok(run(["--net-allow", f"tcp://{HOST}", "--net-rate", f"{HOST}:{s.port}=2K/s"], """
            s = connect(int(sys.argv[1]))
            print(*drain(s, 1000))
            time.sleep(1)
            s.setblocking(False)
            print(*drain(s))
        """, "base", s.port))
    assert r.lines[0] == "1000 enough"
    more, end = r.lines[1].split()
    assert end == "EAGAIN" and int(more) < 100 * 1024
    assert s.sent <= 100 * 1024 + WINDOW + 2 * SEND_BUFFER


def test_sending_is_paced():
    with Server(swallow) as s:
        start = time.monotonic()
        ok(run(["--net-allow", f"tcp://{HOST}", "--net-rate", f"tcp://{HOST}=64K/s"], """
            s = connect(int(sys.argv[1]))
            s.sendall(bytes(96 * 1024))
            s.shutdown(socket.SHUT_WR)
            assert s.recv(1) == b""
        """, "base", s.port))
        assert time.monotonic() - start >= 96 / 64 - 0.1
    assert s.got == 96 * 1024


def test_other_destinations_are_not_limited():
    with Server(pour(4 << 20)) as slow, Server(pour(4 << 20)) as s:
        r = ok(run(["--net-allow", f"tcp://{HOST}", "--net-rate", f"tcp://{HOST}:{slow.port}=1K/s"],
                   "print(*drain(connect(int(sys.argv[1]))))", "base", s.port))
    assert r.lines == [f"{4 << 20} end"]


# --- What a program sees ------------------------------------------------------------------------

LIMITS = [["--net-max-bytes", "1G"], ["--net-rate", "tcp://*=1G/s"]]
limits = pytest.mark.parametrize("limit", LIMITS, ids=lambda f: f[0])


@limits
def test_connections_look_as_without_a_limit(supervised, limit):
    with Server(echo) as a, Server(echo, "::1", socket.AF_INET6) as b:
        r = ok(run(["--net-allow", "tcp://127.0.0.0/8", "--net-allow", "tcp://::1", *limit], """
            for port, host, family in ((sys.argv[1], "127.0.0.1", socket.AF_INET),
                                       (sys.argv[2], "::1", socket.AF_INET6),
                                       (sys.argv[1], "::ffff:127.0.0.1", socket.AF_INET6)):
                s = connect(int(port), host, family)
                print(s.getpeername()[:2] == (host, int(port)), s.getsockname()[1])
                s.sendall(b"hello")
                s.shutdown(socket.SHUT_WR)
                print(*drain(s))
        """, supervised, a.port, b.port))
    ports = [a.peers[0][1], b.peers[0][1], a.peers[1][1]]
    want = []
    for port in ports:
        want += [f"True {port}", "5 end"]
    assert r.lines == want


CLIENTS = """
def kinds(port):
    for how in ("blocking", "timeout", "nonblocking", "epoll"):
        s = socket.socket()
        if how == "blocking":
            code = s.connect_ex(("127.0.0.1", port))
        elif how == "timeout":
            s.settimeout(10)
            code = s.connect_ex(("127.0.0.1", port))
        else:
            s.setblocking(False)
            code = s.connect_ex(("127.0.0.1", port))
            if code == errno.EINPROGRESS:
                e = select.epoll()
                e.register(s, select.EPOLLOUT)
                assert e.poll(10)
                code = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        print(errno.errorcode.get(code, code), s.getblocking())
        if not code:
            print(errno.errorcode.get(s.connect_ex(("127.0.0.1", port))))
for port in sys.argv[1:]:
    kinds(int(port))
"""


@limits
def test_errors_are_those_of_the_destination(supervised, limit):
    with socket.socket() as closed, Server(swallow) as s:
        closed.bind((HOST, 0))
        r = ok(harness.sandbox(["--net-allow", f"tcp://{HOST}", *limit],
                               [harness.PYTHON, "-c", HEAD + CLIENTS, s.port,
                                closed.getsockname()[1]], mode=supervised))
    blocking = ["True", "True", "False", "False"]
    want = []
    for b in blocking:
        want += [f"0 {b}", "EISCONN"]
    assert r.lines == want + [f"ECONNREFUSED {b}" for b in blocking]


@limits
def test_resets_and_half_closed_streams_pass(limit):
    def cut(server, peer):
        peer.recv(1)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")

    with Server(cut) as a, Server(swallow) as b:
        r = ok(run(["--net-allow", f"tcp://{HOST}", *limit], """
            s = connect(int(sys.argv[1]))
            s.send(b"x")
            attempt(lambda: s.recv(1))
            s = connect(int(sys.argv[2]))
            s.send(b"x")
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
            s = connect(int(sys.argv[2]))
            s.sendall(bytes(1000))
            s.shutdown(socket.SHUT_WR)
            print(*drain(s))
        """, "base", a.port, b.port))
    assert r.lines == ["ECONNRESET", "0 end"]
    assert b.got in (1000, 1001)


def test_what_was_written_arrives_after_the_end():
    with Server(swallow) as s:
        ok(run(["--net-allow", f"tcp://{HOST}", "--net-rate", "tcp://*=200K/s"],
               "connect(int(sys.argv[1])).sendall(bytes(150000))", "base", s.port))
    assert s.got == 150000
    assert s.ends == ["end"]


def test_a_disconnected_socket_connects_anew():
    with Server(echo) as a, Server(echo) as b:
        r = ok(run(["--net-allow", f"tcp://{HOST}", "--net-max-bytes", "1M"], """
            import ctypes
            s = connect(int(sys.argv[1]))
            assert ctypes.CDLL(None).connect(s.fileno(), struct.pack("=H14x", 0), 16) == 0
            s.connect(("127.0.0.1", int(sys.argv[2])))
            s.sendall(b"abc")
            print(s.recv(10), s.getpeername()[1] == int(sys.argv[2]))
        """, "base", a.port, b.port))
    assert r.lines == ["b'abc' True"]


@limits
def test_many_connections_at_once(limit):
    with Server(echo) as s:
        r = ok(run(["--net-allow", f"tcp://{HOST}", *limit], """
            def one(i):
                for k in range(5):
                    s = connect(int(sys.argv[1]))
                    data = os.urandom(50000)
                    threading.Thread(target=s.sendall, args=(data,)).start()
                    got = b""
                    while len(got) < len(data):
                        got += s.recv(65536)
                    assert got == data
                    s.close()
                print("ok")
            threads = [threading.Thread(target=one, args=(i,)) for i in range(16)]
            for t in threads: t.start()
            for t in threads: t.join()
        """, "base", s.port))
    assert r.lines == ["ok"] * 16


def test_a_socket_whose_flags_change_meanwhile_connects(supervised):
    """Blocking or not at the moment of the supervisor's call: nobody is held up."""
    with Server(echo) as s:
        r = ok(run(["--net-allow", f"tcp://{HOST}", "--net-max-bytes", "1M"], """
            import fcntl
            over = False
            s = socket.socket()
            def flip():
                while not over:
                    for flags in (0, os.O_NONBLOCK):
                        try:
                            fcntl.fcntl(s, fcntl.F_SETFL, flags)
                        except OSError:
                            pass
            t = threading.Thread(target=flip)
            t.start()
            for _ in range(50):
                s = socket.socket()
                s.connect(("127.0.0.1", int(sys.argv[1])))
                s.send(b"x")
                assert select.select([s], [], [], 10)[0] == [s]
                assert s.recv(1) == b"x"
            over = True
            t.join()
            print("served")
        """, supervised, s.port))
    assert r.lines == ["served"]


# --- Names --------------------------------------------------------------------------------------


@pytest.fixture
def world(place):
    return World(place)


def test_look_ups_of_names_count(world):
    r = ok(world.python(["--net-allow", "*.cdn.example:80", "--net-max-bytes", "2K"], """
        def ask():
            socket.getaddrinfo("www.cdn.example", 80)
        asked = 0
        try:
            while True:
                ask()
                asked += 1
        except OSError as e:
            print(asked, type(e).__name__)
        s = socket.socket()
        print(errno.errorcode[s.connect_ex((sys.argv[1], 80))])
    """, OTHER, resolv=f"nameserver {SERVER}\noptions timeout:1 attempts:1\n"))
    asked, what = r.lines[0].split()
    assert 5 < int(asked) < 40 and what == "gaierror"
    assert r.lines[1] == "EDQUOT"


def test_a_rate_by_name_holds_for_its_addresses(world):
    r = ok(world.python(["--net-allow", "tcp://api.example:80", "--net-allow", "tcp://edge.example:80",
                         "--net-rate", "tcp://api.example:80=1M/s"], """
        def relayed(s):
            # What it is told is the port of the outer socket of the relay, not its own.
            inode = str(os.fstat(s.fileno()).st_ino)
            port = "%04X" % s.getsockname()[1]
            lines = [line.split() for line in open("/proc/net/tcp")]
            return not [l for l in lines if l[9] == inode and l[1].endswith(":" + port)]
        for name in ("api.example", "edge.example"):
            s = socket.socket()
            s.connect((socket.gethostbyname(name), 80))
            s.sendall(b"x")
            print(s.getpeername()[0], s.recv(100).decode().strip(), relayed(s))
    """))
    assert r.lines == [f"{PUBLIC} {PUBLIC}:80 True", f"{OTHER} {OTHER}:80 False"]


UDP_FROM_OUTSIDE = """
import json, os, socket, subprocess, sys
argv = json.loads(sys.argv[1])
os.system("ip link set lo up && ip addr add 203.0.113.9/32 dev lo && ip addr add 2001:db8::9 dev lo")
p = subprocess.Popen(argv, stdout=subprocess.PIPE, user=int(sys.argv[2]), group=int(sys.argv[2]),
                     extra_groups=[], text=True)
for family, outside, inside in ((socket.AF_INET, "203.0.113.9", "127.0.0.1"),
                                (socket.AF_INET6, "2001:db8::9", "::1")):
    port = int(p.stdout.readline())
    for source, data in ((outside, b"out"), (inside, b"in")):
        s = socket.socket(family, socket.SOCK_DGRAM)
        s.bind((source, 0))
        s.sendto(data, (inside, port))
    print(p.stdout.readline(), end="")
sys.exit(p.wait())
"""


@pytest.mark.parametrize("limited", [True, False], ids=["limited", "not"])
def test_udp_sockets_for_look_ups_hear_nothing_from_outside(limited):
    text = """
        for family in (socket.AF_INET, socket.AF_INET6):
            s = socket.socket(family, socket.SOCK_DGRAM)
            s.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
            print(s.getsockname()[1], flush=True)
            print(s.recv(10), flush=True)
    """
    flags = ["--net-allow", "tcp://none.example:80", "--net-lazy-dns",
             *(["--net-max-bytes", "1M"] if limited else [])]
    argv = harness.MODES["base"].command(flags, [harness.PYTHON, "-c", HEAD + textwrap.dedent(text)])
    r = ok(harness.run(["/usr/bin/unshare", "-n", harness.PYTHON, "-c", UDP_FROM_OUTSIDE,
                        json.dumps([str(a) for a in argv]), str(harness.USER.uid)],
                       account=harness.ROOT_USER))
    assert r.lines == ["b'in'" if limited else "b'out'"] * 2


# --- What cannot be limited ---------------------------------------------------------------------


@pytest.mark.parametrize("flags, words", [
    (["--net-allow", "udp://10.0.0.1", "--net-max-bytes", "1M"], ["udp://10.0.0.1", "UDP"]),
    (["--net-allow", "icmp://10.0.0.1", "--net-max-bytes", "1M"], ["icmp://10.0.0.1"]),
    (["--net-allow", "udp://10.0.0.1", "--net-rate", "10.0.0.1=1M/s"], ["tcp://"]),
    (["--net-rate", "udp://10.0.0.1=1M/s"], ["only TCP"]),
    (["--net-allow-bind", "80", "--net-max-bytes", "1M"], ["contradict"]),
    (["--net-deny-bind", "80", "--net-rate", "*=1M/s"], ["contradict"]),
    (["--port-remap", "--net-rate", "*=1M/s"], ["contradict"]),
    (["--net-allow", "*", "--net-rate", "example.org=1M/s"], ["by name"]),
    (["--net-rate", "10.0.0.1=1M"], ["RULE=SIZE/s"]),
    (["--net-rate", "1M/s"], ["RULE=SIZE/s"]),
    (["--net-rate", "10.0.0.1=0/s"], ["--net-rate"]),
    (["--net-rate", "10.0.0.1=fast/s"], ["fast"]),
    (["--net-rate", "10.0.0.1:x=1M/s"], ["--net-rate"]),
    (["--net-max-bytes", "0"], ["--net-max-bytes"]),
    (["--no-supervisor", "--net-max-bytes", "1M"], ["--no-supervisor"]),
], ids=lambda v: " ".join(v))
def test_what_cannot_be_limited_is_refused_by_name(flags, words):
    refused(harness.sandbox(flags, ["/usr/bin/true"]), *words)


def test_rules_without_a_protocol_grant_tcp_only():
    with Server(echo) as s:
        r = run(["--net-allow", f"{HOST}:{s.port}", "--net-max-bytes", "1M"], """
            attempt(lambda: connect(int(sys.argv[1])) and None)
            attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM) and None)
        """, "base", s.port)
    assert ok(r).lines == ["ok", "EPERM"]
    assert f"rules without a protocol ({HOST}:{s.port}) grant TCP only with --net-max-bytes" in r.err
    r = ok(python(["--net-allow", f"{HOST}:{s.port}", "--net-rate", "tcp://10.0.0.1=1M/s"],
                  "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"))
    assert r.err == ""
