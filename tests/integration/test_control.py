# SPDX-License-Identifier: Apache-2.0
"""Issue 4, item 3: the registry of live sandboxes, the control socket, and ps, inspect and kill.

The runtime directory of each test is its own, so that the list holds what the test has started.
"""

import json
import os
import re
import signal
import socket
import struct
import time

import pytest

import harness
from checks import ok, quiet_ok

SUPERVISED = ["base", "nobase"]
SLEEP = ["/bin/sleep", "81.5"]
HEADER = f"{'NAME':32} {'PID':>8} {'UPTIME':>12}  {'STATUS':10} {'PORTS':24} CMD"


class Runtime:
    """A runtime directory of one account, and sandboxes in it."""

    def __init__(self, place, account=None, name="run"):
        self.account = account or harness.USER
        self.place = place
        path = place.dir(name, 0o700)
        self.account.own(path)
        self.env = {"XDG_RUNTIME_DIR": str(path)}
        self.dir = path / "sandlock"
        self.started = []

    def cli(self, *words, **kw):
        kw.setdefault("account", self.account)
        return harness.sandlock(*words, env=self.env, **kw)

    def start(self, flags=(), argv=None, mode="base", **kw):
        command = harness.MODES[mode].command(list(flags), argv or SLEEP)
        running = harness.Running(command, env=self.env, account=self.account, **kw)
        self.started.append(running)
        return running

    def wait(self, name):
        """Until NAME is complete: its pid file is written last."""
        harness.wait_until(lambda: (self.dir / name / "pid").exists(), what=f"the entry {name}")
        return self.dir / name

    def named(self, name, argv=None, mode="base", flags=(), **kw):
        running = self.start(["--name", name, *flags], argv, mode, **kw)
        self.wait(name)
        return running

    def list(self):
        return json.loads(quiet_ok(self.cli("ps", "--json")).out)

    def names(self):
        return [row["name"] for row in self.list()]

    def pids(self, name):
        words = (self.dir / name / "pid").read_text().split()
        assert len(words) == 8
        return [int(w) for w in words]

    def entries(self):
        return sorted(p.name for p in self.dir.iterdir()) if self.dir.exists() else []

    def stop(self):
        for running in self.started:
            if running.proc.poll() is None:
                os.kill(running.pid, signal.SIGCONT)
            running.stop()


@pytest.fixture
def runtime(place):
    r = Runtime(place)
    yield r
    r.stop()


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def frame(text):
    data = text.encode() if isinstance(text, str) else text
    return struct.pack(">I", len(data)) + data


# --- ps ------------------------------------------------------------------------------------------


def test_3_ps_of_nothing(runtime):
    r = quiet_ok(runtime.cli("ps"))
    assert r.out == "No running sandboxes.\n"
    assert runtime.list() == []
    assert not runtime.dir.exists()


@pytest.mark.parametrize("mode", SUPERVISED)
def test_3_ps_row(runtime, mode):
    runtime.named("web-1", mode=mode)
    lines = quiet_ok(runtime.cli("ps")).lines
    assert lines[0] == HEADER
    pid = runtime.pids("web-1")[0]
    assert re.fullmatch(rf"web-1 {{28}}{pid:>8} +[0-9]+s  running    - {{24}}/bin/sleep 81\.5",
                        lines[1]), lines
    assert len(lines) == 2
    row, = runtime.list()
    assert list(row) == ["name", "pid", "supervisor_pid", "guardian_pid", "uptime_ms", "status",
                         "ports", "command"]
    assert row["pid"] == pid
    assert row["supervisor_pid"] == runtime.started[0].pid
    assert row["command"] == SLEEP
    assert row["ports"] == {}


@pytest.mark.parametrize("mode", SUPERVISED)
def test_3_a_sandbox_without_a_name_has_one(runtime, mode):
    running = runtime.start(mode=mode)
    name = f"sandbox-{running.pid}-1"
    runtime.wait(name)
    assert runtime.names() == [name]
    ok(runtime.cli("kill", name))
    running.proc.wait(30)
    assert runtime.entries() == []


@pytest.mark.parametrize("mode", SUPERVISED)
def test_3_nothing_is_left_after_the_end(runtime, mode):
    quiet_ok(harness.sandbox([], ["/usr/bin/true"], mode=mode, env=runtime.env))
    quiet_ok(harness.sandbox(["--name", "n"], ["/usr/bin/true"], mode=mode, env=runtime.env))
    assert not runtime.dir.exists()


