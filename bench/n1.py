#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""N1: a trivial mediated call (listen on a Unix socket) against the raw notification round trip."""

import statistics

import common

CALLS = 5000


def run(bench):
    program = bench.bin / "calls"
    grants = [*bench.grants(), ("fs-read", program)]
    commands = {
        "raw round trip": [program, "raw", CALLS],
        "the call, not trapped": [program, "loop", CALLS],
        "mediated, base": [*bench.flags(grants), program, "loop", CALLS],
        "mediated, no namespaces": [*bench.flags(grants, "--view=notify"), program,
                                    "loop", CALLS],
    }
    samples = {name: [] for name in commands}
    for _ in range(max(30, bench.rounds // 4)):
        for name, command in commands.items():
            done = bench.as_user(command)
            if done.returncode != 0:
                raise RuntimeError(f"{name}: {done.stderr.strip()}")
            samples[name].append(float(done.stdout))
    raw = statistics.median(samples["raw round trip"])
    figures = []
    for name, values in samples.items():
        ratio = statistics.median(values) / raw
        limit = 1.5 if name.startswith("mediated") else None
        figures.append(common.Figure(
            "N1", name, f"{statistics.median(values) / 1e3:.2f} us (min {min(values) / 1e3:.2f})",
            ratio, f"<= {limit} x" if limit else None, ratio <= limit if limit else None))
    return figures


if __name__ == "__main__":
    common.run_row(__import__("n1"))
