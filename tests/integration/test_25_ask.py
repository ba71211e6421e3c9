# SPDX-License-Identifier: Apache-2.0
"""Issue 5, point 7: questions about destinations that no rule knows.

Every question is about a listener of the test's own on loopback; what it got tells what a refusal
was worth. Waits are for the text or the question that must come.
"""

import json
import os
import re
import signal
import stat
import subprocess

import pytest

import harness
from checks import ok, refused
from test_21_net import HEAD, HOST, Listener
from test_control import Runtime, frame

SUPERVISED = ["base", "nobase"]
# Long enough for a slow machine where an answer comes, short where none does.
ASK = ["--net-ask", "--ask-timeout", "120"]
BRIEF = ["--net-ask", "--ask-timeout", "0.5"]


@pytest.fixture
def runtime(place):
    r = Runtime(place)
    yield r
    r.stop()


@pytest.fixture
def tty():
    t = harness.Terminal()
    yield t
    t.close()


def program(*calls):
    text = HEAD + "".join(f"attempt(lambda: {c})\n" for c in calls)
    return [harness.PYTHON, "-c", text]


def asked(runtime, name, n=1):
    """The open questions, once there are N."""
    found = []

    def there():
        found[:] = questions(runtime, name)
        return len(found) == n

    harness.wait_until(there, what=f"{n} questions")
    return found


def talk(runtime, name, request):
    """One request on the control socket; the reply."""
    code = ("import socket, struct, sys\n"
            "s = socket.socket(socket.AF_UNIX)\n"
            "s.connect(sys.argv[1])\n"
            "s.sendall(bytes.fromhex(sys.argv[2]))\n"
            "data = b''\n"
            "while chunk := s.recv(65536):\n"
            "    data += chunk\n"
            "sys.stdout.buffer.write(data[4:])\n")
    path = os.path.join("/proc/self/cwd", "control.sock")
    return json.loads(harness.run([harness.PYTHON, "-c", code, path,
                                   frame(json.dumps(request)).hex()],
                                  account=runtime.account, cwd=str(runtime.dir / name)).out)


def questions(runtime, name):
    reply = talk(runtime, name, {"v": 1, "verb": "questions"})
    assert reply["ok"], reply
    return reply["data"]


def answer(runtime, name, number, word):
    return runtime.cli("answer", name, str(number), word)


# --- The control socket --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", SUPERVISED)
@pytest.mark.parametrize("call", ["tcp", "udp", "linked", "message"])
def test_7_once_run_no(runtime, mode, call):
    with Listener() as a, Listener() as b:
        calls = [f"{call}('{HOST}', {p})" for p in (a.port, a.port, a.port, b.port, b.port)]
        s = runtime.named("q", program(*calls), mode, ASK)
        first, = asked(runtime, "q")
        assert first["address"] == HOST and first["port"] == a.port and first["host"] is None
        assert first["protocol"] == ("tcp" if call == "tcp" else "udp")
        assert first["program"].startswith("python3") and first["sandbox"] == "q"
        assert 0 < first["left_ms"] <= 120000
        assert 1000 <= first["id"] <= 9999
        ok(answer(runtime, "q", first["id"], "once"))
        second, = asked(runtime, "q")
        ok(answer(runtime, "q", second["id"], "run"))
        harness.wait_until(lambda: [q["port"] for q in questions(runtime, "q")] == [b.port],
                           what="the question about the other port")
        third, = questions(runtime, "q")
        ok(answer(runtime, "q", third["id"], "no"))
        r = ok(s.finish())
        # As it is refused without a question: the fifth is not asked about.
        no = "EACCES" if call == "tcp" else "ECONNREFUSED"
        assert r.lines == ["ok", "ok", "ok", no, no]
        if call == "tcp":
            harness.wait_until(lambda: a.connections == 3, what="connections")
            assert b.connections == 0
        else:
            harness.wait_until(lambda: len(a.datagrams) == 3, what="datagrams")
            assert b.datagrams == []