@pytest.mark.parametrize("mode", SUPERVISED)
@pytest.mark.parametrize("flags", [[], ["--name", "n"]], ids=str)
def test_3_nothing_is_left_after_a_killed_host(runtime, mode, flags):
    running = runtime.start(flags, mode=mode)
    runtime.wait("n" if flags else f"sandbox-{running.pid}-1")
    running.proc.kill()
    running.proc.wait(30)
    harness.wait_until(lambda: not runtime.dir.exists(), what="an empty registry")
    assert runtime.list() == []


def test_3_text_of_a_sandbox_is_escaped(runtime):
    runtime.named("n", ["/bin/sh", "-c", "# \033[2J\nx\u202e\nsleep 81.5"])
    line = quiet_ok(runtime.cli("ps")).lines[1]
    assert line.endswith("/bin/sh -c # \\x1b[2J\\x0ax\\u{202e}\\x0asleep 81.5"), line
    for form in ([], ["--json"], ["--toml"]):
        text = quiet_ok(runtime.cli("inspect", "n", *form)).out
        assert "\033" not in text and "\u202e" not in text


def test_3_long_command_is_cut(runtime):
    runtime.named("n", ["/bin/sh", "-c", "sleep 81.5 # " + "ä" * 100])
    line = quiet_ok(runtime.cli("ps")).lines[1]
    command = line[len(HEADER) - 3:]
    assert command.startswith("/bin/sh -c sleep 81.5 # ää")
    assert len(command) == 58 and command.endswith("ä…")


def test_3_a_stopped_supervisor_does_not_hang_ps(runtime):
    running = runtime.named("stopped")
    runtime.named("other")
    os.kill(running.pid, signal.SIGSTOP)
    rows = {row["name"]: row for row in runtime.list()}
    assert rows["other"]["status"] == "running"
    assert rows["stopped"]["status"] == "no-answer"
    assert rows["stopped"]["command"] == SLEEP
    assert rows["stopped"]["ports"] is None
    r = runtime.cli("inspect", "stopped")
    assert (r.code, r.out) == (1, "")
    assert r.err == (f"sandlock: sandbox 'stopped' does not answer: its supervisor, process "
                     f"{running.pid}, is stopped or hangs\n")
    os.kill(running.pid, signal.SIGCONT)
    harness.wait_until(lambda: {row["status"] for row in runtime.list()} == {"running"},
                       what="an answer")


# --- inspect -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode,view", [("base", "namespace"), ("nobase", "plain")])
def test_3_inspect_forms(runtime, mode, view):
    flags = ["-r", "/usr", "-r", "/bin", "-r", "/lib", "-r", "/lib64", "-w", "/tmp", "--env",
             "A=${x} 'y'", "--allow-degraded", "fs-refer", "--name", "n",
             *harness.MODES[mode].flags]
    printed = {f: ok(runtime.cli("run", *flags, "--print-policy", f)).out for f in ("json", "toml")}
    command = [harness.INSTALLED.sandlock, "run", *flags, "--", *SLEEP]
    running = harness.Running(command, env=runtime.env)
    runtime.started.append(running)
    runtime.wait("n")
    assert quiet_ok(runtime.cli("inspect", "n", "--json")).out == printed["json"]
    toml = quiet_ok(runtime.cli("inspect", "n", "--toml")).out
    body = "".join(line for line in toml.splitlines(True) if not line.startswith("# "))
    wanted = "".join(line for line in printed["toml"].splitlines(True)
                     if not line.startswith("# "))
    assert body.strip() == wanted.strip()
    full = json.loads(quiet_ok(runtime.cli("inspect", "n")).out)
    facts = full.pop("sandbox")
    assert full == json.loads(printed["json"])
    assert facts["name"] == "n"
    assert facts["view"] == facts["rungs"]["view"] == view
    assert facts["rungs"]["base"] == (mode == "base")
    assert facts["waivers"] == {"fs-refer": "degraded-if-missing"}
    assert facts["command"] == SLEEP
    assert facts["pid"] == runtime.pids("n")[0]
    assert f'# view: "{view}"\n' in toml and "# waivers: " in toml and "# rungs: {" in toml


def test_3_inspected_policy_runs_again(runtime, place):
    runtime.named("n")
    for form in ("json", "toml"):
        text = quiet_ok(runtime.cli("inspect", "n", f"--{form}")).out
        path = place.file(f"again.{form}", text)
        quiet_ok(runtime.cli("run", "--profile-file", path, "--name", "m", "--", "/usr/bin/true"))


