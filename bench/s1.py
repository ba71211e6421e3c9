#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""S1 and S2: the command `sandlock run -- /bin/true`, against bare /bin/true and against peers."""

import statistics

import common


def run(bench):
    typical = bench.typical()
    rows = [
        ("S1", "sandlock run, base", bench.flags(typical) + [common.TRUE], 2.6),
        ("S1", "sandlock run, no namespaces", bench.flags(typical, "--view=notify") + [common.TRUE],
         2.3),
        ("S2", "sandlock run --no-supervisor",
         bench.flags(typical, "--no-supervisor") + [common.TRUE], 2.1),
    ]
    peers = bench.peers()
    rows += [("S1", name, command, None) for name, command, _ in peers if command]
    samples = bench.interleave([[common.TRUE]] + [row[2] for row in rows])
    figures = [common.compared("S1", "bare /bin/true", samples[0], samples[0])]
    for (row, name, _, limit), times in zip(rows, samples[1:]):
        figures.append(common.compared(row, name, samples[0], times, limit))
    by_name = {row[1]: times for row, times in zip(rows, samples[1:])}
    ours, bwrap = by_name["sandlock run, base"], by_name.get("bwrap")
    if ours and bwrap:
        ratio = statistics.median(ours) / statistics.median(bwrap)
        figures.append(common.Figure("S1", "sandlock run, base, against bwrap", "", ratio,
                                     "<= 0.45 x", ratio <= 0.45))
    figures += [common.Figure("S1", name, f"missing: {why}"[:60]) for name, command, why in peers
                if not command]
    return figures


if __name__ == "__main__":
    common.run_row(__import__("s1"))
