#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""scdoc renders the manual pages, and each names every flag or key that there is: manual.py TOOL."""
import json
import os
import re
import shutil
import subprocess
import sys


def text(tool, name):
    return subprocess.run([tool, "text", name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          check=True).stdout


def render(scdoc, source):
    done = subprocess.run([scdoc], input=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    return done.returncode, done.stdout.decode()


def plain(roff):
    """Words as a reader sees them, roughly: no font changes, no escapes."""
    roff = re.sub(r"\\f[BIRP]", "", roff)
    return re.sub(r"\\(.)", r"\1", roff.replace(r"\&", "").replace(r"\~", " "))


def main():
    tool = os.path.abspath(sys.argv[1])
    scdoc = shutil.which("scdoc", path="/usr/bin:/bin:/usr/local/bin")
    if not scdoc:
        print("scdoc is not installed")
        sys.exit(77)
    failed = []
    flags = set(re.findall(r"^  (?:-., |    )(--[a-z-]+)", text(tool, "help").decode(), re.M))
    schema = json.loads(text(tool, "schema"))
    for name in ("man-run", "man-policy"):
        code, page = render(scdoc, text(tool, name))
        if code:
            failed.append(f"scdoc refuses {name}: {page}")
            continue
        words = plain(page)
        if name == "man-run":
            failed += [f"{flag} is missing in {name}" for flag in flags if flag not in words]
        else:
            for section, body in schema["properties"].items():
                if section != "include" and f".SS [{section}]\n" not in page:
                    failed.append(f"[{section}] is missing in {name}")
                failed += [f"{section}.{key} is missing in {name}"
                           for key in body.get("properties", {}) if f"{key} (" not in words]
    if len(flags) < 70:
        failed.append(f"only {len(flags)} flags in the help")
    for line in failed:
        print(line)
    sys.exit(1 if failed else 0)


main()
