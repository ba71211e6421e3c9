# SPDX-License-Identifier: Apache-2.0
"""Issue 3, "Bad input": every malformed flag, profile, size, rule, name, number out of range,
contradictory pair, unreadable or looping include gives one line and exit 125, and nothing is run.
"""

import os

import pytest

import harness
from checks import refused

LONG = "x" * 5000

FLAGS = [
    # what is wrong, the words, what the message must name
    ("unknown flag", ["--nonsense"], ["--nonsense"]),
    ("unknown letter", ["-Z"], ["-Z"]),
    ("abbreviated flag", ["--fs-rea", "/usr"], ["--fs-rea"]),
    ("missing value", ["--fs-read"], ["--fs-read"]),
    ("switch with a word", ["--clean-env=maybe"], ["maybe"]),
    ("empty path", ["-r", ""], []),
    ("write path missing", ["-w", "/no/such/directory"], ["/no/such/directory"]),
    ("glob grant", ["-r", "/no/such/*"], ["/no/such/*"]),
    ("newline path", ["-w", "/no/such\nname"], []),
    ("env without =", ["--env", "NAME"], ["NAME"]),
    ("env empty name", ["--env", "=x"], []),
    ("user one number", ["--user", "1000"], ["1000"]),
    ("user words", ["--user", "nobody:nogroup"], ["nobody"]),
    ("user negative", ["--user", "-1:-1"], []),
    ("user too large", ["--user", "4294967296:1"], ["4294967296"]),
    ("user no id", ["--user", "4294967295:1"], ["4294967295"]),
    ("timeout zero", ["-t", "0"], ["0"]),
    ("timeout negative", ["-t", "-5"], ["-5"]),
    ("timeout word", ["-t", "soon"], ["soon"]),
    ("timeout huge", ["-t", "1e30"], ["1e30"]),
    ("timeout nan", ["-t", "nan"], ["nan"]),
    ("timeout blank", ["-t", " 5"], []),
    ("open files zero", ["--max-open-files", "0"], ["0"]),
    ("open files negative", ["--max-open-files", "-3"], ["-3"]),
    ("open files word", ["--max-open-files", "many"], ["many"]),
    ("open files overflow", ["--max-open-files", "99999999999999999999"], ["99999999999"]),
    ("open files hex", ["--max-open-files", "0x10"], ["0x10"]),
    ("open files plus", ["--max-open-files", "+5"], ["+5"]),
    ("cores empty", ["--cpu-cores", ""], []),
    ("cores word", ["--cpu-cores", "a"], ["a"]),
    ("cores out of range", ["--cpu-cores", "99999"], ["99999"]),
    ("cores missing here", ["--cpu-cores", "1000"], ["1000"]),
    ("size without number", ["-m", "G"], ["G"]),
    ("size zero", ["-m", "0"], ["0"]),
    ("size negative", ["-m", "-1G"], ["-1G"]),
    ("size overflow", ["-m", "99999999999T"], ["99999999999T"]),
    ("size unknown suffix", ["-m", "5X"], ["5X"]),
    ("size blank", ["-m", "5 G"], ["5 G"]),
    ("size decimal without suffix", ["-m", "1.5"], ["1.5"]),
    ("size two suffixes", ["-m", "1GG"], ["1GG"]),
    ("cpu range", ["-c", "101"], ["101"]),
    ("name slash", ["--name", "a/b"], ["a/b"]),
    ("name dot", ["--name", "."], ["."]),
    ("name dots", ["--name", ".."], [".."]),
    ("name empty", ["--name", ""], []),
    ("name blank", ["--name", "a b"], ["a b"]),
    ("name control", ["--name", "a\tb"], []),
    ("name escape", ["--name", "a\x1b[31mb"], []),
    ("name long", ["--name", "n" * 65], []),
    ("port zero connect", ["--net-allow", "tcp://:0"], ["0"]),
    ("port too large", ["--net-allow", "tcp://:65536"], ["65536"]),
    ("port word", ["--net-allow", "tcp://:http"], ["http"]),
    ("port range backwards", ["--net-allow-bind", "20-10"], ["20-10"]),
    ("scheme unknown", ["--net-allow", "gopher://:70"], ["gopher"]),
    ("rule empty", ["--net-allow", ""], []),
    ("rule no port", ["--net-allow", "tcp://"], []),
    ("bind word", ["--net-allow-bind", "x"], ["x"]),
    ("bind too large", ["--net-allow-bind", "70000"], ["70000"]),
    ("bind star and port", ["--net-allow-bind", "*,80"], ["*"]),
    ("syscall unknown", ["--extra-deny-syscall", "opne"], ["opne"]),
    ("syscall unknown allow", ["--extra-allow-syscall", "ptrac"], ["ptrac"]),
    ("syscall both", ["--extra-allow-syscall", "ptrace", "--extra-deny-syscall", "ptrace"],
     ["ptrace"]),
    ("syscall io_uring", ["--extra-allow-syscall", "io_uring"], ["io_uring"]),
    ("syscall mount", ["--extra-allow-syscall", "mount"], ["mount"]),
    ("syscall unshare", ["--extra-allow-syscall", "unshare"], ["unshare"]),
    ("syscall setns", ["--extra-allow-syscall", "setns"], ["setns"]),
    ("syscall bpf", ["--extra-allow-syscall", "bpf"], ["bpf"]),
    ("syscall handle", ["--extra-allow-syscall", "open_by_handle_at"], ["open_by_handle_at"]),
    ("syscall kexec", ["--extra-allow-syscall", "kexec_load"], ["kexec_load"]),
    ("syscall module", ["--extra-allow-syscall", "init_module"], ["init_module"]),
    ("sysv without ipc namespace", ["--no-supervisor", "--extra-allow-syscall", "sysv_ipc"],
     ["sysv_ipc"]),
    ("sysv in notify view", ["--view", "notify", "--extra-allow-syscall", "sysv_ipc"],
     ["sysv_ipc"]),
    ("protection unknown", ["--disable", "nonsense"], ["nonsense"]),
    ("protection refer", ["--disable", "fs-refer"], ["fs-refer"]),
    ("view unknown", ["--view", "magic"], ["magic"]),
    ("print unknown", ["--print-policy", "yaml"], ["yaml"]),
    ("status word", ["--status-fd", "x"], ["x"]),
    ("status closed", ["--status-fd", "77"], ["77"]),
    ("cwd missing", ["--cwd", "/no/such/dir"], ["/no/such/dir"]),
    ("cwd is a file", ["--cwd", "/etc/passwd"], ["/etc/passwd"]),
    ("two profiles", ["-p", "builtin:system", "--profile-file", "/dev/null"], ["--profile"]),
    ("profile missing", ["-p", "no-such-profile"], ["no-such-profile"]),
    ("profile file missing", ["--profile-file", "/no/such.toml"], ["/no/such.toml"]),
    ("profile file is a directory", ["--profile-file", "/etc"], ["/etc"]),
    ("profile builtin missing", ["-p", "builtin:nothing"], ['"nothing"']),
    ("unsupervised timeout", ["--no-supervisor", "-t", "5"], ["--timeout"]),
    ("unsupervised udp", ["--no-supervisor", "--net-allow", "udp://:53"], ["udp"]),
    ("long value", ["--name", LONG], []),
    ("nul in a path", ["-r", "/usr" + "/y" * 4096], []),
    ("image and chroot", ["--image", "oci:/x", "--chroot", "/"], []),
    ("dry run without workdir", ["--dry-run"], ["--dry-run"]),
]