def test_7_answer_lists_and_refuses_nonsense(runtime):
    with Listener() as a:
        s = runtime.named("q", program(f"tcp('{HOST}', {a.port})"), flags=ASK)
        q, = asked(runtime, "q")
        r = ok(runtime.cli("answer", "q"))
        assert re.fullmatch(rf"{q['id']}  python3\S* \(pid \d+\) wants to connect to {HOST} port "
                            rf"{a.port}, tcp; \d+ s left\n", r.out)
        other = 1000 if q["id"] != 1000 else 1001
        r = answer(runtime, "q", other, "run")
        assert r.code == 1 and f"there is no open question {other}" in r.err
        assert answer(runtime, "q", q["id"], "maybe").code == 2
        assert runtime.cli("answer", "q", "x", "run").code == 2
        assert runtime.cli("answer", "q", str(q["id"])).code == 2
        assert runtime.cli("answer", "nobody").code == 1
        for args in ({}, {"id": str(q["id"]), "answer": "run"}, {"id": q["id"]},
                     {"id": q["id"], "answer": 1}, {"id": q["id"], "answer": "always"}):
            reply = talk(runtime, "q", {"v": 1, "verb": "answer", "args": args})
            assert not reply["ok"] and reply["err"].startswith("answer failed: "), reply
        assert asked(runtime, "q")[0]["id"] == q["id"]
        ok(answer(runtime, "q", q["id"], "no"))
        assert ok(s.finish()).lines == ["EACCES"]
        assert a.connections == 0


def test_7_no_question_without_net_ask(runtime):
    runtime.named("q")
    assert runtime.cli("answer", "q").out == "No open questions.\n"
    assert answer(runtime, "q", 1000, "run").code == 1


def test_7_rules_are_not_asked_about(runtime):
    """What a rule allows or denies is decided, with questions or without."""
    with Listener() as a, Listener() as b:
        s = runtime.start([*BRIEF, "--net-allow", f"tcp://{HOST}:{a.port}",
                           "--net-deny", f"{HOST}:{b.port}"],
                          program(f"tcp('{HOST}', {a.port})", f"tcp('{HOST}', {b.port})",
                                  f"udp('{HOST}', {b.port})"))
        r = ok(s.finish())
        assert r.lines == ["ok", "ECONNREFUSED", "ECONNREFUSED"]
        assert "answer" not in r.err
        assert b.connections == 0 and b.datagrams == []


@pytest.mark.parametrize("mode", SUPERVISED)
def test_7_equal_destinations_share_a_question(runtime, mode):
    text = HEAD + """
def one():
    attempt(lambda: tcp(sys.argv[1], int(sys.argv[2])))
threads = [threading.Thread(target=one) for _ in range(8)]
for t in threads:
    t.start()
print("going on", flush=True)
for t in threads:
    t.join()
"""
    with Listener() as a:
        s = runtime.named("q", [harness.PYTHON, "-c", text, HOST, str(a.port)], mode, ASK)
        q, = asked(runtime, "q")
        # The others of the process go on.
        assert s.proc.stdout.readline() == b"going on\n"
        harness.wait_until(lambda: waiting_threads(runtime, "q") == 8, what="eight calls that wait")
        assert len(questions(runtime, "q")) == 1
        ok(answer(runtime, "q", q["id"], "once"))
        assert ok(s.finish()).lines == ["ok"] * 8


def waiting_threads(runtime, name):
    pid = runtime.pids(name)[0]
    found = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/syscall") as f:
            found += f.read().split()[0] == "42"  # connect
    return found


def test_7_questions_are_bounded(runtime):
    text = HEAD + """
base = int(sys.argv[1])
def one(i):
    attempt(lambda: udp("127.0.0.1", base + i))
threads = [threading.Thread(target=one, args=(i,)) for i in range(16)]
for t in threads:
    t.start()
sys.stdin.readline()
attempt(lambda: udp("127.0.0.1", base + 16))
for t in threads:
    t.join()
"""
    s = runtime.named("q", [harness.PYTHON, "-c", text, "20000"], flags=ASK,
                      stdin=subprocess.PIPE)
    found = asked(runtime, "q", 16)
    assert len({q["id"] for q in found}) == 16
    s.proc.stdin.write(b"\n")
    s.proc.stdin.flush()
    assert s.proc.stdout.readline() == b"ECONNREFUSED\n"
    assert {q["id"] for q in questions(runtime, "q")} == {q["id"] for q in found}
    for q in found:
        ok(answer(runtime, "q", q["id"], "no"))
    assert ok(s.finish()).lines == ["ECONNREFUSED"] * 16


