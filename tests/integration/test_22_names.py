# SPDX-License-Identifier: Apache-2.0
"""Issue 5, point 3: names in network rules. The tests run in a network namespace of their own, with
a name server there that can be made to lie (name_world.py); started as root only, since only root
can make such a place."""

import json
import os
import shutil
import subprocess
import textwrap

import pytest

import harness
from checks import ok

SERVER = "127.0.0.53"
PUBLIC, OTHER, EVIL, PRIVATE = "203.0.113.5", "203.0.113.6", "203.0.113.66", "10.9.9.9"
PUBLIC6 = "2001:db8::5"
ADDRESSES = [PUBLIC, OTHER, EVIL, PRIVATE, PUBLIC6]
ECHO = [f"{a}:80" for a in ADDRESSES[:4]] + [f"[{PUBLIC6}]:80", f"{PUBLIC}:81", "127.0.0.1:80"]


def a(address, ttl=60):
    return ["AAAA" if ":" in address else "A", address, ttl]


ZONE = {
    "api.example": [a(PUBLIC), a(PUBLIC6)],
    "edge.example": [a(OTHER)],
    "www.cdn.example": [["CNAME", "edge.example", 30]],
    "deep.www.cdn.example": [a(OTHER)],
    "cdn.example": [a(OTHER)],
    "other.example": [a(OTHER)],
    "evil.example": [a(EVIL)],
}


class World:
    def __init__(self, place):
        self.place = place
        self.log = place.top / "asked"

    def run(self, flags, argv, mode="base", timeout=60, **spec):
        """Runs ARGV in a sandbox in a new world; SPEC as name_world.py has it, ZONE added to."""
        assert os.getuid() == 0, "a network namespace with a port 53 needs root"
        zone = {**ZONE, **spec.pop("zone", {})}
        full = {"user": harness.USER.uid, "log": str(self.log), "addresses": ADDRESSES, "echo": ECHO,
                "servers": [SERVER], **spec, "zone": zone}
        path = self.place.file("spec.json", json.dumps(full))
        flags = ["-r", self.place.top, *flags]
        words = harness.MODES[mode].command(flags, argv)
        return harness.run([harness.PYTHON, harness.HERE / "integration/name_world.py", path, *words],
                           account=harness.ROOT_USER, timeout=timeout)

    def python(self, flags, text, *args, **kw):
        program = self.place.file("program.py", HEAD + textwrap.dedent(text))
        return self.run(flags, [harness.PYTHON, program, *args], **kw)

    def look(self, flags, *names, **kw):
        """What each name resolves to, and which of these addresses answers, one line a name."""
        return ok(self.python(flags, "look(sys.argv[1:])", *names, **kw)).lines

    def client(self, flags, way, server, name, **kw):
        return self.run(flags, [harness.INSTALLED.tools["name-client"], way, server, name], **kw)

    @property
    def asked(self):
        return self.log.read_text().splitlines()


HEAD = """
import errno, os, socket, sys

def resolve(name):
    try:
        return sorted({i[4][0] for i in socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)})
    except socket.gaierror as e:
        return {socket.EAI_NONAME: "no name", socket.EAI_AGAIN: "refused",
                socket.EAI_NODATA: "no data"}.get(e.errno, repr(e))

def reach(address, port=80):
    try:
        with socket.create_connection((address, port), 10) as s:
            return s.recv(100).decode().strip() or "empty"
    except OSError as e:
        return errno.errorcode.get(e.errno, repr(e))

def look(names):
    for name in names:
        found = resolve(name)
        if isinstance(found, str):
            print(name, found)
        else:
            print(name, *[a if reach(a) in (f"{a}:80", f"[{a}]:80") else f"{a}={reach(a)}"
                          for a in found])
"""


@pytest.fixture
def world(place):
    return World(place)


NAMED = ["--net-allow", "api.example:80", "--net-allow", "*.cdn.example:80"]


# --- What names grant ---------------------------------------------------------------------------


def test_literal_and_wildcard_names(world, supervised):
    assert world.look(NAMED, "api.example", "www.cdn.example", "deep.www.cdn.example", "cdn.example",
                      "other.example", PRIVATE, mode=supervised.name) == [
        f"api.example {PUBLIC6} {PUBLIC}" if PUBLIC6 < PUBLIC else f"api.example {PUBLIC} {PUBLIC6}",
        f"www.cdn.example {OTHER}",
        f"deep.www.cdn.example {OTHER}",
        "cdn.example refused",
        "other.example refused",
        f"{PRIVATE} {PRIVATE}=ECONNREFUSED",
    ]
    assert not [line for line in world.asked if line.startswith(("other.", "cdn."))]


