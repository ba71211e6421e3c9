# SPDX-License-Identifier: Apache-2.0
"""Command lines that users of the reference type today (reference/examples.md). Those whose flags
arrive with later work are refused by name until then, and run nothing; the rest work as written.
"""

import json
import tomllib

import pytest

import harness


def test_7_a_job_that_sandboxes_again(place):
    """`run … -- sandlock run --no-supervisor … -- cmd` works, and only narrows."""
    work = place.dir("work")
    inner = place.dir("work/inner")
    s = str(harness.INSTALLED.sandlock)
    grants = [*harness.SYSTEM, "-r", str(harness.INSTALLED.bin)]
    text = f"echo x > {inner}/in && ! (echo y > {work}/out) 2>/dev/null"
    r = harness.run([s, "run", *grants, "-w", work, "--", s, "run", "--no-supervisor", *grants,
                     "-w", inner, "--", "/bin/sh", "-c", text])
    assert (r.code, r.err) == (0, ""), f"{r!r}"
    assert (inner / "in").read_text() == "x\n"
    assert not (work / "out").exists()


SERVER = """
import socket, sys
s = socket.socket()
s.bind(("127.0.0.1", 8080))
s.listen(5)
print(socket.gethostname(), s.getsockname()[1], flush=True)
while True:
    s.accept()[0].close()
"""


def test_5_two_servers_with_one_port():
    """Both believe they have 8080; ps, inspect and kill know them by name."""
    grants = ["-r", "/usr", "-r", "/lib", "-r", "/etc", *harness.SYSTEM]
    names = ["api.local", "web.local"]
    runs = [harness.Running([harness.INSTALLED.sandlock, "run", "--name", name, "--port-remap",
                             "--net-allow-bind", "8080", *grants, "--", harness.PYTHON, "-c",
                             SERVER]) for name in names]
    try:
        for run, name in zip(runs, names):
            assert run.proc.stdout.readline() == f"{name} 8080\n".encode()

        def listed():
            rows = json.loads(harness.sandlock("ps", "--json").out)
            return {row["name"]: row["ports"]["8080"] for row in rows if row["name"] in names}

        harness.wait_until(lambda: len(listed()) == 2, what="listing")
        assert len(set(listed().values())) == 2
        policy = harness.sandlock("inspect", "api.local", "--toml").out
        assert tomllib.loads(policy)["network"]["port_remap"] is True
        assert harness.sandlock("kill", "web.local").code == 0
        assert runs[1].finish().code != 0
        assert set(listed()) == {"api.local"}
    finally:
        for run in runs:
            run.stop()


LATER = {
    "1 one endpoint": ["--http-allow", "POST api.openai.com/v1/chat/completions", "--http-deny",
                       "* */admin/*", "-r", "/usr", "-r", "/lib", "-r", "/etc", "-m", "1G", "-P",
                       "32", "-t", "600"],
    "3 for real": ["--workdir", ".", "-w", ".", "-r", "/usr", "-r", "/lib", "-r", "/bin", "-r",
                   "/etc", "-m", "4G", "-P", "64", "-t", "1800"],
    "4 reproducible": ["--time-start", "2000-01-01T00:00:00Z", "--random-seed", "42",
                       "--deterministic-dirs"],
    "12 one GPU": ["--gpu", "0", "-r", "/usr"],
}


@pytest.mark.parametrize("flags", LATER.values(), ids=LATER)
def test_later_lines_are_refused_by_name(place, flags):
    work = place.dir("work")
    r = harness.sandlock("run", *flags, "--", "/usr/bin/touch", work / "ran", cwd=str(work))
    assert r.code == 125, f"{r!r}"
    assert len(r.err_lines) == 1 and "--" in r.err, f"{r!r}"
    assert not (work / "ran").exists()


def test_2_look_first(place):
    """With the base, which a workspace needs."""
    work = place.dir("work")
    r = harness.sandlock("run", "--dry-run", "--workdir", ".", "-w", ".", *harness.SYSTEM, "--",
                         "/usr/bin/touch", work / "ran", cwd=str(work),
                         env={"XDG_STATE_HOME": str(place.dir("state"))})
    assert (r.code, r.err) == (0, "A  ran\n"), f"{r!r}"
    assert not (work / "ran").exists()
