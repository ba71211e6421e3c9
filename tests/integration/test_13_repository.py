# SPDX-License-Identifier: Apache-2.0
"""Issue 3, point 13: what a newcomer finds in the repository, and that the texts tell the truth."""

import re

import pytest

import harness
from checks import ok

ROOT = harness.ROOT
MODES_OF_TABLE = ("base", "without", "no supervisor")


@pytest.mark.parametrize("name", ["LICENSE", "README.md", "CONTRIBUTING.md", "SECURITY.md",
                                  "CHANGELOG.md", "docs/architecture.md", "Makefile", ".ci/run"])
def test_file_is_there(name):
    assert (ROOT / name).read_text().strip()


@pytest.mark.parametrize("target", ["demo", "check", "check-long", "check-vm", "bench", "format",
                                    "lint", "fuzz", "install"])
def test_make_has_the_target(target):
    assert re.search(rf"^{target}\b[^=\n]*:", (ROOT / "Makefile").read_text(), re.M)


def test_ci_calls_make_check():
    assert "make check" in (ROOT / ".ci/run").read_text()


def test_security_names_what_is_open():
    """What the escape table calls OPEN is told to users."""
    text = (ROOT / "SECURITY.md").read_text().lower()
    for word in ("lease", "flock", "inotify", "descriptor", "without a supervisor"):
        assert word in text or word.replace("without a supervisor", "no supervisor") in text, word


def test_every_flag_of_help_is_in_the_manual():
    """The manual page is made from the same table as the help."""
    help_text = ok(harness.sandlock("run", "--help")).out
    flags = set(re.findall(r"--[a-z][a-z-]+", help_text))
    assert len(flags) > 30
    for line in (ROOT / "README.md").read_text().splitlines():
        for flag in re.findall(r"sandlock run[^`|]*?(--[a-z][a-z-]+)", line):
            assert flag in flags, flag