def test_an_address_is_reachable_only_while_an_allowed_name_maps_to_it(world, supervised):
    r = world.python(NAMED, f"""
        print(reach({OTHER!r}), reach({PUBLIC!r}), reach({PUBLIC!r}, 81), reach({EVIL!r}))
        resolve("www.cdn.example")
        print(reach({OTHER!r}), reach({EVIL!r}))
    """, mode=supervised.name)
    assert ok(r).lines == [f"ECONNREFUSED {PUBLIC}:80 ECONNREFUSED ECONNREFUSED",
                           f"{OTHER}:80 ECONNREFUSED"]


def test_a_name_that_moves_does_not_break_a_run(world):
    turns = {"turns": [[a(PUBLIC, 0)], [a(PUBLIC, 0)], [a(OTHER, 0)]]}
    r = world.python(["--net-allow", "moves.example:80"], f"""
        print(resolve("moves.example"), resolve("moves.example"))
        print(reach({PUBLIC!r}), reach({OTHER!r}))
    """, zone={"moves.example": turns, "six.example": [a(PUBLIC6)]})
    assert ok(r).lines[1] == f"{PUBLIC}:80 {OTHER}:80"


def test_all_usable_answers_count(world):
    many = [a(f"203.0.113.{i}") for i in range(1, 61)]
    r = world.python(["--net-allow", "many.example:80"], """
        found = resolve("many.example")
        print(len(found), {reach(x) for x in found[:0]})
        print(reach("203.0.113.5"))
    """, zone={"many.example": many})
    assert ok(r).lines == ["60 set()", f"{PUBLIC}:80"]


def test_hosts_shows_literal_names_only(world, supervised):
    r = world.python(NAMED, """
        resolve("www.cdn.example")
        print(open("/etc/hosts").read())
        os.chdir("/etc")
        print(open("hosts").read() == open("/etc/../etc/hosts").read())
        try:
            open("/etc/hosts", "w")
        except OSError as e:
            print(e.errno in (errno.EROFS, errno.EACCES))
    """, mode=supervised.name, hosts="127.0.0.1 localhost\n10.0.0.1 secret.example\n")
    assert ok(r).lines == ["127.0.0.1 localhost", "::1 localhost", f"{PUBLIC} api.example",
                           f"{PUBLIC6} api.example", "", "True", "True"]


def test_addresses_alone_keep_names_out(world, supervised):
    hosts = "127.0.0.1 localhost\n10.0.0.1 secret.example\n"
    r = world.python(["--net-allow", f"{PUBLIC}:80"], """
        print(resolve("api.example"))
        print(open("/etc/hosts").read().strip())
    """, mode=supervised.name, hosts=hosts)
    assert ok(r).lines == ["refused", *hosts.splitlines()]
    assert world.asked == []


def test_search_lists(world):
    resolv = f"nameserver {SERVER}\nsearch corp.example lan.example\noptions ndots:3\n"
    lines = world.look([*NAMED, "--net-allow", "db:80"], "db", "api.example", "other.example",
                       resolv=resolv, zone={"db.lan.example": [a(PRIVATE)]})
    assert lines[0] == f"db {PRIVATE}"
    assert lines[1].split() == ["api.example", *sorted([PUBLIC, PUBLIC6])]
    assert lines[2] == "other.example refused"


def test_localhost_is_known_and_closed(world):
    r = world.client(NAMED, "from", SERVER, "localhost")
    assert ok(r).lines == ["127.0.0.1"]
    assert world.look(NAMED, "127.0.0.1") == ["127.0.0.1 127.0.0.1=ECONNREFUSED"]


@pytest.mark.parametrize("hosts", ["", "127.0.0.1 localhost\n"])
def test_localhost_as_a_rule(world, hosts):
    r = world.python(["--net-allow", "localhost:80"], """
        print(reach("127.0.0.1"), reach("localhost"), reach("127.0.0.2"), reach("127.0.0.1", 54))
    """, hosts=hosts)
    assert ok(r).lines == ["127.0.0.1:80 127.0.0.1:80 ECONNREFUSED ECONNREFUSED"]


