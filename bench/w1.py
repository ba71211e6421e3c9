#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""W1: real work under the plain policy, against the same work bare."""

import os
import subprocess

import common

ROUNDS = 30
SQLITE = """
import sqlite3
db = sqlite3.connect("bench.db")
db.execute("drop table if exists t")
db.execute("create table t (a integer, b text)")
for i in range(200):
    with db:
        db.executemany("insert into t values (?, ?)", [(i * 50 + j, "x" * 50) for j in range(50)])
"""


def repository(bench):
    """A git repository of 10,000 files."""
    top = bench.directory("git")
    for i in range(100):
        folder = top / f"d{i:02}"
        folder.mkdir()
        for j in range(100):
            (folder / f"f{j:02}").write_text(f"{i} {j}\n")
    bench.give(top)
    script = ("git init -q . && git add . && git -c user.name=b -c user.email=b@example.com "
              "commit -q -m files && git status")
    done = bench.as_user(["/bin/sh", "-c", script], cwd=top)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return top


def tree(bench):
    """A C program of 40 files."""
    top = bench.directory("make")
    for i in range(40):
        body = "".join(f"int f{i}_{j}(int a) {{ return a * {j} + {i}; }}\n" for j in range(100))
        (top / f"f{i}.c").write_text("#include <stdio.h>\n#include <stdlib.h>\n" + body)
    (top / "main.c").write_text("int main(void)\n{\n\treturn 0;\n}\n")
    (top / "Makefile").write_text(
        "all: prog\nprog: main.o $(patsubst %.c,%.o,$(wildcard f*.c))\n\tgcc -o $@ $^\n")
    bench.give(top)
    return top


def compare(bench, name, command, cwd, before=None):
    grants = [(key, str(cwd) if key == "fs-write" else value) for key, value in bench.grants()]
    rows = [("base", []), ("no namespaces", ["--view=notify"])]
    commands = [bench.flags(grants, *more) + command for _, more in rows]
    samples = bench.interleave([command, *commands], ROUNDS, before=before, cwd=cwd)
    figures = [common.compared("W1", f"{name}, bare", samples[0], samples[0])] if samples[0] else [
        common.Figure("W1", f"{name}, bare", "did not run here")]
    for (label, _), times in zip(rows, samples[1:]):
        figures.append(common.compared("W1", f"{name}, {label}", samples[0], times, 1.03))
    return figures


def run(bench):
    figures = []
    if os.path.exists("/usr/bin/git"):
        # Twenty in one sandbox: its start is what S1 measures.
        many = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do git status -s; done"
        figures += compare(bench, "20 x git status, 10,000 files", ["/bin/sh", "-c", many],
                           repository(bench))
    figures += compare(bench, "make -j2, 41 files", ["/usr/bin/make", "-s", "-j2"], tree(bench),
                       before="rm -f *.o prog")
    figures += compare(bench, "sqlite, 200 transactions", ["/usr/bin/python3", "-c", SQLITE],
                       bench.directory("sqlite"))
    figures.append(common.Figure("W1", "npm ci, redis-benchmark",
                                 "missing: they need loopback sockets"))
    return figures


if __name__ == "__main__":
    common.run_row(__import__("w1"))
