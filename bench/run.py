#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds a release build in build-bench/ and prints the table of figures: `run.py [ROW...]`.

Started as root, everything is measured as an ordinary user. Nothing here is a test: what misses its
goal is shown and the exit status is 0, unless a row could not be measured at all.
"""

import os
import pathlib
import platform
import subprocess
import sys

import common

ROWS = ("s0", "s1", "s7", "m1", "n1", "w1", "c1")


def build():
    os.chdir(common.ROOT)
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "check": True}
    if not (common.BUILD / "build.ninja").exists():
        subprocess.run(["/usr/bin/meson", "setup", str(common.BUILD), "--buildtype=release"],
                       **quiet)
    subprocess.run(["/usr/bin/ninja", "-C", str(common.BUILD)], **quiet)


def main():
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    wanted = [word.lower() for word in sys.argv[1:]] or ROWS
    unknown = [word for word in wanted if word not in ROWS]
    if unknown:
        print(f"bench: no row is called {unknown[0]}; there are {' '.join(ROWS)}", file=sys.stderr)
        return 2
    build()
    bench = common.Bench(int(os.environ.get("ROUNDS", "200")))
    failed = False
    print(f"Linux {platform.release()}, {os.cpu_count()} processors, uid {bench.uid}; medians of"
          f" {bench.rounds} interleaved runs (W1: 30), minimums beside", flush=True)
    try:
        for name in wanted:
            try:
                for figure in __import__(name).run(bench):
                    print(figure, flush=True)
            except (RuntimeError, OSError) as problem:
                failed = True
                print(f"{name.upper():4} could not be measured: {problem}", flush=True)
    finally:
        bench.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
