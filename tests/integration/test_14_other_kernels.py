# SPDX-License-Identifier: Apache-2.0
"""Issue 3, point 14: the runs on other kernels belong to `make check-vm`; here is what can be said of
them without one.
"""

import errno

import harness
from checks import refused

ROOT = harness.ROOT


def test_check_vm_is_part_of_check_long():
    text = (ROOT / "Makefile").read_text()
    line = [part for part in text.splitlines() if part.startswith("check-long")]
    assert line, "no target check-long"
    assert "vm" in text.split("check-long", 1)[1]


def test_guest_script_is_there():
    assert list((ROOT / "tests/vm").iterdir())


def test_kernel_without_seccomp_listener_is_refused_but_by_no_supervisor():
    """Sockets are the supervisor's to judge: nothing starts without it unless that was asked for."""
    fake = harness.INSTALLED.tools["fake-kernel"]
    for mode, code, out in (("base", 125, ""), ("nobase", 125, ""), ("unsup", 0, "x\n")):
        argv = harness.MODES[mode].command([], ["/bin/echo", "x"])
        r = harness.run([fake, f"317:1&8={errno.EINVAL}", "--", *argv])
        assert (r.code, r.out) == (code, out), f"{r!r}"


def test_kernel_without_seccomp_filters_is_refused():
    argv = harness.MODES["base"].command([], ["/bin/echo", "x"])
    fake = harness.INSTALLED.tools["fake-kernel"]
    refused(harness.run([fake, f"317={errno.ENOSYS}", "--", *argv]), "seccomp")
