# SPDX-License-Identifier: Apache-2.0
"""Issue 4, point 8: each refusal is told with the option that would allow it, those that the kernel
makes by itself included, and with that option the same call succeeds.

One sandbox tries all calls with --explain; then, for each option that was told, another one gets it
and tries the calls that it was told for.
"""

import json
import os
import pathlib
import platform
import shlex
import shutil
import socket
import subprocess

import pytest

import harness
from checks import ok

HERE = pathlib.Path(__file__).resolve().parent
PROBE = (HERE / "explain_probe.py").read_text()
X86 = platform.machine() == "x86_64"
R, W, RW, CREAT, EXCL, TRUNC, APPEND = (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_EXCL,
                                        os.O_TRUNC, os.O_APPEND)
NONBLOCK, DIRECTORY, NOFOLLOW = os.O_NONBLOCK, os.O_DIRECTORY, os.O_NOFOLLOW
BOTH = ("base", "nobase")
NOTE = ("sandlock: note: refusals that the kernel makes by itself are not listed; add --explain to "
        "see them")

# What a missing write grant answers: decisions.md 10.
READ = {"base": "EACCES", "nobase": "EACCES"}
WRITE = {"base": "EROFS", "nobase": "EACCES"}
META = {"base": "EROFS", "nobase": "EPERM"}
ACROSS = {"base": "EXDEV", "nobase": "EACCES"}
LINK = {"base": "EXDEV", "nobase": "EXDEV"}


def same(name):
    return {mode: name for mode in BOTH}


class Row:
    """CALL fails with ERRNO; the event for OP on ASKED names ALLOW."""

    def __init__(self, call, op, asked, allow, errno, modes=BOTH):
        self.call, self.op, self.asked, self.allow = call, op, asked, allow
        self.errno, self.modes = errno, modes

    def __repr__(self):
        return f"{self.call} -> {self.op} {self.asked} {self.allow}"


# --- The calls -----------------------------------------------------------------------------------


def reads(d):
    """Reading and listing: each of an object of its own, so that no flag opens another."""
    def row(call, name, asked=None, op="open"):
        return Row(call, op, asked or f"{d}/{name}", f"-r {shlex.quote(f'{d}/{name}')}", READ)
    yield row(["open_", f"{d}/r1", R], "r1")
    yield row(["open_relative", d, "r2", R], "r2", "r2")
    yield row(["open_", f"{d}/link-r3", R], "r3", f"{d}/link-r3")
    yield row(["open_at", d, "r4", R], "r4", "r4")
    yield row(["open2", f"{d}/r5", R], "r5")
    yield row(["open_", f"{d}/r6", R | NOFOLLOW], "r6")
    yield row(["open_", f"{d}/r7", R | CREAT], "r7")
    yield row(["open_", f"{d}/r8 with 'quotes'", R], "r8 with 'quotes'")
    yield row(["open_", f"{d}/sub/../r9", R], "r9", f"{d}/sub/../r9")
    yield row(["open_", f"{d}//r10", R], "r10", f"{d}//r10")
    yield row(["open_", f"{d}/sub/r11", R], "sub/r11")
    yield row(["open_", f"{d}/fifo-r12", R | NONBLOCK], "fifo-r12")
    yield row(["open_", f"{d}/r13", R | os.O_CLOEXEC | NONBLOCK], "r13")
    yield row(["open_", f"{d}/link-sub/r14", R], "sub/r14", f"{d}/link-sub/r14")
    yield row(["list_", f"{d}/list1"], "list1")
    yield row(["open_", f"{d}/list2", R | DIRECTORY], "list2")
    yield row(["open_relative", f"{d}/list3", ".", R], "list3", ".")
    yield row(["open_", f"{d}/list4/", R], "list4", f"{d}/list4/")
    yield row(["watch", f"{d}/r15"], "r15", op="inotify_add_watch")
    yield row(["watch", f"{d}/list5"], "list5", op="inotify_add_watch")
    if X86:
        yield row(["open", f"{d}/r16", R, 0], "r16")