@pytest.mark.parametrize("words,names", [f[1:] for f in FLAGS], ids=[f[0] for f in FLAGS])
def test_malformed_flag(place, words, names):
    work = place.dir("work")
    r = harness.sandbox(["-w", work, *words], ["/usr/bin/touch", work / "ran"])
    refused(r, *names)
    assert not (work / "ran").exists()
    assert "\x1b" not in r.err
    assert len(r.err) < 1000


PROFILES = [
    ("syntax", "[filesystem\n", ["1"]),
    ("unknown section", "[nonsense]\nx = 1\n", ["nonsense"]),
    ("unknown key", "[filesystem]\nreed = []\n", ["reed"]),
    ("key at top", 'read = ["/usr"]\n', ["read"]),
    ("wrong type list", '[filesystem]\nread = "/usr"\n', ["read"]),
    ("wrong type element", "[filesystem]\nread = [1]\n", ["read"]),
    ("wrong type boolean", '[program]\nclean_env = "yes"\n', ["clean_env"]),
    ("wrong type number", '[limits]\nopen_files = "many"\n', ["open_files"]),
    ("negative", "[limits]\nopen_files = -4\n", ["open_files"]),
    ("float for integer", "[limits]\nopen_files = 4.5\n", ["open_files"]),
    ("duplicate key", "[limits]\nopen_files = 4\nopen_files = 5\n", ["open_files"]),
    ("duplicate section", "[limits]\nopen_files = 4\n[limits]\n", ["limits"]),
    ("uid without gid", "[program]\nuid = 5\n", ["gid"]),
    ("env not a table", '[program]\nenv = ["A=b"]\n', ["env"]),
    ("env number", "[program]\nenv = {A = 1}\n", ["env"]),
    ("bad protection", '[protections]\ndisable = ["x"]\n', ["x"]),
    ("bad variable", '[filesystem]\nread = ["${"]\n', ["${"]),
    ("include not a list", 'include = "x"\n', ["include"]),
    ("include itself", 'include = ["./p.toml"]\n', ["p.toml"]),
    ("include missing", 'include = ["./nothing.toml"]\n', ["nothing.toml"]),
    ("include directory", 'include = ["/etc/"]\n', ["/etc"]),
    ("nul", '[program]\nname = "a\\u0000b"\n', []),
    ("control characters", "[program]\nname = \"a\x01b\"\n", []),
    ("escape in a key", '["\\u001b[31m"]\nx = 1\n', []),
    ("later key", '[limits]\nmemory = "1G"\n', ["memory"]),
]


