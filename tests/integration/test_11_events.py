# SPDX-License-Identifier: Apache-2.0
"""Issue 3, point 11: events of limits, time-out and start failures, and their sinks."""

import json
import os

import pytest

import harness

ORDER = ["v", "time", "sandbox", "pid", "program", "op", "object", "layer", "rule", "allow",
         "errno", "count"]


def events(path):
    lines = path.read_text().splitlines()
    found = [json.loads(line) for line in lines]
    for e in found:
        assert list(e) == [k for k in ORDER if k in e]
        assert e["v"] == 1
    return found


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_time_out_is_an_event(place, mode):
    file = place.file("events")
    r = harness.sandbox(["-t", "0.2", "--events", file, "--name", "timed"], ["/bin/sleep", "75.1"],
                        mode=mode)
    assert r.code == 124
    found = events(file)
    assert len(found) == 1
    assert found[0]["sandbox"] == "timed"
    assert found[0]["rule"]
    assert "--timeout" in found[0]["allow"] or "-t" in found[0]["allow"]


@pytest.mark.parametrize("mode", ["base", "nobase"])
def test_start_failure_is_an_event(place, mode):
    file = place.file("events")
    program = place.file("program", "#!/bin/sh\n", 0o755)
    r = harness.sandbox(["--events", file], [program], mode=mode)
    assert r.code == 126
    found = events(file)
    assert len(found) == 1
    assert found[0]["object"] == str(program)
    assert found[0]["errno"] == "EACCES"


def test_no_refusal_no_event(place):
    file = place.file("events")
    assert harness.sandbox(["--events", file], ["/usr/bin/false"]).code == 1
    assert events(file) == []


def test_events_are_appended_and_escaped(place):
    file = place.file("events", '{"v": 1}\n')
    r = harness.sandbox(["--events", file], ["/no\x1b[31m\n/such"])
    assert r.code == 127
    text = file.read_text()
    assert text.startswith('{"v": 1}\n')
    assert "\x1b" not in text
    assert len(text.splitlines()) == 2


def test_h7_31_events_fifo_without_a_reader(place):
    os.mkfifo(place.top / "fifo")
    place.account.own(place.top)
    r = harness.sandbox(["--events", place.top / "fifo"], ["/usr/bin/true"], timeout=20)
    assert r.code == 125, f"{r!r}"
    assert len(r.err_lines) == 1 and "fifo" in r.err


def test_unwritable_events_file_is_refused(place):
    r = harness.sandbox(["--events", "/no/such/dir/events"], ["/usr/bin/true"])
    assert r.code == 125
    assert len(r.err_lines) == 1 and "/no/such/dir/events" in r.err


def test_quiet_turns_the_footer_off():
    loud = harness.sandbox(["-t", "0.2"], ["/bin/sleep", "75.2"])
    silent = harness.sandbox(["-t", "0.2", "--quiet"], ["/bin/sleep", "75.2"])
    assert loud.code == silent.code == 124
    assert len(loud.err_lines) >= 1
    assert len(silent.err_lines) <= 1