def programs(d):
    def row(call, name, asked=None):
        return Row(call, "exec", asked or f"{d}/{name}", f"-r {d}/{name}", READ)
    yield row(["execute", f"{d}/x1"], "x1")
    yield row(["execute", f"{d}/x2"], "x2")
    yield row(["execute_at", d, "x3"], "x3", "x3")
    yield row(["execute", f"{d}/link-x4"], "x4", f"{d}/link-x4")
    yield row(["execute_fd", f"{d}/x5"], "x5", f"{d}/x5")
    # What the kernel executes for a script that may be executed itself.
    yield row(["execute", f"{d}/ro/script"], "interpreter", f"{d}/ro/script")


def writes(d):
    def row(call, name, asked=None, errno=None, op="open"):
        return Row(call, op, asked or f"{d}/{name}", f"-w {d}/{name}", errno or WRITE)
    yield row(["open_", f"{d}/w1", W], "w1")
    yield row(["open_", f"{d}/w2", RW], "w2")
    yield row(["open_", f"{d}/w3", W | APPEND], "w3")
    yield row(["open_", f"{d}/w4", W | TRUNC], "w4")
    yield row(["open_", f"{d}/w5", W | CREAT | TRUNC], "w5")
    yield row(["open_", f"{d}/ro/w6", W], "ro/w6")
    yield row(["open_", f"{d}/ro/w7", RW], "ro/w7")
    yield row(["open_", f"{d}/link-w8", W], "w8", f"{d}/link-w8")
    yield row(["open_relative", d, "w9", W], "w9", "w9")
    yield row(["open2", f"{d}/w10", W], "w10")
    yield row(["open_at", d, "w11", RW], "w11", "w11")
    yield row(["truncate", f"{d}/w12"], "w12", op="truncate")
    yield row(["truncate", f"{d}/ro/w13"], "ro/w13", op="truncate")
    yield row(["open_", f"{d}/tmpfile", os.O_TMPFILE | W], "tmpfile")
    # Pipes and devices are no matter of the mount.
    yield row(["open_", f"{d}/fifo-w14", RW | NONBLOCK], "fifo-w14", errno=READ)
    yield row(["flock", f"{d}/ro/w15"], "ro/w15", op="flock", errno=same("EACCES"))
    yield row(["lease", f"{d}/ro/w16"], "ro/w16", op="lease", errno=same("EACCES"))
    if X86:
        yield row(["creat", f"{d}/w17", 0o644], "w17")


