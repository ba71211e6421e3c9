# SPDX-License-Identifier: Apache-2.0
"""Issue 3, point 10: `sandlock check` row by row, and starts inside filters that play container
engines and older kernels (tools/outer-filter.c). All as an ordinary user.
"""

import json
import os
import platform
import signal
import time

import pytest

import harness
from checks import ok, quiet_ok, refused

STATUSES = {"ok", "missing", "blocked", "degraded", "failed", "untried", "info"}
PROTECTIONS = {"fs-refer": 2, "fs-truncate": 3, "net-tcp": 4, "fs-ioctl-dev": 5,
               "signal-scope": 6, "abstract-unix-socket-scope": 6}
LANDLOCK_ROWS = ["landlock-write", *(f"landlock-{name}" for name in PROTECTIONS)]
MOUNT_ROWS = ["mount-private", "mount-clone", "mount-read-only", "mount-attach", "mount-proc",
              "mount-devpts", "mount-shm", "mount-mqueue", "overlayfs"]
SELF_TESTS = ["self-test-default", "self-test-namespace", "self-test-notify",
              "self-test-no-supervisor"]


def outer_filter():
    tools = harness.INSTALLED.tools
    if "outer-filter" not in tools:
        tools["outer-filter"] = harness.INSTALLED.copy("outer-filter")
    return str(tools["outer-filter"])


def inside(rules, *argv, **kw):
    return harness.run([outer_filter(), *rules, "--", *argv], **kw)


def report(rules=(), code=0, **kw):
    """The rows of `check --json` inside a filter of RULES, by their ids, and the whole report."""
    argv = [harness.INSTALLED.sandlock, "check", "--json"]
    r = inside(rules, *argv, **kw) if rules else harness.run(argv, **kw)
    assert r.code == code, f"{r!r}"
    assert r.err == "", f"{r!r}"
    whole = json.loads(r.out)
    assert whole["strict_default_starts"] is (code == 0)
    return {row["id"]: row for row in whole["rows"]}, whole


def start(rules, flags=(), mode="base", command=("/bin/echo", "x")):
    return inside(rules, *harness.MODES[mode].command(list(flags), list(command)))


def trial_directories():
    return {name for top in ("/tmp", "/var/tmp", "/dev/shm") for name in os.listdir(top)
            if name.startswith("sandlock-check-")}


# --- The report ----------------------------------------------------------------------------------


def test_rows_of_the_reference_machine():
    """Every row of this machine, by name: a probe that breaks shows here."""
    rows, whole = report()
    assert whole["v"] == 1
    assert whole["landlock_abi"] >= 6
    assert whole["minimum_landlock_abi"] == 6
    assert whole["machine"] == platform.machine()
    assert whole["in_namespaces"] is True
    for row in rows.values():
        assert set(row) == {"id", "group", "status", "required", "tried", "detail", "remedy"}
        assert row["status"] in STATUSES
        assert (row["remedy"] is None) == (row["status"] in ("ok", "info", "untried")) or \
            row["remedy"] is None, row
    not_ok = {i for i, row in rows.items() if row["status"] not in ("ok", "info")}
    assert not_ok <= {"landlock-unix-path", "cgroup-delegation"}, not_ok
    assert [i for i in rows if i.startswith("self-test")] == SELF_TESTS


def test_text_begins_with_the_fixed_lines():
    r = quiet_ok(harness.sandlock("check"))
    abi = int(r.lines[1].rsplit("v", 1)[1])
    assert r.lines[0] == "Kernel feature support:"
    assert r.lines[1] == f"  Landlock:       ABI v{abi}"
    assert r.lines[2] == "  Minimum required: ABI v6"
    assert r.lines[3] == "  Status:         OK"
    assert r.lines[4] == "  Filesystem:     supported (ABI v1+)"
    assert r.lines[9] == "  Signal scoping: supported (ABI v6+)"
    assert r.lines[10] == ""
    assert r.lines[11] == f"Per-protection availability (host Landlock ABI v{abi}):"
    assert r.lines[12] == "  FsRefer                requires v2 \u2014 available"
    assert r.lines[18] == f"  Platform: {platform.machine()}"
    assert r.lines[-1] == "Verdict: the strict default starts here, in namespaces."


def test_text_and_json_agree():
    rows, _ = report()
    lines = [line.split() for line in quiet_ok(harness.sandlock("check")).lines]
    shown = {words[0]: words[1] for words in lines if len(words) > 2 and words[0] in rows}
    assert shown == {i: row["status"] for i, row in rows.items()}


