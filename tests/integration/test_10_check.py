# SPDX-License-Identifier: Apache-2.0
"""Issue 3, point 10: `sandlock check`, and starts under filters like those of container engines."""

import errno
import json

import pytest

import harness
from checks import ok, quiet_ok, refused

# Calls that Docker's default filter refuses without CAP_SYS_ADMIN or CAP_SYS_PTRACE, x86_64.
CLONE, UNSHARE, SETNS, MOUNT, SECCOMP = 56, 272, 308, 165, 317
PIDFD_GETFD, LANDLOCK_CREATE, LANDLOCK_RESTRICT, CLOSE_RANGE, PIDFD_OPEN = 438, 444, 446, 436, 434
NAMESPACES = 0x7E020000


def fake(*specs):
    return [str(harness.INSTALLED.tools["fake-kernel"]), *specs, "--"]


DOCKER = [f"{CLONE}:0&{NAMESPACES}={errno.EPERM}", f"{UNSHARE}={errno.EPERM}",
          f"{SETNS}={errno.EPERM}", f"{MOUNT}={errno.EPERM}", f"{PIDFD_GETFD}={errno.EPERM}",
          f"435={errno.ENOSYS}"]


def test_check_says_what_this_machine_can():
    r = quiet_ok(harness.sandlock("check"))
    for word in ("landlock", "seccomp-listener", "seccomp-addfd", "pidfd-getfd",
                 "process-vm-readv", "user-namespace", "base-namespaces", "overlayfs",
                 "cgroup-delegation", "ptrace-scope", "landlock-fs-refer", "landlock-fs-truncate",
                 "landlock-net-tcp", "landlock-fs-ioctl-dev", "landlock-signal-scope",
                 "landlock-abstract-unix-socket-scope", "mount-private", "mount-clone",
                 "mount-read-only", "mount-attach", "mount-proc", "mount-devpts", "mount-shm"):
        assert len([line for line in r.lines if line.split()[:1] == [word]]) == 1, word


def test_check_json():
    r = quiet_ok(harness.sandlock("check", "--json"))
    report = json.loads(r.out)
    assert isinstance(report, dict)
    assert "Landlock" in r.out or "landlock" in r.out


def test_check_is_1_where_the_strict_default_would_not_start():
    r = harness.run([*fake(f"{LANDLOCK_CREATE}={errno.ENOSYS}"), harness.INSTALLED.sandlock,
                     "check"])
    assert r.code == 1, f"{r!r}"
    assert "Landlock" in r.out


def test_b111_check_tries_live_attacks():
    """A Landlock that accepts its rules but enforces nothing is found out."""
    r = harness.run([*fake(f"{LANDLOCK_RESTRICT}=0"), harness.INSTALLED.sandlock, "check"])
    assert r.code == 1, f"{r!r}"


def test_check_usage():
    assert harness.sandlock("check", "--nonsense").code == 2
    assert harness.sandlock("check", "extra").code == 2


def test_check_under_a_docker_like_filter_says_so():
    r = harness.run([*fake(*DOCKER), harness.INSTALLED.sandlock, "check"])
    assert r.code == 0, f"{r!r}"
    assert r.out != quiet_ok(harness.sandlock("check")).out


def test_start_under_a_docker_like_filter():
    """Without namespaces the start falls back to the rung that needs none."""
    argv = harness.MODES["base"].command([], ["/bin/echo", "x"])
    r = ok(harness.run([*fake(*DOCKER), *argv]))
    assert r.out == "x\n"


def test_view_namespace_under_such_a_filter_is_refused_with_the_call():
    argv = harness.MODES["base"].command(["--view", "namespace"], ["/bin/echo", "x"])
    r = harness.run([*fake(*DOCKER), *argv])
    refused(r, "clone")


@pytest.mark.parametrize("nr,word", [(LANDLOCK_CREATE, "landlock_create_ruleset"),
                                     (LANDLOCK_RESTRICT, "landlock_restrict_self"),
                                     (SECCOMP, "seccomp"), (445, "landlock_add_rule")])
@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_blocked_call_is_named(mode, nr, word):
    argv = harness.MODES[mode].command([], ["/usr/bin/true"])
    r = harness.run([*fake(f"{nr}={errno.EPERM}"), *argv])
    assert r.code == 125, f"{r!r}"
    assert len(r.err_lines) == 1, f"{r!r}"
    assert word in r.err or ("Landlock" in r.err and word.startswith("landlock")), f"{r!r}"


@pytest.mark.parametrize("nr", [CLOSE_RANGE, PIDFD_OPEN, 424, 309, 302, 318])
@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_other_missing_calls_end_in_a_run_or_in_one_line(mode, nr):
    argv = harness.MODES[mode].command([], ["/bin/echo", "x"])
    r = harness.run([*fake(f"{nr}={errno.ENOSYS}"), *argv])
    if r.code == 0:
        assert r.out == "x\n"
    else:
        assert r.code == 125 and len(r.err_lines) == 1, f"{r!r}"
        assert r.out == ""


def test_b27_older_landlock_needs_an_explicit_waiver():
    """B27 and the older kernels themselves run in `make check-vm`; here the errno alone."""
    argv = harness.MODES["base"].command(["--allow-degraded", "net-tcp"], ["/usr/bin/true"])
    refused(harness.run([*fake(f"{LANDLOCK_CREATE}={errno.ENOSYS}"), *argv]), "Landlock")


def test_mount_refused_alone():
    """Namespaces work but mounting is refused: the base is all or nothing."""
    argv = harness.MODES["base"].command([], ["/bin/echo", "x"])
    r = ok(harness.run([*fake(f"{MOUNT}={errno.EPERM}", f"428={errno.EPERM}", f"429={errno.EPERM}",
                              f"442={errno.EPERM}", f"430={errno.EPERM}"), *argv]))
    assert r.out == "x\n"
