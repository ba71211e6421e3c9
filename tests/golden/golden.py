#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what policy-tool prints with the files in expected/: golden.py TOOL.

REGEN=1 in the environment rewrites the files; the difference is then reviewed like code.
"""
import difflib
import json
import os
import subprocess
import sys
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(HERE, "expected")
ENV = {"HOME": "/home/user", "XDG_CONFIG_HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
REGEN = os.environ.get("REGEN") == "1"

TEXTS = ("help", "man-run", "man-policy", "bash", "zsh", "fish", "schema", "reference")

# Command lines whose policy is printed in both formats; each stands for a way of writing.
POLICIES = {
    "empty": [],
    "typical": ["-r", "/usr", "-r", "/lib", "-r", "/lib64", "-r", "/bin", "-r", "/etc", "-w", "work",
                "--net-allow", ":443"],
    "program": ["--cwd", "/srv/app", "--env", "A=1", "--env", "B=two words", "--env", "A=3",
                "--clean-env", "--user", "1000:100", "--name", "api.local", "--no-coredump",
                "--no-huge-pages", "--no-randomize-memory"],
    "quoting": ["-r", "/a $b/${c}", "-r", "/tab\there", "-r", "/quo\"te\\", "-w", "~/x",
                "--env", "T=~/x $HOME $$", "--env", "N=line\nbreak", "--env", "E="],
    "network": ["--net-allow", "tcp://*:443,80-82", "--net-allow", "Example.COM:22",
                "--net-allow", "[2001:DB8::1]:53", "--net-allow", "10.1.2.3/8",
                "--net-allow", "*.example.com", "--net-allow", "icmp://*", "--net-deny", "udp://:*",
                "--net-allow-bind", "8080,9000-9005", "--net-deny-bind", "22",
                "--net-allow-loopback", "own", "--port-remap", "--unix-allow", "/run/x.sock"],
    "http": ["--http-allow", "POST api.example.com/v1/*", "--http-deny", "* */admin/*",
             "--http-port", "80,8080", "--http-inject-ca", "/etc/ssl/certs/ca-certificates.crt",
             "--credential", "key=env:API_KEY", "--http-auth", "POST api.example.com/* bearer key"],
    "limits": ["-t", "90", "--max-open-files", "256", "--cpu-cores", "0-3,6", "-m", "1.5GiB",
               "-P", "64", "-c", "50", "--num-cpus", "4", "--max-disk", "10GB", "--gpu", "all",
               "--oom", "tree"],
    "fractions": ["-t", "0.25", "--gpu", "0,2", "-m", "512", "--time-rate", "1.5"],
    "determinism": ["--random-seed", "18446744073709551615", "--time-start", "2000-01-01T00:00:00Z",
                    "--deterministic-dirs", "--deterministic"],
    "workspace": ["--workdir", ".", "--workdir", "/srv", "--on-exit", "keep", "--on-error", "abort",
                  "--on-conflict", "theirs", "--fs-storage", "/var/tmp/s", "--fs-deny", "*.key",
                  "--fs-deny-except", "path:/a*b", "--fs-hide", "**/.env",
                  "--fs-mount", "/data:/srv/data:ro", "--chroot", "/srv/root"],
    "protections": ["--allow-degraded", "Net-TCP", "--disable", "signal-scope", "--allow-metadata",
                    "--extra-deny-syscall", "ptrace", "--extra-allow-syscall", "sysv_ipc"],
    "off": ["--clean-env", "--no-clean-env", "--port-remap=false", "--no-supervisor"],
    "profile": ["-p", "builtin:python", "-r", "/srv", "--view", "notify"],
    "profile-overridden": ["-t", "5", "-p", "c-build", "--env", "CCACHE_DISABLE=0", "--quiet"],
}

# Command lines of which only the verdict counts.
CHECKS = {
    "check-ok": ["-r", "/usr", "-w", ".", "--net-allow", "tcp://:443", "-t", "5", "--", "cmd", "-z"],
    "check-warning": ["--no-supervisor", "--net-allow", ":443", "--net-allow", ":80"],
    "check-later": ["--http-allow", "GET example.com/"],
    "check-rule": ["--net-allow", "tcp://10.0.0.0/40:80"],
    "check-unsupervised": ["--no-supervisor", "-t", "5", "--name", "x", "-m", "1G",
                           "--status-fd", "3", "--net-allow", "udp://:53"],
    "check-unknown": ["--net-alow", ":443"],
    "check-no-profile": ["-p", "nothing"],
    "check-path-profile": ["-p", "../x"],
    "check-two-profiles": ["-p", "system", "--profile-file", "/x.toml"],
    "check-syscall": ["--extra-allow-syscall", "mount"],
    "check-size": ["-m", "1.5"],
}


def run(tool, *args):
    done = subprocess.run([tool, *args], env=ENV, cwd="/", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


class Golden:
    def __init__(self, tool):
        self.tool = tool
        self.failed = 0
        self.seen = set()

    def compare(self, name, actual):
        path = os.path.join(EXPECTED, name)
        self.seen.add(name)
        if REGEN:
            with open(path, "wb") as f:
                f.write(actual)
            return
        try:
            with open(path, "rb") as f:
                expected = f.read()
        except FileNotFoundError:
            expected = b""
        if actual != expected:
            self.failed += 1
            print(f"--- {name} differs (REGEN=1 rewrites it)")
            sys.stdout.writelines(difflib.unified_diff(
                expected.decode(errors="replace").splitlines(True),
                actual.decode(errors="replace").splitlines(True), "expected", "actual"))

    def expect(self, condition, what):
        if not condition:
            self.failed += 1
            print(f"failed: {what}")

    def texts(self):
        for name in TEXTS:
            code, out = run(self.tool, "text", name)
            self.expect(code == 0, f"text {name} ends with {code}")
            self.compare(f"{name}.txt", out)

    def policies(self):
        for name, args in POLICIES.items():
            code, toml = run(self.tool, "print", "toml", *args)
            self.expect(code == 0, f"{name} as TOML ends with {code}: {toml!r}")
            self.compare(f"policy-{name}.toml", toml)
            code, text = run(self.tool, "print", "json", *args)
            self.expect(code == 0, f"{name} as JSON ends with {code}: {text!r}")
            self.compare(f"policy-{name}.json", text)
            # Other readers than ours see the same in both.
            self.expect(tomllib.loads(toml.decode()) == json.loads(text),
                        f"{name}: TOML and JSON differ")

    def again(self):
        """A printed policy, read as a profile, prints the same."""
        for name in POLICIES:
            for ending in ("toml", "json"):
                path = os.path.join(EXPECTED, f"policy-{name}.{ending}")
                code, out = run(self.tool, "print", "toml", "--profile-file", path)
                self.expect(code == 0, f"{path}: {out!r}")
                self.compare(f"policy-{name}.toml", out)

    def checks(self):
        for name, args in CHECKS.items():
            code, out = run(self.tool, "check", *args)
            self.expect(code == (0 if out.startswith(b"ok\n") else 1), f"{name} ends with {code}")
            self.expect(out.startswith(b"ok\n") or out.count(b"\n") == 1,
                        f"{name}: the message is not one line: {out!r}")
            self.compare(f"{name}.txt", out)


def main():
    golden = Golden(os.path.abspath(sys.argv[1]))
    os.makedirs(EXPECTED, exist_ok=True)
    golden.texts()
    golden.policies()
    golden.again()
    golden.checks()
    stale = set(os.listdir(EXPECTED)) - golden.seen
    golden.expect(not stale, f"files that no test makes: {sorted(stale)}")
    sys.exit(1 if golden.failed else 0)


main()
