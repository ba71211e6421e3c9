# SPDX-License-Identifier: Apache-2.0
"""Issue 4, point 5: Unix sockets. Own ones work, foreign ones need a grant, whoever races."""

import errno
import os
import shutil
import socket
import textwrap
import threading

import pytest

import harness
from checks import ok, python

RACE_SECONDS = "2"


class Server:
    """A listener outside of the sandbox: a stream one answers LETTER, a datagram one counts."""

    def __init__(self, address, kind=socket.SOCK_STREAM, letter=b"f"):
        self.got = 0
        self.peers = []
        self.letter = letter
        self.sock = socket.socket(socket.AF_UNIX, kind)
        self.sock.bind(address)
        if kind == socket.SOCK_STREAM:
            self.sock.listen(128)
        if isinstance(address, str) and address[:1] == "/":
            os.chmod(address, 0o777)
        self.thread = threading.Thread(target=self.serve, args=(kind,), daemon=True)
        self.over = False
        self.sock.settimeout(0.1)
        self.thread.start()

    def serve(self, kind):
        while True:
            try:
                if kind == socket.SOCK_STREAM:
                    peer, _ = self.sock.accept()
                    self.got += 1
                    self.peers.append(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
                    try:
                        peer.send(self.letter)
                    except OSError:
                        pass
                    peer.close()
                else:
                    self.sock.recv(4096)
                    self.got += 1
            except TimeoutError:
                # What was sent before the end has been received when nothing comes any more.
                if self.over:
                    return

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stop()

    def stop(self):
        self.over = True
        self.thread.join()
        self.sock.close()


def try_all(*calls):
    """A program that prints one line per call: ok, or the name of the errno."""
    head = """
        import errno, os, socket, sys
        U, D, S = socket.AF_UNIX, socket.SOCK_DGRAM, socket.SOCK_STREAM
        def attempt(f):
            try:
                f()
                print("ok")
            except OSError as e:
                print(errno.errorcode[e.errno])
    """
    return textwrap.dedent(head) + "".join(f"attempt(lambda: {c})\n" for c in calls)


def connect(path, kind="S"):
    return f"socket.socket(U, {kind}).connect({path!r})"


def outcomes(flags, calls, mode, **kw):
    return ok(python(flags, try_all(*calls), mode=mode, **kw)).lines


# --- Own sockets --------------------------------------------------------------------------------

OWN = """
import array, os, socket, struct, sys, threading
w = sys.argv[1]

def served(family, address, kind=socket.SOCK_STREAM):
    s = socket.socket(family, kind)
    s.bind(address)
    s.listen(5)
    def serve():
        c, _ = s.accept()
        c.sendall(c.recv(100).upper())
        c.close()
    t = threading.Thread(target=serve)
    t.start()
    c = socket.socket(family, kind)
    c.connect(s.getsockname())
    c.send(b"abc")
    assert c.recv(100) == b"ABC"
    t.join()

served(socket.AF_UNIX, w + "/stream")
served(socket.AF_UNIX, w + "/packet", socket.SOCK_SEQPACKET)
served(socket.AF_UNIX, "\\0own-%d" % os.getpid())
os.chdir(w)
served(socket.AF_UNIX, "relative")

for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
    a, b = socket.socketpair(socket.AF_UNIX, kind)
    r, x = os.pipe()
    assert socket.send_fds(a, [b"fds"], [x]) == 3
    data, fds, _, _ = socket.recv_fds(b, 10, 4)
    assert data == b"fds"
    os.write(fds[0], b"through")
    assert os.read(r, 20) == b"through"

d = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
d.bind(w + "/dgram")
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
a.sendto(b"1", w + "/dgram")
a.sendmsg([b"2", b"3"], [], 0, w + "/dgram")
assert d.recv(10) == b"1" and d.recv(10) == b"23"
e = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
e.bind("\\0own-d-%d" % os.getpid())
a.sendto(b"4", e.getsockname())
assert e.recv(10) == b"4"

# A writer that has to wait gets all of it through.
a, b = socket.socketpair()
big = os.urandom(3 << 20)
got = bytearray()
def read():
    while len(got) < len(big):
        got.extend(b.recv(1 << 16))
t = threading.Thread(target=read)
t.start()
assert a.sendmsg([big[:1000], big[1000:]]) == len(big)
t.join()
assert got == big
print("fine")
"""


def test_own_sockets_work(place, supervised):
    w = place.dir("w")
    r = harness.sandbox(["-w", w], [harness.PYTHON, "-c", OWN, w], mode=supervised)
    assert ok(r).lines == ["fine"]


def test_own_abstract_sockets_of_another_process(place, supervised):
    text = """
    import os, socket, sys
    s = socket.socket(socket.AF_UNIX); s.bind("\\0fork-%d" % os.getpid()); s.listen()
    if os.fork() == 0:
        c = socket.socket(socket.AF_UNIX); s2 = s.getsockname(); s.close()
        c.connect(s2); c.send(b"x"); os._exit(0)
    c, _ = s.accept(); print(c.recv(1).decode()); os.wait()
    """
    assert ok(python([], textwrap.dedent(text), mode=supervised)).lines == ["x"]


def test_multiprocessing_forkserver(place, supervised):
    w = place.dir("w")
    program = place.file("pool.py", textwrap.dedent("""
        import multiprocessing as m
        def double(n):
            return 2 * n
        if __name__ == "__main__":
            for method in ("fork", "forkserver", "spawn"):
                with m.get_context(method).Pool(2) as p:
                    print(sum(p.map(double, range(50))))
            with m.get_context("forkserver").Manager() as manager:
                d = manager.dict(); d["x"] = 1; print(d["x"])
    """))
    # Semaphores lie in /dev/shm, which only the base has one's own of.
    shm = [] if supervised.base else ["-w", "/dev/shm"]
    r = harness.sandbox(["-w", w, "-r", program, *shm], [harness.PYTHON, program],
                        mode=supervised, env={"TMPDIR": str(w)})
    assert ok(r).lines == ["2450", "2450", "2450", "1"]


def test_redis_on_its_own_socket(place, supervised):
    """Debian's redis-tools holds the server under the name of a checker; it asks how it was called."""
    w = place.dir("w")
    os.symlink("/usr/bin/redis-check-rdb", w / "redis-server")
    text = (f"cd {w}; ./redis-server --port 0 --unixsocket {w}/s --save '' > log 2>&1 & "
            f"until redis-cli -s {w}/s ping >/dev/null 2>&1; do sleep 0.05; done; "
            f"redis-cli -s {w}/s set key value; redis-cli -s {w}/s get key; "
            f"redis-benchmark -s {w}/s -q -n 2000 -t set,get >/dev/null && echo done; "
            f"redis-cli -s {w}/s shutdown nosave; wait")
    r = harness.sandbox(["-w", str(w)], ["/bin/sh", "-c", text], mode=supervised)
    assert ok(r).out == "OK\nvalue\ndone\n", f"{r!r}"


def test_java_channels(place, supervised):
    w = place.dir("w")
    place.file("w/C.java", textwrap.dedent("""
        import java.net.*; import java.nio.*; import java.nio.channels.*; import java.nio.file.*;
        class C {
            public static void main(String[] a) throws Exception {
                var address = UnixDomainSocketAddress.of(Path.of(a[0], "java"));
                var server = ServerSocketChannel.open(StandardProtocolFamily.UNIX).bind(address);
                var thread = new Thread(() -> {
                    try (var c = server.accept()) { c.write(ByteBuffer.wrap("hi".getBytes())); }
                    catch (Exception e) { e.printStackTrace(); }
                });
                thread.start();
                var b = ByteBuffer.allocate(10);
                try (var c = SocketChannel.open(address)) { c.read(b); }
                thread.join();
                System.out.println(new String(b.array(), 0, b.position()));
            }
        }
    """))
    java = shutil.which("java")
    assert java
    flags = ["-w", w, "-r", os.path.realpath(java).split("/bin/")[0], "-r", "/proc", "-r", "/sys"]
    r = harness.sandbox(flags, [java, "-Xmx64m", "-XX:-UsePerfData", w / "C.java", w],
                        mode=supervised, env={"HOME": str(w)}, timeout=120)
    assert ok(r).lines == ["hi"]


# --- Foreign sockets ----------------------------------------------------------------------------

SERVICES = ["run/dbus/system_bus_socket", "run/systemd/private", "run/docker.sock",
            "tmp/.X11-unix/X0", "tmp/ssh-abc/agent.1", "run/nscd/socket"]


def test_services_of_the_host_are_unreachable(place, supervised):
    w = place.dir("w")
    names = [str(place.top / name) for name in SERVICES]
    for name in names:
        os.makedirs(os.path.dirname(name), exist_ok=True)
    log = str(place.top / "run/log")
    servers = [Server(name) for name in names]
    with Server(log, socket.SOCK_DGRAM) as datagrams:
        os.symlink(names[0], w / "link")
        os.symlink(place.top, w / "up")
        calls = [connect(n) for n in names]
        calls += [connect(f"{w}/link"), connect(f"{w}/up/run/docker.sock"),
                  connect(f"{w}/../run/docker.sock"), connect(f"//{names[0]}"),
                  f"(os.chdir({str(w)!r}), {connect('../run/docker.sock')})",
                  connect("/proc/self/root" + names[0]), connect("/proc/self/cwd/../run/docker.sock"),
                  f"socket.socket(U, D).sendto(b'x', {log!r})",
                  f"socket.socket(U, D).sendmsg([b'x'], [], 0, {log!r})",
                  f"socket.socketpair(U, D)[0].sendto(b'x', {log!r})",
                  f"socket.socketpair(U, D)[0].sendmsg([b'x'], [], 0, {log!r})",
                  connect(log, "D")]
        got = outcomes(["-w", w, "-r", place.top], calls, supervised)
        for s in servers:
            s.stop()
    assert got == ["EACCES"] * len(calls)
    assert [s.got for s in servers] == [0] * len(servers)
    assert datagrams.got == 0


def test_errors_are_the_kernels(place, supervised):
    w = place.dir("w")
    place.file("w/file")
    calls = [connect(f"{w}/missing"), connect(f"{w}/file"), connect(f"{w}/file/x"),
             connect(f"{w}/" + "n" * 50), "socket.socket(U, S).connect('')",
             connect("\0nobody-has-this"), connect("\0nobody-has-this", "D"),
             "socket.socketpair()[0].connect('x')",
             "socket.socket(U, S).sendmsg([b'x'])", "socket.socket(U, D).sendmsg([b'x'])",
             "socket.socketpair()[0].sendto(b'x', 'y')",
             "socket.socketpair(U, D)[0].sendmsg([b'x' * 9000000])",
             "socket.socketpair()[0].sendmsg([b'x'], [(1, 1, b'\\x63\\0\\0\\0')])",
             "socket.socketpair()[0].sendmsg([b'x'], [(1, 77, b'\\x63\\0\\0\\0')])"]
    bare = harness.run([harness.PYTHON, "-c", try_all(*calls)])
    assert outcomes(["-w", w], calls, supervised) == ok(bare).lines


@pytest.mark.parametrize("grant", ["file", "directory", "link", "later", "write", "all"])
def test_what_is_granted_is_reachable(place, supervised, grant):
    w = place.dir("w")
    d = place.dir("run")
    other = place.dir("other")
    os.symlink(d, place.top / "link")
    path = str(d / "s")
    flags = {"file": ["--unix-allow", path], "directory": ["--unix-allow", d],
             "link": ["--unix-allow", place.top / "link/s"], "later": ["--unix-allow", d / "s"],
             "write": ["-w", d], "all": ["--unix-allow", "*"]}[grant]
    with Server(path) as s, Server(str(other / "s")) as o, Server(str(other / "d"),
                                                                 socket.SOCK_DGRAM) as datagrams:
        calls = [connect(path), connect(str(place.top / "link/s")), connect(str(other / "s")),
                 f"socket.socket(U, D).sendto(b'x', {str(other / 'd')!r})"]
        got = outcomes(["-w", w, *flags], calls, supervised)
    last = "ok" if grant == "all" else "EACCES"
    assert got == ["ok", "ok", last, last]
    assert s.got == 2
    assert (o.got, datagrams.got) == ((1, 1) if grant == "all" else (0, 0))
    uids = {int.from_bytes(c[4:8], "little") for c in s.peers}
    assert uids == {supervised.account.uid}


def test_abstract_names_stay_inside(supervised):
    name = f"\0outside-{os.getpid()}"
    calls = [connect(name), connect(name, "D"),
             f"socket.socketpair(U, D)[0].sendto(b'x', {name!r})",
             f"socket.socketpair(U, D)[0].sendmsg([b'x'], [], 0, {name!r})"]
    with Server(name) as s, Server(name, socket.SOCK_DGRAM) as d:
        assert outcomes([], calls, supervised) == ["EPERM"] * 4
        assert (s.got, d.got) == (0, 0)
        assert outcomes(["--unix-allow", "*"], calls, supervised) == ["ok"] * 4
    assert (s.got, d.got) == (1, 2)


def test_names_that_imitate_the_kernels_list(supervised):
    """The list is text: a name with line breaks can hold lines of it."""
    name = f"outside-{os.getpid()}"
    text = f"""
    import errno, os, socket, stat
    for i in range(20):
        s = socket.socket(socket.AF_UNIX)
        ino = os.fstat(s.fileno()).st_ino
        s.bind(("\\0\\n0: 2 0 10000 0001 01 %d @{name}\\n" % ino)[:100])
        s.listen()
        globals()["keep%d" % i] = s
    try:
        socket.socket(socket.AF_UNIX).connect("\\0{name}")
    except OSError as e:
        print(errno.errorcode[e.errno])
    """
    with Server("\0" + name) as s:
        assert ok(python([], textwrap.dedent(text), mode=supervised)).lines == ["EPERM"]
    assert s.got == 0


def test_listen_on_tcp_needs_a_grant(supervised):
    calls = ["socket.socket().listen()",
             "[s := socket.socket(), s.bind(('127.0.0.1', 0)), s.listen()]"]
    assert outcomes([], calls, supervised) == ["EACCES"] * 2
    assert outcomes(["--net-allow-bind", "0"], calls, supervised) == ["ok"] * 2
    assert outcomes(["--net-allow-bind", "9"], calls, supervised) == ["EACCES"] * 2


def test_tcp_ports(supervised):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        calls = [f"socket.create_connection(('127.0.0.1', {port}))",
                 f"socket.socket(socket.AF_INET6).connect(('::ffff:127.0.0.1', {port}))",
                 "socket.create_connection(('127.0.0.1', 9))",
                 f"[c := socket.socket(), c.settimeout(5), c.connect(('127.0.0.1', {port}))]"]
        got = outcomes(["--net-allow", f"tcp://:{port}"], calls, supervised)
        assert got == ["ok", "ok", "EACCES", "ok"]
        assert outcomes([], calls, supervised) == ["EACCES"] * 4


# --- Attacks ------------------------------------------------------------------------------------


def race(place, mode, command):
    w = place.dir("w")
    out = place.dir("out")
    with Server(str(w / "s"), letter=b"a"), Server(str(w / "d"), socket.SOCK_DGRAM) as own, \
            Server(str(out / "f.s")) as s, Server(str(out / "f.d"), socket.SOCK_DGRAM) as d:
        r = command([harness.INSTALLED.tools["sock-race"]], w, [mode, w, out / "f", RACE_SECONDS])
    said = dict(line.split("=") for line in ok(r).lines)
    assert int(said["asked"]) > 100
    return s.got + d.got + int(said["foreign"]), own.got + int(said["reached"])


@pytest.mark.parametrize("attack", ["addr", "link", "fd", "name"])
def test_races_are_lost(place, supervised, attack):
    def command(tool, w, words):
        return harness.sandbox(["-w", w, "-r", place.top], [*tool, *words], mode=supervised)

    foreign, own = race(place, attack, command)
    assert foreign == 0
    # What may be reached was reached meanwhile: it was a race.
    assert attack == "fd" or own > 0


@pytest.mark.parametrize("attack", ["addr", "link", "fd", "name"])
def test_races_are_won_against_who_looks_and_lets_go(place, attack):
    def command(tool, w, words):
        return harness.run([*tool, "--control", *words])

    foreign, _ = race(place, attack, command)
    assert foreign > 0


HOSTILE = """
import ctypes, errno, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
def call(nr, *args):
    r = libc.syscall(nr, *[ctypes.c_uint64(x & (1 << 64) - 1) for x in args])
    print(errno.errorcode[ctypes.get_errno()] if r < 0 else r)
CONNECT, SENDTO, SENDMSG, SENDMMSG = %s
buf = ctypes.create_string_buffer(1 << 17)
at = ctypes.addressof(buf)
fd = a.fileno()
KERNEL = 0xffff888000000000
def header(name=0, namelen=0, iov=0, n=0, control=0, controllen=0):
    buf[:56] = struct.pack("<QiIQQQQiI", name, namelen, 0, iov, n, control, controllen, 0, 0)
call(CONNECT, fd, at, 0xffffffff)
call(CONNECT, fd, at, 0x7fffffff)
call(CONNECT, fd, KERNEL, 16)
call(CONNECT, fd, 0, 16)
call(CONNECT, 0xffffffff, at, 16)
call(SENDTO, fd, at, 1, 0, KERNEL, 16)
call(SENDTO, fd, at, 1, 0, at, 0xfffffff0)
call(SENDMSG, fd, KERNEL, 0)
header(iov=at + 64, n=1 << 60); call(SENDMSG, fd, at, 0)
header(iov=at + 64, n=1025); call(SENDMSG, fd, at, 0)
buf[64:80] = struct.pack("<QQ", KERNEL, 10)
header(iov=at + 64, n=1); call(SENDMSG, fd, at, 0)
buf[64:80] = struct.pack("<QQ", at, 1 << 63)
header(iov=at + 64, n=1); call(SENDMSG, fd, at, 0)
buf[64:80] = struct.pack("<QQ", at, 3)
header(iov=at + 64, n=1, control=at, controllen=1 << 62); call(SENDMSG, fd, at, 0)
header(iov=at + 64, n=1, control=KERNEL, controllen=16); call(SENDMSG, fd, at, 0)
header(iov=at + 64, n=1, name=KERNEL, namelen=10); call(SENDMSG, fd, at, 0)
header(iov=at + 64, n=1, name=at, namelen=-1); call(SENDMSG, fd, at, 0)
header(iov=at + 64, n=1)
buf[56:64] = bytes(8)
buf[80:1 << 17] = bytes((1 << 17) - 80)
call(SENDMMSG, fd, KERNEL, 5, 0)
call(SENDMMSG, fd, at, 0x80000000, socket.MSG_DONTWAIT)
"""


def test_hostile_arguments(supervised):
    numbers = {"x86_64": (42, 44, 46, 307)}.get(os.uname().machine, (203, 206, 211, 269))
    r = python([], HOSTILE % (numbers,), mode=supervised)
    assert ok(r).lines[:17] == ["EINVAL", "EINVAL", "EFAULT", "EFAULT", "EBADF", "EFAULT", "EINVAL",
                                "EFAULT", "EMSGSIZE", "EMSGSIZE", "EFAULT", "EINVAL", "ENOBUFS",
                                "EFAULT", "EFAULT", "EINVAL", "EFAULT"]
    assert r.lines[17].isdigit() and 1 <= int(r.lines[17]) <= 1024


def test_blocked_senders_hang_nobody(supervised):
    """80 processes wait on full queues; others go on, and all end when the command does."""
    text = """
    import os, socket, time
    pairs = []
    for i in range(80):
        a, b = socket.socketpair(socket.AF_UNIX, (socket.SOCK_STREAM, socket.SOCK_DGRAM)[i % 2])
        pairs.append((a, b))
        if os.fork() == 0:
            while True:
                a.sendmsg([b"x" * 1000])
    time.sleep(1)
    a, b = socket.socketpair()
    for i in range(200):
        assert a.sendmsg([b"y"]) == 1 and b.recv(1) == b"y"
    print("alive")
    """
    assert ok(python([], textwrap.dedent(text), mode=supervised)).lines == ["alive"]


def test_signals_end_a_waiting_send(supervised):
    text = """
    import signal, socket
    class Rang(Exception): pass
    def ring(*a): raise Rang
    signal.signal(signal.SIGALRM, ring)
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        a, b = socket.socketpair(socket.AF_UNIX, kind)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            while True: a.sendmsg([b"x" * 1000])
        except Rang:
            print("rang")
    a, b = socket.socketpair()
    b.close()
    signal.signal(signal.SIGPIPE, lambda *a: print("pipe"))
    try: a.sendmsg([b"x"])
    except BrokenPipeError: print("broken")
    """
    r = python([], textwrap.dedent(text), mode=supervised)
    assert ok(r).lines == ["rang", "rang", "pipe", "broken"]


def test_a_full_backlog_waits(place, supervised):
    w = place.dir("w")
    text = f"""
    import os, socket, threading, time
    s = socket.socket(socket.AF_UNIX); s.bind("{w}/s"); s.listen(0)
    def one():
        c = socket.socket(socket.AF_UNIX); c.connect("{w}/s"); c.recv(1)
    threads = [threading.Thread(target=one) for _ in range(60)]
    for t in threads: t.start()
    time.sleep(0.3)
    for t in threads: s.accept()[0].send(b"x")
    for t in threads: t.join()
    print("served")
    n = socket.socket(socket.AF_UNIX); n.setblocking(False); n.connect("{w}/s")
    n = socket.socket(socket.AF_UNIX); n.setblocking(False)
    try: n.connect("{w}/s")
    except BlockingIOError: print("full")
    """
    r = python(["-w", w], textwrap.dedent(text), mode=supervised)
    assert ok(r).lines == ["served", "full"]


# --- Without pidfd_getfd ------------------------------------------------------------------------

NO_COPIES = """
import errno, os, socket, sys
w, foreign, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
U, S, D = socket.AF_UNIX, socket.SOCK_STREAM, socket.SOCK_DGRAM

def attempt(f):
    try:
        f()
        return "ok"
    except OSError as e:
        return errno.errorcode[e.errno]

for i in range(400):   # more than are kept
    s = socket.socket(U, S)
    s.bind(w + "/s%d" % i)
    s.listen()
    c = socket.socket(U, S)
    c.connect(w + "/s%d" % i)
    p, _ = s.accept()
    c.sendmsg([b"to"])
    assert p.recv(2) == b"to"
    r, x = os.pipe()
    socket.send_fds(p, [b"fd"], [x])
    data, fds, _, _ = socket.recv_fds(c, 2, 1)
    assert data == b"fd" and len(fds) == 1
    c.close()
    assert p.recv(1) == b""      # the end is seen: nobody holds a copy
    s.close()
    q = socket.socket(U, S)
    assert attempt(lambda: q.connect(w + "/s%d" % i)) == "ECONNREFUSED"
    for fd in (r, x, *fds):
        os.close(fd)
    p.close()
    q.close()
a, b = socket.socketpair()
a.sendmsg([b"x"])
assert b.recv(1) == b"x"
c = socket.socket(); c.connect(("127.0.0.1", port)); c.close()
print(attempt(lambda: socket.socket(U, S).connect(foreign)))
print(attempt(lambda: socket.socket(U, D)))
print(attempt(lambda: socket.socketpair(U, D)))
print(attempt(lambda: socket.socket().connect(("127.0.0.1", 9))))
print(attempt(lambda: socket.socket(U, S).connect("\\0not-ours-%d" % port)))
name = "\\0ours-%d" % port
s = socket.socket(U, S); s.bind(name); s.listen()
print(attempt(lambda: socket.socket(U, S).connect(name)))
"""


def test_sockets_without_pidfd_getfd(place, supervised):
    w = place.dir("w")
    out = place.dir("out")
    fake = [harness.INSTALLED.tools["fake-kernel"], f"438={errno.EPERM}", "--"]
    with Server(str(out / "f")) as s, socket.socket() as t:
        t.bind(("127.0.0.1", 0))
        t.listen(8)
        port = t.getsockname()[1]
        with Server(f"\0not-ours-{port}") as a:
            flags = ["-w", w, "-r", out, "--net-allow", f"tcp://:{port}"]
            argv = supervised.command(flags, [harness.PYTHON, "-c", NO_COPIES, w, out / "f", port])
            r = harness.run([*fake, *argv])
    assert ok(r).lines == ["EACCES", "EACCES", "EACCES", "EACCES", "EPERM", "ok"]
    assert (s.got, a.got) == (0, 0)


# --- Started by root ----------------------------------------------------------------------------


@pytest.mark.parametrize("user,view", [(None, "auto"), ("4711:4712", "auto"),
                                       ("4711:4712", "notify")])
def test_a_service_sees_the_sandboxs_ids(root_place, user, view):
    """What root's supervisor does for a sandbox of another user is not done as root."""
    d = root_place.dir("run")
    flags = ["--view", view, "--unix-allow", d] + (["--user", user] if user else [])
    closed = socket.socket(socket.AF_UNIX)
    closed.bind(str(d / "closed"))
    os.chmod(d / "closed", 0o700)
    closed.listen()
    credentials = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    credentials.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    credentials.bind(str(d / "d"))
    os.chmod(d / "d", 0o777)
    with Server(str(d / "s")) as s:
        calls = [connect(str(d / "s")), connect(str(d / "closed")),
                 f"socket.socket(U, D).sendto(b'x', {str(d / 'd')!r})",
                 f"[l := socket.socket(U, S), l.bind('\\0peer-{os.getpid()}'), l.listen(), "
                 f"c := socket.socket(U, S), c.connect('\\0peer-{os.getpid()}'), "
                 "print(int.from_bytes(c.getsockopt(1, 17, 12)[4:8], 'little'))]"]
        got = outcomes(flags, calls, "root")
    want = [int(n) for n in user.split(":")] if user else [0, 0]
    assert got == ["ok", "EACCES" if user else "ok", "ok", str(want[0]), "ok"]
    assert [int.from_bytes(p[4:8], "little") for p in s.peers] == want[:1]
    assert [int.from_bytes(p[8:12], "little") for p in s.peers] == want[1:]
    _, ancillary, _, _ = credentials.recvmsg(1, 100)
    sent = ancillary[0][2]
    assert [int.from_bytes(sent[i:i + 4], "little") for i in (4, 8)] == want
    closed.close()
    credentials.close()