# --- kill ----------------------------------------------------------------------------------------

TREE = "setsid sleep 81.5 & (setsid sleep 81.5 &) ; trap '' TERM HUP INT; sleep 81.5; sleep 81.5"


@pytest.mark.parametrize("mode", SUPERVISED)
@pytest.mark.parametrize("stop", ["none", "supervisor", "guardian", "keeper", "all"])
def test_3_kill_ends_the_whole_tree(runtime, mode, stop):
    running = runtime.named("n", ["/bin/sh", "-c", TREE], mode)
    harness.wait_until(lambda: len(harness.tagged(running.tag)) >= 5, what="the tree")
    child, supervisor, guardian, keeper, *_ = runtime.pids("n")
    assert supervisor == running.pid
    stopped = {"none": [], "supervisor": [supervisor], "guardian": [guardian],
               "keeper": [keeper], "all": [supervisor, guardian, keeper, child]}[stop]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    r = quiet_ok(runtime.cli("kill", "n"))
    assert r.out == f"Killed sandbox 'n' (child PID {child}, supervisor PID {supervisor})\n"
    left = [pid for pid in harness.tagged(running.tag) if pid != supervisor and alive(pid)]
    assert left == [], harness.describe(left)
    assert not (runtime.dir / "n").exists()
    if supervisor in stopped:
        os.kill(supervisor, signal.SIGCONT)
    assert running.proc.wait(30) == 137
    assert runtime.list() == []


def test_3_kill_spares_the_embedding_host(runtime, place):
    library = sorted(harness.INSTALLED.bin.glob("libsandlock.so*"))[0]
    host = os.path.dirname(os.path.abspath(__file__))
    (place.top / "host.py").write_text(open(os.path.join(host, "host.py")).read())
    program = place.file("p.py", f"""
import sys
sys.path.insert(0, {str(place.top)!r})
from host import *
lib = Library({str(library)!r})
policy = lib.policy(*system_grants(), ("name", "mine"))
p = lib.spawn(policy, ["/bin/sleep", "81.5"])
_, r = lib.wait(p)
print(r.reason, r.exit_code, r.signal, flush=True)
""")
    running = harness.Running([harness.PYTHON, program], env=runtime.env)
    runtime.started.append(running)
    runtime.wait("mine")
    quiet_ok(runtime.cli("kill", "mine"))
    result = running.finish(30)
    assert (result.code, result.out) == (0, "3 -1 9\n"), f"{result!r}"


def test_3_a_reused_pid_is_not_killed(runtime):
    """The entry names a process of the right number, but of another start: it is none of ours."""
    running = runtime.named("n")
    bystander = harness.Running(["/bin/sleep", "81.5"], account=runtime.account)
    try:
        path = runtime.dir / "n" / "pid"
        numbers = runtime.pids("n")
        numbers[2] = numbers[3] = numbers[0] = bystander.pid
        path.write_text("".join(f"{n}\n" for n in numbers))
        # Its guardian seems to be gone: the entry is dead, and nobody is signalled.
        r = runtime.cli("kill", "n")
        assert (r.code, r.err) == (1, "sandlock: no sandbox named 'n'\n")
        assert alive(bystander.pid)
        assert running.proc.poll() is None
    finally:
        bystander.stop()


@pytest.mark.parametrize("words,code,text", [
    (["kill", "nix"], 1, "no sandbox named 'nix'"),
    (["inspect", "nix"], 1, "no sandbox named 'nix'"),
    (["kill", "../sandlock"], 1, '"../sandlock" is no name of a sandbox'),
    (["kill", ".."], 1, '".." is no name of a sandbox'),
    (["inspect", ""], 1, '"" is no name of a sandbox'),
    (["inspect", "a\nb"], 1, '"a\\x0ab" is no name of a sandbox'),
    (["inspect", "x" * 300], 1, " is no name of a sandbox"),
    (["kill"], 2, "kill takes the name of one sandbox"),
    (["kill", "a", "b"], 2, "kill takes the name of one sandbox"),
    (["kill", "-9"], 2, "kill takes the name of one sandbox"),
    (["inspect"], 2, "inspect needs the name of a sandbox"),
    (["inspect", "a", "b"], 2, "inspect takes one name"),
    (["inspect", "a", "--json", "--toml"], 2, "contradict"),
    (["inspect", "a", "--yaml"], 2, "inspect takes one name"),
    (["ps", "x"], 2, "ps takes --json and nothing else"),
], ids=str)
def test_3_refusals(runtime, words, code, text):
    r = runtime.cli(*words)
    assert r.code == code and r.out == "", f"{r!r}"
    assert r.err.startswith("sandlock: ") and text in r.err and len(r.err_lines) == 1, f"{r!r}"


