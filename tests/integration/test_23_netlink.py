# SPDX-License-Identifier: Apache-2.0
"""Issue 5, point 6: route netlink answers a view that holds the loopback only; its state follows the
open file; the rest of netlink is refused; interface ioctls agree with it."""

import os
import shutil
import socket
import subprocess
import textwrap

import pytest

import harness
from checks import ok, python

SUPERVISED = ["base", "nobase"]

HEAD = """
import array, errno, fcntl, os, socket, struct, sys
GETLINK, GETADDR, GETROUTE, GETRULE, NEWLINK = 18, 22, 26, 34, 16
REQUEST, ACK, DUMP = 1, 4, 0x300

def request(kind, flags, body=b"\\0" * 4, seq=7):
    return struct.pack("=IHHII", 16 + len(body), kind, flags, seq, 0) + body

def replies(data):
    while len(data) >= 16:
        n, kind, flags, seq, pid = struct.unpack_from("=IHHII", data)
        yield kind, flags, seq, pid, data[16:n]
        data = data[(n + 3) & ~3:]

def attributes(data):
    found = {}
    while len(data) >= 4:
        n, kind = struct.unpack_from("=HH", data)
        found[kind] = data[4:n]
        data = data[(n + 3) & ~3:]
    return found

def route_socket(flags=0):
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | flags, 0)

def links(s, send=None):
    (send or s.send)(request(GETLINK, REQUEST | DUMP))
    got = list(replies(s.recv(65536)))
    assert [g[0] for g in got] == [NEWLINK, 3], got
    return attributes(got[0][4][16:])[3]

def name_of(code):
    return errno.errorcode.get(code, code)

def error_of(s, message):
    s.send(message)
    (kind, _, seq, _, body), = replies(s.recv(65536))
    assert (kind, seq) == (2, 7)
    return name_of(-struct.unpack_from("=i", body)[0])

def attempt(f):
    try:
        return f()
    except OSError as e:
        return name_of(e.errno)
"""


@pytest.fixture(params=SUPERVISED)
def supervised(request):
    return request.param


def lines(mode, text, flags=()):
    return ok(python(list(flags), HEAD + textwrap.dedent(text), mode=mode)).lines


def has_v6():
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        try:
            s.bind(("::1", 0))
        except OSError:
            return False
    return True


# --- What real programs see ---------------------------------------------------------------------


def test_the_host_has_more_than_the_loopback_to_hide():
    assert [name for _, name in socket.if_nameindex()] != ["lo"]


def test_glibc_lists_the_loopback(supervised):
    text = """
    import ctypes
    class Entry(ctypes.Structure):
        pass
    Entry._fields_ = [("next", ctypes.POINTER(Entry)), ("name", ctypes.c_char_p),
                      ("flags", ctypes.c_uint), ("addr", ctypes.c_void_p)]
    libc = ctypes.CDLL(None)
    for _ in range(50):
        first, seen = ctypes.POINTER(Entry)(), []
        assert libc.getifaddrs(ctypes.byref(first)) == 0
        e = first
        while e:
            family = ctypes.c_ushort.from_address(e.contents.addr).value
            seen.append((e.contents.name.decode(), family, hex(e.contents.flags)))
            e = e.contents.next
        libc.freeifaddrs(first)
    print(seen)
    print(socket.if_nameindex(), socket.if_nametoindex("lo"), socket.if_indextoname(1))
    print(attempt(lambda: socket.if_nametoindex("eth0")))  # an OSError that has no errno
    """
    want = [("lo", 17, "0x10049"), ("lo", 2, "0x10049")]
    want += [("lo", 10, "0x10049")] if has_v6() else []
    got = lines(supervised, text)
    assert got[0] == str(want)
    assert got[1:] == ["[(1, 'lo')] 1 lo", "None"]


def test_musl_receives_at_once_what_it_asked_for_without_an_address(supervised):
    """The sequence of musl's getifaddrs: no bind, send, and a receive that does not wait."""
    text = """
    for _ in range(200):
        with route_socket() as s:
            for seq, kind, answer in (1, GETLINK, NEWLINK), (2, GETADDR, 20):
                s.send(request(kind, REQUEST | DUMP, seq=seq))
                got = list(replies(s.recv(8192, socket.MSG_DONTWAIT)))
                assert {g[0] for g in got} == {answer, 3} and {g[2] for g in got} == {seq}
    print("ok")
    """
    assert lines(supervised, text) == ["ok"]