def names(d):
    def row(call, op, asked, where, errno=None):
        return Row(call, op, asked, f"-w {d}/{where}", errno or WRITE)
    mk, rm, mv = f"{d}/mk", f"{d}/rm", f"{d}/mv"
    yield row(["open_", f"{mk}/n1", W | CREAT], "open", f"{mk}/n1", "mk")
    yield row(["open_", f"{mk}/n2", W | CREAT | EXCL], "open", f"{mk}/n2", "mk")
    yield row(["open_", f"{d}/link-new", W | CREAT], "open", f"{d}/link-new", "mk")
    yield row(["open_relative", mk, "n3", W | CREAT], "open", "n3", "mk")
    yield row(["open2", f"{mk}/n4", R | CREAT], "open", f"{mk}/n4", "mk")
    yield row(["os_mkdir", f"{mk}/n5"], "mkdir" if X86 else "mkdirat", f"{mk}/n5", "mk")
    yield row(["mkdir_at", mk, "n6"], "mkdirat", "n6", "mk")
    yield row(["os_mkdir", f"{mk}/n7/"], "mkdir" if X86 else "mkdirat", f"{mk}/n7/", "mk")
    yield row(["os_mkfifo", f"{mk}/n8"], "mknodat", f"{mk}/n8", "mk")
    yield row(["mknod", f"{mk}/n9"], "mknodat", f"{mk}/n9", "mk")
    yield row(["os_symlink", "anything", f"{mk}/n10"], "symlink" if X86 else "symlinkat",
              f"{mk}/n10", "mk")
    yield row(["bind_unix", f"{mk}/n11"], "bind", f"{mk}/n11", "mk")
    yield row(["open_", f"{d}/ro/mk2/n12", W | CREAT], "open", f"{d}/ro/mk2/n12", "ro/mk2")
    yield row(["mkdir_at", f"{d}/ro/mk2", "n13"], "mkdirat", "n13", "ro/mk2")
    yield row(["bind_unix", f"{d}/ro/mk2/n14"], "bind", f"{d}/ro/mk2/n14", "ro/mk2")
    unlink, rmdir = ("unlink", "rmdir") if X86 else ("unlinkat", "unlinkat")
    for name in ("file", "link", "fifo", "socket"):
        yield row(["os_unlink", f"{rm}/{name}"], unlink, f"{rm}/{name}", "rm")
    yield row(["unlink_at", rm, "at"], "unlinkat", "at", "rm")
    yield row(["os_rmdir", f"{rm}/dir"], rmdir, f"{rm}/dir", "rm")
    yield row(["os_rmdir", f"{rm}/dir2/"], rmdir, f"{rm}/dir2/", "rm")
    yield row(["os_unlink", f"{d}/ro/rm2/file"], unlink, f"{d}/ro/rm2/file", "ro/rm2")
    rename = "rename" if X86 else "renameat"
    link = "link" if X86 else "linkat"
    yield row(["os_rename", f"{mv}/a1", f"{mv}/b1"], rename, f"{mv}/a1", "mv")
    yield row(["os_rename", f"{mv}/dir1", f"{mv}/dir2"], rename, f"{mv}/dir1", "mv")
    yield row(["os_rename", f"{mv}/a2", f"{mv}/over"], rename, f"{mv}/a2", "mv")
    yield row(["rename2", f"{mv}/a3", f"{mv}/b3", 1], "renameat2", f"{mv}/a3", "mv")
    yield row(["rename2", f"{mv}/a4", f"{mv}/a5", 2], "renameat2", f"{mv}/a4", "mv")
    yield row(["os_link", f"{mv}/a6", f"{mv}/b6"], link, f"{mv}/a6", "mv")
    yield row(["os_rename", f"{d}/wr/a1", f"{d}/into/b1"], rename, f"{d}/wr/a1", "into", ACROSS)
    yield row(["os_rename", f"{d}/from/a1", f"{d}/wr/b2"], rename, f"{d}/from/a1", "from", ACROSS)
    yield row(["rename2", f"{d}/from/dir", f"{d}/wr/dir", 0], "renameat2", f"{d}/from/dir", "from",
              ACROSS)
    yield row(["os_link", f"{d}/from/a2", f"{d}/wr/b3"], link, f"{d}/from/a2", "from", LINK)
    yield row(["os_link", f"{d}/wr/a2", f"{d}/into/b2"], link, f"{d}/wr/a2", "into", WRITE)
    yield Row(["os_rename", f"{d}/one/a", f"{d}/two/b"], rename, f"{d}/one/a",
              f"-w {d}/two -w {d}/one", WRITE)
    yield Row(["os_link", f"{d}/three/a", f"{d}/four/b"], link, f"{d}/three/a",
              f"-w {d}/four -w {d}/three", WRITE)