@pytest.mark.parametrize("command", ["ps", "inspect", "kill"])
def test_3_help(runtime, command):
    assert quiet_ok(runtime.cli(command, "--help")).out.startswith(f"Usage: sandlock {command}")


# --- The registry under attack -------------------------------------------------------------------


def plant(runtime, name, age=10):
    """An entry of a dead sandbox, as old as AGE seconds."""
    runtime.dir.mkdir(mode=0o700, exist_ok=True)
    entry = runtime.dir / name
    entry.mkdir(mode=0o700)
    (entry / "pid").write_text("".join(f"{n}\n" for n in [1, 1, 1, 1, 7, 7, 7, 7]))
    fd = os.open(entry, os.O_RDONLY | os.O_DIRECTORY)
    s = socket.socket(socket.AF_UNIX)
    s.bind(f"/proc/self/fd/{fd}/control.sock")
    s.close()
    os.close(fd)
    runtime.account.own(runtime.dir)
    then = time.time() - age
    os.utime(entry, (then, then))
    return entry


def test_3_entries_of_the_dead_are_removed(runtime):
    plant(runtime, "dead")
    assert runtime.list() == []
    assert not runtime.dir.exists()
    plant(runtime, "dead")
    r = runtime.cli("kill", "dead")
    assert (r.code, r.err) == (1, "sandlock: no sandbox named 'dead'\n")


def test_3_the_name_of_the_dead_is_free(runtime):
    plant(runtime, "again")
    runtime.start(["--name", "again"])
    harness.wait_until(lambda: runtime.names() == ["again"], what="the name")
    row, = runtime.list()
    assert (row["name"], row["status"]) == ("again", "running")


def test_3_an_entry_that_is_being_made_is_left_alone(runtime):
    runtime.dir.mkdir(mode=0o700)
    entry = runtime.dir / "young"
    entry.mkdir(mode=0o700)
    runtime.account.own(runtime.dir)
    assert runtime.list() == []
    assert entry.exists()
    os.utime(entry, (0, 0))
    assert runtime.list() == []
    assert not entry.exists()


def test_3_planted_things_are_no_entries(runtime, place):
    """A link to a directory, a file, an entry that others can write to: nothing follows or keeps."""
    target = place.dir("target", 0o700)
    (target / "keep").write_text("x")
    runtime.dir.mkdir(mode=0o700)
    (runtime.dir / "link").symlink_to(target)
    (runtime.dir / "file").write_text("x")
    (runtime.dir / "open").mkdir()
    (runtime.dir / "open").chmod(0o777)
    os.mkfifo(runtime.dir / "fifo")
    runtime.account.own(place.top)
    assert runtime.list() == []
    for name in ("link", "file", "open", "fifo"):
        r = runtime.cli("kill", name)
        assert (r.code, r.err) == (1, f"sandlock: no sandbox named '{name}'\n")
        r = harness.sandbox(["--name", name], ["/usr/bin/true"], env=runtime.env)
        assert r.code == 125 and name in r.err, f"{r!r}"
    assert (target / "keep").exists()
    runtime.named("real")
    assert runtime.names() == ["real"]


@pytest.mark.parametrize("text", ["", "1\n", "x\ny\n", "1\n" * 7, "-1\n" * 8, "9" * 400], ids=str)
def test_3_a_pid_file_of_rubbish(runtime, text):
    entry = plant(runtime, "n")
    (entry / "pid").write_text(text)
    os.utime(entry, (0, 0))
    assert runtime.list() == []
    assert not runtime.dir.exists()


def test_3_two_with_one_name_at_once(runtime):
    racing = [runtime.start(["--name", "one"]) for _ in range(8)]
    runtime.wait("one")
    harness.wait_until(lambda: sum(r.proc.poll() is None for r in racing) == 1, what="one winner")
    assert runtime.names() == ["one"]
    losers = [r for r in racing if r.proc.poll() is not None]
    assert [r.proc.returncode for r in losers] == [125] * 7
    for r in losers:
        assert b"already running" in r.proc.stderr.read()


