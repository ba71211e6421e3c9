#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""M1: private memory of all our processes per idle sandbox, of several started by the command."""

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


def start(bench, flags):
    """A sandbox that sleeps; returns the process once the sleep runs."""
    prefix = []
    if bench.user:
        prefix = ["/usr/bin/setpriv", f"--reuid={bench.uid}", f"--regid={bench.gid}",
                  "--clear-groups", "--"]
    process = subprocess.Popen([*prefix, *flags, "/bin/sleep", "600"], env=bench.env,
                               cwd=bench.work, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(500):
        if len(ours(process.pid)) < len(tree(process.pid)):
            return process
        time.sleep(0.01)
    process.kill()
    raise RuntimeError("the sandbox did not start")


def tree(pid):
    return [pid, *children(pid)]


def ours(pid):
    """The command's process and every descendant but the sleep itself."""
    return [p for p in tree(pid) if os.path.basename(os.readlink(f"/proc/{p}/exe")) != "sleep"]


def measure(bench, flags):
    """KiB of each of SANDBOXES that live at the same time, so that what they share is shared."""
    started = []
    try:
        for _ in range(SANDBOXES):
            started.append(start(bench, flags))
        time.sleep(0.3)
        return [(sum(private_kib(p) for p in ours(process.pid)), len(ours(process.pid)))
                for process in started]
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


def run(bench):
    figures = []
    for name, more, limit in (("base", [], 384), ("no namespaces", ["--view=notify"], None)):
        rows = measure(bench, bench.flags(bench.typical(), *more))
        kib = statistics.median(row[0] for row in rows)
        figures.append(common.Figure(
            "M1", f"idle sandbox, {name}, {rows[0][1]} processes",
            f"{kib:.0f} KiB (min {min(row[0] for row in rows)})", None,
            f"<= {limit} KiB" if limit else None, kib <= limit if limit else None))
    return figures


if __name__ == "__main__":
    common.run_row(__import__("m1"))