def test_7_a_signal_takes_the_question_back(runtime):
    text = HEAD + """
import signal
class Got(Exception): pass
def handler(*a):
    raise Got
signal.signal(signal.SIGUSR1, handler)
try:
    tcp(sys.argv[1], int(sys.argv[2]))
except Got:
    print("interrupted", flush=True)
sys.stdin.readline()
"""
    with Listener() as a:
        s = runtime.named("q", [harness.PYTHON, "-c", text, HOST, str(a.port)], flags=ASK,
                          stdin=subprocess.PIPE)
        asked(runtime, "q")
        os.kill(runtime.pids("q")[0], signal.SIGUSR1)
        assert s.proc.stdout.readline() == b"interrupted\n"
        asked(runtime, "q", 0)
        ok(s.finish(data=b"\n"))
        assert a.connections == 0


def test_7_a_killed_run_ends_with_its_question(runtime):
    s = runtime.named("q", program(f"tcp('{HOST}', 9)"), flags=ASK)
    asked(runtime, "q")
    ok(runtime.cli("kill", "q"))
    assert s.finish().code == 137


# --- Nobody there --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", SUPERVISED)
def test_7_headless_run_waits_once(runtime, mode):
    """One question waits for its time; the others are refused at once, until somebody looks."""
    text = HEAD + """
attempt(lambda: tcp("127.0.0.1", 20000))
start = time.monotonic()
for port in range(20001, 20201):
    attempt(lambda: tcp("127.0.0.1", port))
sys.stdin.readline()
attempt(lambda: tcp("127.0.0.1", 20000))
"""
    s = runtime.named("q", [harness.PYTHON, "-c", text], mode, BRIEF, stdin=subprocess.PIPE)
    # 200 times half a second would be longer than this waits.
    got = [s.proc.stdout.readline() for _ in range(201)]
    assert got == [b"EACCES\n"] * 201
    assert runtime.cli("answer", "q").out == "No open questions.\n"
    s.proc.stdin.write(b"\n")
    s.proc.stdin.flush()
    q, = asked(runtime, "q")
    assert q["port"] == 20000
    r = ok(s.finish())
    assert r.lines == ["EACCES"]
    hints = [line for line in r.err_lines if "sandlock answer q" in line]
    assert len(hints) == 1 and "127.0.0.1 port 20000, tcp" in hints[0], r.err


def test_7_the_program_is_escaped(runtime):
    text = HEAD + """
import ctypes
ctypes.CDLL(None).prctl(15, b"\\x1b[2Jx\\ny", 0, 0, 0)
attempt(lambda: tcp("127.0.0.1", 20000))
"""
    s = runtime.named("q", [harness.PYTHON, "-c", text], flags=ASK)
    q, = asked(runtime, "q")
    assert q["program"].startswith("\x1b[2Jx")
    out = runtime.cli("answer", "q").out
    assert "\x1b" not in out and "\\x1b[2Jx" in out and out.count("\n") == 1
    ok(answer(runtime, "q", q["id"], "no"))
    r = ok(s.finish())
    assert "\x1b" not in r.err


def test_7_events(runtime, place):
    events = place.dir("events") / "log"
    with Listener() as a:
        s = runtime.named("q", program(f"tcp('{HOST}', {a.port})", f"tcp('{HOST}', {a.port})"),
                          flags=[*ASK, "--events", events])
        q, = asked(runtime, "q")
        ok(answer(runtime, "q", q["id"], "once"))
        second, = asked(runtime, "q")
        ok(answer(runtime, "q", second["id"], "no"))
        assert ok(s.finish()).lines == ["ok", "EACCES"]
        rows = [json.loads(line) for line in events.read_text().splitlines()]
        assert [(e["layer"], e["rule"], e["errno"]) for e in rows] == [
            ("ask", f"question {q['id']} waits for an answer", None),
            ("ask", "allowed once by an answer", None),
            ("ask", f"question {second['id']} waits for an answer", None),
            ("supervisor", "no rule allows connecting to this port", "EACCES")]
        assert all(e["op"] == "connect" and e["object"] == f"{HOST}:{a.port}" for e in rows)


