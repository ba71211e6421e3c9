# SPDX-License-Identifier: Apache-2.0
"""Small assertions that the integration tests share."""

import harness

TRUE = "/usr/bin/true"
SH = "/bin/sh"


def refused(result, *words):
    """One line on standard error that holds WORDS, exit 125, and nothing else happened."""
    assert result.code == 125, f"{result!r}"
    assert result.out == "", f"{result!r}"
    assert len(result.err_lines) == 1, f"{result!r}"
    assert result.err.startswith("sandlock: "), f"{result!r}"
    for word in words:
        assert word in result.err, f"{word!r} is not in{result!r}"


def ok(result):
    assert result.code == 0, f"{result!r}"
    return result


def quiet_ok(result):
    """Exit 0 and nothing on standard error."""
    assert result.code == 0, f"{result!r}"
    assert result.err == "", f"{result!r}"
    return result


def inside(result):
    """The key=value lines of the program `inside`."""
    ok(result)
    return dict(line.split("=", 1) for line in result.lines)


def state(flags=(), mode="base", **kw):
    return inside(harness.sandbox(list(flags), [harness.INSTALLED.tools["inside"]], mode=mode, **kw))


def script(flags, text, mode="base", **kw):
    return harness.sandbox(list(flags), [SH, "-c", text], mode=mode, **kw)


def python(flags, text, mode="base", **kw):
    return harness.sandbox(list(flags), [harness.PYTHON, "-c", text], mode=mode, **kw)
