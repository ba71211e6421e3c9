# SPDX-License-Identifier: Apache-2.0
"""Runs the escape corpus: each attack once outside, where it must succeed, and once in each mode,
where the outcome must be exactly what the table says.

Invariant: the victim, its files and its sockets belong to the account that the attack runs as, so
that only the sandbox stands between them.
"""

import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import harness  # noqa: E402
import table  # noqa: E402

RESULT = re.compile(r"^RESULT (ok|fail|na) errno=(\S+) ?(.*)$")


class Victim:
    """The process outside that attacks aim at, and its directory."""

    def __init__(self, account):
        self.place = harness.Place(account)
        self.top = self.place.dir("victim", 0o700)
        script = harness.INSTALLED.bin / "victim.py"
        if not script.exists():
            shutil.copy2(pathlib.Path(__file__).parent / "victim.py", script)
            script.chmod(0o644)
        self.running = harness.Running(
            [harness.PYTHON, script, self.top], account=account, stdin=subprocess.PIPE,
            cwd=str(self.place.top), env={"VICTIM_SECRET": "hidden"})
        line = self.running.proc.stdout.readline()
        assert line, self.running.proc.stderr.read()
        self.facts = json.loads(line)

    def alive(self):
        return self.running.proc.poll() is None

    def signals(self):
        path = self.top / "signals"
        return path.stat().st_size

    def priority(self):
        return os.getpriority(os.PRIO_PROCESS, self.facts["pid"])

    def calm(self):
        if os.getuid() == 0:
            os.setpriority(os.PRIO_PROCESS, self.facts["pid"], 0)

    def close(self):
        if self.alive():
            self.running.proc.stdin.close()
            self.running.proc.wait(timeout=30)
        words = self.running.proc.stderr.read().decode(errors="replace")
        self.running.stop()
        self.place.remove()
        assert words == ""


@pytest.fixture(scope="session")
def victims(clean_machine):
    kept = {}

    def get(account):
        victim = kept.get(account.uid)
        if victim and not victim.alive():
            victim.close()
            victim = None
        if not victim:
            victim = kept[account.uid] = Victim(account)
        return victim

    yield get
    for victim in kept.values():
        victim.close()


class Scene:
    """Fresh directories of one run: work (granted), ro (readable) and out (not granted)."""

    def __init__(self, account, victim, row):
        self.place = harness.Place(account)
        self.account = account
        self.words = dict(victim.facts)
        for name in ("work", "ro", "out"):
            path = self.place.dir(name)
            self.words[name] = str(path)
            self.place.file(f"{name}/file", "text\n")
            os.setxattr(path / "file", "user.victim", b"1")
            shutil.copy2("/usr/bin/true", path / "tool")
        self.place.file("work/own", "own\n")
        self.words["secret"] = str(self.place.file("out/secret", "secret\n", 0o600))
        self.place.dir("out/empty")
        self.place.dir("out/dir")
        self.place.file("out/dir/inner", "inner\n", 0o600)
        account.own(self.place.top)
        if row.setup:
            self.privileged(row.setup)

    def privileged(self, kind):
        path = self.place.top / "ro" / "privileged"
        shutil.copy2(harness.INSTALLED.attack, path)
        os.chown(path, 0, 0)
        if kind == "setuid":
            path.chmod(0o4755)
        else:
            path.chmod(0o755)
            caps = bytes.fromhex("01000002" + "ff000000" + "00000000" + "00000000" + "00000000")
            os.setxattr(path, "security.capability", caps)
        self.words[kind] = str(path)

    def fill(self, text):
        return text.format(**self.words)


def witness(row, victim):
    if row.witness == "signals":
        return victim.signals()
    if row.witness == "priority":
        return victim.priority()
    return None


def start_attack(row, scene, argv, account):
    """Runs ARGV the way the row wants: descriptors, terminal, limits."""
    opened = {number: os.open(scene.fill(path), os.O_RDONLY) for number, path in row.fds.items()}
    stdin = subprocess.DEVNULL
    if row.stdin:
        stdin = os.open(scene.fill(row.stdin), os.O_RDONLY)

    def preexec():
        for number, fd in opened.items():
            os.dup2(fd, number)
        for name, value in row.limits.items():
            resource.setrlimit(getattr(resource, "RLIMIT_" + name), (value, value))

    kw = {"account": account, "pass_fds": tuple(opened)}
    if row.terminal:
        terminal = harness.Terminal(account)
        running = terminal.start(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **{
            "account": account})
    else:
        terminal = None
        running = harness.Running(argv, stdin=stdin, preexec=preexec, **kw)
    try:
        return running.finish(timeout=60)
    finally:
        if terminal:
            terminal.close()
        for fd in list(opened.values()) + ([stdin] if row.stdin else []):
            os.close(fd)


def parse(result):
    found = [RESULT.match(line.strip()) for line in result.out.splitlines()]
    found = [m for m in found if m]
    assert len(found) == 1, f"no result line{result!r}"
    return found[0].groups()


def attack_argv(row, scene):
    return [str(harness.INSTALLED.attack), row.attack, *(scene.fill(a) for a in row.args)]


def outlives(row):
    return row.attack.startswith("leave_")


def ids(row):
    return row.name


def control_account(row):
    control = row.control
    if isinstance(control, table.Lacks):
        control = control.account
    return harness.ROOT_USER if control == table.AS_ROOT else harness.USER


def controllable(row):
    """Started by an ordinary user, the tests leave out what needs root outside."""
    return control_account(row) and (not row.setup or os.getuid() == 0)