def test_ip_shows_links_addresses_routes_and_rules(supervised):
    def run(*words):
        return ok(harness.sandbox([], ["/usr/sbin/ip", *words], mode=supervised)).lines

    v6 = has_v6()
    assert run("-br", "link") == ["lo               UNKNOWN        00:00:00:00:00:00 "
                                  "<LOOPBACK,UP,LOWER_UP> "]
    want = ["lo               UNKNOWN        127.0.0.1/8 " + ("::1/128 " if v6 else "")]
    assert run("-br", "addr") == want
    assert run("-4", "route", "show", "table", "all") == [
        "local 127.0.0.0/8 dev lo table local proto kernel scope host src 127.0.0.1 ",
        "local 127.0.0.1 dev lo table local proto kernel scope host src 127.0.0.1 ",
        "broadcast 127.255.255.255 dev lo table local proto kernel scope link src 127.0.0.1 "]
    assert run("-4", "route") == []
    assert run("-4", "rule") == ["0:\tfrom all lookup local", "32766:\tfrom all lookup main",
                                 "32767:\tfrom all lookup default"]
    assert run("neigh") == []
    assert run("route", "get", "127.0.0.9")[0] == "local 127.0.0.9 dev lo table local src 127.0.0.1 "


@pytest.mark.parametrize("words,message", [
    (["link", "set", "lo", "down"], "Operation not permitted"),
    (["addr", "add", "127.0.0.2/8", "dev", "lo"], "Operation not permitted"),
    (["route", "add", "10.0.0.0/8", "dev", "lo"], "Operation not permitted"),
    (["route", "get", "192.0.2.1"], "Network is unreachable"),
    (["link", "show", "eth0"], 'Device "eth0" does not exist.'),
], ids=["link", "addr", "route", "get", "other-link"])
def test_ip_cannot_change_or_see_more(supervised, words, message):
    r = harness.sandbox([], ["/usr/sbin/ip", *words], mode=supervised)
    assert r.code != 0 and message in r.err, f"{r!r}"


def test_node_lists_the_loopback(supervised):
    node = shutil.which("node")
    assert node
    text = ("const i = require('os').networkInterfaces();"
            "console.log(Object.keys(i).join(), i.lo.map(a => a.cidr).join())")
    r = ok(harness.sandbox(["-r", os.path.realpath(node)], [node, "-e", text], mode=supervised))
    assert r.lines == ["lo 127.0.0.1/8" + (",::1/128" if has_v6() else "")]


def test_go_lists_the_loopback(supervised, tmp_path_factory):
    go = shutil.which("go", path=os.environ["PATH"] + ":/usr/local/go/bin")
    assert go
    top = tmp_path_factory.getbasetemp() / "go-interfaces"
    if not top.exists():
        top.mkdir()
        (top / "main.go").write_text(textwrap.dedent("""
            package main

            import (
            \t"fmt"
            \t"net"
            )

            func main() {
            \tlist, err := net.Interfaces()
            \tfmt.Println(len(list), err)
            \tfor _, i := range list {
            \t\ta, err := i.Addrs()
            \t\tfmt.Println(i.Index, i.Name, i.MTU, i.Flags, a[0], err)
            \t}
            }
            """))
        env = {"PATH": "/usr/bin:/bin", "HOME": str(top), "CGO_ENABLED": "0"}
        subprocess.run([go, "build", "-o", "main", "main.go"], cwd=top, env=env, check=True)
    program = shutil.copy(top / "main", harness.INSTALLED.bin / "go-interfaces")
    r = ok(harness.sandbox([], [program], mode=supervised))
    assert r.lines == ["1 <nil>", "1 lo 65536 up|loopback|running 127.0.0.1/8 <nil>"]


# --- The socket ---------------------------------------------------------------------------------


def test_its_address_looks_like_netlink(supervised):
    text = """
    a, b, c = route_socket(), route_socket(socket.SOCK_NONBLOCK), route_socket()
    a.bind((0, 0))
    print(a.getsockname() == (os.getpid(), 0))
    b.bind((0, 1))
    print(b.getsockname()[0] > 1 << 31, b.getsockname()[1])
    c.bind((4711, 0))
    print(c.getsockname(), attempt(lambda: c.bind((4712, 0))), attempt(lambda: b.bind((4711, 0))))
    print(attempt(lambda: b.recv(10)))
    print(c.setsockopt(270, 11, 1), c.setsockopt(270, 1, struct.pack("i", 1)))
    c.connect((0, 0))
    print(links(c))
    c.sendto(request(GETLINK, REQUEST | DUMP), (0, 0))
    data, _, _, sender = c.recvmsg(65536)
    print({r[3] for r in replies(data)}, sender[2:6] if isinstance(sender, bytes) else sender)
    """
    assert lines(supervised, text) == [
        "True", "True 1", "(4711, 0) EINVAL EINVAL", "EAGAIN", "None None", "b'lo\\x00'",
        "{4711} b'\\x00\\x00\\x00\\x00'"]


