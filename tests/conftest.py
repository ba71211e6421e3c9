# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the system tests, and the rule that a skip must be listed in tests/skips.txt.

The build directory comes from --build or SANDLOCK_BUILD (default: build). Started as root, the tests
run every command as an ordinary user id, except where a test says root.
"""

import os
import pathlib
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import harness  # noqa: E402

SKIPS = {}
BEFORE = {}


def read_skips():
    """Lines `nodeid TAB reason`; blank lines and those that begin with # are comments."""
    path = harness.HERE / "skips.txt"
    for n, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        node, tab, reason = line.partition("\t")
        if not tab or not reason.strip():
            raise pytest.UsageError(f"{path}:{n}: expected a test id, a tab and a reason")
        SKIPS[node] = reason.strip()


def pytest_addoption(parser):
    parser.addoption("--build", default=None, help="directory of the build under test")


def pytest_configure(config):
    read_skips()
    build = config.getoption("--build") or harness.default_build()
    installed = harness.install(build)
    if not installed.attack:
        raise pytest.UsageError(f"{build}: no program 'attack' there; build it first")


def pytest_unconfigure(config):
    if harness.INSTALLED:
        harness.INSTALLED.remove()


def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.nodeid in SKIPS:
            item.add_marker(pytest.mark.skip(reason=SKIPS[item.nodeid]))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A skip that skips.txt does not name is a failure."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and item.nodeid not in SKIPS and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: skipped, but not listed in tests/skips.txt"


@pytest.fixture(scope="session", autouse=True)
def clean_machine():
    """No test run leaves a file, a mount or a shared object behind."""
    before = harness.residue()
    mounts = harness.mounts()
    running = harness.processes() if os.getuid() == 0 else []
    yield
    if os.getuid() == 0:
        alive = [pid for pid in harness.processes() if pid not in running]
        assert alive == [], harness.describe(alive)
    # Where a test has killed host and guardian both, nobody was left to remove the entry but ps,
    # which leaves one alone that is so young that it may be being made.
    for seconds in (0, 3):
        time.sleep(seconds if harness.residue() - before else 0)
        for account in (harness.USER, harness.SECOND, harness.THIRD):
            if account:
                harness.sandlock("ps", account=account)
    left = sorted(harness.residue() - before)
    assert left == [], f"left behind: {left}"
    assert harness.mounts() == mounts


@pytest.fixture
def place():
    p = harness.Place()
    yield p
    p.remove()


@pytest.fixture
def root_place():
    p = harness.Place(harness.ROOT_USER)
    yield p
    p.remove()


@pytest.fixture(params=["base", "nobase", "unsup", "nested"])
def user_mode(request):
    return harness.MODES[request.param]


@pytest.fixture(params=["base", "nobase"])
def supervised(request):
    return harness.MODES[request.param]


@pytest.fixture
def terminal():
    t = harness.Terminal()
    yield t
    t.close()


@pytest.fixture(scope="session")
def is_root():
    return os.getuid() == 0