def metadata(d):
    def row(call, op, name, asked=None):
        return Row(call, op, asked or f"{d}/{name}", f"-w {d}/{name}", META)
    yield row(["os_chmod", f"{d}/m1", 0o600], "chmod" if X86 else "fchmodat", "m1")
    yield row(["fchmod", f"{d}/ro/m2"], "fchmod", "ro/m2")
    yield row(["fchmodat2", -100, f"{d}/m3", 0o600, 0], "fchmodat2", "m3")
    yield row(["chown", f"{d}/m4"], "chown" if X86 else "fchownat", "m4")
    yield row(["lchown", f"{d}/m5"], "lchown" if X86 else "fchownat", "m5")
    yield row(["fchown", f"{d}/ro/m6"], "fchown", "ro/m6")
    yield row(["os_utime", f"{d}/m7"], "utimensat", "m7")
    yield row(["lutime", f"{d}/m8"], "utimensat", "m8")
    yield row(["futimens", f"{d}/ro/m9"], "utimensat", "ro/m9")
    yield row(["os_chmod", f"{d}/link-m10", 0o600], "chmod" if X86 else "fchmodat", "m10",
              f"{d}/link-m10")
    yield row(["os_chmod", f"{d}/mdir", 0o700], "chmod" if X86 else "fchmodat", "mdir")
    if has_xattrs(d):
        yield row(["setxattr", f"{d}/m11"], "setxattr", "m11")
        yield row(["removexattr", f"{d}/m12"], "removexattr", "m12")
    if X86:
        yield row(["utime", f"{d}/m13", 0], "utime", "m13")


def sockets(d, hosts):
    for kind in ("stream", "dgram", "seq"):
        path = f"{d}/sock-{kind}"
        yield Row(["connect_unix", kind, path], "connect", path, f"--unix-allow {path}", READ)
        yield Row(["connect_abstract", kind, hosts[kind]], "connect", f"@{hosts[kind]}",
                  "--unix-allow '*'", same("EPERM"))
    link = f"{d}/link-sock"
    yield Row(["connect_unix", "stream", link], "connect", link, f"--unix-allow {d}/sock-stream",
              READ)
    for op, fn in (("sendto", "sendto_unix"), ("sendmsg", "sendmsg_unix"), ("sendto", "pair_sendto"),
                   ("sendmmsg", "sendmmsg_unix")):
        path = f"{d}/sock-{fn}"
        yield Row([fn, path], op, path, f"--unix-allow {path}", READ)
    for family, host in hosts["tcp"]:
        port = hosts[family]
        asked = f"[{host}]" if ":" in host else host
        yield Row(["connect_tcp", host, port], "connect", f"{asked}:{port}", f"--net-allow :{port}",
                  READ)
        free = hosts["free", family]
        yield Row(["bind_tcp", host, free], "bind", f"{asked}:{free}", f"--net-allow-bind {free}",
                  READ)
        yield Row(["bind_tcp", host, 0], "bind", f"{asked}:0", "--net-allow-bind 0", READ)
    yield Row(["listen_unbound"], "listen", "TCP socket", "--net-allow-bind 0", READ)


def system_calls():
    def row(call, name, modes=BOTH, asked=None):
        return Row(call, name, asked, f"--extra-allow-syscall {name}", same("EPERM"), modes)
    yield row(["traceme"], "ptrace")
    yield row(["vm", "process_vm_readv"], "process_vm_readv")
    yield row(["vm", "process_vm_writev"], "process_vm_writev")
    yield row(["kcmp"], "kcmp")
    yield row(["getfd"], "pidfd_getfd")
    yield row(["adjtimex"], "adjtimex")
    yield row(["clock_adjtime"], "clock_adjtime")
    yield row(["personality", 0x40000], "personality", asked="0x40000")
    # System V objects are the base's own.
    yield row(["shmget", 0, 4096, 0o1600], "shmget", ("base",))
    yield row(["semget", 0, 1, 0o1600], "semget", ("base",))
    yield row(["msgget", 0, 0o1600], "msgget", ("base",))