def test_state_follows_the_open_file(supervised):
    text = """
    s = route_socket()
    s.bind((99, 0))
    high = socket.socket(fileno=fcntl.fcntl(s.fileno(), fcntl.F_DUPFD, 500))
    number = s.fileno()
    s.close()
    # Another socket under the old number is what it is.
    other = socket.socket()
    assert other.fileno() == number
    print(other.getsockname())
    def name(fd):
        import ctypes
        room, size = (ctypes.c_ubyte * 128)(), ctypes.c_uint(128)
        assert ctypes.CDLL(None).getsockname(fd, room, ctypes.byref(size)) == 0
        return struct.unpack_from("=HHII", bytes(room)), size.value
    print(name(high.fileno()), flush=True)
    left, right = socket.socketpair()
    if os.fork() == 0:
        message, fds, *_ = socket.recv_fds(right, 1, 1)
        high.close()
        got = socket.socket(fileno=fds[0])
        print(name(got.fileno()), links(got), flush=True)
        os._exit(0)
    socket.send_fds(left, [b"x"], [high.fileno()])
    high.close()
    os.wait()
    """
    assert lines(supervised, text) == ["('0.0.0.0', 0)", "((16, 0, 99, 0), 12)",
                                       "((16, 0, 99, 0), 12) b'lo\\x00'"]


def test_several_messages_in_one_and_threads_on_one_socket(supervised):
    text = """
    import threading
    s = route_socket()
    s.send(request(GETLINK, REQUEST | DUMP, seq=1) + request(GETRULE, REQUEST | ACK, seq=2) +
           request(3, REQUEST, seq=3) + request(GETADDR, REQUEST | DUMP, seq=4))
    for _ in range(3):
        print({(r[0], r[2]) for r in replies(s.recv(65536))} - {(3, 1), (3, 4)})
    def ask():
        with route_socket() as s:
            for _ in range(300):
                assert links(s) == b"lo\\0"
    threads = [threading.Thread(target=ask) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    """
    assert lines(supervised, text) == ["{(16, 1)}", "{(2, 2)}", "{(20, 4)}"]


def test_other_requests_are_errors(supervised):
    text = """
    s = route_socket()
    def link(index=0, more=b""):
        return struct.pack("=BxHiII", 0, 0, index, 0, 0) + more
    name = lambda n: struct.pack("=HH", 4 + len(n), 3) + n + b"\\0" * (-len(n) % 4)
    print([error_of(s, request(kind, REQUEST, link(1))) for kind in (16, 17, 19, 20, 24, 28, 36)])
    print([error_of(s, request(kind, REQUEST | DUMP)) for kind in (58, 78, 90, 114, 200)])
    print([error_of(s, request(GETLINK, REQUEST, link(i))) for i in (2, 3, -1)])
    print(error_of(s, request(GETLINK, REQUEST, link(0, name(b"eth0\\0")))))
    s.send(request(GETLINK, REQUEST, link(0, name(b"lo\\0"))))
    print([r[0] for r in replies(s.recv(65536))])
    print(error_of(s, request(GETLINK, REQUEST, b"")), error_of(s, request(GETROUTE, REQUEST)))
    """
    assert lines(supervised, text) == [
        str(["EPERM"] * 7), str(["ENOTSUP"] * 5), str(["ENODEV"] * 3), "ENODEV", "[16]",
        "EINVAL EINVAL"]


def test_other_protocols_and_types_are_refused(supervised):
    text = """
    make = lambda kind, proto: attempt(lambda: socket.socket(socket.AF_NETLINK, kind, proto))
    print({make(socket.SOCK_RAW, p) for p in range(1, 32)})
    print({make(k, 0) for k in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_RDM)})
    print(attempt(lambda: socket.socketpair(socket.AF_NETLINK, socket.SOCK_RAW)))
    """
    assert lines(supervised, text) == ["{'EAFNOSUPPORT'}"] * 2 + ["EAFNOSUPPORT"]


def test_without_a_supervisor_there_is_none():
    text = "print(attempt(route_socket))"
    assert lines("unsup", text) == ["EAFNOSUPPORT"]


# --- Hostile ones -------------------------------------------------------------------------------


def test_junk_hurts_nobody(supervised):
    text = """
    import random
    rng = random.Random(5)
    for _ in range(400):
        s = route_socket(socket.SOCK_NONBLOCK)
        for _ in range(4):
            n = rng.choice((0, 1, 15, 16, 17, 60, 5000, 40000))
            data = bytearray(rng.randbytes(n))
            if n >= 16 and rng.random() < 0.8:
                struct.pack_into("=IHH", data, 0, rng.choice((0, 15, 16, n, n + 1, 1 << 31)),
                                 rng.choice((18, 22, 26, 34, 16, 90)), rng.choice((1, 5, 0x301)))
            attempt(lambda: s.send(data))
        s.close()
    print(links(route_socket()))
    """
    assert lines(supervised, text) == ["b'lo\\x00'"]