# --- Denied names -------------------------------------------------------------------------------


def test_all_but_one_host(world, supervised):
    """B34: a name is closed, and so is the address that it stands for."""
    lines = world.look(["--net-allow", "*", "--net-deny", "evil.example"], "api.example",
                       "evil.example", EVIL, OTHER, mode=supervised.name)
    assert lines[0].split() == ["api.example", *sorted([PUBLIC, PUBLIC6])]
    assert lines[1:] == ["evil.example refused", f"{EVIL} {EVIL}=ECONNREFUSED", f"{OTHER} {OTHER}"]


def test_deny_wins_over_a_wildcard(world):
    flags = ["--net-allow", "*.cdn.example:80", "--net-deny", "*.www.cdn.example"]
    assert world.look(flags, "www.cdn.example", "deep.www.cdn.example") == [
        f"www.cdn.example {OTHER}", "deep.www.cdn.example refused"]


def test_a_port_of_a_name_is_denied(world):
    flags = ["--net-allow", "*", "--net-deny", "api.example:81"]
    r = world.python(flags, f"""
        resolve("api.example")
        print(reach({PUBLIC!r}), reach({PUBLIC!r}, 81))
    """)
    assert ok(r).lines == [f"{PUBLIC}:80 ECONNREFUSED"]


# --- Resolvers of others ------------------------------------------------------------------------


@pytest.mark.parametrize("server", [SERVER, "198.51.100.7", "::1", "2001:db8::53"])
@pytest.mark.parametrize("way", ["from", "msg", "mmsg", "mapped", "poll", "connected", "same", "tcp"])
def test_replies_come_from_the_server_that_was_asked(world, way, server):
    assert ok(world.client(NAMED, way, server, "www.cdn.example")).lines == [OTHER]


@pytest.mark.parametrize("way", ["only6", "bound6"])
def test_sockets_of_ipv6_only(world, way):
    flags = [*NAMED, "--net-allow-bind", "0"]
    assert ok(world.client(flags, way, "2001:db8::53", "www.cdn.example")).lines == [OTHER]


@pytest.mark.parametrize("way", ["from", "mmsg", "same", "tcp"])
def test_replies_come_from_the_server_without_the_base(world, way):
    r = world.client(NAMED, way, "198.51.100.7", "www.cdn.example", mode="nobase")
    assert ok(r).lines == [OTHER]


@pytest.mark.parametrize("way", ["from", "connected", "tcp"])
def test_refused_names_say_refused(world, way):
    r = world.client(NAMED, way, SERVER, "other.example")
    assert (r.code, r.out) == (5, "rcode 5\n"), f"{r!r}"


def test_a_server_that_an_address_rule_names(world):
    """What it answers is its own matter: names that no rule has stay unreachable."""
    flags = [*NAMED, "--net-allow", f"{SERVER}:53"]
    assert ok(world.client(flags, "from", SERVER, "other.example")).lines == [OTHER]
    assert world.client(flags, "from", "198.51.100.7", "other.example").code == 5


@pytest.mark.parametrize("flags", [["--net-allow", "127.0.0.0/8"], ["--net-allow-loopback", "all"]])
def test_a_network_that_holds_the_hosts_server_is_no_name_server(world, flags):
    assert world.look([*NAMED, *flags], "www.cdn.example", "other.example", "127.0.0.1") == [
        f"www.cdn.example {OTHER}", "other.example refused", "127.0.0.1 127.0.0.1"]


def test_many_questions_at_once(world):
    r = world.python(["--net-allow", "*.cdn.example:80"], """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(32) as pool:
            print({str(r) for r in pool.map(resolve, [f"n{i}.many.cdn.example" for i in range(200)])})
    """, zone={"*.many.cdn.example": [a(OTHER)]})
    assert ok(r).lines == [f"{{\"['{OTHER}']\"}}"]


def test_curl(world):
    r = world.run(NAMED, ["/usr/bin/curl", "-sS", "http://www.cdn.example/", "http://api.example/"])
    assert ok(r).lines[0] == f"{OTHER}:80"
    assert world.run(NAMED, ["/usr/bin/curl", "-sS", "http://other.example/"]).code == 6


