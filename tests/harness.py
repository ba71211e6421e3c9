# SPDX-License-Identifier: Apache-2.0
"""What the system tests share: the installed build, the accounts that tests run as, running a
command with a time limit, and finding what a command left behind.

Invariant: no test depends on PATH, HOME, a terminal or standard input of whoever started pytest, and
no process that a test started outlives it unnoticed: every run carries a tag in its environment, by
which leftovers are found and killed.
"""

import errno
import fcntl
import glob
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import stat
import struct
import subprocess
import tempfile
import termios
import time
import uuid

TAG = "SANDLOCK_TEST_TAG"
PYTHON = "/usr/bin/python3"
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent

# What a dynamically linked program of Debian needs to run.
SYSTEM_DIRS = [d for d in ("/usr", "/lib", "/lib64", "/bin", "/etc") if os.path.exists(d)]
SYSTEM = [word for d in SYSTEM_DIRS for word in ("-r", d)]


class Account:
    """A user id to run commands as. Nothing is created: numeric ids need no passwd entry."""

    def __init__(self, uid, gid):
        self.uid = uid
        self.gid = gid

    @property
    def current(self):
        return self.uid == os.getuid()

    def popen_args(self):
        if self.current:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, path):
        """Gives PATH and what is below it to this account."""
        if os.getuid() != 0:
            return
        for top, dirs, files in os.walk(path):
            for name in dirs + files:
                os.lchown(os.path.join(top, name), self.uid, self.gid)
        os.lchown(path, self.uid, self.gid)


if os.getuid() == 0:
    # Ids of this test run's own, so that two runs on one machine do not see each other's leftovers.
    FIRST_UID = 60200 + os.getpid() % 1000 * 4
    USER = Account(FIRST_UID, FIRST_UID)
    SECOND = Account(FIRST_UID + 1, FIRST_UID + 1)
    THIRD = Account(FIRST_UID + 2, FIRST_UID + 2)
    ROOT_USER = Account(0, 0)
else:
    USER = Account(os.getuid(), os.getgid())
    SECOND = THIRD = ROOT_USER = None


OURS = [a.uid for a in (USER, SECOND, THIRD) if a]
OURS_OR_ROOT = [*OURS, 0]


class Result:
    """What a command did: code (negative: ended by that signal), out and err as text."""

    def __init__(self, argv, code, out, err, tag):
        self.argv = argv
        self.code = code
        self.out = out
        self.err = err
        self.tag = tag

    def __repr__(self):
        words = " ".join(map(str, self.argv))
        return f"\n$ {words}\ncode {self.code}\nstdout: {self.out}\nstderr: {self.err}"

    @property
    def lines(self):
        return self.out.splitlines()

    @property
    def err_lines(self):
        return self.err.splitlines()


class TimedOut(AssertionError):
    pass


def base_env(extra=None):
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}
    if INSTALLED and INSTALLED.library_path:
        env["LD_LIBRARY_PATH"] = INSTALLED.library_path
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
        if name in os.environ:
            env[name] = os.environ[name]
    env.update(extra or {})
    return {k: v for k, v in env.items() if v is not None}


def new_tag():
    return "t" + uuid.uuid4().hex


def tagged(tag):
    """Pids of living processes whose environment holds TAG."""
    needle = f"{TAG}={tag}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            # A process that cannot be dumped shows as root's.
            owner = os.stat(f"/proc/{entry}").st_uid
        except OSError:
            continue
        if owner in OURS_OR_ROOT and needle in environment(entry):
            found.append(int(entry))
    return found


def environment(pid):
    """The environment of a process; of its threads where the first of them has ended."""
    for path in [f"/proc/{pid}/environ", *glob.iglob(f"/proc/{pid}/task/*/environ")]:
        try:
            with open(path, "rb") as f:
                text = f.read()
        except OSError:
            continue
        if text:
            return text.split(b"\0")
    return []


def describe(pids):
    out = []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().replace(b"\0", b" ").decode(errors="replace")
            with open(f"/proc/{pid}/stat") as f:
                state = f.read().rsplit(")", 1)[1].split()[0]
            out.append(f"{pid} {state} {words}")
        except OSError:
            out.append(f"{pid} (gone meanwhile)")
    return "; ".join(out)


def kill_tagged(tag):
    """Kills every process with TAG, forkers included."""
    for _ in range(2000):
        pids = tagged(tag)
        if not pids:
            return
        for pid in pids:
            try:
                os.kill(pid, signal.SIGSTOP)
            except OSError:
                pass
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
    raise AssertionError(f"cannot kill {describe(tagged(tag))}")


def gone_within(tag, seconds=20):
    """Waits until no process has TAG; returns those that are left."""
    end = time.monotonic() + seconds
    while True:
        pids = tagged(tag)
        if not pids or time.monotonic() > end:
            return pids
        time.sleep(0.02)


def wait_until(predicate, seconds=20, what="condition"):
    end = time.monotonic() + seconds
    while not predicate():
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come true in {seconds} s")
        time.sleep(0.01)