@pytest.mark.parametrize("row", [r for r in table.ROWS if controllable(r)], ids=ids)
def test_control(row, victims):
    """Outside, the attack works: what stops it inside is the sandbox."""
    account = control_account(row)
    victim = victims(account)
    scene = Scene(account, victim, row)
    try:
        before = witness(row, victim)
        if outlives(row):
            running = harness.Running(attack_argv(row, scene), stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, account=account)
            assert running.proc.wait(timeout=60) == 0
            harness.wait_until(lambda: harness.tagged(running.tag), what="a survivor")
            running.stop()
            return
        result = start_attack(row, scene, attack_argv(row, scene), account)
        outcome, errno_name, _ = parse(result)
        if isinstance(row.control, table.Lacks) and outcome != "ok":
            assert (outcome, errno_name) == ("fail", row.control.errno_name), f"{result!r}"
            return
        assert outcome == "ok", f"{result!r}"
        if row.witness:
            harness.wait_until(lambda: witness(row, victim) != before, what="the witness")
    finally:
        victim.calm()
        scene.place.remove()


CASES = [(row, mode) for row in table.ROWS for mode in table.MODE_NAMES
         if harness.MODES[mode].account and (not row.setup or os.getuid() == 0)]


@pytest.mark.parametrize("row,mode", CASES, ids=[f"{r.name}-{m}" for r, m in CASES])
def test_attack(row, mode, victims):
    """Inside, the attack ends exactly as the table says."""
    m = harness.MODES[mode]
    victim = victims(m.account)
    scene = Scene(m.account, victim, row)
    expected = row.expect[mode]
    try:
        before = witness(row, victim)
        flags = ["-w", scene.words["work"], "-r", scene.words["ro"], *row.flags]
        if outlives(row):
            check_death(row, m.command(flags, attack_argv(row, scene)), m.account, expected)
            return
        result = start_attack(row, scene, m.command(flags, attack_argv(row, scene)), m.account)
        left = harness.tagged(result.tag)
        harness.kill_tagged(result.tag)
        assert left == []
        if expected == table.NOT_STARTED:
            assert (result.code, result.out) == (125, ""), f"{result!r}"
            return
        outcome, errno_name, _ = parse(result)
        if expected in (table.OPEN, table.HARMLESS):
            assert outcome == "ok", f"expected {expected}{result!r}"
        else:
            assert (outcome, errno_name) == ("fail", expected), f"{result!r}"
        if row.witness and expected != table.OPEN:
            assert witness(row, victim) == before
        assert victim.alive()
    finally:
        victim.calm()
        scene.place.remove()


def check_death(row, argv, account, expected):
    running = harness.Running(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              account=account)
    try:
        code = running.proc.wait(timeout=60)
        if expected == table.OPEN:
            harness.wait_until(lambda: harness.tagged(running.tag), what="a survivor")
        left = harness.tagged(running.tag)
        words = harness.describe(left)
    finally:
        running.stop()
    assert code == 0
    if expected == table.DEAD:
        assert left == [], words
    else:
        assert left != [], "SECURITY.md calls this open"


def test_every_attack_has_a_row():
    listed = subprocess.run([harness.INSTALLED.attack, "--list"], stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, check=True).stdout
    known = {line.split()[0]: int(line.split()[1]) for line in listed.splitlines()}
    assert {row.attack for row in table.ROWS} == set(known)
    for row in table.ROWS:
        assert len(row.args) == known[row.attack], row.name


def test_at_least_80_attacks_with_distinct_names():
    names = [row.name for row in table.ROWS]
    assert len(names) == len(set(names))
    assert len(names) >= 80


def test_every_row_names_every_mode():
    for row in table.ROWS:
        assert set(row.expect) == set(table.MODE_NAMES), row.name


# --- SECURITY.md ---------------------------------------------------------------------------------


def promise_cells():
    """{how a line of the table begins: [base, no base, no supervisor]} with references resolved."""
    lines = (harness.ROOT / "SECURITY.md").read_text().split("## Promises by mode")[1].splitlines()
    cells = {}
    for line in lines:
        words = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(words) != 4 or set(words[0]) <= set("-"):
            if cells and not line.startswith("|"):
                break
            continue
        name, columns = words[0], words[1:]
        for i, text in enumerate(columns):
            if text.startswith(("the same", "as without base")):
                columns[i] = columns[i - 1]
        cells[name] = columns
    return cells


def cell_of(cells, mode, start):
    """The cell that speaks of MODE; nested and root runs have the base."""
    found = [columns for name, columns in cells.items() if name.startswith(start)]
    assert len(found) == 1, start
    return found[0][{"nobase": 1, "unsup": 2}.get(mode, 0)]


def test_every_row_belongs_to_a_promise_once():
    placed = [row.name for _, rows in table.PROMISES for row in rows]
    placed += [row.name for row in table.ELSEWHERE]
    assert sorted(placed) == sorted(row.name for row in table.ROWS)


@pytest.mark.parametrize("start,rows", table.PROMISES, ids=[p[0] for p in table.PROMISES])
def test_security_table_and_corpus_agree(start, rows):
    cells = promise_cells()
    assert rows
    for row in rows:
        for mode in ("base", "nobase", "unsup"):
            text = cell_of(cells, mode, start)
            expected = row.expect[mode]
            is_open = "**not" in text
            assert (expected == table.OPEN) == is_open, (row.name, mode, text)
            errnos = set(re.findall(r"\bE[A-Z]{3,}\b", text))
            if errnos and expected not in (table.OPEN, table.HARMLESS, table.DEAD,
                                           table.NOT_STARTED):
                assert expected in errnos, (row.name, mode, expected, text)
