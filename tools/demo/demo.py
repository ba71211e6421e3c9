#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What `make demo` shows: a real project is built under a policy while its build attacks the user.

    demo.py BUILD

Debian's source package of lz4 is fetched and built twice by an ordinary user (as root: by a uid that
nobody has), with one rule added to the build that runs tools/demo/attack.c: once as it is, once in
`sandlock run`. Every target of the attacks is a decoy below a temporary directory, and nothing else
is touched. The exit status is 0 if the confined build worked and no attack on it did.
"""

import contextlib
import os
import pathlib
import pty
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIMIT_S = 600

sys.path.insert(0, str(HERE.parent))

import staging  # noqa: E402

# name → (what is tried, {errno: what refuses it})
LANDLOCK = "Landlock: no grant covers it"
READ_ONLY = "read-only mount: outside every write grant"
FILTER = "seccomp filter"
ATTEMPTS = {
    "read-key": ("read the SSH key", {"EACCES": LANDLOCK, "ENOENT": "hidden from the sandbox"}),
    "write-outside": ("append to ~/.profile", {"EACCES": LANDLOCK, "EROFS": READ_ONLY}),
    "chmod-outside": ("make the SSH key world-readable",
                      {"EROFS": READ_ONLY, "EPERM": "seccomp filter: metadata calls",
                       "EACCES": LANDLOCK}),
    "connect-tcp": ("connect out by TCP", {"EACCES": "Landlock: no port is granted",
                                           "ECONNREFUSED": "supervisor: no rule allows it"}),
    "fast-open": ("connect by TCP fast open", {"EOPNOTSUPP": FILTER + ": MSG_FASTOPEN"}),
    "send-udp": ("send out by UDP", {"EPERM": FILTER + ": no UDP rule"}),
    "connect-unix": ("reach the SSH agent's Unix socket",
                     {"EACCES": FILTER + ": named Unix sockets"}),
    "ptrace-parent": ("ptrace its parent", {"EPERM": FILTER + ": ptrace"}),
    "signal-outside": ("signal a program of the user",
                       {"EPERM": "Landlock: signal scope", "ESRCH": "PID namespace: not visible"}),
    "type-terminal": ("type a command into the terminal",
                      {"EPERM": FILTER + ": TIOCSTI", "EACCES": LANDLOCK}),
    "outlive": ("leave a daemon behind", {}),
}


class Failure(Exception):
    """Said to the user as one line."""


def say(text=""):
    print(text, flush=True)


class User:
    """Whose rights the demo runs with: the caller's, or as root a nobody's."""

    def __init__(self):
        self.uid, self.gid = staging.ordinary_ids()

    def become(self):
        staging.become(self.uid, self.gid)

    def run(self, command, **kwargs):
        return subprocess.run(command, preexec_fn=self.become, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              timeout=LIMIT_S, **kwargs)

    def give(self, path):
        for folder, _, names in os.walk(path):
            for name in [folder, *(os.path.join(folder, n) for n in names)]:
                os.chown(name, self.uid, self.gid, follow_symlinks=False)


class Decoys:
    """A home with a key and an agent, listeners, and a program of the user to be attacked."""

    def __init__(self, user, top):
        self.home = top / "home"
        (self.home / ".ssh").mkdir(parents=True)
        (self.home / ".ssh" / "id_ed25519").write_text("the user's secret key\n")
        (self.home / ".ssh" / "id_ed25519").chmod(0o600)
        (self.home / ".profile").write_text("# the user's profile\n")
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.agent = socket.socket(socket.AF_UNIX)
        self.agent.bind(str(self.home / "agent.sock"))
        self.agent.listen(8)
        user.give(top)
        self.user = user
        self.start_victim()
        self.reached = []
        self.stop = False
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def start_victim(self):
        self.victim = subprocess.Popen(["/bin/sleep", str(2 * LIMIT_S)],
                                       preexec_fn=self.user.become)

    def watch(self):
        """Notes what arrives, whatever the attack claims."""
        names = {self.tcp: "TCP", self.udp: "UDP", self.agent: "Unix"}
        while not self.stop:
            for sock in select.select(list(names), [], [], 0.1)[0]:
                if sock is self.udp:
                    sock.recv(100)
                else:
                    sock.accept()[0].close()
                self.reached.append(names[sock])

    def restore(self):
        self.reached.clear()
        (self.home / ".profile").write_text("# the user's profile\n")
        (self.home / ".ssh" / "id_ed25519").chmod(0o600)
        if self.victim.poll() is not None:
            self.start_victim()

    def damage(self):
        """What a look from outside finds changed."""
        time.sleep(0.3)
        found = [f"{kind} listener reached" for kind in sorted(set(self.reached))]
        if (self.home / ".profile").read_text() != "# the user's profile\n":
            found.append("~/.profile changed")
        if (self.home / ".ssh" / "id_ed25519").stat().st_mode & 0o777 != 0o600:
            found.append("mode of the key changed")
        if self.victim.poll() is not None:
            found.append("the user's program was ended")
        return found

    def close(self):
        self.stop = True
        self.thread.join()
        self.victim.kill()
        self.victim.wait()
        for sock in (self.tcp, self.udp, self.agent):
            sock.close()


def survivors(mark):
    """Processes whose environment holds MARK."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return [pid for pid in found if pid != os.getpid()]


