#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches things from Debian's archive and leaves the system's files alone.

    debsrc.py source PACKAGE CACHE DEST       unpacks PACKAGE's source into DEST (must not exist)
    debsrc.py binary PACKAGE CACHE DEST       extracts the newest PACKAGE (a .deb) into DEST

A list of sources for apt is made from the machine's own (the suites of this Debian release only),
and apt keeps its state below CACHE, so that neither root nor source entries are needed. Signatures
and checksums are checked by apt as always. What CACHE holds is not fetched again.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys


class Failure(Exception):
    """Said to the user as one line."""


def codename():
    match = re.search(r'^VERSION_CODENAME="?(\w+)', pathlib.Path("/etc/os-release").read_text(), re.M)
    if not match:
        raise Failure("/etc/os-release names no VERSION_CODENAME; is this Debian?")
    return match[1]


def own_suite(suite, release):
    return suite == release or suite.startswith(release + "-")


def deb822_entries(text, release):
    """One-line entries (without the type) for the stanzas that name suites of RELEASE."""
    for stanza in re.split(r"\n\s*\n", text):
        lines = [line for line in stanza.splitlines() if not line.startswith("#")]
        fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", "\n".join(lines), re.M))
        if fields.get("Enabled", "yes").lower() == "no":
            continue
        key = fields.get("Signed-By", "")
        option = f"[signed-by={key}] " if key.startswith("/") else ""
        for uri in fields.get("URIs", "").split():
            for suite in fields.get("Suites", "").split():
                if own_suite(suite, release):
                    yield f"{option}{uri} {suite} {fields.get('Components', '')}"


def line_entries(text, release):
    for line in text.splitlines():
        match = re.match(r"deb(?:-src)?\s+(\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+(.*?)\s*(?:#.*)?$", line)
        if match and own_suite(match[3], release):
            yield f"{match[1] or ''}{match[2]} {match[3]} {match[4]}"


def machine_entries():
    """The machine's own entries of this release, each once, in their order."""
    release = codename()
    etc = pathlib.Path("/etc/apt")
    found = []
    for path in [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]:
        if not path.is_file() or not os.access(path, os.R_OK):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        found += (deb822_entries if path.suffix == ".sources" else line_entries)(text, release)
    if not found:
        raise Failure(f"/etc/apt names no source for Debian's release {release}")
    return list(dict.fromkeys(found))


def apt_options(cache):
    """Options that keep apt's state below CACHE; makes the directories."""
    for folder in ("lists/partial", "archives/partial", "log"):
        (cache / folder).mkdir(parents=True, exist_ok=True)
    (cache / "sources.list").write_text(
        "".join(f"{kind} {entry}\n" for kind in ("deb", "deb-src") for entry in machine_entries()))
    values = {
        "Dir::Etc::SourceList": cache / "sources.list", "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State": cache, "Dir::State::Lists": cache / "lists", "Dir::Cache": cache,
        "Dir::Cache::Archives": cache / "archives", "Dir::Log": cache / "log",
        "Dir::State::Status": "/var/lib/dpkg/status", "APT::Sandbox::User": "",
        "Debug::NoLocking": "1", "Acquire::Languages": "none", "APT::Get::AllowUnauthenticated": "0",
    }
    return [word for key, value in values.items() for word in ("-o", f"{key}={value}")]


def run(command, cwd):
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise Failure(f"{' '.join(command[:1] + command[-2:])} failed: {last}")


def fetch(package, cache, arguments, pattern):
    """Downloads into CACHE/files/PACKAGE unless it is there; returns the file PATTERN matches."""
    folder = cache / "files" / package
    found = sorted(folder.glob(pattern))
    if found:
        return found[-1]
    partial = cache / "files" / f"{package}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    options = apt_options(cache)
    if not any((cache / "lists").glob("*_Sources*")):
        run(["apt-get", *options, "-qq", "update"], cache)
    run(["apt-get", *options, "-qq", *arguments, package], partial)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    found = sorted(folder.glob(pattern))
    if not found:
        raise Failure(f"the archive gave no {pattern} for {package}")
    return found[-1]


def dependency_version(package, cache):
    """The package that a metapackage such as linux-image-amd64 stands for."""
    done = subprocess.run(["apt-cache", *apt_options(cache), "depends", "--no-recommends",
                           "--no-suggests", package], capture_output=True, text=True, check=False)
    match = re.search(r"Depends: (linux-image-\d\S+)", done.stdout)
    return match[1] if match else package


def main():
    if len(sys.argv) != 5 or sys.argv[1] not in ("source", "binary"):
        print(__doc__, file=sys.stderr)
        return 2
    kind, package, dest = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[4]).resolve()
    cache = pathlib.Path(sys.argv[3]).resolve()
    if dest.exists():
        raise Failure(f"{dest} exists; remove it to unpack again")
    dest.parent.mkdir(parents=True, exist_ok=True)
    if kind == "source":
        description = fetch(package, cache, ["source", "--download-only"], "*.dsc")
        run(["dpkg-source", "-x", str(description), str(dest)], cache)
    else:
        if not any((cache / "lists").glob("*_Packages*")):
            cache.mkdir(parents=True, exist_ok=True)
            run(["apt-get", *apt_options(cache), "-qq", "update"], cache)
        real = dependency_version(package, cache)
        archive = fetch(real, cache, ["download"], "*.deb")
        run(["dpkg-deb", "-x", str(archive), str(dest)], cache)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, OSError) as problem:
        print(f"debsrc: {problem}", file=sys.stderr)
        sys.exit(1)
