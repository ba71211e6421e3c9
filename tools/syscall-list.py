#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the syscall table with the kernel's lists.

Every number in the installed kernel headers and in tests/filter/newer-calls.txt must have a row of
that name in src/policy/syscall_table.c, and every row must be in one of the lists. Prints TAP, one
result per architecture; each difference is a line that names the call. `--x86-64 FILE` and
`--generic FILE` read other headers, for instance those of a newer kernel, to find what is to be
added.

Adding a call: put a row into syscall_table.c (class, family, arguments; a reason if it must never
be waived), a line into newer-calls.txt, and rows into tests/filter/*.tests.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
ARCHES = ("x86_64", "aarch64", "riscv64")
# asm/unistd_64.h has the numbers of x86_64; the other two take asm-generic/unistd.h.
X86_64_HEADER = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"
GENERIC_HEADER = "/usr/include/asm-generic/unistd.h"
# Names in the generic header that are no calls of a 64-bit architecture: the count, the start of
# the architecture's own range, and a second spelling of number 84.
NOT_CALLS = {"syscalls", "arch_specific_syscall", "sync_file_range2"}
# What the generic header calls by the name of its 32-bit form.
RENAMED = {"fstatat": "newfstatat"}
# riscv64 was added after renameat2 and does not ask for renameat.
ABSENT = {"riscv64": {"renameat"}}


def read_table():
    """{arch: {number: name}} of the rows."""
    text = (ROOT / "src/policy/syscall_table.c").read_text(encoding="utf-8")
    table = {arch: {} for arch in ARCHES}
    for row in re.finditer(r'\{ "(\w+)",\s+NR\((-?\d+), (-?\d+), (-?\d+)\)', text):
        for arch, number in zip(ARCHES, row.groups()[1:]):
            if int(number) >= 0:
                table[arch][int(number)] = row[1]
    return table


def read_header(path):
    """{number: name} of an asm/unistd header, 32-bit calls left out."""
    found = {}
    text = pathlib.Path(path).read_text(encoding="utf-8")
    for line in re.finditer(r"^#\s*define __NR(3264)?_(\w+)\s+(\d+)$", text, re.M):
        name, number = line[2], int(line[3])
        # The calls with 64-bit times stand at 403 to 423, for 32-bit architectures only.
        if name not in NOT_CALLS and not 403 <= number <= 423:
            found[number] = RENAMED.get(name, name)
    return found


def read_newer():
    """{arch: {number: name}} of newer-calls.txt."""
    newer = {arch: {} for arch in ARCHES}
    for line in (ROOT / "tests/filter/newer-calls.txt").read_text(encoding="utf-8").split("\n"):
        if not line or line.startswith("#"):
            continue
        number, name, arches, since = line.split()
        if not re.fullmatch(r"\d+\.\d+", since):
            raise SystemExit(f"newer-calls.txt: {name}: {since} is no release")
        for arch in ARCHES if arches == "*" else arches.split(","):
            newer[arch][int(number)] = name
    return newer


def kernel_lists(x86_64, generic):
    lists = read_newer()
    for arch in ARCHES:
        for number, name in read_header(x86_64 if arch == "x86_64" else generic).items():
            if name not in ABSENT.get(arch, ()):
                lists[arch].setdefault(number, name)
    return lists


def differences(kernel, table):
    for number in sorted(kernel.keys() | table.keys()):
        want, have = kernel.get(number), table.get(number)
        if have is None:
            yield f"{number} {want}: the table has no row"
        elif want is None:
            yield f"{number} {have}: the row is in none of the kernel's lists"
        elif want != have:
            yield f"{number}: the kernel calls it {want}, the table {have}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--x86-64", default=X86_64_HEADER)
    parser.add_argument("--generic", default=GENERIC_HEADER)
    args = parser.parse_args()
    table, failed = read_table(), 0
    lists = kernel_lists(args.x86_64, args.generic)
    print(f"1..{len(ARCHES)}")
    for i, arch in enumerate(ARCHES, 1):
        faults = list(differences(lists[arch], table[arch]))
        failed += bool(faults)
        print(f"{'not ' if faults else ''}ok {i} - {arch}: {len(lists[arch])} calls classified")
        for fault in faults:
            print(f"# {fault}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
