# SPDX-License-Identifier: Apache-2.0
"""What the rows of the benchmark share: the staged product, the unprivileged user, and the table.

A row is a module with GOAL (text), and `run(bench)` which returns a list of Figure. Only ratios of
one interleaved run are compared with a goal; peers that do not run here are named with the reason.
"""

import json
import os
import pathlib
import pwd
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build-bench"

sys.path.insert(0, str(ROOT / "tools"))

import staging  # noqa: E402

TRUE = "/bin/true"


class Figure:
    """One line of the table. RATIO is against the bare run of the same session."""

    def __init__(self, row, name, value, ratio=None, goal=None, met=None):
        self.row, self.name, self.value = row, name, value
        self.ratio, self.goal, self.met = ratio, goal, met

    def __str__(self):
        verdict = "" if self.met is None else ("met" if self.met else "MISSED")
        ratio = "" if self.ratio is None else f"{self.ratio:.2f} x"
        return f"{self.row:4} {self.name:40} {self.value:24} {ratio:>9}  {self.goal or '':12} {verdict}"


def milliseconds(samples):
    """Median and minimum, for the table."""
    return f"{statistics.median(samples) / 1e6:.3f} ms (min {min(samples) / 1e6:.3f})"


def compared(row, name, bare, samples, limit=None):
    """A figure for SAMPLES against BARE, judged by the ratio of medians."""
    if not samples:
        return Figure(row, name, "did not run here")
    ratio = statistics.median(samples) / statistics.median(bare)
    goal = None if limit is None else f"<= {limit:g} x"
    return Figure(row, name, milliseconds(samples), ratio, goal, None if limit is None else ratio <= limit)


