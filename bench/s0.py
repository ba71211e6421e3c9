#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""S0: spawn and wait of /bin/true through the C library, against posix_spawn in the same program."""

import common


def run(bench):
    figures = []
    policy = bench.words(bench.typical())
    for resident in (0, 1024):
        for view, name, limit in (("auto", "base", 1.8), ("notify", "no namespaces", 2.0)):
            times = bench.spawn("--rounds", bench.rounds, "--resident", resident, *policy,
                                f"view={view}")
            memory = ", 1 GiB resident" if resident else ""
            if not figures or (resident and len(figures) == 3):
                figures.append(common.compared("S0", f"posix_spawn{memory}", times["bare"],
                                               times["bare"]))
            figures.append(common.compared("S0", f"library, {name}{memory}", times["bare"],
                                           times["sandbox"], limit))
    return figures


if __name__ == "__main__":
    common.run_row(__import__("s0"))