def test_3_ps_while_sandboxes_come_and_go(runtime):
    """Two hundred starts beside a ps that never rests: every start works, nothing is left."""
    loop = harness.Running(
        ["/bin/sh", "-c", f"while :; do {harness.INSTALLED.sandlock} ps >/dev/null || exit 9; done"],
        env=runtime.env)
    try:
        for batch in range(25):
            running = [harness.Running(
                harness.MODES[SUPERVISED[i % 2]].command(
                    ["--name", f"n{i}"] if i % 4 < 2 else [], ["/usr/bin/true"]),
                env=runtime.env) for i in range(8)]
            for r in running:
                quiet_ok(r.finish(60))
        assert loop.proc.poll() is None
    finally:
        loop.stop()
    assert runtime.list() == []
    assert not runtime.dir.exists()


def test_3_ps_of_many(runtime):
    """More than one batch of the list, all answered."""
    running = [runtime.start(["--name", f"m{i:03}"], mode="nobase") for i in range(70)]
    for i in range(len(running)):
        runtime.wait(f"m{i:03}")
    rows = runtime.list()
    assert [row["name"] for row in rows] == [f"m{i:03}" for i in range(70)]
    assert {row["status"] for row in rows} == {"running"}


# --- The control socket under attack -------------------------------------------------------------

CLIENT = r"""
import os, socket, struct, sys
def dial():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(30)
    s.connect(sys.argv[1])
    return s
def frame(data):
    return struct.pack(">I", len(data)) + data
def hear(s):
    data = b""
    while True:
        try:
            piece = s.recv(65536)
        except ConnectionResetError:
            break
        if not piece:
            break
        data += piece
    return data[4:].decode()
INFO = frame(b'{"v":1,"verb":"info","args":{}}')
"""


def client(runtime, name, text, **kw):
    kw.setdefault("account", runtime.account)
    path = runtime.dir / name / "control.sock"
    return ok(harness.run([harness.PYTHON, "-c", CLIENT + text, path], **kw)).lines


def test_3_protocol(runtime):
    runtime.named("n")
    st = os.lstat(runtime.dir / "n" / "control.sock")
    assert st.st_mode & 0o777 == 0o600
    replies = client(runtime, "n", r"""
for text in (b'{"v":1,"verb":"ports","args":{}}', b'{"v":2,"verb":"ports"}', b'{"v":1,"verb":"x"}',
             b'[', b'{"v":1,"verb":"info"}', b'{"v":1,"verb":"config"}'):
    s = dial(); s.sendall(frame(text)); print(hear(s))
s = dial(); s.sendall(b"\xff\xff\xff\xff"); print(hear(s))
""")
    assert replies[:3] == ['{"v":1,"ok":true,"data":{}}',
                           '{"v":1,"ok":false,"err":"unsupported protocol version: 2"}',
                           '{"v":1,"ok":false,"err":"unknown verb: x"}']
    assert replies[3].startswith('{"v":1,"ok":false,"err":"parse error: ')
    assert json.loads(replies[4])["data"]["name"] == "n"
    assert json.loads(replies[5])["data"]["program"] == {"name": "n"}
    assert json.loads(replies[6])["err"] == \
        "request too large (4294967295 bytes, at most 65536)"


def test_3_slow_clients_do_not_keep_others_out(runtime):
    """A hundred that say half a request: the server answers others, and ends what dawdles."""
    running = runtime.named("n")
    replies = client(runtime, "n", r"""
import time
slow = []
for i in range(100):
    while True:
        try:
            slow.append(dial()); break
        except BlockingIOError:
            time.sleep(0.01)
    slow[-1].sendall(INFO[:20])
    if i % 10 == 0:
        s = dial(); s.sendall(INFO); print(hear(s)[:24])
print({hear(s) for s in slow})
s = dial(); s.sendall(INFO); print(hear(s)[:24])
""")
    assert replies == ['{"v":1,"ok":true,"data":'] * 10 + ["{''}", '{"v":1,"ok":true,"data":']
    assert running.proc.poll() is None
    assert len(os.listdir(f"/proc/{running.pid}/fd")) < 40


def test_3_a_connection_may_outlive_the_sandbox(runtime):
    runtime.named("n")
    lines = client(runtime, "n", r"""
s = dial(); s.sendall(INFO[:9])
k = dial(); k.sendall(frame(b'{"v":1,"verb":"kill"}')); print(hear(k))
print(repr(hear(s)))
""")
    assert lines == ['{"v":1,"ok":true,"data":{}}', "''"]
    assert runtime.started[0].proc.wait(30) == 137


