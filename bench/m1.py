#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""M1: private memory of all our processes for one idle sandbox started by the command."""

import os
import pathlib
import statistics
import subprocess
import time

import common

SANDBOXES = 10


def private_kib(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) for line in text.splitlines()
               if line.startswith(("Private_Clean:", "Private_Dirty:")))


def children(pid):
    found = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for word in path.read_text().split():
            found += [int(word), *children(int(word))]
    return found


def measure(bench, flags):
    """KiB of one sandbox: the command's process and every descendant but the sleep itself."""
    sleep = "/bin/sleep"
    prefix = []
    if bench.user:
        prefix = ["/usr/bin/setpriv", f"--reuid={bench.uid}", f"--regid={bench.gid}",
                  "--clear-groups", "--"]
    process = subprocess.Popen([*prefix, *flags, sleep, "600"], env=bench.env, cwd=bench.work,
                               stdin=subprocess.DEVNULL)
    try:
        for _ in range(500):
            tree = [process.pid, *children(process.pid)]
            if any(os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "sleep" for pid in tree):
                break
            time.sleep(0.01)
        else:
            raise RuntimeError("the sandbox did not start")
        time.sleep(0.1)
        ours = [pid for pid in tree
                if os.path.basename(os.readlink(f"/proc/{pid}/exe")) != "sleep"]
        return sum(private_kib(pid) for pid in ours), len(ours)
    finally:
        process.terminate()
        process.wait()


def run(bench):
    figures = []
    for name, more, limit in (("base", [], 384), ("no namespaces", ["--view=notify"], None)):
        rows = [measure(bench, bench.flags(bench.typical(), *more)) for _ in range(SANDBOXES)]
        kib = statistics.median(row[0] for row in rows)
        figures.append(common.Figure(
            "M1", f"idle sandbox, {name}, {rows[0][1]} processes",
            f"{kib:.0f} KiB (min {min(row[0] for row in rows)})", None,
            f"<= {limit} KiB" if limit else None, kib <= limit if limit else None))
    return figures


if __name__ == "__main__":
    common.run_row(__import__("m1"))