def test_help_and_usage():
    assert quiet_ok(harness.sandlock("check", "--help")).out.startswith("Usage: sandlock check")
    r = harness.sandlock("check", "--jsn")
    assert r.code == 2
    assert r.err == "sandlock: check takes --json and nothing else, not --jsn\n"


def test_full_standard_output_is_an_error():
    with open("/dev/full", "w") as full:
        r = harness.run([harness.INSTALLED.sandlock, "check"], stdout=full)
    assert r.code == 1
    assert "could not be written" in r.err


def test_nothing_is_left_behind():
    before = trial_directories()
    report()
    report(["mount=EPERM", "process_vm_readv=KILL"], 1)
    assert trial_directories() <= before


def test_check_as_root(is_root):
    if not is_root:
        return
    rows, whole = report(account=harness.ROOT_USER)
    assert whole["in_namespaces"] is True
    for name in LANDLOCK_ROWS + MOUNT_ROWS + SELF_TESTS:
        assert rows[name]["status"] == "ok", rows[name]


def test_check_inside_a_sandbox():
    """Inside a supervised sandbox Landlock still works, and no second supervised one is promised."""
    r = harness.sandbox(["-w", "/tmp"], [harness.INSTALLED.sandlock, "check", "--json"],
                        mode="nobase")
    rows = {row["id"]: row for row in json.loads(r.out)["rows"]}
    assert rows["landlock-write"]["status"] == "ok", rows["landlock-write"]
    assert rows["outer-filter"]["detail"] == "yes"
    assert rows["base-namespaces"]["status"] == "blocked"
    assert r.code == (0 if rows["self-test-default"]["status"] == "ok" else 1)


def test_no_directory_for_trials(is_root):
    """Nothing is writable: the rows that need a file are untried and say so."""
    if not is_root:
        return
    text = ("for d in /tmp /var/tmp /dev/shm; do mount -t tmpfs -o ro none $d; done; "
            f"exec setpriv --reuid {harness.USER.uid} --regid {harness.USER.gid} --clear-groups "
            "/mnt/sandlock check --json")
    hidden = ("mount -t tmpfs none /mnt && cp " f"{harness.INSTALLED.sandlock} /mnt/ && "
              f"{'cp -P ' + str(harness.INSTALLED.bin) + '/libsandlock* /mnt/; ' if harness.INSTALLED.library_path else ''}"
              "chmod 755 /mnt && ")
    r = harness.run(["/usr/bin/unshare", "-m", "/bin/sh", "-c", hidden + text],
                    account=harness.ROOT_USER, env={"LD_LIBRARY_PATH": "/mnt"})
    whole = json.loads(r.out)
    rows = {row["id"]: row for row in whole["rows"]}
    for name in ("landlock-write", "landlock-fs-refer", "overlayfs", "self-test-default"):
        assert rows[name]["status"] == "untried", rows[name]
        assert "no directory for trials" in rows[name]["detail"]
    assert rows["landlock-net-tcp"]["status"] == "ok"


def test_host_with_threads_sees_no_child(place):
    """From a library: other threads run, SIGCHLD is handled, wait(-1) finds nobody."""
    lib = harness.INSTALLED.bin / "libsandlock.so"
    text = f"""
import ctypes, json, os, signal, threading
seen = []
signal.signal(signal.SIGCHLD, lambda *a: seen.append(a))
stop = threading.Event()
threads = [threading.Thread(target=stop.wait) for _ in range(8)]
for t in threads:
    t.start()
lib = ctypes.CDLL({str(lib)!r})
out = ctypes.c_char_p()
code = lib.sandlock_check(1, ctypes.byref(out), None)
stop.set()
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("none", code, len(seen), json.loads(out.value)["strict_default_starts"])
"""
    assert quiet_ok(harness.run([harness.PYTHON, "-c", text])).out == "none 0 0 True\n"


def test_interrupted_check_leaves_nothing():
    """Whenever the signal comes, the directory for trials is gone afterwards."""
    for delay in (0, 0.005, 0.01, 0.02, 0.04):
        before = trial_directories()
        with harness.Running([harness.INSTALLED.sandlock, "check"]) as running:
            time.sleep(delay)
            running.proc.terminate()
            r = running.finish()
        assert r.code in (-signal.SIGTERM, 0), f"{r!r}"
        assert trial_directories() <= before
        assert harness.tagged(r.tag) == []


# --- One mechanism at a time ---------------------------------------------------------------------