# --- The sandbox's own hands ---------------------------------------------------------------------


@pytest.mark.parametrize("mode", SUPERVISED)
@pytest.mark.parametrize("way", ["grant", "unix-allow", "renamed"])
def test_7_the_sandbox_cannot_answer(runtime, mode, way):
    """A control that can reach its own control socket is not heard there."""
    text = HEAD + """
path = sys.argv[1]
while not os.path.exists(path + "/pid"):
    time.sleep(0.01)
name = path + "/control.sock"
if sys.argv[2] == "renamed":
    os.rename(name, path + "/other")
    name = path + "/other"
def talk(name):
    s = S(socket.AF_UNIX, T)
    s.connect(name)
attempt(lambda: talk(name))
attempt(lambda: talk(sys.argv[3]))
"""
    other = runtime.place.top / "other.sock"
    server = socket_at(runtime, other)
    flags = {"grant": ["-w", runtime.dir.parent, "--unix-allow", other],
             "unix-allow": ["-r", runtime.dir.parent, "--unix-allow", "*"],
             "renamed": ["-w", runtime.dir.parent, "--unix-allow", other]}[way]
    s = runtime.start(["--name", "q", *ASK, *flags],
                      [harness.PYTHON, "-c", text, runtime.dir / "q", way, other], mode)
    assert ok(s.finish()).lines == ["EACCES", "ok"]
    server.close()


def socket_at(runtime, path):
    import socket
    s = socket.socket(socket.AF_UNIX)
    s.bind(str(path))
    runtime.account.own(path)
    s.listen(5)
    return s


@pytest.mark.parametrize("mode", SUPERVISED)
@pytest.mark.parametrize("call", ["connect", "sendto"])
def test_7_an_address_that_changes_is_asked_about_anew(runtime, mode, call):
    """The answer is about what was shown, not about what lies there when it comes."""
    text = HEAD + """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
a, b, kind = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
where = ctypes.create_string_buffer(struct.pack("=HHI8x", 2, socket.htons(a),
                                                socket.htonl(0x7f000001)), 16)
s = S(V4, T if kind == "connect" else U)
def call():
    if kind == "connect":
        r = libc.connect(s.fileno(), where, 16)
    else:
        r = libc.sendto(s.fileno(), b"x", 1, 0, where, 16)
    print("ok" if r >= 0 else errno.errorcode[ctypes.get_errno()], flush=True)
t = threading.Thread(target=call)
t.start()
sys.stdin.readline()
where[2:4] = struct.pack("!H", b)
print("changed", flush=True)
t.join()
"""
    with Listener() as a, Listener() as b:
        s = runtime.named("q", [harness.PYTHON, "-c", text, str(a.port), str(b.port), call], mode,
                          ASK, stdin=subprocess.PIPE)
        first, = asked(runtime, "q")
        assert first["port"] == a.port
        s.proc.stdin.write(b"\n")
        s.proc.stdin.flush()
        assert s.proc.stdout.readline() == b"changed\n"
        ok(answer(runtime, "q", first["id"], "run"))
        harness.wait_until(lambda: [q["port"] for q in questions(runtime, "q")] == [b.port],
                           what="the question about the other port")
        second, = questions(runtime, "q")
        ok(answer(runtime, "q", second["id"], "no"))
        r = ok(s.finish())
        assert r.lines == ["EACCES" if call == "connect" else "ECONNREFUSED"]
        assert b.connections == 0 and b.datagrams == []


# --- The terminal --------------------------------------------------------------------------------


def question_on(tty):
    tty.expect("sandlock: allow it? Type \"once ")
    number = re.match(r"\d+", tty.expect("\"")).group()
    tty.expect(": ")
    return number