def never(outsider):
    """Refusals that no option lifts: the event says why instead."""
    def row(call, op, asked, errno, modes=BOTH):
        return Row(call, op, asked, None, same(errno), modes)
    yield row(["mount", 0, 0, 0, 0, 0], "mount", None, "EPERM")
    yield row(["unshare", 0x10000000], "unshare", None, "EPERM")
    yield row(["chroot", "/"], "chroot", None, "EPERM")
    yield row(["bpf", 0, 0, 0], "bpf", None, "EPERM")
    yield row(["keyctl", 0, 0], "keyctl", None, "EPERM")
    yield row(["clone", 0x10000011, 0, 0, 0, 0], "clone", "0x10000011", "EPERM")
    yield row(["socket_", 38, 5, 0], "socket", "family 38, type 5, protocol 0", "EAFNOSUPPORT")
    for protocol in (0, 17):
        yield Row(["socket_", 2, 2, protocol], "socket", f"family 2, type 2, protocol {protocol}",
                  "--net-allow 'udp://*'", same("EPERM"), BOTH)
    yield row(["socket_", 2, 1, 262], "socket", "family 2, type 1, protocol 262",
              "EPROTONOSUPPORT")
    yield row(["option", 6, 30], "setsockopt", "level 6, name 30", "EOPNOTSUPP")
    yield row(["ioctl", 0x5412], "ioctl", "request 0x5412", "EPERM")
    yield row(["prctl", 35], "prctl", "option 35", "EPERM")
    yield row(["limit", 1], "prlimit64", "process 1", "EPERM", ("base",))
    yield row(["shmget", 0, 4096, 0o1600], "shmget", None, "EPERM", ("nobase",))
    yield row(["kill", outsider], "kill", f"process {outsider}", "EPERM", ("nobase",))


# --- The place -----------------------------------------------------------------------------------


def has_xattrs(d):
    try:
        os.setxattr(f"{d}/m11", "user.probe", b"")
        os.removexattr(f"{d}/m11", "user.probe")
    except OSError:
        return False
    return True


def listener(address, kind=socket.SOCK_STREAM, family=socket.AF_UNIX):
    s = socket.socket(family, kind)
    s.bind(address)
    if kind != socket.SOCK_DGRAM:
        s.listen(64)
    return s


def free_port(family):
    with socket.socket(family) as s:
        s.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        return s.getsockname()[1]


FILES = [*(f"r{i}" for i in range(1, 17)), "r8 with 'quotes'", "sub/r11", "sub/r14",
         *(f"w{i}" for i in range(1, 18)), *(f"ro/w{i}" for i in (6, 7, 13, 15, 16)),
         *(f"m{i}" for i in range(1, 14)), *(f"ro/m{i}" for i in (2, 6, 9)),
         "rm/file", "rm/at", "ro/rm2/file", "mv/over", *(f"mv/a{i}" for i in range(1, 7)),
         "wr/a1", "wr/a2", "from/a1", "from/a2", "one/a", "three/a"]
DIRS = ["sub", "ro", "tmpfile", "mk", "rm", "mv", "wr", "into", "from", "from/dir", "one", "two", "three", "four",
        "mdir", "ro/mk2", "ro/rm2", "rm/dir", "rm/dir2", "mv/dir1", *(f"list{i}" for i in range(1, 6))]
LINKS = {"link-r3": "r3", "link-sub": "sub", "link-x4": "x4", "link-w8": "w8", "link-m10": "m10",
         "link-new": "mk/new", "rm/link": "anything", "link-sock": "sock-stream"}
FIFOS = ["fifo-r12", "fifo-w14", "rm/fifo"]


def fill(place, d):
    """Everything that the calls are about, as the tests' user's; sockets are made once."""
    for name in DIRS:
        (d / name).mkdir()
    for name in FILES:
        (d / name).write_text("text\n")
    for name, target in LINKS.items():
        (d / name).symlink_to(target)
    for name in FIFOS:
        os.mkfifo(d / name)
    listener(str(d / "rm/socket")).close()
    for name in ("x1", "x4", "ro/script"):
        (d / name).write_text("#!/bin/sh\n" if name != "ro/script" else f"#!{d}/interpreter\n")
    for name in ("x2", "x3", "x5", "interpreter"):
        shutil.copy("/bin/true", d / name)
    for name in ("x1", "x2", "x3", "x4", "x5", "interpreter", "ro/script"):
        (d / name).chmod(0o755)
    if has_xattrs(d):
        os.setxattr(d / "m12", "user.y", b"1")
    place.account.own(d)


