# SPDX-License-Identifier: Apache-2.0
"""System calls that the policy allows give inside exactly what they give outside.

Invariant: the probe runs in a fresh directory each time, and no line is left out of the comparison.
"""

import socket

import pytest

import harness


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def probe(place, name):
    return [harness.INSTALLED.tools["errno-probe"], place.dir(name)]


def outside(place, account, port):
    return harness.run([*probe(place, "outside"), port], account=account)


def test_probe_covers_enough(place):
    lines = outside(place, harness.USER, free_port()).lines
    failing = [line for line in lines if " fail " in line]
    assert len(lines) >= 200
    assert len(failing) >= 100
    assert len(lines) - len(failing) >= 60
    assert len({line.split()[0] for line in lines}) == len(lines)
    assert not [line for line in lines if line.endswith("?")]


@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_same_errno_inside_as_outside(place, mode):
    port = free_port()
    m = harness.MODES[mode]
    expected = outside(place, m.account, port).lines
    argv = probe(place, "inside")
    flags = ["-w", argv[1], "--net-allow", f"tcp://:{port}", "--net-allow-bind", str(port),
             "--allow-metadata"]
    result = harness.sandbox(flags, [*argv, port], mode=mode)
    assert result.code == 0, f"{result!r}"
    assert result.lines == expected


def test_metadata_is_the_same_in_the_base_without_the_waiver(place):
    """In the base the mounts judge, so a write grant needs no --allow-metadata."""
    port = free_port()
    expected = [line for line in outside(place, harness.USER, port).lines
                if not line.startswith("socket.")]
    argv = probe(place, "inside")
    result = harness.sandbox(["-w", argv[1]], [*argv, port], mode="base")
    assert result.code == 0, f"{result!r}"
    assert [line for line in result.lines if not line.startswith("socket.")] == expected
