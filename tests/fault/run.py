#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lets each system call of a start fail once, and looks at what becomes of it.

    run.py BUILD [--quick] [--calls NAME...] [--modes NAME...] [--tap FILE]

`sandlock run -- probe` is started again and again under strace, which makes the first, second, third …
call of one name fail in each process, until there is none left. Whatever fails, one of two things must
come of it: the start is refused (125, 126 or 127 with a line on standard error and nothing run), or the
command runs with every layer in force. It must not crash, hang, or leave a process behind.

--quick takes every seventh call. Prints each fault and the closing `N passed, N failed, N skipped`.
"""

import argparse
import os
import pathlib
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

sys.path.insert(0, str(HERE.parents[1] / "tools"))

import staging  # noqa: E402

STRACE = "/usr/bin/strace"
LIMIT_S = 15
MOST = 400
MODES = {"base": ["--view", "namespace"], "nobase": ["--view", "notify"], "unsup": ["--no-supervisor"]}
# name → errno that the kernel itself can give there (waitid is not here: with WNOHANG or with all
# signals blocked it cannot fail for one of our own children)
CALLS = {
    "openat": "EMFILE", "openat2": "ENFILE", "close": "EIO", "close_range": "ENOMEM",
    # No brk: it never returns an error but the old break (brk(2)), and libc takes -ENOMEM for one.
    "mmap": "ENOMEM", "mremap": "ENOMEM", "munmap": "ENOMEM",
    "mprotect": "ENOMEM", "memfd_create": "EMFILE", "ftruncate": "ENOSPC", "clone": "EAGAIN",
    "clone3": "EAGAIN", "fork": "EAGAIN", "vfork": "EAGAIN", "execve": "ENOMEM", "pipe2": "EMFILE",
    "socketpair": "EMFILE", "setsockopt": "ENOBUFS", "sendto": "ENOBUFS", "sendmsg": "ENOBUFS",
    "recvmsg": "ENOBUFS", "recvfrom": "ENOBUFS", "pidfd_open": "EMFILE", "pidfd_getfd": "EMFILE",
    "pidfd_send_signal": "EPERM", "epoll_create1": "EMFILE", "epoll_ctl": "ENOMEM",
    "signalfd4": "EMFILE", "poll": "ENOMEM", "ppoll": "ENOMEM", "read": "EIO", "write": "EIO", "fcntl": "EMFILE", "dup3": "EMFILE",
    "dup2": "EMFILE", "newfstatat": "EIO", "fstat": "EIO", "statx": "EIO", "getdents64": "EIO",
    "readlink": "EIO", "readlinkat": "EIO", "mkdirat": "ENOSPC", "unlinkat": "EIO",
    "flock": "ENOLCK", "chdir": "EACCES", "fchdir": "EACCES", "mount": "EPERM", "umount2": "EPERM",
    "mount_setattr": "EPERM", "open_tree": "EPERM", "move_mount": "EPERM", "fsopen": "EPERM",
    "fsconfig": "EPERM", "fsmount": "EPERM", "sethostname": "EPERM", "setpgid": "EPERM",
    "setsid": "EPERM", "ioctl": "EIO", "prctl": "EPERM", "capset": "EPERM", "setresuid": "EAGAIN",
    "setresgid": "EPERM", "setgroups": "EPERM", "setuid": "EAGAIN", "setgid": "EPERM",
    "landlock_create_ruleset": "ENOMEM", "landlock_add_rule": "ENOMEM",
    "landlock_restrict_self": "E2BIG", "seccomp": "ENOMEM", "prlimit64": "EPERM",
    "rt_sigaction": "EINVAL", "rt_sigprocmask": "EINVAL", "kill": "EPERM", "personality": "EINVAL",
    "sched_setaffinity": "EINVAL", "unshare": "EPERM", "setns": "EPERM", "gettid": "EPERM",
}


class Bed:
    """The product, a secret and a forbidden place, where an ordinary user can reach them."""

    def __init__(self, build, top):
        self.top = top
        self.before_main = {}
        self.uid, self.gid = staging.ordinary_ids()
        for name in ("work", "out", "log"):
            (top / name).mkdir()
        staging.copy_products(build, top / "bin")
        subprocess.run(["gcc", "-O2", "-static", "-D_GNU_SOURCE", "-o", str(top / "bin" / "probe"),
                        str(HERE / "probe.c")], check=True)
        (top / "out" / "secret").write_text("secret\n")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(top / "out" / "socket"))
        self.listener.listen(MOST)
        for path in [top, *top.rglob("*")]:
            os.chown(path, self.uid, self.gid)
            if path.is_dir():
                path.chmod(0o755)

    def become(self):
        os.setsid()
        staging.become(self.uid, self.gid)

    def command(self, mode):
        bounding = "no-bounding-set" if mode == "base" else "any-bounding-set"
        out = self.top / "out"
        return [str(self.top / "bin" / "sandlock"), "run", *MODES[mode], "-r",
                str(self.top / "bin"), "-w", str(self.top / "work"), "--", str(self.top / "bin" / "probe"),
                str(out / "secret"), str(out / "made"), str(out / "socket"), bounding]

    def run(self, mode, call, number):
        """One start with one failure; returns (was injected, list of faults)."""
        log = self.top / "log" / "trace"
        log.unlink(missing_ok=True)
        mark = secrets.token_hex(16)
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.top / "work"), "MARK": mark,
               "XDG_RUNTIME_DIR": str(self.top / "work"), "LD_LIBRARY_PATH": str(self.top / "bin")}
        tracer = [STRACE, "-f", "-qq", "-o", str(log), "-e", f"trace={call}", "-e",
                  f"inject={call}:error={CALLS[call]}:when={number}"]
        process = subprocess.Popen([*tracer, *self.command(mode)], preexec_fn=self.become, env=env,
                                   cwd=self.top / "work", stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            return True, ["it hangs"]
        finally:
            if process.returncode is None:
                for pid in [process.pid, *marked(mark)]:
                    end(pid)
                process.communicate()
        trace = log.read_text(errors="replace") if log.exists() else ""
        injected = "(INJECTED)" in trace
        if re.search(r"EPOLL_CTL_DEL.*\(INJECTED\)", trace):
            return True, []  # the kernel has no such failure there
        early = number <= self.loader_calls(call)
        if call == "write" and process.returncode == 0 and out == "":
            return injected, []  # the probe's own line was the write that failed
        return injected, self.judge(process.returncode, out, err, mark, early)

    def loader_calls(self, call):
        """How many calls of that name are made before main: their failure is libc's affair."""
        if call not in self.before_main:
            done = subprocess.run([STRACE, "-qq", "-e", f"trace={call}",
                                   str(self.top / "bin" / "sandlock"), "--version"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  env={"LD_LIBRARY_PATH": str(self.top / "bin")}, check=False)
            self.before_main[call] = done.stderr.count(f"{call}(")
        return self.before_main[call]

    def judge(self, status, out, err, mark, early):
        faults = [line for line in out.splitlines() if line.startswith("LEAK")]
        left = marked(mark)
        for pid in left:
            end(pid)
        if left:
            faults.append(f"{len(left)} processes are left")
        if status < 0 and not early:
            faults.append(f"it ended with {status}: {err.strip()[-200:]}")
        elif status in (125, 126, 127) and not early and "confined" not in out and not err.strip():
            faults.append(f"status {status} without a word")
        elif status == 0 and out != "confined\n":
            faults.append(f"status 0, but it printed {out!r}")
        if (self.top / "out" / "made").exists():
            faults.append("a file was made outside")
            (self.top / "out" / "made").unlink()
        return faults


def marked(mark):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def end(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def sweep(bed, mode, call, quick):
    """A TAP line for every n-th call of one name."""
    lines = []
    for number in range(1, MOST, 7 if quick else 1):
        injected, faults = bed.run(mode, call, number)
        if not injected:
            break
        what = f"{mode}: {call} number {number} fails with {CALLS[call]}"
        for fault in faults:
            print(f"{what}: {fault}", flush=True)
        lines.append(f"{'not ok' if faults else 'ok'} - {what}")
    return lines


def main():
    parser = argparse.ArgumentParser(description="Let each system call of a start fail once.")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--calls", nargs="+", default=list(CALLS), choices=list(CALLS),
                        metavar="NAME")
    parser.add_argument("--modes", nargs="+", default=list(MODES), choices=list(MODES))
    parser.add_argument("--tap", type=pathlib.Path)
    args = parser.parse_args()
    lines = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="sandlock-fault-") as name:
        bed = Bed(args.build.resolve(), pathlib.Path(name))
        for mode in args.modes:
            injected, faults = bed.run(mode, "gettid", MOST)
            if faults or injected:
                print(f"{mode}: nothing was made to fail: {faults}")
                lines.append(f"not ok - {mode}: a start without failures")
                continue
            for call in args.calls:
                lines += sweep(bed, mode, call, args.quick)
    failed = sum(line.startswith("not ok") for line in lines)
    if args.tap:
        args.tap.write_text("\n".join(lines) + "\n")
    print(f"{len(lines) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