class Hosts(dict):
    """The sockets outside: named, abstract and TCP ones."""

    def __init__(self, d):
        super().__init__()
        self.open = []
        kinds = {"stream": socket.SOCK_STREAM, "dgram": socket.SOCK_DGRAM,
                 "seq": socket.SOCK_SEQPACKET}
        for kind, number in kinds.items():
            self[kind] = f"explain-{os.getpid()}-{kind}"
            self.open += [listener("\0" + self[kind], number)]
        self["tcp"] = [("v4", "127.0.0.1")]
        if os.path.exists("/proc/net/if_inet6") and "lo" in open("/proc/net/if_inet6").read():
            self["tcp"].append(("v6", "::1"))
        for family, host in self["tcp"]:
            number = socket.AF_INET6 if family == "v6" else socket.AF_INET
            s = listener((host, 0), family=number)
            self.open.append(s)
            self[family] = s.getsockname()[1]
            self["free", family] = free_port(number)
        self.named = {f"sock-{kind}": number for kind, number in kinds.items()}
        self.named |= {f"sock-{fn}": socket.SOCK_DGRAM for fn in (
            "sendto_unix", "sendmsg_unix", "pair_sendto", "sendmmsg_unix")}

    def bind(self, place, d):
        for name, number in self.named.items():
            self.open.append(listener(str(d / name), number))
            place.account.own(d / name)
            os.chmod(d / name, 0o777)

    def close(self):
        for s in self.open:
            s.close()


# --- Running -------------------------------------------------------------------------------------


def attempt(mode, flags, rows):
    r = ok(harness.sandbox(flags, [harness.PYTHON, "-I", "-S", "-c", PROBE], mode=mode, cwd="/",
                           data=json.dumps([row.call for row in rows])))
    return json.loads(r.out)


def words(text):
    return None if text is None else shlex.split(text)


def matches(event, row, mode):
    asked = row.asked or ""
    told = event["object"] or ""
    return (event["op"] == row.op and event["errno"] == row.errno[mode] and
            words(event["allow"]) == words(row.allow) and (told == asked or told.startswith(f"{asked} -> ")))


def table(d, hosts, outsider):
    d = str(d)
    return [*reads(d), *programs(d), *writes(d), *names(d), *metadata(d), *sockets(d, hosts),
            *system_calls(), *never(outsider)]


@pytest.mark.parametrize("mode", BOTH)
def test_each_refusal_is_told_with_the_option_that_allows_it(place, mode):
    d = place.dir("d")
    events = place.file("events")
    hosts = Hosts(d)
    fill(place, d)
    hosts.bind(place, d)
    outsider = subprocess.Popen(["/bin/sleep", "77.3"], **place.account.popen_args())
    try:
        rows = [r for r in table(d, hosts, outsider.pid) if mode in r.modes]
        assert sum(r.allow is not None for r in rows) >= 100
        grants = ["-r", d / "ro", "-w", d / "wr"]
        came = attempt(mode, ["--explain", "--events", events, *grants], rows)
        wrong = [(row, code) for row, code in zip(rows, came) if code != row.errno[mode]]
        assert wrong == []
        told = [json.loads(line) for line in events.read_text().splitlines()]
        untold = [row for row in rows if not any(matches(e, row, mode) for e in told)]
        assert untold == [], [e for e in told if any(e["op"] == row.op for row in untold)]
        by_flag = {}
        for row in rows:
            if row.allow:
                by_flag.setdefault(row.allow, []).append(row)
        failed = []
        for flag, with_flag in by_flag.items():
            came = attempt(mode, [*grants, *words(flag)], with_flag)
            failed += [(row, code) for row, code in zip(with_flag, came) if code != "ok"]
        assert failed == []
    finally:
        outsider.kill()
        outsider.wait()
        hosts.close()