class Running:
    """A command that was started and carries a tag."""

    def __init__(self, argv, account=None, env=None, cwd="/", stdin=subprocess.DEVNULL,
                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(), preexec=None,
                 new_session=True, umask=0o022):
        self.argv = [str(a) for a in argv]
        self.account = account or USER
        self.tag = new_tag()
        full = base_env(env)
        full[TAG] = self.tag
        self.proc = subprocess.Popen(
            self.argv, env=full, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr,
            pass_fds=pass_fds, preexec_fn=preexec, start_new_session=new_session, umask=umask,
            **self.account.popen_args())

    @property
    def pid(self):
        return self.proc.pid

    def finish(self, timeout=60, data=None):
        try:
            out, err = self.proc.communicate(data, timeout=timeout)
        except subprocess.TimeoutExpired:
            state = describe(tagged(self.tag) + [self.proc.pid])
            self.proc.kill()
            kill_tagged(self.tag)
            try:
                out, err = self.proc.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                out, err = b"", b""
            raise TimedOut(f"no end after {timeout} s: {self.argv}\n{state}\n{out!r}\n{err!r}")
        text = [(b or b"").decode(errors="surrogateescape") for b in (out, err)]
        return Result(self.argv, self.proc.returncode, *text, self.tag)

    def stop(self):
        if self.proc.poll() is None:
            self.proc.kill()
        kill_tagged(self.tag)
        self.proc.wait(timeout=30)
        for f in (self.proc.stdin, self.proc.stdout, self.proc.stderr):
            if f:
                f.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stop()


def run(argv, *, timeout=60, data=None, leftovers=False, **kw):
    """Runs ARGV to its end. Processes left behind are a failure unless LEFTOVERS allows them."""
    if data is not None:
        kw["stdin"] = subprocess.PIPE
        data = data.encode() if isinstance(data, str) else data
    running = Running(argv, **kw)
    result = running.finish(timeout, data)
    left = tagged(result.tag)
    if left:
        words = describe(left)
        kill_tagged(result.tag)
        if not leftovers:
            raise AssertionError(f"left behind: {words}{result!r}")
    return result


# --- The build -------------------------------------------------------------------------------


class Installed:
    """The programs under test, copied to a directory that every account can reach."""

    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="sandlock-test-", dir="/tmp"))
        self.top.chmod(0o755)
        self.bin = self.top / "bin"
        self.bin.mkdir()
        self.bin.chmod(0o755)
        self.library_path = None
        self.sandlock = self.copy("sandlock")
        self.attack = self.copy("attack")
        self.tools = {}
        for name in ("errno-probe", "engine", "inside", "fake-kernel", "sandlock-guardian",
                     "sock-race", "path-race", "net-race", "name-client", "commit-tool"):
            found = self.copy(name)
            if found:
                self.tools[name] = found
        for lib in self.find("libsandlock.so*"):
            target = self.bin / lib.name
            if not target.exists():
                if lib.is_symlink():
                    target.symlink_to(os.readlink(lib))
                else:
                    shutil.copy2(lib, target)
        if self.sandlock and not self.resolves():
            self.library_path = str(self.bin)

    def find(self, pattern):
        for path in sorted(self.build.rglob(pattern)):
            if path.is_symlink() or (path.is_file() and ".p/" not in f"{path}"):
                if not path.is_dir():
                    yield path

    def copy(self, name):
        for path in self.find(name):
            if os.access(path, os.X_OK):
                target = self.bin / name
                shutil.copy2(path, target)
                target.chmod(0o755)
                return target
        return None

    def resolves(self):
        env = {"PATH": "/usr/bin:/bin"}
        r = subprocess.run([self.sandlock, "--version"], env=env, stdin=subprocess.DEVNULL,
                           capture_output=True, check=False)
        return r.returncode != 127 or b"shared libraries" not in r.stderr

    def remove(self):
        shutil.rmtree(self.top, ignore_errors=True)


INSTALLED = None


def install(build):
    global INSTALLED
    INSTALLED = Installed(build)
    return INSTALLED


def default_build():
    given = os.environ.get("SANDLOCK_BUILD")
    return given if given else str(ROOT / "build")


# --- Modes -----------------------------------------------------------------------------------


class Mode:
    def __init__(self, name, flags=(), account="user", nested=False):
        self.name = name
        self.flags = list(flags)
        self.account_name = account
        self.nested = nested

    @property
    def account(self):
        return ROOT_USER if self.account_name == "root" else USER

    @property
    def base(self):
        """Whether the namespaces and mounts of the base are used."""
        return self.name in ("base", "nested", "root")

    def command(self, flags, argv, system=True):
        """The command line that runs ARGV under FLAGS in this mode."""
        s = str(INSTALLED.sandlock)
        grants = (SYSTEM if system else []) + ["-r", str(INSTALLED.bin)]
        words = [s, "run", *self.flags, *grants, *map(str, flags), "--"]
        if self.nested:
            words += [s, "run", "--no-supervisor", *grants, *map(str, flags), "--"]
        return words + [str(a) for a in argv]

    def __repr__(self):
        return self.name