@pytest.mark.parametrize("how", ["lookup('www.cdn.example', cb)", "resolve4('www.cdn.example', one)"])
def test_node(world, how):
    """dns.lookup is libc's, dns.resolve4 c-ares's."""
    node = shutil.which("node")
    assert node
    program = world.place.file("program.js", f"""
        const dns = require('dns'), http = require('http');
        const one = (e, a) => cb(e, a && a[0]);
        const cb = (e, a) => {{
            if (e) throw e;
            http.get({{host: a, port: 80}}, r => r.pipe(process.stdout));
        }};
        dns.{how};
    """)
    assert ok(world.run(NAMED, [node, program])).lines == [f"{OTHER}:80"]


@pytest.fixture(scope="module")
def go_client():
    """A program whose resolver is Go's own; built outside, since the compiler is no part of this."""
    top = harness.INSTALLED.top / "go"
    top.mkdir()
    (top / "main.go").write_text(textwrap.dedent("""
        package main

        import ("fmt"; "net"; "os")

        func main() {
            addrs, err := net.LookupHost(os.Args[1])
            if err != nil { fmt.Println(err); os.Exit(1) }
            c, err := net.Dial("tcp", os.Args[1] + ":80")
            if err != nil { fmt.Println(err); os.Exit(1) }
            b := make([]byte, 100)
            n, _ := c.Read(b)
            fmt.Print(addrs, " ", string(b[:n]))
        }
    """))
    go = shutil.which("go") or "/usr/local/go/bin/go"
    env = {"PATH": "/usr/bin:/bin", "HOME": str(top), "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod",
           "GO111MODULE": "off", "GOCACHE": "/tmp/sandlock-test-go-cache"}
    subprocess.run([go, "build", "-o", top / "client", top / "main.go"], env=env, cwd=top, check=True)
    (top / "client").chmod(0o755)
    top.chmod(0o755)
    return top / "client"


def test_go(world, go_client):
    flags = [*NAMED, "-r", go_client]
    assert ok(world.run(flags, [go_client, "www.cdn.example"])).lines == [f"[{OTHER}] {OTHER}:80"]
    assert world.run(flags, [go_client, "other.example"]).code == 1


# --- Answers that do not count ------------------------------------------------------------------

BAD = ["127.0.0.1", "127.9.9.9", "0.0.0.0", "169.254.169.254", "224.0.0.1", "100.100.100.200"]
BAD6 = ["::1", "::", "::ffff:127.0.0.1", f"::ffff:{OTHER}", "fe80::1", "::127.0.0.1",
        "64:ff9b::7f00:1", "2002:7f00:1::", "fd00:ec2::254"]


@pytest.mark.parametrize("address", BAD + BAD6)
def test_rebinding(world, address):
    """A name that was good turns bad: to none of these does it open a way."""
    zone = {"turn.example": {"turns": [[a(PUBLIC, 0), a(PUBLIC6, 0)]] * 2 + [[a(address, 0)]]}}
    r = world.python(["--net-allow", "turn.example:80"], f"""
        print(resolve("turn.example"), reach({address!r}))
        print(resolve("turn.example"), reach({address!r}))
    """, zone=zone)
    for line in ok(r).lines:
        assert line.endswith(" ECONNREFUSED") or line.endswith(" EACCES"), line
        assert address not in line.split("]")[0].replace(PUBLIC, "").replace(PUBLIC6, ""), line


def test_private_answers(world):
    """A literal name may be private, a wildcard's not."""
    zone = {"in.example": [a(PRIVATE)], "in.cdn.example": [a(PRIVATE), a(OTHER)]}
    flags = ["--net-allow", "in.example:80"]
    assert world.look(flags, "in.example", zone=zone) == [f"in.example {PRIVATE}"]
    flags = ["--net-allow", "*.cdn.example:80"]
    assert world.look(flags, "in.cdn.example", PRIVATE, zone=zone) == [
        f"in.cdn.example {OTHER}", f"{PRIVATE} {PRIVATE}=ECONNREFUSED"]


def test_the_hosts_own_file_may_say_loopback(world):
    hosts = f"127.0.0.1 localhost mine\n{PRIVATE} api.example\n127.0.0.1 x.cdn.example\n"
    flags = ["--net-allow", "mine:80", *NAMED]
    assert world.look(flags, "mine", "api.example", hosts=hosts) == [
        "mine 127.0.0.1", f"api.example {PRIVATE}"]
    assert world.look(NAMED, "x.cdn.example", "127.0.0.1", hosts=hosts) == [
        "x.cdn.example no data", "127.0.0.1 127.0.0.1=ECONNREFUSED"]