@pytest.mark.parametrize("mode", SUPERVISED)
def test_7_terminal_of_a_pty_run(tty, mode):
    with Listener() as a:
        argv = harness.MODES[mode].command(
            [*ASK, "--pty"], program(f"tcp('{HOST}', {a.port})", f"tcp('{HOST}', {a.port})",
                                     f"tcp('{HOST}', {a.port})", "sys.stdin.readline()"))
        with tty.start(argv) as running:
            tty.expect(f"wants to connect to {HOST} port {a.port}, tcp; refused in 120 s\r\n")
            number = question_on(tty)
            # A word alone, or another number, answers nothing.
            for wrong in ("run", f"run {int(number) + 1}", "", f"run {number} x"):
                tty.send(wrong + "\n")
                assert question_on(tty) == number
            assert a.connections == 0
            tty.send(f"once {number}\n")
            tty.expect("ok\r\n")
            second = question_on(tty)
            tty.send(f"run {second}\n")
            tty.expect("ok\r\nok\r\n")
            tty.send("for the command\n")
            tty.expect("ok\r\n")
            assert running.proc.wait(30) == 0
        harness.wait_until(lambda: a.connections == 3, what="connections")


def test_7_output_is_held_back_while_a_question_is_shown(tty):
    text = HEAD + """
t = threading.Thread(target=lambda: attempt(lambda: tcp("127.0.0.1", 20000)))
t.start()
time.sleep(0.5)
for i in range(20000):
    print("forged \\x1b[A", i)
print("end of it", flush=True)
os.write(2, b"all written\\n")
t.join()
"""
    argv = harness.MODES["base"].command([*ASK, "--pty"], [harness.PYTHON, "-c", text])
    with tty.start(argv) as running:
        number = question_on(tty)
        # Nobody waits for the answer but the call itself.
        harness.wait_until(lambda: has_written(running), what="the end of the output")
        assert tty.pump(0.2) and b"forged" not in tty.text
        tty.send(f"no {number}\n")
        tty.expect("end of it\r\n")
        tty.expect("all written\r\n")
        tty.expect("EACCES\r\n")
        assert running.proc.wait(30) == 0


def has_written(running):
    """Only two threads are left that wait: one for the answer, one for that."""
    for pid in harness.tagged(running.tag):
        try:
            with open(f"/proc/{pid}/comm") as f:
                if not f.read().startswith("python3"):
                    continue
            calls = []
            for tid in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{tid}/syscall") as f:
                    calls.append(f.read().split()[0])
        except OSError:
            continue
        return sorted(calls) == ["202", "42"]  # futex, connect
    return False