@pytest.mark.parametrize("mode", BOTH)
def test_explaining_changes_no_result(place, mode):
    """The same errno for each call with --explain and without it."""
    d = place.dir("d")
    hosts = Hosts(d)
    fill(place, d)
    hosts.bind(place, d)
    rows = [r for r in table(d, hosts, os.getpid()) if mode in r.modes]
    grants = ["-r", d / "ro", "-w", d / "wr"]
    try:
        plain = attempt(mode, grants, rows)
        explained = attempt(mode, ["--explain", *grants], rows)
    finally:
        hosts.close()
    assert [(row, a, b) for row, a, b in zip(rows, plain, explained) if a != b] == []


# --- What is no event ------------------------------------------------------------------------------


def explained(place, script, flags=(), mode="base", code=0):
    """The events of a shell script's own calls."""
    events = place.top / "events"
    events.write_text("")
    place.account.own(events)
    r = harness.sandbox(["--explain", "--events", events, *flags], ["/bin/sh", "-c", script],
                        mode=mode, cwd="/")
    assert r.code == code, f"{r!r}"
    return [json.loads(line) for line in events.read_text().splitlines()]


@pytest.mark.parametrize("mode", BOTH)
def test_what_fails_outside_too_is_no_event(place, mode):
    d = place.dir("d")
    place.file("d/secret", mode=0o000)
    place.dir("d/closed", mode=0o555)
    script = f"""
        true < {d}/missing; true > {d}/missing/new; true < {d}/secret; true > {d}/secret; mkdir {d}/closed/new
        mkdir {d}; rmdir {d}/missing; mv {d}/missing {d}/other; ln {d}/missing {d}/other
        rmdir {d}/secret; chmod 600 {d}/missing; {d}/secret; truncate -c -s 0 {d}/missing
        ln -s x {d}/secret; cat /root/.profile; exit 0"""
    if mode == "base":
        script = "chmod 600 /etc/passwd;" + script
    assert [e["op"] + " " + e["object"] for e in explained(place, script, mode=mode)] == []


@pytest.mark.parametrize("mode", BOTH)
def test_what_is_granted_is_no_event(place, mode):
    d = place.dir("d")
    script = f"""set -e
        cd {d}; echo x > a; cat a > /dev/null; mkdir b; mv a b/a; ln b/a c; ln -s c l; chmod 600 c
        touch c; cp /bin/true t; ./t; rm -r b c l t; echo '#!/bin/sh' > s; chmod 755 s; ./s
        mkfifo f; rm f; kill -0 $$; cat /dev/null; echo x > /dev/null"""
    found = explained(place, script, ["-w", d], mode=mode)
    assert [e["op"] + " " + e["object"] for e in found] == []


def test_a_denied_call_names_the_option_that_denies_it(place):
    found = explained(place, "mkdir /x; exit 0", ["--extra-deny-syscall", "mkdir",
                                                  "--extra-deny-syscall", "mkdirat"])
    assert len(found) == 1
    assert found[0]["layer"] == "seccomp"
    assert found[0]["rule"] == "--extra-deny-syscall names it"
    assert found[0]["allow"] is None


@pytest.mark.parametrize("mode", BOTH)
@pytest.mark.parametrize("name", ["close_range", "write", "openat", "fcntl", "dup3", "prlimit64"])
def test_a_denied_call_of_the_start_ends_as_without_explain(name, mode):
    flags = ["--extra-deny-syscall", name]
    plain = harness.sandbox(flags, ["/bin/true"], mode=mode)
    explained = harness.sandbox(["--explain", *flags], ["/bin/true"], mode=mode)
    assert explained.code == plain.code