# --- Servers that lie ---------------------------------------------------------------------------

GOOD = ["wrong-id", "wrong-question", "wrong-owner", "truncate", "junk"]
USELESS = ["loop", "pointers", "only-junk", "servfail", "drop", "cut"]


@pytest.mark.parametrize("fault", GOOD)
def test_what_a_server_adds_is_not_believed(world, fault):
    r = world.client(["--net-allow", "*.cdn.example"], "from", SERVER, "x.cdn.example",
                     zone={"x.cdn.example": fault})
    assert ok(r).lines == [PUBLIC]


@pytest.mark.parametrize("fault", USELESS)
def test_a_server_that_says_nothing_useful(world, fault):
    """The program is told so, in time, and nothing is pinned."""
    r = world.client(["--net-allow", "*.cdn.example"], "tcp", SERVER, "x.cdn.example",
                     zone={"x.cdn.example": fault})
    assert (r.code, r.out) == (5, "rcode 2\n"), f"{r!r}"


def test_long_replies_go_by_tcp(world):
    zone = {"x.cdn.example": "huge"}
    flags = ["--net-allow", "*.cdn.example"]
    assert ok(world.client(flags, "from", SERVER, "x.cdn.example", zone=zone)).out == "truncated\n"
    r = world.client(flags, "tcp", SERVER, "x.cdn.example", zone=zone)
    assert ok(r).lines == [f"203.0.113.{i}" for i in range(1, 65)]
    assert world.asked == ["x.cdn.example A udp", "x.cdn.example A tcp"]


def test_a_slow_or_silent_server_is_passed_over(world):
    resolv = f"nameserver 127.0.0.54\nnameserver {SERVER}\n"
    assert world.look(NAMED, "www.cdn.example", resolv=resolv, servers=[SERVER]) == [
        f"www.cdn.example {OTHER}"]
    r = world.client(["--net-allow", "*.cdn.example"], "from", SERVER, "x.cdn.example",
                     zone={"x.cdn.example": "late"})
    assert ok(r).lines == [PUBLIC]


def test_types_that_are_not_addresses(world):
    r = world.python(["--net-allow", "*.cdn.example"], f"""
        import struct
        def ask(name, kind):
            q = b"\\1\\2\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + b"".join(
                bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\\0"
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.connect(({SERVER!r}, 53))
            s.send(q + struct.pack(">HH", kind, 1))
            data = s.recv(4096)
            return data[3] & 15, struct.unpack(">H", data[6:8])[0], b"words" in data
        print(ask("X.cdn.Example", 16), ask("x.cdn.example", 65), ask("x.cdn.example", 252),
              ask("x.cdn.example", 255), ask("other.example", 16))
    """, zone={"x.cdn.example": [["TXT", "words", 60]]})
    assert ok(r).lines == ["(0, 1, True) (0, 0, False) (4, 0, False) (4, 0, False) (5, 0, False)"]


# --- Bad input ----------------------------------------------------------------------------------


def refused(r, *words):
    assert r.code == 125 and r.out == "", f"{r!r}"
    assert all(w in r.err for w in words), f"{r!r}"


@pytest.mark.parametrize("zone", [{}, {"no.example": "servfail"}, {"no.example": [a("127.0.0.1")]},
                                  {"no.example": [["TXT", "nothing", 60]]}])
def test_an_unresolvable_name_is_refused_at_the_start(world, zone):
    flags = ["--net-allow", "api.example", "--net-allow", "tcp://no.example:443"]
    refused(world.run(flags, ["/usr/bin/true"], zone=zone), "tcp://no.example:443", "--net-lazy-dns")
    ok(world.run([*flags, "--net-lazy-dns"], ["/usr/bin/true"], zone=zone))


def test_lazy_names_are_asked_for_at_first_use(world):
    flags = ["--net-lazy-dns", "--net-allow", "api.example:80"]
    ok(world.run(flags, ["/usr/bin/true"]))
    assert world.asked == []
    assert world.look(flags, "api.example")[0].split() == ["api.example", *sorted([PUBLIC, PUBLIC6])]


def test_an_unresolvable_denied_name_is_no_fault(world):
    assert world.look(["--net-allow", "*", "--net-deny", "no.example"], OTHER) == [f"{OTHER} {OTHER}"]


