#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""S7: sandboxes per second that two workers start, through the C library."""

import os

import common

SECONDS = 5


def run(bench):
    figures = []
    workers = os.cpu_count() or 1
    for view, name, floor in (("auto", "base", 1000), ("notify", "no namespaces", None)):
        rate = bench.spawn("--workers", workers, "--seconds", SECONDS, *bench.words(bench.full()),
                           f"view={view}")["per_second"]
        figures.append(common.Figure(
            "S7", f"library, {name}, {workers} workers", f"{rate:.0f}/s", None,
            f">= {floor}/s" if floor else None, rate >= floor if floor else None))
    return figures


if __name__ == "__main__":
    common.run_row(__import__("s7"))