@pytest.mark.parametrize("who", ["root", "second"])
def test_3_other_users_are_not_heard(runtime, is_root, who):
    if not is_root:
        return
    runtime.named("n")
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(30)
    if who == "root":
        s.connect(str(runtime.dir / "n" / "control.sock"))
    else:
        # With the directory's rights out of the way: the server itself must refuse.
        fd = os.open(runtime.dir / "n", os.O_PATH)
        os.chmod(f"/proc/self/fd/{fd}/control.sock", 0o666)
        pid = os.fork()
        if pid == 0:
            os.setgroups([])
            os.setresgid(*[harness.SECOND.gid] * 3)
            os.setresuid(*[harness.SECOND.uid] * 3)
            os._exit(hears_nothing(fd))
        os.close(fd)
        s.close()
        assert os.waitpid(pid, 0)[1] >> 8 in (0, 13)
        return
    try:
        s.sendall(frame('{"v":1,"verb":"kill"}'))
        assert s.recv(100) == b""
    except (BrokenPipeError, ConnectionResetError):
        pass
    assert runtime.names() == ["n"]
    # Root has a registry of its own.
    r = harness.sandlock("ps", account=harness.ROOT_USER, env=runtime.env)
    assert "n " not in r.out


def hears_nothing(fd):
    """0 if the server closes on us, 13 if the kernel keeps us from the socket, else 1."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(30)
    try:
        s.connect(f"/proc/self/fd/{fd}/control.sock")
        s.sendall(frame('{"v":1,"verb":"kill"}'))
        return 0 if s.recv(100) == b"" else 1
    except PermissionError:
        return 13
    except (BrokenPipeError, ConnectionResetError):
        return 0


def test_3_users_see_their_own(place, is_root):
    if not is_root:
        return
    mine, other = Runtime(place, harness.USER, "a"), Runtime(place, harness.SECOND, "b")
    try:
        mine.named("m")
        other.named("o")
        assert (mine.names(), other.names()) == (["m"], ["o"])
        r = harness.sandlock("kill", "m", account=harness.SECOND, env=mine.env)
        assert (r.code, r.err) == (1, "sandlock: no sandbox named 'm'\n")
    finally:
        mine.stop()
        other.stop()


@pytest.mark.parametrize("mode", SUPERVISED)
def test_3_a_sandbox_does_not_see_the_registry(runtime, mode):
    runtime.named("n")
    r = harness.sandbox([], ["/bin/ls", runtime.dir], mode=mode, env=runtime.env)
    assert r.code == 2 and r.out == ""


def test_3_a_squatter_in_dev_shm(is_root):
    """The shared place is taken by somebody else: the run goes on, with a warning."""
    if not is_root:
        return
    path = f"/dev/shm/sandlock-{harness.USER.uid}"
    os.mkdir(path, 0o777)
    os.chmod(path, 0o777)
    try:
        r = harness.sandbox([], ["/usr/bin/true"], env={"XDG_RUNTIME_DIR": None})
        assert r.code == 0
        assert r.err_lines == [
            "sandlock: warning: no runtime directory (Operation not permitted): ps, inspect and "
            "kill do not see this sandbox"]
        assert os.listdir(path) == []
        r = harness.sandlock("ps", env={"XDG_RUNTIME_DIR": None})
        assert r.out == "No running sandboxes.\n"
    finally:
        os.rmdir(path)


def test_3_long_path_of_the_runtime_directory(place):
    deep = "d" * 100
    r = Runtime(place, name=f"{deep}/{deep}")
    harness.USER.own(place.top)
    try:
        r.named("n")
        assert r.names() == ["n"]
        quiet_ok(r.cli("kill", "n"))
    finally:
        r.stop()


def test_3_descriptors_come_back(runtime):
    """A host that starts and asks many times holds no more descriptors than before."""
    running = runtime.named("n")
    before = len(os.listdir(f"/proc/{running.pid}/fd"))
    for _ in range(20):
        assert runtime.names() == ["n"]
        quiet_ok(runtime.cli("inspect", "n"))
    harness.wait_until(lambda: len(os.listdir(f"/proc/{running.pid}/fd")) == before,
                       what="closed connections")


def test_3_the_shell_may_be_gone(runtime):
    """ps into a pipe that nobody reads fails aloud."""
    full = open("/dev/full", "w")
    r = runtime.cli("ps", stdout=full)
    full.close()
    assert r.code == 1 and "could not be written" in r.err