@pytest.mark.parametrize("text,names", [p[1:] for p in PROFILES], ids=[p[0] for p in PROFILES])
def test_malformed_profile(place, text, names):
    work = place.dir("work")
    profile = place.file("p.toml", text)
    r = harness.sandbox(["-w", work, "--profile-file", profile], ["/usr/bin/touch", work / "ran"])
    refused(r, *names)
    assert not (work / "ran").exists()
    assert "\x1b" not in r.err and "\x01" not in r.err


JSON = [
    ("syntax", "{", []),
    ("empty", "", []),
    ("not an object", "[]", []),
    ("trailing", "{} {}", []),
    ("duplicate", '{"limits": {"open_files": 1, "open_files": 2}}', ["open_files"]),
    ("unknown section", '{"nonsense": {}}', ["nonsense"]),
    ("null", '{"filesystem": {"read": null}}', ["read"]),
    ("deep", "[" * 100000, []),
    ("huge number", '{"limits": {"open_files": 1e999}}', []),
]


@pytest.mark.parametrize("text,names", [p[1:] for p in JSON], ids=[p[0] for p in JSON])
def test_malformed_json(place, text, names):
    work = place.dir("work")
    profile = place.file("p.json", text)
    r = harness.sandbox(["-w", work, "--profile-file", profile], ["/usr/bin/touch", work / "ran"])
    refused(r, *names)
    assert not (work / "ran").exists()


def test_binary_profile(place):
    profile = place.top / "p.toml"
    profile.write_bytes(bytes(range(256)) * 100)
    profile.chmod(0o644)
    refused(harness.sandlock("run", "--profile-file", profile, "--", "/usr/bin/true"), "p.toml")


def test_profile_too_large(place):
    profile = place.file("p.toml", "# filler\n" * 200000)
    refused(harness.sandlock("run", "--profile-file", profile, "--", "/usr/bin/true"), "p.toml")


def test_unreadable_profile(place):
    profile = place.file("p.toml", "", 0o000)
    refused(harness.sandlock("run", "--profile-file", profile, "--", "/usr/bin/true"), "p.toml")


def test_fifo_profile_does_not_hang(place):
    path = place.top / "p.toml"
    os.mkfifo(path, 0o644)
    place.account.own(place.top)
    refused(harness.sandlock("run", "--profile-file", path, "--", "/usr/bin/true", timeout=10),
            "p.toml")


def test_unsupervised_list_is_one_message():
    r = harness.sandlock("run", "--no-supervisor", "-t", "5", "--events", "/dev/null",
                         "--net-allow", "udp://:53", "--", "/usr/bin/true")
    refused(r, "--timeout", "--events", "udp")
