# SPDX-License-Identifier: Apache-2.0
"""Issue 3, point 9: no supervisor, and sandboxes in sandboxes."""

import errno
import socket

import pytest

import harness
from checks import ok, quiet_ok, refused

def sandlock():
    return str(harness.INSTALLED.sandlock)


def grants():
    return [*harness.SYSTEM, "-r", str(harness.INSTALLED.bin)]


def outer(*flags):
    return [sandlock(), "run", *flags, *grants()]


def test_unsupervised_inside_supervised(place):
    work = place.dir("work")
    quiet_ok(harness.run([*outer("-w", str(work)), "--", *outer("--no-supervisor", "-w", str(work)),
                          "--", "/bin/sh", "-c", f": > {work}/x"]))
    assert (work / "x").exists()


def test_supervised_inside_unsupervised(place):
    work = place.dir("work")
    ok(harness.run([*outer("--no-supervisor", "-w", str(work)), "--",
                          *outer("-w", str(work)), "--", "/bin/sh", "-c", f": > {work}/x"]))
    assert (work / "x").exists()


def test_unsupervised_inside_unsupervised(place):
    ok(harness.run([*outer("--no-supervisor"), "--", *outer("--no-supervisor"), "--",
                          "/usr/bin/true"]))


@pytest.mark.parametrize("view", ["auto", "notify"])
def test_supervised_inside_supervised_is_refused_with_the_remedy(view):
    r = harness.run([*outer("--view", view, "--quiet"), "--", *outer(), "--", "/usr/bin/true"])
    refused(r, "--no-supervisor")


@pytest.mark.parametrize("order", ["inner", "outer"])
def test_nesting_only_narrows(place, order):
    a = place.dir("a")
    b = place.dir("b")
    first, second = (["--no-supervisor"], []) if order == "inner" else ([], ["--no-supervisor"])
    text = f"! (echo x > {a}/f) 2>/dev/null && ! (echo x > {b}/f) 2>/dev/null"
    ok(harness.run([*outer(*second, "-w", str(a)), "--", *outer(*first, "-r", str(b)), "--",
                    "/bin/sh", "-c", text]))


def test_inner_grant_beyond_the_outer_gives_nothing(place):
    a = place.dir("a")
    b = place.dir("b")
    r = harness.run([*outer("-w", str(a), "-r", str(b)), "--",
                     *outer("--no-supervisor", "-w", str(b)), "--", "/usr/bin/touch", b / "x"])
    assert r.code != 0
    assert not (b / "x").exists()


def nest(depth, argv):
    for _ in range(depth):
        argv = [*outer("--no-supervisor"), "--", *argv]
    return argv


def test_the_16_layer_limit_is_said():
    quiet_ok(harness.run(nest(15, ["/usr/bin/true"])))
    r = harness.run(nest(17, ["/usr/bin/true"]))
    refused(r, "16")