# --- The same protection ---------------------------------------------------------------------------

RACE = """
import ctypes, os, sys, threading, time
good, bad, seconds = sys.argv[1].encode(), sys.argv[2].encode(), 1
size = max(len(good), len(bad)) + 1
path = ctypes.create_string_buffer(good, size)
libc = ctypes.CDLL(None)
stop = False
def swap():
    while not stop:
        ctypes.memmove(path, bad + bytes(1), len(bad) + 1)
        ctypes.memmove(path, good + bytes(1), len(good) + 1)
thread = threading.Thread(target=swap)
thread.start()
end = time.monotonic() + seconds
seen = set()
while time.monotonic() < end:
    fd = libc.open(path, os.O_RDONLY)
    if fd >= 0:
        seen.add(os.read(fd, 16))
        os.close(fd)
stop = True
thread.join()
print(sorted(seen))
"""


@pytest.mark.parametrize("mode", BOTH)
def test_a_path_that_changes_under_the_judge_opens_nothing(place, mode):
    """The control is a grant for both: then both are seen."""
    good = place.file("good", "good")
    bad = place.file("bad", "bad")
    argv = [harness.PYTHON, "-I", "-c", RACE, good, bad]
    flags = ["--explain", "-r", good]
    assert ok(harness.sandbox(flags, argv, mode=mode)).out == "[b'good']\n"
    control = ok(harness.sandbox([*flags, "-r", bad], argv, mode=mode)).out
    assert control == "[b'bad', b'good']\n"


@pytest.mark.parametrize("mode", BOTH)
def test_many_at_once_are_all_answered(place, mode):
    """More calls than workers and waiting places: none fails for that."""
    d = place.dir("d")
    script = f"""
        for i in 1 2 3 4 5 6 7 8; do
            (for j in 1 2 3 4 5 6 7 8 9 10; do
                (echo $i > {d}/$i.$j; cat {d}/$i.$j | cat | cat > /dev/null; true < {d}.no) &
            done; wait) &
        done; wait; ls {d} | wc -l"""
    r = harness.sandbox(["--explain", "-w", d], ["/bin/sh", "-c", script], mode=mode)
    assert ok(r).out == "80\n"


# --- How to turn it on -----------------------------------------------------------------------------


def test_a_failed_run_says_how_to_turn_it_on():
    r = harness.sandbox([], ["/bin/sh", "-c", "exit 3"])
    assert r.code == 3
    assert r.err_lines == [NOTE]


def test_the_note_comes_once_and_behind_the_refusals(place):
    path = place.file("f")
    r = harness.sandbox([], [harness.PYTHON, "-I", "-S", "-c", f"""
import socket
for i in range(3):
    try:
        socket.socket(socket.AF_UNIX).connect({str(path) + '-none'!r})
    except OSError:
        pass
s = socket.socket(socket.AF_UNIX)
s.bind("\\0explain-{os.getpid()}")
import fcntl
fcntl.flock(open({str(path)!r}), fcntl.LOCK_EX)
"""], mode="base")
    assert r.code != 0
    assert r.err.count(NOTE) == 1
    assert r.err_lines[-1] == NOTE


@pytest.mark.parametrize("flags,argv", [
    ([], ["/bin/true"]),
    (["--quiet"], ["/bin/false"]),
    (["--explain"], ["/bin/false"]),
    ([], ["/bin/sh", "-c", "kill -9 $$"]),
    ([], ["/no/such/program"]),
    ([], ["/etc/passwd"]),
    (["-t", "0.2"], ["/bin/sleep", "75.2"]),
    (["--no-such-flag"], ["/bin/true"]),
], ids=lambda v: " ".join(v))
def test_no_note_where_it_would_not_help(flags, argv):
    assert NOTE not in harness.sandbox(flags, argv).err