def in_terminal(user, command, cwd, env):
    """Runs COMMAND with a terminal of its own; returns (wait status, what it printed)."""
    pid, master = pty.fork()
    if pid == 0:
        try:
            user.become()
            os.chdir(cwd)
            os.execve(command[0], command, env)
        finally:
            os._exit(125)
    output, end = b"", time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if not select.select([master], [], [], 1)[0]:
            continue
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        output += data
    else:
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    os.close(master)
    return status, output.decode(errors="replace").replace("\r\n", "\n")


def prepare_source(user, top, source, decoys):
    """A copy of the project with the hostile rule in front of its build."""
    tree = top / "src"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(source, tree, symlinks=True)
    shutil.copy(HERE / "attack.c", tree)
    arguments = f"{decoys.home} {decoys.tcp.getsockname()[1]} {decoys.udp.getsockname()[1]}"
    (tree / "GNUmakefile").write_text(
        "# What a poisoned release could look like: one rule more.\n"
        "lz4: hostile-step\n\t$(MAKE) -f Makefile lz4\n\n"
        "hostile-step:\n\t$(CC) -O1 -D_GNU_SOURCE -o .attack attack.c\n"
        f"\t./.attack {arguments} {decoys.victim.pid} > attack.report\n\n"
        ".PHONY: lz4 hostile-step\n")
    user.give(tree)
    return tree


def read_report(tree):
    path = tree / "attack.report"
    rows = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return {row[0]: row[1] for row in rows if len(row) == 2}


def attacked_build(user, top, source, decoys, prefix):
    """Builds with the hostile step; returns (worked, output, report, damage, survivors, tree)."""
    decoys.restore()
    tree = prepare_source(user, top, source, decoys)
    mark = secrets.token_hex(16)
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(decoys.home), "LANG": "C.UTF-8",
           "TERM": "dumb", "SRC": str(tree), "LD_LIBRARY_PATH": str(top / "bin"),
           "DEMO_MARK": mark}
    if prefix:
        prefix = [*prefix[:-1], "--env", f"DEMO_MARK={mark}", "--"]
    command = [*prefix, "/usr/bin/make", "-j2", "lz4"]
    status, output = in_terminal(user, command, tree, env)
    worked = os.waitstatus_to_exitcode(status) == 0
    left = survivors(mark)
    damage = decoys.damage()
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return worked, output, read_report(tree), damage, left, tree