def test_one_that_does_not_read_holds_up_nobody(supervised):
    text = """
    s = route_socket(socket.SOCK_NONBLOCK)
    full = False
    for _ in range(100000):
        if attempt(lambda: s.send(request(GETLINK, REQUEST | DUMP))) == "EAGAIN":
            full = True
            break
    print(full, links(route_socket()))
    # What was asked is answered once it is read.
    s.setblocking(True)
    print({r[0] for _ in range(100) for r in replies(s.recv(65536))})
    """
    assert lines(supervised, text) == ["True b'lo\\x00'", "{16, 3}"]


def test_half_closed_ones_end(supervised):
    text = """
    for how in (socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR):
        s = route_socket()
        s.shutdown(how)
        attempt(lambda: s.send(request(GETLINK, REQUEST | DUMP)))
        print(s.recv(10))
    print(links(route_socket()))
    """
    assert lines(supervised, text) == ["b''"] * 3 + ["b'lo\\x00'"]


def test_their_number_is_bounded_and_closing_makes_room(supervised):
    text = """
    kept = []
    while True:
        s = attempt(route_socket)
        if isinstance(s, str):
            break
        kept.append(s)
    print(len(kept), s, len({k.getsockname()[0] for k in kept}))
    [k.close() for k in kept]
    for _ in range(1000):
        s = attempt(route_socket)
        if not isinstance(s, str):
            break
    print(links(s))
    """
    assert lines(supervised, text) == ["64 EMFILE 64", "b'lo\\x00'"]


def test_descriptors_sent_to_it_are_closed(supervised):
    text = """
    s = route_socket()
    left, right = socket.socketpair()
    s.sendmsg([request(GETLINK, REQUEST | DUMP)],
              [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [right.fileno()]))])
    right.close()
    s.recv(65536)
    print(left.recv(1))
    """
    assert lines(supervised, text) == ["b''"]


# --- ioctls -------------------------------------------------------------------------------------

IOCTLS = """
s = socket.socket()
def ask(number, name=b"lo", rest=b""):
    return fcntl.ioctl(s, number, name.ljust(16, b"\\0") + rest.ljust(24, b"\\0"))[16:]
"""


def test_interface_ioctls_agree(supervised):
    text = IOCTLS + """
import ctypes
room = ctypes.create_string_buffer(400)
conf = struct.pack("=iiQ", 400, 0, ctypes.addressof(room))
n = struct.unpack_from("=i", fcntl.ioctl(s, 0x8912, conf))[0]
print(n, room.raw[:3], room.raw[16:24])
print(struct.unpack_from("=i", fcntl.ioctl(s, 0x8912, struct.pack("=iiQ", 0, 0, 0)))[0],
      struct.unpack_from("=i", fcntl.ioctl(s, 0x8912, struct.pack("=iiQ", 39, 0, 8)))[0])
print([ask(r)[4:8].hex() for r in (0x8915, 0x8917, 0x8919, 0x891b)])
print(hex(struct.unpack_from("=h", ask(0x8913))[0]), struct.unpack_from("=i", ask(0x8921))[0],
      struct.unpack_from("=i", ask(0x8933))[0], struct.unpack_from("=H", ask(0x8927))[0])
print(fcntl.ioctl(s, 0x8910, b"\\0" * 16 + struct.pack("=i", 1) + b"\\0" * 20)[:3])
print([attempt(lambda: fcntl.ioctl(s, 0x8910, b"\\0" * 16 + struct.pack("=i", i) + b"\\0" * 20))
       for i in (0, 2, -1)])
print(attempt(lambda: ask(0x8915, b"eth0")), attempt(lambda: ask(0x8933, b"x" * 16)))
print({attempt(lambda: ask(r)) for r in (0x8914, 0x8916, 0x8922, 0x8946, 0x8b01, 0x89f0)})
with open("/dev/null") as f:
    print(attempt(lambda: fcntl.ioctl(f, 0x8913, b"lo".ljust(40, b"\\0"))))
print(attempt(lambda: fcntl.ioctl(s, 0x8912, 8)))
"""
    assert lines(supervised, text) == [
        "40 b'lo\\x00' b'\\x02\\x00\\x00\\x00\\x7f\\x00\\x00\\x01'",
        "40 0",
        "['7f000001', '7f000001', '00000000', 'ff000000']",
        "0x49 65536 1 772",
        "b'lo\\x00'",
        "['ENODEV', 'ENODEV', 'ENODEV']",
        "ENODEV ENODEV",
        "{'EPERM'}",
        "ENOTTY",
        "EFAULT"]


def test_interface_ioctls_without_a_supervisor_are_refused():
    text = IOCTLS + "print({attempt(lambda: ask(r)) for r in (0x8912, 0x8913, 0x8915, 0x8933)})"
    assert lines("unsup", text) == ["{'EPERM'}"]