@pytest.mark.parametrize("flags,ok_", [
    (["-w", "{work}"], True), (["--cwd", "/"], True), (["--env", "A=b"], True),
    (["--clean-env"], True), (["--max-open-files", "50"], True), (["--cpu-cores", "0"], True),
    (["--no-huge-pages"], True), (["--no-randomize-memory"], True), (["--no-coredump"], True),
    (["--net-allow-bind", "8080"], True), (["--net-allow", "tcp://:443"], True),
    (["--net-allow", ":443"], True), (["--unix-allow", "*"], True), (["--allow-metadata"], True),
    (["-t", "5"], False), (["--status-fd", "2"], False), (["--net-allow", "udp://:53"], False),
    (["-m", "1G"], False), (["-P", "5"], False), (["--fs-deny", "/x"], False),
    (["--workdir", "/tmp"], False), (["--port-remap"], False), (["--view", "namespace"], False),
], ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_what_no_supervisor_accepts(place, flags, ok_):
    work = place.dir("work")
    words = [w.format(work=work) for w in flags]
    r = harness.run([*outer("--no-supervisor", *words), "--", "/usr/bin/true"])
    if ok_:
        ok(r)
    else:
        assert r.code == 125 and r.out == "", f"{r!r}"
        assert "--no-supervisor" in r.err_lines[0], f"{r!r}"


def test_rule_without_scheme_warns_once():
    r = ok(harness.run([*outer("--no-supervisor", "--net-allow", ":443", "--net-allow", ":80"),
                        "--", "/usr/bin/true"]))
    assert len(r.err_lines) == 1 and "TCP" in r.err


def test_no_supervisor_replaces_the_process():
    """Nobody stays: the command has the pid that was started."""
    with harness.Running([*outer("--no-supervisor"), "--", "/bin/sh", "-c",
                          "echo $$; exec sleep 0.1"]) as running:
        assert int(running.proc.stdout.readline()) == running.pid
        assert running.proc.wait(30) == 0


@pytest.mark.parametrize("unix,code", [([], errno.EACCES), (["--unix-allow", "*"], 0)], ids=str)
def test_unix_sockets_without_supervisor(unix, code):
    text = ("import socket, sys\ntry:\n    socket.socket(socket.AF_UNIX)\n"
            "except OSError as e:\n    sys.exit(e.errno)\n")
    r = harness.run([*outer("--no-supervisor", *unix), "--", harness.PYTHON, "-c", text])
    assert r.code == code, f"{r!r}"


def test_b122_tools_that_make_sandboxes_inside():
    """Namespaces inside are refused with EPERM, which the tools report; sandlock itself nests."""
    r = harness.run([*outer(), "--", "/usr/bin/unshare", "-Ur", "/bin/true"])
    assert r.code == 1 and "Operation not permitted" in r.err
    r = harness.run([*outer(), "--", *outer("--no-supervisor"), "--", "/usr/bin/true"])
    quiet_ok(r)


def test_b99_nested_run_and_variables_in_a_profile(place):
    home = place.dir("home")
    place.dir("home/work")
    profile = place.file("p.toml", '[filesystem]\nread = ["/usr", "/lib", "/lib64", "/bin", '
                                   '"/etc"]\nwrite = ["${HOME}/work"]\n')
    r = harness.sandlock("run", "--profile-file", profile, "--", "/bin/sh", "-c",
                         f"cd {home}/work && echo x > a && mv a b && cat b",
                         env={"HOME": str(home)})
    assert quiet_ok(r).out == "x\n"


INNER_CONNECT = """
import socket, sys
for port in map(int, sys.argv[1:]):
    s = socket.socket()
    try:
        s.connect(("127.0.0.1", port))
        print("connected")
    except OSError as e:
        print(errno.errorcode[e.errno])
"""


@pytest.mark.parametrize("view", ["auto", "notify"])
def test_inner_rules_bind_what_the_outer_supervisor_would_do(place, view):
    """The outer supervisor does for it what its own domain would allow, or leaves it to the kernel."""
    a, b = place.dir("a"), place.dir("b")
    (a / "file").write_text("x")
    harness.USER.own(a)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        flags = ["--view", view, "-w", str(a), "-w", str(b), "--net-allow", f"tcp://:{port}"]
        text = "import errno" + INNER_CONNECT
        # The control: without an inner sandbox the outer one's rules are what counts.
        r = harness.run([*outer(*flags), "--", harness.PYTHON, "-c", text, str(port)])
        assert ok(r).out == "connected\n"
        for more, out in (([], "EACCES"), (["--net-allow", "tcp://:1"], "EACCES"),
                          (["--net-allow", f"tcp://:{port}"], "connected")):
            inner = outer("--no-supervisor", "--quiet", *more)
            r = harness.run([*outer(*flags), "--", *inner, "--", harness.PYTHON, "-c", text,
                             str(port)])
            assert ok(r).out == out + "\n"
        # An orphan has lost its ancestors: nobody knows its rules.
        orphan = f"(setsid {harness.PYTHON} -c '{text}' {port} > {a}/out 2>&1 &); sleep 1; cat {a}/out"
        inner = outer("--no-supervisor", "--quiet", "-w", str(a), "--net-allow", f"tcp://:{port}")
        r = harness.run([*outer(*flags), "--", *inner, "--", "/bin/sh", "-c", orphan])
        assert ok(r).out == "EACCES\n"
    move = f"import os\nos.rename('{a}/file', '{b}/file')\n"
    inner = outer("--no-supervisor", "--quiet", "-r", str(a), "-r", str(b))
    r = harness.run([*outer(*flags), "--", *inner, "--", harness.PYTHON, "-c", move])
    assert r.code == 1 and ("Errno 13" in r.err or "Errno 18" in r.err), f"{r!r}"
    assert (a / "file").exists()
    # The control: the outer sandbox may do it.
    ok(harness.run([*outer(*flags), "--", harness.PYTHON, "-c", move]))
    assert (b / "file").exists()