@pytest.mark.parametrize("rule, words", [
    ("a..example", ("character", "empty")),
    ("*.*.example", ("character",)),
    ("*example", ("character", "wildcard")),
    ("a-.example", ("character", "hyphen")),
    ("a.example:99999", ("character", "port")),
    ("a" * 64 + ".example", ("character", "63")),
    ("icmp://a.example:1", ("character", "port")),
    ("ex\u00e4mple", ("character",)),
])
def test_bad_names(rule, words):
    for flag in ("--net-allow", "--net-deny"):
        r = harness.sandlock("run", flag, rule, "--", "/usr/bin/true", account=harness.USER)
        refused(r, flag, *words)


# --- Events and others --------------------------------------------------------------------------


def test_refused_names_are_events(world):
    zone = {"x.cdn.example": [a("127.0.0.1")]}
    r = world.python(NAMED, 'resolve("other.example"); resolve("x.cdn.example"); sys.exit(3)',
                     zone=zone)
    assert r.code == 3
    assert "other.example" in r.err and "--net-allow other.example" in r.err, f"{r!r}"
    assert "x.cdn.example -> 127.0.0.1" in r.err, f"{r!r}"


def test_others_of_the_machine_are_not_answered(world):
    """Whoever finds the resolver's ports from outside asks in vain."""
    text = """
        import subprocess, time
        mine = [l.split()[1] for f in ("udp", "tcp") for l in open("/proc/net/" + f) if ":" in l]
        ports = sorted({int(p.split(":")[1], 16) for p in mine if p.startswith("0100007F:")})
        q = b"\\1\\2\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\3www\\3cdn\\7example\\0\\0\\1\\0\\1"
        answers = 0
        for port in ports:
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.settimeout(1)
            try:
                s.sendto(q, ("127.0.0.1", port))
                s.recv(4096)
                answers += 1
            except OSError:
                pass
            s = socket.socket()
            s.settimeout(1)
            try:
                s.connect(("127.0.0.1", port))
                s.sendall(len(q).to_bytes(2, "big") + q)
                answers += bool(s.recv(4096))
            except OSError:
                pass
        print(len(ports) >= 2, answers)
    """
    outside = world.place.file("outside.py", HEAD + textwrap.dedent(text))
    client = harness.INSTALLED.tools["name-client"]
    inside = world.place.file("inside.sh", f"""
        {client} from {SERVER} www.cdn.example; {client} tcp {SERVER} www.cdn.example
        echo ready; read line
    """)
    words = " ".join(map(str, harness.MODES["base"].command(
        ["-r", world.place.top, "--net-allow", "'*.cdn.example'"], ["/bin/bash", inside])))
    both = world.place.file("both.sh", f"""
        coproc S {{ {words}; }}
        while read -u ${{S[0]}} line; do echo $line; [ "$line" = ready ] && break; done
        {harness.PYTHON} {outside}
        echo end >&${{S[1]}}
        wait
    """)
    spec = {"user": harness.USER.uid, "log": str(world.log), "addresses": ADDRESSES, "zone": ZONE}
    path = world.place.file("spec.json", json.dumps(spec))
    r = harness.run([harness.PYTHON, harness.HERE / "integration/name_world.py", path, "/bin/bash",
                     both], account=harness.ROOT_USER)
    assert ok(r).lines == [OTHER, OTHER, "ready", "True 0"]


@pytest.mark.parametrize("word", ["random", "replies", "many-servers", "half"])
def test_junk_from_inside_does_no_harm(world, word):
    text = """
        import struct
        server = (%r, 53)
        good = b"\\1\\2\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\3www\\3cdn\\7example\\0\\0\\1\\0\\1"
        def udp(data, to=server):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.sendto(data, to)
            return s
        word = sys.argv[1]
        if word == "random":
            for n in range(300):
                udp(os.urandom(n))
        elif word == "replies":
            for n in range(100):
                udp(good[:2] + b"\\x81" + good[3:])
        elif word == "many-servers":
            for n in range(100):
                try:
                    udp(good, (f"198.51.100.{n}", 53))
                except OSError as e:
                    assert e.errno == errno.ECONNREFUSED
        elif word == "half":
            keep = []
            for n in range(64):
                s = socket.create_connection(server)
                s.sendall(b"\\0\\x20abc")
                keep.append(s)
            for s in keep:
                s.close()
        print(resolve("www.cdn.example"))
    """ % SERVER
    assert ok(world.python(NAMED, text, word)).lines == [f"['{OTHER}']"]