BLOCKED_ROWS = [
    ("pidfd_getfd=EPERM", "pidfd-getfd", "blocked", "pidfd_getfd", 0),
    ("process_vm_readv=EPERM", "process-vm-readv", "blocked", "process_vm_readv", 0),
    ("process_vm_readv=ENOSYS", "process-vm-readv", "blocked", "an outer seccomp filter hides", 0),
    ("process_vm_readv=KILL", "process-vm-readv", "failed", "killed by signal 31", 1),
    ("memfd_create=EPERM", "memfd-create", "blocked", "memfd_create", 0),
    ("seccomp:1&SECCOMP_FILTER_FLAG_NEW_LISTENER=EINVAL", "seccomp-listener", "blocked",
     "SECCOMP_FILTER_FLAG_NEW_LISTENER", 1),
    ("seccomp:1&SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV=EINVAL", "seccomp-wait-killable", "blocked",
     "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", 0),
    ("ioctl:1==SECCOMP_IOCTL_NOTIF_SET_FLAGS=EINVAL", "seccomp-sync-wake-up", "blocked",
     "SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP", 0),
    ("ioctl:1==SECCOMP_IOCTL_NOTIF_ADDFD=EINVAL", "seccomp-addfd", "blocked",
     "SECCOMP_IOCTL_NOTIF_ADDFD", 0),
    ("ioctl:1==SECCOMP_IOCTL_NOTIF_ADDFD=EINVAL", "seccomp-addfd-send", "blocked",
     "SECCOMP_ADDFD_FLAG_SEND", 0),
    ("clone:0&CLONE_NEWUSER=ENOSPC", "user-namespace", "blocked", "a limit of the kernel", 0),
    ("clone:0&CLONE_NEWUSER=EPERM", "base-namespaces", "blocked", "clone", 0),
    ("mount_setattr=ENOSYS", "mount-private", "blocked", "hides mount_setattr", 0),
    ("open_tree=EPERM", "mount-clone", "blocked", "open_tree", 0),
    ("move_mount=EPERM", "mount-attach", "blocked", "move_mount", 0),
    ("mount=EPERM", "mount-proc", "blocked", "mount of proc", 0),
    ("mount=EPERM", "mount-devpts", "blocked", "mount of devpts", 0),
    ("mount=EPERM", "mount-shm", "blocked", "mount of tmpfs", 0),
    ("mount=EPERM", "overlayfs", "blocked", "mount of overlay", 0),
    ("sethostname=EPERM", "uts-namespace", "blocked", "sethostname", 0),
    ("pidfd_open=ENOSYS", "pidfd-open", "blocked", "hides pidfd_open", 1),
    ("close_range=ENOSYS", "close-range", "blocked", "hides close_range", 1),
    ("seccomp=EPERM", "seccomp-filter", "blocked", "seccomp", 1),
    ("landlock_create_ruleset=ENOSYS", "landlock", "blocked", "hides landlock_create_ruleset", 1),
    ("landlock_create_ruleset=EOPNOTSUPP", "landlock", "missing", "lsm=", 1),
    ("landlock_create_ruleset=EPERM", "landlock", "blocked", "blocks landlock_create_ruleset", 1),
    ("landlock_create_ruleset:1==24=E2BIG", "landlock-signal-scope", "blocked", "filter", 1),
    ("landlock_create_ruleset:1==16=E2BIG", "landlock-net-tcp", "blocked", "filter", 1),
    ("clone=EPERM", "landlock", "blocked", "blocks clone", 1),
]


@pytest.mark.parametrize("rule,row,status,words,code", BLOCKED_ROWS,
                         ids=[f"{r}-{i}" for r, i, *_ in BLOCKED_ROWS])
def test_a_blocked_call_shows_in_its_row(rule, row, status, words, code):
    rows, _ = report([rule], code)
    assert rows[row]["status"] == status, rows[row]
    assert words in rows[row]["detail"], rows[row]
    assert rows[row]["remedy"], rows[row]


def test_what_needs_a_missing_row_is_untried():
    rows, whole = report(["clone:0&namespaces=EPERM"])
    assert whole["in_namespaces"] is False
    for name in MOUNT_ROWS:
        assert rows[name]["status"] == "untried", rows[name]
    assert rows["mount-clone"]["detail"] == "it needs mount-private"
    assert rows["self-test-default"]["detail"] == "without namespaces"
    assert rows["self-test-namespace"]["status"] == "failed"
    assert rows["self-test-notify"]["status"] == "ok"


def test_docker_default_profile_check():
    rows, whole = report(["--docker"])
    assert whole["in_namespaces"] is False
    for name in LANDLOCK_ROWS + ["seccomp-listener", "seccomp-addfd", "process-vm-readv",
                                 "self-test-default", "self-test-notify",
                                 "self-test-no-supervisor"]:
        assert rows[name]["status"] == "ok", rows[name]
    for name in ("pidfd-getfd", "user-namespace", "base-namespaces"):
        assert rows[name]["status"] == "blocked", rows[name]
    r = inside(["--docker"], harness.INSTALLED.sandlock, "check")
    assert r.lines[-1].startswith("Verdict: the strict default starts here, without namespaces")


