#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs everything that `make check` and `make check-long` promise, and counts it.

Each step writes its output to build/check/STEP.log and prints one line when it ends; two run at a
time where they do not disturb each other. What failed is named at the end with the log to read. The last line is always `N passed, N failed, N skipped`: unit and golden
tests by their own count (TAP), system tests by pytest's, and each analyzer or cross-build as one.
The exit status is 1 if anything failed, or if a test was skipped that tests/skips.txt does not list.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "check"
PYTHON = "/usr/bin/python3"
MESON = "/usr/bin/meson"
NINJA = "/usr/bin/ninja"
JOBS = os.cpu_count() or 1
CLANG = {"CC": "clang"}
SANITIZER_ENV = {
    "ASAN_OPTIONS": "abort_on_error=0:detect_leaks=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}
SYSTEM_TESTS = ["tests/integration", "tests/escape", "tests/errno", "tests/examples"]


class Failure(Exception):
    """A step that could not do its work; the message is one line."""


class Tally:
    """What has been counted so far; `names` tells what failed or was skipped without leave."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.names = []
        self.allowed_skips = read_skips()

    def add(self, name, result, reason=""):
        if result == "skipped" and name not in self.allowed_skips:
            result, reason = "failed", f"skipped, and tests/skips.txt does not list it: {reason}"
        if result == "passed":
            self.passed += 1
        elif result == "skipped":
            self.skipped += 1
        else:
            self.failed += 1
            self.names.append(f"{name}: {reason}" if reason else name)

    def merge(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.names += other.names


def read_skips():
    path = ROOT / "tests" / "skips.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return {line.split("\t")[0] for line in lines if line and not line.startswith("#")}


class Context:
    """What one step works with: the options, its own tally and its log."""

    def __init__(self, args, log):
        self.args = args
        self.tally = Tally()
        self.log = log

    def call(self, command, env=None, cwd=ROOT, limit_s=3000):
        """Runs COMMAND into the step's log; returns its exit status."""
        self.log.write(f"\n$ {' '.join(map(str, command))}\n")
        self.log.flush()
        try:
            done = subprocess.run(
                command, cwd=cwd, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                stdout=self.log, stderr=subprocess.STDOUT, timeout=limit_s, check=False)
        except subprocess.TimeoutExpired:
            self.log.write(f"\nended after {limit_s} seconds\n")
            return 124
        return done.returncode

    def must(self, command, what, **kwargs):
        status = self.call(command, **kwargs)
        if status != 0:
            raise Failure(f"{what} failed with status {status}")

    def counted(self, name, command, **kwargs):
        """Runs COMMAND as one test called NAME."""
        status = self.call(command, **kwargs)
        self.tally.add(name, "passed" if status == 0 else "failed", f"status {status}")


# --- Builds ---------------------------------------------------------------------------------------


def setup(ctx, build, options=(), env=None):
    """Configures BUILD once; a directory whose configuration failed is made anew."""
    if not (ROOT / build / "build.ninja").exists():
        ctx.must([MESON, "setup", build, "--werror", *options], f"configuring {build}", env=env)


def compile_all(ctx, build, targets=()):
    ctx.must([NINJA, "-C", build, *targets], f"building {build}")


def targets_of(ctx, build, *folders):
    """The files that BUILD makes for the meson.build files in or below FOLDERS ("" is the top's)."""
    ctx.must([NINJA, "-C", build, "build.ninja"], f"configuring {build}")
    text = subprocess.run([MESON, "introspect", "--targets", build], cwd=ROOT, check=True,
                          capture_output=True, text=True).stdout
    found = []
    for target in json.loads(text):
        folder = os.path.dirname(os.path.relpath(target["defined_in"], ROOT))
        if target["build_by_default"] and any(
                folder == f or (f and folder.startswith(f + "/")) for f in folders):
            found += [os.path.relpath(name, ROOT / build) for name in target["filename"]]
    return found


def sources():
    text = subprocess.run(["git", "ls-files", "--", "src/*.c", "examples/*.c", "bench/*.c"],
                          cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return text.split()


# --- Counting -------------------------------------------------------------------------------------


def count_tap(tally, name, text):
    """Adds each subtest of a TAP output; returns how many there were."""
    found = 0
    for line in text.splitlines():
        match = re.match(r"(not )?ok\b\s*\d*\s*(?:- )?([^#]*)(?:#\s*(\S+)\s*(.*))?", line)
        if not match:
            continue
        found += 1
        label = f"{name}: {match[2].strip()}"
        if (match[3] or "").upper() == "SKIP":
            tally.add(label, "skipped", match[4])
        else:
            tally.add(label, "failed" if match[1] else "passed", "not ok")
    return found


def count_meson(ctx, build, label):
    path = ROOT / build / "meson-logs" / "testlog.json"
    for line in path.read_text().splitlines():
        row = json.loads(line)
        name = f"{label}{row['name']}"
        failed_before = ctx.tally.failed
        subtests = count_tap(ctx.tally, name, row.get("stdout", ""))
        result = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}.get(
            row["result"], "failed")
        if subtests == 0:
            ctx.tally.add(name, result, row["result"])
        elif result == "failed" and ctx.tally.failed == failed_before:
            ctx.tally.add(name, "failed", row["result"])


def meson_test(ctx, build, suites=(), label="", env=None):
    path = ROOT / build / "meson-logs" / "testlog.json"
    path.unlink(missing_ok=True)
    options = [word for suite in suites for word in ("--suite", suite)]
    status = ctx.call([MESON, "test", "-C", build, "--no-rebuild", "--print-errorlogs",
                       "--num-processes", str(JOBS), *options], env=env)
    if not path.exists():
        raise Failure(f"meson test wrote no {path.relative_to(ROOT)} (status {status})")
    count_meson(ctx, build, label)


def pytest(ctx, build, folders, label="", env=None, options=()):
    folders = [f for f in folders if any((ROOT / f).glob("**/test_*.py"))]
    if not folders:
        return
    report = LOGS / f"{label.strip(': ') or 'system'}.xml"
    report.unlink(missing_ok=True)
    env = {**(env or {}), "SANDLOCK_BUILD": str(ROOT / build)}
    status = ctx.call([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o",
                       "junit_family=xunit1", f"--junitxml={report}", *options, *folders], env=env)
    if not report.exists():
        raise Failure(f"pytest wrote no report (status {status})")
    failed_before = ctx.tally.failed
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        name = f"{label}{case.get('file', case.get('classname', ''))}::{case.get('name')}"
        skip, bad = case.find("skipped"), case.find("failure")
        bad = bad if bad is not None else case.find("error")
        if bad is not None:
            ctx.tally.add(name, "failed", (bad.get("message") or "").split("\n")[0][:200])
        elif skip is not None:
            ctx.tally.add(name.removeprefix(label), "skipped", skip.get("message") or "")
        else:
            ctx.tally.add(name, "passed")
    if status != 0 and ctx.tally.failed == failed_before:
        ctx.tally.add(f"{label}pytest", "failed", f"status {status}")


# --- Steps ----------------------------------------------------------------------------------------


def step_build(ctx):
    """the plain build, warnings are errors"""
    setup(ctx, "build")
    compile_all(ctx, "build")
    ctx.tally.add("build", "passed")


def step_style(ctx):
    """form, folders, headers and file lengths"""
    meson_test(ctx, "build", ["style"])


def step_shell(ctx):
    """shell scripts"""
    scripts = [p for p in ROOT.glob("tools/**/*.sh")] + [ROOT / ".ci" / "run"]
    ctx.counted("shellcheck", ["shellcheck", *map(str, scripts)])


def step_tests(ctx):
    """unit, golden, filter, corpus, style and example tests"""
    meson_test(ctx, "build")


def step_system(ctx):
    """system and escape tests on this kernel"""
    pytest(ctx, "build", SYSTEM_TESTS)


def step_asan(ctx):
    """unit tests under AddressSanitizer and UBSan"""
    setup(ctx, "build-asan", ["-Db_sanitize=address,undefined", "-Db_lundef=false"], env=CLANG)
    compile_all(ctx, "build-asan")
    suites = [s for s in ("unit", "golden", "filter", "fuzz") if s in suite_names("build-asan")]
    meson_test(ctx, "build-asan", suites, label="asan: ", env=SANITIZER_ENV)


def suite_names(build):
    text = subprocess.run([MESON, "introspect", "--tests", build], cwd=ROOT, check=True,
                          capture_output=True, text=True).stdout
    return {s.split(":")[-1] for t in json.loads(text) for s in t["suite"]}


def step_asan_escape(ctx):
    """escape tests with the sanitized product"""
    setup(ctx, "build-asan", ["-Db_sanitize=address,undefined", "-Db_lundef=false"], env=CLANG)
    compile_all(ctx, "build-asan")
    # The other modes take the same paths through the product; the long run has them all.
    # Where a start fails in a process that is confined already, or out of descriptors, the leak
    # checker of the sanitizer itself cannot work and says so: those two run unsanitized only.
    wanted = "not few_descriptors and not odd_command_lines"
    if not ctx.args.long:
        wanted += " and (base or not attack)"
    options = ["-k", wanted]
    pytest(ctx, "build-asan", ["tests/escape"], label="asan: ", env=SANITIZER_ENV, options=options)


def step_analyze(ctx):
    """gcc -fanalyzer over src/"""
    setup(ctx, "build-analyze", ["-Dc_args=-fanalyzer"], env={"CC": "gcc"})
    compile_all(ctx, "build-analyze", targets_of(ctx, "build-analyze", "", "src"))
    ctx.tally.add("analyze", "passed")


def step_tidy(ctx):
    """clang-tidy, file by file"""
    setup(ctx, "build-asan", ["-Db_sanitize=address,undefined", "-Db_lundef=false"], env=CLANG)
    compile_all(ctx, "build-asan")  # for the headers that the build makes

    def tidy(path):
        done = subprocess.run(["clang-tidy", "--quiet", "-p", "build-asan", path], cwd=ROOT,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return path, done.returncode, done.stdout + done.stderr

    database = json.loads((ROOT / "build-asan" / "compile_commands.json").read_text())
    known = {os.path.normpath(os.path.join(e["directory"], e["file"])) for e in database}
    wanted = [path for path in sources() if str(ROOT / path) in known]
    with ThreadPoolExecutor(JOBS) as pool:
        for path, status, text in pool.map(tidy, wanted):
            if status != 0:
                ctx.log.write(f"\n== {path}\n{text}")
            ctx.tally.add(f"tidy {path}", "passed" if status == 0 else "failed")


def step_cppcheck(ctx):
    """cppcheck over src/"""
    ctx.counted("cppcheck", [
        "cppcheck", "--project=build/compile_commands.json", "--file-filter=*src/*",
        "--enable=warning,performance,portability", "--suppress=memleak",
        "--suppress=resourceLeak", "--suppress=missingInclude", "-D__x86_64__=1",
        "--suppress=arrayIndexThenCheck", "--library=tools/cppcheck.cfg",
        "--inline-suppr", "--quiet",
        f"-j{JOBS}", "--error-exitcode=1"])


def step_cross(ctx):
    """library and command for aarch64 and riscv64, unit tests in qemu-user"""
    for arch in ("aarch64", "riscv64"):
        ctx.must(["tools/cross/build-deps.sh", arch], f"building the libraries for {arch}")
        build = f"build-{arch}"
        setup(ctx, build, ["--cross-file", f"tools/cross/{arch}.ini", "--cross-file",
                           f"build-deps/{arch}/meson.ini"])
        compile_all(ctx, build)
        ctx.tally.add(f"build for {arch}", "passed")
        meson_test(ctx, build, ["unit", "filter"] if "filter" in suite_names(build) else ["unit"],
                   label=f"{arch}: ")


def step_install(ctx):
    """install, then build and run the example against what was installed"""
    ctx.counted("install", ["tools/check-install.sh", "build"])


def step_fuzz(ctx):
    """short random runs of each fuzzer"""
    setup(ctx, "build-fuzz", ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dfuzz=true",
                              "-Ddefault_library=static"], env=CLANG)
    compile_all(ctx, "build-fuzz", targets_of(ctx, "build-fuzz", "tests/fuzz"))
    seconds = ctx.args.fuzz_seconds or (60 if ctx.args.long else 0)
    for target in sorted((ROOT / "build-fuzz" / "tests" / "fuzz").glob("fuzz-*")):
        if target.is_dir() or not os.access(target, os.X_OK):
            continue
        fresh = ROOT / "build-fuzz" / "corpus" / target.name
        fresh.mkdir(parents=True, exist_ok=True)
        seeds = [ROOT / "tests" / "fuzz" / "corpus" / name
                 for name in (target.name, target.name.removeprefix("fuzz-"))]
        amount = [f"-max_total_time={seconds}"] if seconds else ["-runs=20000", "-max_total_time=20"]
        ctx.counted(target.name, [str(target), *amount, "-timeout=20", "-rss_limit_mb=2048",
                                  "-print_final_stats=1", f"-artifact_prefix={fresh}-",
                                  str(fresh), *[str(s) for s in seeds if s.is_dir()]],
                    env=SANITIZER_ENV)


def step_fault(ctx):
    """each system call of a start failing once"""
    report = LOGS / "fault.tap"
    report.unlink(missing_ok=True)
    status = ctx.call([PYTHON, "tests/fault/run.py", "build", "--tap", str(report)])
    if not report.exists():
        raise Failure(f"the fault runs gave no report (status {status})")
    count_tap(ctx.tally, "fault", report.read_text())


def step_vm(ctx):
    """Debian's kernel in QEMU"""
    report = LOGS / "vm.tap"
    report.unlink(missing_ok=True)
    status = ctx.call([PYTHON, "tests/vm/run.py", "build", "--tap", str(report)])
    if not report.exists():
        raise Failure(f"the virtual machine gave no report (status {status})")
    count_tap(ctx.tally, "vm", report.read_text())


STEPS = {
    "build": step_build,
    "tests": step_tests,
    "style": step_style,
    "shell": step_shell,
    "system": step_system,
    "asan": step_asan,
    "asan-escape": step_asan_escape,
    "analyze": step_analyze,
    "tidy": step_tidy,
    "cppcheck": step_cppcheck,
    "cross": step_cross,
    "install": step_install,
    "fuzz": step_fuzz,
    "fault": step_fault,
    "vm": step_vm,
}
# "tests" runs the style suite too, so the step of that name is for `make lint`.
FIRST = ["build", "tests", "shell", "asan"]
# Then two lanes at a time: tests of the running product, and what mostly computes.
LANES = [["system", "asan-escape"],
         ["analyze", "tidy", "cppcheck", "cross", "install", "fuzz"]]
LAST_LONG = ["fault", "vm"]


def run_step(args, name, total, lock):
    """Runs one step, prints its line and adds to TOTAL; returns whether nothing failed."""
    started = time.monotonic()
    with open(LOGS / f"{name}.log", "w", encoding="utf-8") as log:
        ctx = Context(args, log)
        try:
            STEPS[name](ctx)
        except (Failure, subprocess.CalledProcessError, OSError, ValueError) as problem:
            ctx.tally.add(name, "failed", str(problem).split("\n")[0])
    seconds = time.monotonic() - started
    tally = ctx.tally
    with lock:
        total.merge(tally)
        print(f"{name:12} {'FAILED' if tally.failed else 'ok':7} {tally.passed:5} passed"
              f" {tally.failed:3} failed {tally.skipped:3} skipped {seconds:6.0f} s "
              f" {STEPS[name].__doc__}", flush=True)
    return tally.failed == 0


def run_all(args):
    """Everything that was asked for; returns the total."""
    total, lock = Tally(), threading.Lock()

    def lane(names):
        for name in names:
            run_step(args, name, total, lock)

    first = args.only or FIRST
    for name in first:
        good = run_step(args, name, total, lock)
        if name == "build" and not good:
            with open(LOGS / "build.log", encoding="utf-8") as log:
                shutil.copyfileobj(log, sys.stdout)
            return total
    if args.only:
        return total
    threads = [threading.Thread(target=lane, args=(names,)) for names in LANES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if args.long:
        lane(LAST_LONG)
    return total


def parse_arguments():
    parser = argparse.ArgumentParser(description="Run the tests and count them.")
    parser.add_argument("--long", action="store_true", help="everything that takes long, too")
    parser.add_argument("--only", nargs="+", choices=STEPS, metavar="STEP",
                        help="these steps: " + " ".join(STEPS))
    parser.add_argument("--fuzz-seconds", type=int, default=0, help="time for each fuzzer")
    return parser.parse_args()


def main():
    args = parse_arguments()
    os.chdir(ROOT)
    LOGS.mkdir(parents=True, exist_ok=True)
    os.environ["LC_ALL"] = "C.UTF-8"
    total = run_all(args)
    for line in total.names[:200]:
        print(f"FAILED {line}")
    if total.names:
        print(f"The output of each step is in {LOGS.relative_to(ROOT)}/.")
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
