#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""C1: commit, discard and undo of a change set of 1 and of 1,000 files of 4 KiB, by the command.

The layer is made here as overlayfs would leave it. The command's own start and one sync of the file
system in the same state are measured beside, since the goal is meant without them.
"""

import os
import shutil
import statistics
import subprocess
import time

import common

ROUNDS = 30
SIZE = 4096


def timed(argv, env):
    start = time.perf_counter_ns()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, env=env)
    return time.perf_counter_ns() - start


def fill(directory, n, byte):
    for i in range(n):
        (directory / f"f{i}").write_bytes(byte * SIZE)


def sync_ns():
    start = time.perf_counter_ns()
    os.sync()
    return time.perf_counter_ns() - start


def one_round(bench, tool, n):
    """Nanoseconds of a commit, an undo, a discard, and of a sync of as many changed files."""
    top = bench.top / "c1"
    shutil.rmtree(top, ignore_errors=True)
    work, state = top / "work", top / "state"
    work.mkdir(parents=True)
    state.mkdir(mode=0o700)
    fill(work, n, b"x")
    out = {}
    ids = []
    for _ in range(2):
        ids.append(subprocess.run([tool, state, "create", work], check=True, text=True,
                                  stdout=subprocess.PIPE, env=bench.env).stdout.strip())
        fill(state / "changes" / ids[-1] / "layers/0/upper", n, b"y")
    out["sync"] = sync_ns()
    words = [bench.sandlock, "changes", "--fs-storage", state]
    out["start"] = timed([bench.sandlock, "--version"], bench.env)
    out["abort"] = timed([*words[:2], "discard", ids[1], *words[2:]], bench.env)
    os.sync()
    out["commit"] = timed([*words[:2], "apply", ids[0], *words[2:]], bench.env)
    os.sync()
    out["undo"] = timed([*words[:2], "undo", ids[0], *words[2:]], bench.env)
    shutil.rmtree(top)
    return out


def run(bench):
    tool = str(common.BUILD / "tests" / "integration" / "commit-tool")
    figures = []
    for n, limit in ((1, 2), (1000, 60)):
        rounds = [one_round(bench, tool, n) for _ in range(ROUNDS)]
        rows = {k: [r[k] for r in rounds] for k in rounds[0]}
        median = {k: statistics.median(v) / 1e6 for k, v in rows.items()}
        net = median["commit"] - median["start"] - median["sync"]
        for name, goal, met in (
                ("commit", f"<= {limit} ms + sync", net <= limit),
                ("undo", "<= 1.5 x commit", median["undo"] <= 1.5 * median["commit"]),
                ("abort", "<= 2 ms" if n == 1 else None,
                 median["abort"] - median["start"] <= 2 if n == 1 else None),
                ("sync", None, None), ("start", None, None)):
            figures.append(common.Figure("C1", f"{name}, {n} files", common.milliseconds(rows[name]),
                                         goal=goal, met=met))
    return figures