# --- Failing starts ------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [["--docker"], ["clone:0&namespaces=EPERM"], ["mount=EPERM"],
                                   ["clone:0&CLONE_NEWUSER=ENOSPC"], ["mount_setattr=ENOSYS"],
                                   ["open_tree=EPERM"], ["move_mount=EPERM"]],
                         ids=lambda r: r[0])
def test_auto_goes_on_without_namespaces(place, rules):
    """And the rung that it falls back to still refuses what was not granted."""
    secret = place.file("secret", "s")
    r = start(rules, ["-w", place.dir("work")],
              command=["/bin/sh", "-c", f"cat {secret} || echo refused"])
    assert ok(r).out == "refused\n"
    assert "s\n" not in r.out


@pytest.mark.parametrize("rule,call", [
    ("clone:0&namespaces=EPERM", "clone"), ("mount_setattr=ENOSYS", "mount_setattr"),
    ("move_mount=EPERM", "move_mount"), ("open_tree=EPERM", "open_tree"), ("mount=EPERM", "mount")])
def test_view_namespace_names_the_call(place, rule, call):
    r = start([rule], ["--view", "namespace", "-w", place.dir("work")])
    refused(r, f"({call})", "an outer seccomp filter", "allow it there", "use --view auto")


SAID = {
    "landlock_create_ruleset=ENOSYS": "hides landlock_create_ruleset: allow it there",
    "landlock_create_ruleset=EOPNOTSUPP": "add landlock to the lsm= boot parameter",
    "landlock_create_ruleset=EPERM": "blocks landlock_create_ruleset: allow it there",
    "landlock_add_rule=EPERM": "landlock_add_rule",
    "landlock_restrict_self=EPERM": "landlock_restrict_self",
    "seccomp=EPERM": "blocks seccomp: allow it there",
    "seccomp=ENOSYS": "hides seccomp: allow it there",
    "close_range=ENOSYS": "hides close_range: allow it there",
    "close_range=EPERM": "blocks close_range: allow it there",
    "prctl=EPERM": "prctl: allow it there",
    "capget=EPERM": "(capget, capset or prctl)",
    "dup3=EPERM": "dup3",
}


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
@pytest.mark.parametrize("rule", SAID)
def test_a_failed_start_names_call_and_remedy(mode, rule):
    refused(start([rule], mode=mode), SAID[rule])


@pytest.mark.parametrize("mode", ["base", "nobase"])
@pytest.mark.parametrize("rule,words", [
    ("pidfd_open=ENOSYS", "hides pidfd_open: allow it there"),
    ("pidfd_open=EPERM", "blocks pidfd_open: allow it there"),
    ("signalfd4=ENOSYS", "hides signalfd4: allow it there"),
    ("setpgid=EPERM", "blocks setpgid: allow it there"),
    ("socketpair=EPERM", "blocks socketpair: allow it there")])
def test_a_failed_supervised_start_names_call_and_remedy(mode, rule, words):
    refused(start([rule], mode=mode), words)


def test_memfd_create_blocked_without_namespaces():
    refused(start(["memfd_create=ENOSYS"], mode="nobase"), "memfd_create", "allow it there")


def test_the_filter_itself_lets_everything_else_through():
    r = inside(["acct=EPERM"], "/bin/echo", "x")
    assert quiet_ok(r).out == "x\n"


@pytest.mark.parametrize("rule,words", [
    ("nonsense=EPERM", "no such system call"), ("mount", "ends in =ERRNO"),
    ("mount=EWHAT", "not the name of an errno"), ("mount:9&1=EPERM", "a digit from 0 to 5"),
    ("mount:0&what=EPERM", "neither a number nor a known flag")])
def test_the_filter_refuses_bad_rules(rule, words):
    r = inside([rule], "/bin/true")
    assert r.code == 125
    assert words in r.err


# --- Handed cases --------------------------------------------------------------------------------


def test_b27_older_landlock_lists_all_that_is_missing():
    """A kernel without the rights of ABI 4 and later: one message lists every waiver, and with
    exactly these the start works and warns of each.
    """
    older = ["landlock_create_ruleset:1==24=E2BIG", "landlock_create_ruleset:1==16=E2BIG"]
    missing = ["net-tcp", "signal-scope", "abstract-unix-socket-scope"]
    r = start(older)
    flags = [word for name in missing for word in ("--allow-degraded", name)]
    refused(r, "Protection net-tcp needs Landlock ABI 4", " ".join(flags))
    r = ok(start(older, flags))
    assert r.out == "x\n"
    assert [line for line in r.err_lines if "warning: protection" in line] == r.err_lines
    for name in missing:
        assert r.err.count(f"protection {name} is not available") == 1, f"{r!r}"


