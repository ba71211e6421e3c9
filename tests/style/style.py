#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of form: what CONTRIBUTING.md asks of the sources and a compiler does not check.

`style.py CHECK` runs one check over the files that git knows (and the new ones it does not ignore),
prints a line `FILE:LINE: reason` for each fault and exits 1 if there was one. `style.py --self-test`
shows each check a faulty text and fails if the fault goes unseen.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPDX = "SPDX-License-Identifier: Apache-2.0"
FILE_LINES = 1000
HEADER_LINES = 300
C_FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-Iinclude", "-Isrc", "-include", "src/base/banned.h",
           "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-fsyntax-only"]
# Path calls: only src/sys makes them, so that a tracee's path is walked in one place.
PATH_CALLS = ("open openat openat2 creat fopen freopen stat lstat fstatat statx access faccessat "
              "rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat remove "
              "mkdir mkdirat mkdtemp rmdir readlink readlinkat truncate chmod fchmodat chown lchown "
              "fchownat utimensat mknod mknodat opendir realpath chdir chroot mount").split()
# The folders in which a path call is a mistake: they are pure or act through src/sys.
PATH_FREE = ("base", "policy", "events", "supervise", "fs", "net", "control", "loop")


def files(*patterns):
    """Tracked and new files that match a pattern and still exist."""
    out = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others",
         "--exclude-standard", "--", *patterns],
        cwd=ROOT, check=True, capture_output=True).stdout.decode()
    return sorted({name for name in out.split("\0") if name and (ROOT / name).is_file()})


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def strip_c(text, keep_strings=False):
    """TEXT without comments and (unless kept) string contents, line numbers unchanged."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def blank(match):
        word = match[0]
        if word.startswith("/"):
            return "\n" * word.count("\n") or " "
        return word if keep_strings else word[0] * 2

    return token.sub(blank, text)


# --- Checks: each takes (name, text) and yields (line, reason) ------------------------------------


def check_spdx(name, text):
    head = text.split("\n")[:2]
    if name.endswith((".c", ".h")):
        if head[0] != f"/* {SPDX} */":
            yield 1, f"the first line is not `/* {SPDX} */`"
        elif not text.split("\n", 1)[1].lstrip().startswith("/*"):
            yield 2, "no paragraph after the licence line says what the file is for"
    elif not any(line == f"# {SPDX}" for line in head):
        yield 1, f"neither of the first two lines is `# {SPDX}`"


def check_comments(name, text):
    """No // comments and no marks of unfinished work."""
    if name.endswith((".c", ".h")):
        token = re.compile(r'(//)|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
        for match in token.finditer(text):
            if match[1]:
                yield text.count("\n", 0, match.start()) + 1, "a // comment; write /* */"
    # The words are put together here, so that this file does not find itself.
    for match in re.finditer(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b(?!-)", text):
        yield text.count("\n", 0, match.start()) + 1, f"{match[1]}: file an issue or finish it"


def check_length(name, text):
    """Files under 1,000 lines, headers under 300; tables (clang-format off) do not count."""
    counted, table = 0, False
    for line in text.split("\n")[:-1]:
        table = (table or "clang-format off" in line) and "clang-format on" not in line
        counted += not table
    limit = FILE_LINES
    if name.startswith("src/") and name.endswith(".h"):
        limit = HEADER_LINES
    if counted >= limit:
        yield counted, f"{counted} lines; the ceiling is {limit}"


def check_guard(name, text):
    if name.startswith("include/"):
        guard = re.sub(r"[^A-Z0-9]", "_", pathlib.Path(name).relative_to("include").as_posix().upper())
        code = strip_c(text).split()
        if code[:4] != ["#ifndef", guard, "#define", guard]:
            yield 1, f"an installed header begins with `#ifndef {guard}` and `#define {guard}`"
    elif "#pragma once" not in text.split("\n"):
        yield 1, "no `#pragma once`"


def check_paths(name, text):
    """Calls that walk a path stand in src/sys only."""
    folder = name.split("/")[1]
    if folder not in PATH_FREE:
        return
    call = re.compile(r"(?<![\w.>])(" + "|".join(PATH_CALLS) + r")\s*\(")
    for number, line in enumerate(strip_c(text).split("\n"), 1):
        for match in call.finditer(line):
            yield number, f"{match[1]}() outside src/sys"


def allowed_includes():
    """The table of docs/architecture.md: folder → (folders, single headers), made transitive."""
    direct = {}
    for row in re.finditer(r"^\| `src/(\w+)/` \|[^|]*\| ([^|]*) \|$", read("docs/architecture.md"),
                           re.M):
        direct[row[1]] = [] if row[2] == "–" else row[2].split(", ")

    def close(folder, seen):
        for word in direct[folder]:
            if word in direct and word not in seen:
                seen.add(word)
                close(word, seen)
            elif "/" in word:
                seen.add(word)
        return seen

    unknown = [w for words in direct.values() for w in words if "/" not in w and w not in direct]
    if unknown or not direct:
        raise SystemExit(f"docs/architecture.md: the table names unknown folders {unknown}")
    return {folder: close(folder, set()) for folder in direct}


def check_includes(name, text, table=None):
    table = table or allowed_includes()
    folder = name.split("/")[1]
    if folder not in table:
        yield 1, f"src/{folder}/ has no row in the table of docs/architecture.md"
        return
    for number, line in enumerate(strip_c(text, keep_strings=True).split("\n"), 1):
        match = re.match(r'\s*#\s*include\s+["<]([\w./-]+)[">]', line)
        if not match:
            continue
        target = match[1]
        quoted = '"' in line
        head = target.split("/")[0]
        if quoted and head == "..":
            yield number, f'"{target}" climbs out of its folder; write it from src/'
        elif quoted and "/" in target and head not in table and head != "sandlock":
            if not (ROOT / "src" / folder / target).exists():
                yield number, f'"{target}" is in no folder of the table'
        elif quoted and head in table and head != folder and "/" in target:
            if head not in table[folder] and target not in table[folder]:
                yield number, f'src/{folder}/ may not include "{target}"'


# --- Checks over many files -----------------------------------------------------------------------


def compile_alone(name):
    """Each header compiles by itself, as the first thing a file includes."""
    with tempfile.NamedTemporaryFile("w", suffix=".c") as source:
        source.write(f'#include "{ROOT / name}"\n')
        source.flush()
        done = subprocess.run(["gcc", *C_FLAGS, source.name], cwd=ROOT, capture_output=True,
                              text=True, check=False)
    return name, done.returncode, done.stderr


def run_headers():
    faults = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, status, text in pool.map(compile_alone, files("src/*.h", "include/*.h")):
            if status != 0:
                faults.append(f"{name}:1: does not compile alone\n{text}")
    return faults


def run_format():
    names = files("*.c", "*.h")
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", *names], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    wrong = re.findall(r"^(\S+:\d+):\d+: error", done.stderr, re.M)
    if done.returncode != 0 and not wrong:
        return [done.stderr]
    return [f"{place}: not in the house form; run `make format`" for place in wrong]


def public_functions():
    text = strip_c(read("include/sandlock/sandlock.h"))
    return re.findall(r"^SANDLOCK_API\s[^;(]*?\b(sandlock_\w+)\s*\(", text, re.M)


def run_public():
    """Every public function is described in a man page or in the docs."""
    functions = public_functions()
    if not functions:
        return ["include/sandlock/sandlock.h:1: no public function found"]
    told = "".join(read(name) for name in files("man/*", "docs/*.md"))
    return [f"include/sandlock/sandlock.h:1: {name} is in no page of man/ or docs/"
            for name in functions if not re.search(rf"\b{name}\b", told)]


def run_exports(library):
    """The library exports what the public header declares, and nothing else."""
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True,
                         text=True).stdout
    rows = [line.split() for line in out.splitlines()]
    exported = {row[2].split("@")[0] for row in rows if len(row) == 3 and row[1] in "TWDBRVi"}
    declared = set(public_functions())
    return ([f"{library}: {name} is exported, but sandlock.h does not declare it"
             for name in sorted(exported - declared)] +
            [f"{library}: {name} is declared in sandlock.h, but not exported"
             for name in sorted(declared - exported)])


def run_globals(library):
    """The library keeps no global state but the abort hook and the loop thread's."""
    allowed = {"abort_hook", "util_abort_hook", "loop_thread"}
    out = subprocess.run(["readelf", "-sW", library], check=True, capture_output=True, text=True)
    sections = subprocess.run(["readelf", "-SW", library], check=True, capture_output=True,
                              text=True).stdout
    writable = {m[1] for m in re.finditer(r"\[\s*(\d+)\] \.(?:data|bss|tdata|tbss)\s", sections)}
    faults = []
    for line in out.stdout.splitlines():
        row = line.split()
        if len(row) == 8 and row[3] in ("OBJECT", "TLS") and row[6] in writable and row[2] != "0":
            symbol = row[7].split(".")[0].split("@")[0]
            # The names that the compiler, libc's start files and the sanitizers put there.
            if symbol not in allowed and not symbol.startswith(("__", "completed", "_")):
                faults.append(f"{library}: the variable {row[7]} is global state")
    return sorted(set(faults))


def per_file(check, names):
    faults = []
    for name in names:
        text = read(name)
        if text:
            faults += [f"{name}:{line}: {reason}" for line, reason in check(name, text)]
    return faults


CODE = ("src/*.c", "src/*.h", "include/*.h", "tests/*.c", "tests/*.h", "bench/*.c", "examples/*.c",
        "*.py", "*.sh", ".ci/run", "Makefile")
CHECKS = {
    "spdx": lambda: per_file(check_spdx, files(*CODE)),
    "comments": lambda: per_file(check_comments, files(*CODE)),
    "length": lambda: per_file(check_length, files("src/*.c", "src/*.h", "tools/*", "bench/*.c")),
    "guard": lambda: per_file(check_guard, files("src/*.h", "include/*.h")),
    "paths": lambda: per_file(check_paths, files("src/*.c", "src/*.h")),
    "includes": lambda: per_file(check_includes, files("src/*.c", "src/*.h")),
    "headers": run_headers,
    "format": run_format,
    "public": run_public,
}
LIBRARY_CHECKS = {"exports": run_exports, "globals": run_globals}


# --- Self-test ------------------------------------------------------------------------------------

GOOD = f"/* {SPDX} */\n/*\n * What it is for.\n */\n#pragma once\n\nint f(void);\n"
TABLE = {"base": set(), "sys": {"base"}, "policy": {"base", "sys/uapi.h"}}
FAULTS = [
    (check_spdx, "src/base/x.c", "int f(void);\n", 1),
    (check_spdx, "src/base/x.c", f"/* {SPDX} */\nint f(void);\n", 1),
    (check_spdx, "tools/x.py", "#!/usr/bin/python3\nprint()\n", 1),
    (check_comments, "src/base/x.c", "int a; // no\n", 1),
    (check_comments, "src/base/x.c", 'const char *u = "http://a"; /* // */\n', 0),
    (check_comments, "src/base/x.c", "/* TO" "DO: later */\n", 1),
    (check_length, "src/base/x.c", "\n" * 1000, 1),
    (check_length, "src/base/x.c", "/* clang-format off */\n" + "\n" * 1200, 0),
    (check_length, "src/base/x.h", "\n" * 300, 1),
    (check_guard, "src/base/x.h", "int f(void);\n", 1),
    (check_guard, "include/sandlock/x.h", GOOD, 1),
    (check_paths, "src/policy/x.c", "fd = openat(dir, name, 0);\n", 1),
    (check_paths, "src/policy/x.c", "r = ops->open(ops); /* open(x) */\n", 0),
    (check_paths, "src/sys/x.c", "fd = openat(dir, name, 0);\n", 0),
    (lambda n, t: check_includes(n, t, TABLE), "src/base/x.c", '#include "sys/landlock.h"\n', 1),
    (lambda n, t: check_includes(n, t, TABLE), "src/sys/x.c", '#include "base/err.h"\n', 0),
    (lambda n, t: check_includes(n, t, TABLE), "src/policy/x.c", '#include "sys/uapi.h"\n', 0),
    (lambda n, t: check_includes(n, t, TABLE), "src/policy/x.c", '#include "sys/mount.h"\n', 1),
    (lambda n, t: check_includes(n, t, TABLE), "src/policy/x.c", '#include <sys/mount.h>\n', 0),
    (lambda n, t: check_includes(n, t, TABLE), "src/policy/x.c", '#include "../base/err.h"\n', 1),
]


def self_test():
    wrong = []
    for number, (check, name, text, expected) in enumerate(FAULTS):
        got = len(list(check(name, text)))
        if got != expected:
            wrong.append(f"self-test {number} ({name}): {got} faults found, expected {expected}")
    for check in (check_spdx, check_comments, check_length, check_guard, check_paths):
        wrong += [f"{check.__name__} finds fault with a good header: {fault}"
                  for fault in check("src/base/x.h", GOOD)]
    table = allowed_includes()
    if table["policy"] != {"base", "sys/uapi.h"} or "base" not in table["supervise"]:
        wrong.append("the table of docs/architecture.md was not read as it stands")
    return wrong


def main():
    if len(sys.argv) == 2 and sys.argv[1] == "--self-test":
        faults = self_test()
    elif len(sys.argv) == 2 and sys.argv[1] in CHECKS:
        if not (ROOT / ".git").exists() or shutil.which("git") is None:
            print("not a git checkout: the list of files is unknown")
            return 77
        faults = CHECKS[sys.argv[1]]()
    elif len(sys.argv) == 3 and sys.argv[1] in LIBRARY_CHECKS:
        faults = LIBRARY_CHECKS[sys.argv[1]](sys.argv[2])
    else:
        names = " ".join([*CHECKS, "--self-test"])
        print(f"usage: style.py {names} | exports|globals LIBRARY", file=sys.stderr)
        return 2
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