@pytest.mark.parametrize("mode", SUPERVISED)
def test_7_terminal_that_the_command_does_not_have(tty, mode):
    """No standard stream is one: the command has no /dev/tty either, and sandlock asks there."""
    with Listener() as a:
        s = tty.start(harness.MODES[mode].command(
            ASK, program("os.open('/dev/tty', os.O_RDWR)", f"tcp('{HOST}', {a.port})")),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        number = question_on(tty)
        tty.send(f"run {number}\n")
        r = ok(s.finish())
        assert r.lines == ["ENXIO", "ok"]
        assert r.err == ""


def test_7_shared_terminal_is_not_asked_on(tty, runtime):
    argv = harness.MODES["base"].command(["--name", "q", *ASK], program(f"tcp('{HOST}', 9)"))
    with tty.start(argv, env=runtime.env) as running:
        tty.expect("'sandlock answer q' allows it within ")
        tty.send("run 1\n")
        q, = asked(runtime, "q")
        ok(answer(runtime, "q", q["id"], "no"))
        tty.expect("EACCES")
        assert running.proc.wait(30) == 0
        assert b"allow it?" not in tty.text


def test_7_question_is_taken_off_the_terminal(tty, runtime):
    """Answered elsewhere; the terminal is as before."""
    import termios
    argv = harness.MODES["base"].command(["--name", "q", *ASK, "--pty"],
                                         program(f"tcp('{HOST}', 9)"))
    before = termios.tcgetattr(tty.master)[:4]
    with tty.start(argv, env=runtime.env) as running:
        question_on(tty)
        q, = asked(runtime, "q")
        ok(answer(runtime, "q", q["id"], "no"))
        tty.expect("sandlock: the question is not open any more\r\n")
        tty.expect("EACCES")
        assert running.proc.wait(30) == 0
    assert termios.tcgetattr(tty.master)[:4] == before


def test_7_interrupt_while_a_question_is_shown(tty):
    argv = harness.MODES["base"].command([*ASK, "--pty"], program(f"tcp('{HOST}', 9)"))
    with tty.start(argv) as running:
        question_on(tty)
        tty.send("\x03")
        assert running.proc.wait(30) in (1, 130)


# --- --ask-save ----------------------------------------------------------------------------------


def saved(runtime, path, calls, words, flags=()):
    s = runtime.named("q", program(*calls), flags=[*ASK, "--ask-save", path, *flags])
    for word in words:
        q, = asked(runtime, "q")
        ok(answer(runtime, "q", q["id"], word))
    return ok(s.finish())


def test_7_ask_save(runtime, place):
    path = place.dir("save") / "rules.toml"
    with Listener() as a, Listener() as b, Listener() as c:
        calls = [f"tcp('{HOST}', {a.port})", f"udp('{HOST}', {b.port})",
                 f"tcp('{HOST}', {c.port})"]
        r = saved(runtime, path, calls, ["run", "run", "once"])
        assert r.lines == ["ok", "ok", "ok"]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert os.listdir(path.parent) == ["rules.toml"]
        # The second run knows what was allowed for the first one, and only that.
        r = ok(harness.sandbox(["--profile-file", path], program(*calls)))
        assert r.lines == ["ok", "ok", "ECONNREFUSED"]
        # What is there already stays.
        r = saved(runtime, path, [calls[2]], ["run"])
        r = ok(harness.sandbox(["--profile-file", path], program(*calls)))
        assert r.lines == ["ok", "ok", "ok"]
        assert path.read_text().count(f"tcp://{HOST}:{a.port}") == 1


def test_7_ask_save_names_a_host(runtime, place):
    path = place.dir("save") / "rules.toml"
    with Listener() as a:
        r = saved(runtime, path, [f"tcp('{HOST}', {a.port})"], ["run"],
                  ["--net-allow", "localhost:1"])
        assert r.lines == ["ok"]
        assert f"tcp://localhost:{a.port}" in path.read_text()


def test_7_ask_save_refuses_a_bad_place(runtime, place):
    top = place.dir("save")
    profile = top / "p.toml"
    for name, text in (("bad.toml", "this is = = no TOML"), ("list.toml", "network = 1\n"),
                       ("text.toml", "[network]\nallow = \"x\"\n")):
        place.account.own(place.file(f"save/{name}", text))
        refused(harness.sandbox([*ASK, "--ask-save", top / name], ["/bin/true"]),
                "--ask-save", "cannot be added to")
    os.symlink(top / "elsewhere", top / "link.toml")
    for bad in (top / "link.toml", top / "none" / "x.toml", top):
        refused(harness.sandbox([*ASK, "--ask-save", bad], ["/bin/true"]),
                "--ask-save", "cannot be added to")
    for grant in (top, top.parent):
        refused(harness.sandbox([*ASK, "--ask-save", profile, "-w", grant], ["/bin/true"]),
                "--ask-save", "lies in what --fs-write grants")
    os.symlink(top, top.parent / "way")
    refused(harness.sandbox([*ASK, "--ask-save", top.parent / "way" / "p.toml", "-w", top],
                            ["/bin/true"]), "lies in what --fs-write grants")
    assert not profile.exists()
    refused(harness.sandbox(["--ask-save", profile], ["/bin/true"]), "needs --net-ask as well")
    refused(harness.sandbox(["--ask-timeout", "3"], ["/bin/true"]), "needs --net-ask as well")
    refused(harness.sandbox(["--net-ask", "--no-supervisor"], ["/bin/true"]),
            "--no-supervisor is incompatible with: --net-ask")