class Bench:
    """The product where an ordinary user can reach it, a work directory, and that user."""

    def __init__(self, rounds):
        self.rounds = rounds
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="sandlock-bench-"))
        self.top.chmod(0o755)
        self.user = None
        self.uid, self.gid = os.getuid(), os.getgid()
        if self.uid == 0:
            self.uid, self.gid = account_ids()
            self.user = f"{self.uid}:{self.gid}"
        self.bin = self.top / "bin"
        staging.copy_products(BUILD, self.bin)
        for name in ("calls", "interleave", "spawn"):
            if (BUILD / "bench" / name).exists():
                shutil.copy(BUILD / "bench" / name, self.bin / name)
        self.sandlock = str(self.bin / "sandlock")
        self.work = self.directory("work")
        self.env = {"PATH": "/usr/bin:/bin:/usr/sbin", "HOME": str(self.work), "LANG": "C.UTF-8",
                    "LD_LIBRARY_PATH": str(self.bin)}

    def directory(self, name):
        path = self.top / name
        path.mkdir()
        self.give(path)
        return path

    def give(self, path):
        if self.user:
            subprocess.run(["chown", "-R", self.user, str(path)], check=True)

    def close(self):
        shutil.rmtree(self.top, ignore_errors=True)

    def as_user(self, command, **kwargs):
        """Runs COMMAND as the user and returns the finished process."""
        prefix = []
        if self.user:
            prefix = ["/usr/bin/setpriv", f"--reuid={self.uid}", f"--regid={self.gid}",
                      "--clear-groups", "--"]
        kwargs.setdefault("cwd", self.work)
        return subprocess.run([*prefix, *map(str, command)], env=self.env, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False, **kwargs)

    def interleave(self, commands, rounds=None, before=None, cwd=None):
        """Times COMMANDS (lists of words) in turn; a list of samples in ns for each, or None."""
        words = [str(self.bin / "interleave"), "--rounds", str(rounds or self.rounds)]
        words += ["--user", self.user] if self.user else []
        words += ["--cwd", str(cwd or self.work)]
        words += ["--before", before] if before else []
        for i, command in enumerate(commands):
            words += [",,"] * (i > 0) + [str(word) for word in command]
        done = subprocess.run(words, env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"interleave: {done.stderr.strip()}")
        return [row["ns"] for row in json.loads(done.stdout)["commands"]]

    def spawn(self, *words):
        """Runs the C program that embeds the library; returns its JSON."""
        user = ["--user", self.user] if self.user else []
        done = subprocess.run([str(self.bin / "spawn"), *user, "--cwd", str(self.work),
                               *map(str, words)], env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip() or f"spawn: status {done.returncode}")
        return json.loads(done.stdout)

    # The policies of goals.md. ":443" stands for what needs the network work to be more than TCP.
    def grants(self):
        return [("fs-read", path) for path in system_paths()] + [("fs-write", str(self.work))]

    def typical(self):
        return self.grants() + [("net-allow", ":443")]

    def full(self):
        """Without --net-allow 127.0.0.1:*, -m and -P: they arrive with later work."""
        return self.typical() + [("timeout", "60")]

    def flags(self, options, *more):
        """The words of `sandlock run` for OPTIONS, up to the command."""
        return [self.sandlock, "run", *(f"--{name}={value}" for name, value in options), *more, "--"]

    def words(self, options):
        """OPTIONS for bench/spawn."""
        return [f"{name}={value}" for name, value in options]

    def peers(self):
        """Other sandboxes with a like policy: (name, words before the command or None, why not)."""
        work = str(self.work)
        bwrap = ["/usr/bin/bwrap", "--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev",
                 "/dev"]
        for path in system_paths():
            bwrap += ["--ro-bind", path, path]
        rows = [("bwrap", [*bwrap, "--bind", work, work, "--"], [TRUE]),
                ("firejail", ["/usr/bin/firejail", "--quiet", "--noprofile", "--net=none", "--"],
                 [TRUE])]
        for name, words in (("crun", ["/usr/bin/crun", "--cgroup-manager=disabled"]),
                            ("runc", ["/usr/sbin/runc"])):
            rows.append((name, [*words, "--root", str(self.bundle() / "state"), "run", "--bundle",
                                str(self.bundle()), "bench"], []))
        found = []
        for name, prefix, command in rows:
            if not os.path.exists(prefix[0]):
                found.append((name, None, "not installed"))
                continue
            done = self.as_user([*prefix, *command])
            reason = (done.stderr.strip() or "no message").splitlines()[-1]
            good = done.returncode == 0
            found.append((name, [*prefix, *command] if good else None, "" if good else reason))
        found.append(self.reference())
        found += [(name, None, "not installed") for name in ("codex", "sandbox-runtime")]
        return found

    def reference(self):
        """The command of crates.io's sandlock-cli, where SANDLOCK_REFERENCE names it."""
        name = "sandlock-cli (crates.io)"
        path = os.environ.get("SANDLOCK_REFERENCE")
        if not path:
            return name, None, "SANDLOCK_REFERENCE names none"
        copy = self.top / "reference"
        shutil.copy(path, copy)
        command = [str(copy), "run", *(f"--{key}={value}" for key, value in self.typical()), "--",
                   TRUE]
        done = self.as_user(command)
        return (name, command, "") if done.returncode == 0 else (name, None, done.stderr.strip())

    def bundle(self):
        """A bundle for the OCI runtimes: /bin/true in the machine's own system directories."""
        path = self.top / "bundle"
        if path.exists():
            return path
        (path / "rootfs").mkdir(parents=True)
        binds = [{"destination": p, "type": "bind", "source": p, "options": ["rbind", "ro"]}
                 for p in system_paths()]
        spaces = ["pid", "ipc", "uts", "mount", "user", "network"]
        config = {
            "ociVersion": "1.0.2", "root": {"path": "rootfs", "readonly": True},
            "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "args": [TRUE],
                        "cwd": "/", "env": ["PATH=/usr/bin:/bin"], "noNewPrivileges": True},
            "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}, *binds],
            "linux": {"namespaces": [{"type": kind} for kind in spaces],
                      "uidMappings": [{"containerID": 0, "hostID": self.uid, "size": 1}],
                      "gidMappings": [{"containerID": 0, "hostID": self.gid, "size": 1}]},
        }
        (path / "config.json").write_text(json.dumps(config))
        self.give(path)
        return path


def system_paths():
    return [p for p in ("/usr", "/lib", "/lib64", "/bin", "/etc") if os.path.exists(p)]


def account_ids():
    """An account for people if there is one (some peers insist), else ids that nobody has."""
    for entry in pwd.getpwall():
        if 1000 <= entry.pw_uid < 60000:
            return entry.pw_uid, entry.pw_gid
    return staging.ordinary_ids()


def run_row(module):
    """For a row that is started by itself."""
    bench = Bench(int(os.environ.get("ROUNDS", "200")))
    try:
        for figure in module.run(bench):
            print(figure)
    finally:
        bench.close()