def stage(user, top, build):
    """Copies the product to where the user can reach it."""
    staging.copy_products(build, top / "bin")
    shutil.copy(HERE / "build.toml", top / "bin" / "build.toml")
    if user.run([str(top / "bin" / "sandlock"), "--version"],
                env={"LD_LIBRARY_PATH": str(top / "bin")}).returncode != 0:
        raise Failure(f"{build}/sandlock does not run; build it with `make`")


def verdict(name, outcome, left):
    if name == "outlive":
        return ("alive", None) if left else ("ended", "guardian: the whole tree ends with the build")
    if outcome in (None, "done"):
        return ("SUCCEEDED", None) if outcome else ("not run", None)
    return outcome, ATTEMPTS[name][1].get(outcome, "refused")


def print_table(bare, confined):
    say(f"{'what the build tried':35} {'without':12} {'confined':12} what stopped it")
    escaped = []
    for name, (text, _) in ATTEMPTS.items():
        before = verdict(name, bare[2].get(name), bare[4])[0]
        after, by = verdict(name, confined[2].get(name), confined[4])
        if by is None:
            escaped.append(text)
        before = {"SUCCEEDED": "succeeded", "alive": "succeeded"}.get(before, before)
        say(f"{text:35} {before:12} {after:12} {by or 'NOTHING'}")
    return escaped


def try_product(user, top, tree):
    """The built program compresses and restores its own licence; confined as well."""
    command = [str(top / "bin" / "sandlock"), "run", "-p", "builtin:system", "-w", str(tree),
               "--", "/bin/sh", "-c", "./lz4 -q -9 -f LICENSE license.lz4 && "
               "./lz4 -q -d -f license.lz4 license.out && cmp LICENSE license.out && ./lz4 --version"]
    done = user.run(command, cwd=tree, env={"PATH": "/usr/bin:/bin", "HOME": str(top),
                                            "LD_LIBRARY_PATH": str(top / "bin")})
    return done.returncode == 0, done.stdout.decode(errors="replace").strip()


def demonstrate(build, top):
    user = User()
    stage(user, top, build)
    say("Fetching the source package of lz4 from Debian ...")
    source = top / "fetched"
    done = subprocess.run([str(ROOT / "tools" / "debsrc.py"), "source", "lz4",
                           str(ROOT / "build-cache"), str(source)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(done.stderr.strip())
    decoys = Decoys(user, top)
    try:
        say(f"Building it as uid {user.uid} with a hostile step, without sandlock ...")
        bare = attacked_build(user, top, source, decoys, [])
        say("Building it again under this policy:")
        for line in (HERE / "build.toml").read_text().splitlines():
            if line and not line.startswith("#"):
                say("    " + line)
        prefix = [str(top / "bin" / "sandlock"), "run", "--profile-file",
                  str(top / "bin" / "build.toml"), "-t", str(LIMIT_S), "--"]
        confined = attacked_build(user, top, source, decoys, prefix)
    finally:
        decoys.close()
    say()
    escaped = print_table(bare, confined)
    say()
    say("Seen from outside, without sandlock: " + ("; ".join(bare[3]) or "nothing"))
    say("Seen from outside, confined:         " + ("; ".join(confined[3]) or "nothing"))
    if not confined[0]:
        say("\nThe confined build failed. Its last lines:")
        say("\n".join(confined[1].splitlines()[-15:]))
        return 1
    works, text = try_product(user, top, confined[5])
    say(f"The confined build {'made a working program: ' if works else 'made a broken program: '}"
        f"{text.splitlines()[-1] if text else ''}")
    for text in escaped:
        say(f"NOT STOPPED: {text}")
    return 0 if works and not escaped and not confined[3] else 1


def main():
    if len(sys.argv) != 2:
        print("usage: demo.py BUILD", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="sandlock-demo-") as name:
        os.chmod(name, 0o755)
        return demonstrate(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(name))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as problem:
        print(f"demo: {problem}", file=sys.stderr)
        sys.exit(1)