MODES = {m.name: m for m in (
    Mode("base"),
    Mode("nobase", ["--view", "notify"]),
    Mode("unsup", ["--no-supervisor"]),
    Mode("nested", nested=True),
    Mode("root", account="root"),
)}

USER_MODES = ["base", "nobase", "unsup", "nested"]
SUPERVISED = ["base", "nobase"]


def usable_modes(names):
    return [MODES[n] for n in names if n != "root" or os.getuid() == 0]


def sandlock(*words, **kw):
    """Runs the sandlock program with WORDS."""
    return run([INSTALLED.sandlock, *words], **kw)


def sandbox(flags, argv, mode="base", **kw):
    """Runs ARGV in a sandbox of MODE with the system's directories readable, and FLAGS."""
    m = MODES[mode] if isinstance(mode, str) else mode
    kw.setdefault("account", m.account)
    return run(m.command(flags, argv), **kw)


# --- Places ----------------------------------------------------------------------------------


class Place:
    """A directory of one test, owned by ACCOUNT and removed afterwards."""

    def __init__(self, account=None):
        self.account = account or USER
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="place-", dir=INSTALLED.top))
        self.top.chmod(0o755)
        self.account.own(self.top)

    def dir(self, name, mode=0o755):
        path = self.top / name
        path.mkdir(parents=True)
        path.chmod(mode)
        self.account.own(path)
        return path

    def file(self, name, text="", mode=0o644):
        path = self.top / name
        path.write_text(text)
        path.chmod(mode)
        self.account.own(path)
        return path

    def remove(self):
        for top, dirs, _ in os.walk(self.top):
            for d in dirs:
                path = os.path.join(top, d)
                if not os.path.islink(path):
                    os.chmod(path, 0o755)
        shutil.rmtree(self.top, ignore_errors=True)


# --- Terminals -------------------------------------------------------------------------------


class Terminal:
    """A pseudo-terminal whose slave is the controlling terminal of what is started on it."""

    def __init__(self, account=None, rows=24, cols=80):
        self.account = account or USER
        self.master, self.slave = pty.openpty()
        self.name = os.ttyname(self.slave)
        if os.getuid() == 0:
            os.chown(self.name, self.account.uid, self.account.gid)
        self.resize(rows, cols)
        self.text = b""

    def resize(self, rows, cols):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def start(self, argv, **kw):
        slave = self.slave

        def take():
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        kw.setdefault("stdin", slave)
        kw.setdefault("stdout", slave)
        kw.setdefault("stderr", slave)
        kw.setdefault("account", self.account)
        return Running(argv, preexec=take, pass_fds=(slave,), **kw)

    def close_slave(self):
        if self.slave >= 0:
            os.close(self.slave)
            self.slave = -1

    def send(self, data):
        os.write(self.master, data.encode() if isinstance(data, str) else data)

    def pump(self, seconds=0.05):
        """Reads what has come; returns False at the end of the terminal."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError as e:
            if e.errno == errno.EIO:
                return False
            raise
        self.text += data
        return bool(data)

    def expect(self, what, seconds=30):
        """Waits for the text WHAT after what was expected before; returns what came up to it."""
        needle = what.encode() if isinstance(what, str) else what
        end = time.monotonic() + seconds
        while needle not in self.text:
            if time.monotonic() > end or not self.pump():
                if needle in self.text:
                    break
                raise AssertionError(f"{what!r} did not come; got {self.text!r}")
        before, _, self.text = self.text.partition(needle)
        return before.decode(errors="replace") + what

    def close(self):
        self.close_slave()
        if self.master >= 0:
            os.close(self.master)
            self.master = -1


# --- Residue ---------------------------------------------------------------------------------


def residue():
    """Names that a run could leave behind in the shared places of the machine."""
    found = set()
    for top in ("/dev/shm", "/tmp", "/var/tmp", "/run"):
        try:
            names = os.listdir(top)
        except OSError:
            continue
        for name in names:
            path = os.path.join(top, name)
            try:
                st = os.lstat(path)
            except OSError:
                continue
            if st.st_uid in OURS:
                found.add(path)
                if stat.S_ISDIR(st.st_mode):
                    found.update(os.path.join(path, n) for n in os.listdir(path))
    return found


def processes():
    """Living processes of the accounts that tests run as; guardians carry no tag."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.stat(f"/proc/{entry}").st_uid in OURS:
                with open(f"/proc/{entry}/stat") as f:
                    if f.read().rsplit(")", 1)[1].split()[0] not in "ZX":
                        found.append(int(entry))
        except OSError:
            continue
    return found


def mounts():
    with open("/proc/self/mountinfo") as f:
        return sorted(f.read().splitlines())


def read_json_line(path):
    with open(path) as f:
        lines = f.read().splitlines()
    assert len(lines) == 1, lines
    return json.loads(lines[0])