def test_b27_rejected_seccomp_flags_do_not_matter():
    """The newer flag is left out; without a listener at all there is no supervisor."""
    for mode in ("base", "nobase", "unsup"):
        r = start(["seccomp:1&SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV=EINVAL"], mode=mode)
        assert quiet_ok(r).out == "x\n"
    no_listener = ["seccomp:1&SECCOMP_FILTER_FLAG_NEW_LISTENER=EINVAL"]
    assert quiet_ok(start(no_listener, mode="unsup")).out == "x\n"
    for mode in ("base", "nobase"):
        refused(start(no_listener, mode=mode), "seccomp")


def test_b48_the_list_of_security_modules_is_not_asked(is_root):
    """/sys is empty, as in some containers: Landlock is found by trying it."""
    if not is_root:
        return
    words = " ".join(map(str, [harness.INSTALLED.sandlock, "check", "--json"]))
    text = (f"mount -t tmpfs none /sys && exec setpriv --reuid {harness.USER.uid} "
            f"--regid {harness.USER.gid} --clear-groups {words}")
    r = harness.run(["/usr/bin/unshare", "-m", "/bin/sh", "-c", text], account=harness.ROOT_USER)
    assert os.path.exists("/sys/kernel")
    whole = json.loads(ok(r).out)
    assert whole["landlock_abi"] >= 6
    assert whole["strict_default_starts"] is True


def test_b56_the_three_causes_are_told_apart():
    said = {code: start([f"landlock_create_ruleset={code}"]) for code in
            ("ENOSYS", "EOPNOTSUPP", "EPERM")}
    for r in said.values():
        refused(r, "Landlock is not available here", "nothing was started")
    assert "an outer seccomp filter hides landlock_create_ruleset" in said["ENOSYS"].err
    assert "not enabled at boot" in said["EOPNOTSUPP"].err
    assert "lsm=" in said["EOPNOTSUPP"].err
    assert "an outer seccomp filter blocks landlock_create_ruleset" in said["EPERM"].err


def test_b56_no_waiver_helps_where_landlock_is_missing():
    flags = [word for name in PROTECTIONS for word in ("--allow-degraded", name)]
    refused(start(["landlock_create_ruleset=ENOSYS"], flags), "Landlock is not available here")


@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
@pytest.mark.parametrize("call", ["landlock_create_ruleset", "landlock_add_rule",
                                  "landlock_restrict_self"])
def test_b71_missing_landlock_is_a_message_and_no_abort(mode, call):
    refused(start([f"{call}=ENOSYS"], mode=mode), "andlock")


def test_b111_landlock_that_enforces_nothing_is_found_out():
    """The domain is entered in words only: every row that tries something forbidden says so."""
    rows, whole = report(["landlock_restrict_self=SUCCESS"], code=1)
    assert whole["landlock_abi"] >= 6
    for name in LANDLOCK_ROWS:
        assert rows[name]["status"] == "failed", rows[name]
        assert "should have been refused, and was not" in rows[name]["detail"]
    assert rows["self-test-no-supervisor"]["status"] == "failed"
    assert "A FORBIDDEN WRITE WENT THROUGH" in rows["self-test-no-supervisor"]["detail"]
    r = inside(["landlock_restrict_self=SUCCESS"], harness.INSTALLED.sandlock, "check")
    assert r.lines[3] == "  Status:         UNSUPPORTED (see the rows below)"
    assert r.lines[4] == "  Filesystem:     not supported"
    assert r.lines[-1].startswith("Verdict: the strict default does not start here: "
                                  "landlock-write failed, landlock-fs-refer failed, ")


def test_b111_an_injection_that_injects_nothing_is_found_out():
    rows, _ = report(["ioctl:1==SECCOMP_IOCTL_NOTIF_ADDFD=SUCCESS"])
    assert rows["seccomp-addfd"]["status"] == "failed", rows["seccomp-addfd"]
    assert rows["seccomp-addfd-send"]["status"] == "failed", rows["seccomp-addfd-send"]


def test_b111_a_filter_that_filters_nothing_is_found_out():
    rows, _ = report(["seccomp=SUCCESS"], code=1)
    assert rows["seccomp-filter"]["status"] == "failed"
    assert rows["seccomp-filter"]["detail"] == "the filter did not answer the call"
