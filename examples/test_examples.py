#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the two examples and compares all that they print: `test_examples.py EMBED LIBRARY`."""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = "hello from the sandbox\nexited with 3\n"


def main():
    embed, library = sys.argv[1:]
    rows = [("C", [embed], "cat: /etc/shadow: Permission denied\n"),
            ("Python", ["/usr/bin/python3", str(HERE / "ctypes_run.py"), library], "")]
    good = True
    for name, command, errors in rows:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=60)
        if (done.returncode, done.stdout, done.stderr) != (0, EXPECTED, errors):
            good = False
            print(f"{name}: status {done.returncode}, output {done.stdout!r}, "
                  f"errors {done.stderr!r}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
