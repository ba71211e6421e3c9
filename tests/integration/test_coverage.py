# SPDX-License-Identifier: Apache-2.0
"""Every numbered point of the issue and every handed case has a test that is named after it."""

import pathlib
import re

HERE = pathlib.Path(__file__).parent

HANDED = [1, 2, 3, 17, 20, 27, 35, 39, 45, 48, 53, 54, 56, 57, 66, 68, 69, 71, 73, 89, 99, 100, 101,
          104, 110, 111, 112, 122, 125, 131, 132, 138]


def names():
    found = []
    for path in HERE.glob("test_*.py"):
        found += re.findall(r"^def (test_\w+)", path.read_text(), re.M)
    return found


def test_every_handed_case_has_a_test():
    text = " ".join(names())
    assert [b for b in HANDED if not re.search(rf"_b{b}_", text)] == []


def test_every_point_has_a_file():
    points = {path.name[5:7] for path in HERE.glob("test_[0-9][0-9]_*.py")}
    assert points >= {f"{n:02}" for n in range(1, 15)}
