# SPDX-License-Identifier: Apache-2.0
"""Issue 4, point 7: tools that insist on root's files, or otherwise meet what a namespace shows
differently. docs/compatibility.md lists what was tried."""

import contextlib
import os
import pathlib
import pwd
import re

import pytest

import harness
from checks import ok, script

BOTH = pytest.mark.parametrize("mode", harness.SUPERVISED)
CONFIG = pathlib.Path("/etc/ssh/ssh_config.d")
NAME = "sandlock-test.conf"


def named_account():
    """ssh wants an entry in passwd; the accounts of the tests have none."""
    if os.getuid() != 0:
        return harness.USER
    entry = pwd.getpwnam("games")
    return harness.Account(entry.pw_uid, entry.pw_gid)


@contextlib.contextmanager
def configured(text="Host sandlock-test\n  Port 2222\n", mode=0o644, link=None):
    """Root's file in ssh's directory; nothing of it stays."""
    path = CONFIG / NAME
    try:
        if link:
            path.symlink_to(link)
        else:
            path.write_text(text)
            path.chmod(mode)
        yield path
    finally:
        path.unlink()


def needs_root(test):
    """Left out where a user runs the tests: it writes below /etc."""
    return test if os.getuid() == 0 else None


def run(mode, text, flags=()):
    return script(list(flags), text, mode=mode, account=named_account())


@needs_root
@BOTH
def test_ssh_reads_its_configuration(mode):
    with configured():
        assert run(mode, "ssh -G sandlock-test | grep ^port").lines == ["port 2222"]


@needs_root
@BOTH
def test_what_ssh_refuses_outside_it_refuses_inside(mode):
    with configured(mode=0o666):
        result = run(mode, "ssh -G sandlock-test")
        assert result.code == 255
        assert "Bad owner or permissions" in result.err


@needs_root
def test_the_copy_is_like_the_directory():
    with configured(mode=0o640) as path:
        before = os.stat(CONFIG), path.stat()
        result = ok(run("base", f"ls {CONFIG}; grep -c ssh_config.d /proc/self/mounts; "
                                f"echo x 2>&1 > {CONFIG}/new; echo y 2>&1 > {CONFIG}/{NAME}; "
                                f"rm {CONFIG}/{NAME} 2>&1; true"))
        # Root's own, of mode 0640: the user cannot read it, so nothing is laid over it.
        assert result.lines[1] == "0"
        path.chmod(0o644)
        result = ok(run("base", f"stat -c '%a %s' {CONFIG}/{NAME}; "
                                f"grep -c ssh_config.d /proc/self/mounts; "
                                f"(echo x > {CONFIG}/new) 2>&1; (echo y > {CONFIG}/{NAME}) 2>&1; "
                                f"rm -f {CONFIG}/{NAME} 2>&1; true"))
        size = path.stat().st_size
        assert result.lines[:2] == [f"644 {size}", "1"]
        assert result.out.count("Read-only file system") == 3
        assert os.stat(CONFIG).st_mtime == before[0].st_mtime
        assert path.stat().st_mtime == before[1].st_mtime


@needs_root
def test_a_grant_of_the_directory_itself():
    with configured():
        for grant in (CONFIG, CONFIG / NAME):
            # /etc is not granted here but for what ssh needs.
            flags = [w for d in ("/usr", "/lib", "/lib64", "/bin", "/etc/passwd",
                                 "/etc/ssh/ssh_config", "/etc/ld.so.cache", "/etc/nsswitch.conf",
                                 grant) if os.path.exists(d) for w in ("-r", d)]
            words = [harness.INSTALLED.sandlock, "run", *flags, "--", "/bin/cat", CONFIG / NAME]
            result = ok(harness.run(words, account=named_account()))
            assert result.lines == ["Host sandlock-test", "  Port 2222"]


@needs_root
def test_links_show_no_more_than_grants():
    place = harness.Place()
    try:
        secret = place.file("secret", "secret")
        os.chown(secret, 0, 0)
        with configured(link=secret):
            result = run("base", f"cat {CONFIG}/{NAME}")
            assert result.code == 1 and result.out == ""
            assert "Permission denied" in result.err
            result = ok(run("base", f"cat {CONFIG}/{NAME}", ["-r", secret]))
            assert result.out == "secret"
    finally:
        place.remove()


@needs_root
def test_nothing_is_laid_without_need():
    text = "grep -c '^tmpfs /etc/ssh/ssh_config.d' /proc/self/mounts; true"
    assert run("base", text).lines == ["0"]
    with configured():
        words = [harness.INSTALLED.sandlock, "run", "-r", "/usr", "-r", "/lib", "-r", "/lib64",
                 "-r", "/bin", "--", "/bin/sh", "-c", text]
        assert ok(harness.run(words, account=named_account())).lines == ["0"]
        # Who may write there means the real one.
        assert run("base", text, ["-w", CONFIG]).lines == ["0"]


# --- Other tools -------------------------------------------------------------------------------

TOOLS = {
    "ssh-keygen": ("ssh-keygen -q -t ed25519 -N '' -f k && ssh-keygen -lf k.pub", r"256 SHA256:"),
    "tmux": ("tmux -S $PWD/t new-session -d 'sleep 5' && tmux -S $PWD/t ls; tmux -S $PWD/t "
             "kill-server", r"0: 1 windows"),
    "script": ("script -qec 'test -t 1 && echo yes' /dev/null < /dev/null", r"yes"),
    "make install": ("printf 'all:\\n\\tinstall -D -m 755 /bin/true i/t\\n' > M; make -sf M; "
                     "stat -c %a i/t", r"755"),
    "tar": ("mkdir d; echo x > d/f; chmod 640 d/f; tar cf t.tar d; rm -r d; tar xf t.tar; "
            "stat -c %a d/f", r"640"),
    "cp -a": ("mkdir d; echo x > d/f; touch -d 2001-01-01 d/f; cp -a d e; stat -c %Y e/f",
              r"9783"),
    "git": ("git init -q . && echo x > f && git add f && git -c user.name=a -c user.email=a@b "
            "commit -qm m && git log --format=%s", r"m"),
    "less": ("echo text | less", r"text"),
    "openssl": ("openssl genrsa -out k 2048 2>/dev/null && openssl rsa -in k -check -noout",
                r"RSA key ok"),
    "apt-get": ("apt-get --version | head -1", r"apt "),
    "sqlite": ("python3 -c 'import sqlite3; c = sqlite3.connect(\"d\"); c.execute(\"create table t "
               "(a)\"); c.commit(); print(\"yes\")'", r"yes"),
    "multiprocessing": ("python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1]))'",
                        r"\[1\]"),
}


@BOTH
@pytest.mark.parametrize("tool", TOOLS)
def test_tools_work(mode, tool):
    text, wanted = TOOLS[tool]
    place = harness.Place(named_account())
    try:
        d = place.dir("d")
        result = ok(run(mode, f"cd {d} && export HOME={d} SHELL=/bin/sh && {text}",
                        ["-w", d]))
        assert re.match(wanted, result.out), f"{result!r}"
    finally:
        place.remove()


@pytest.mark.parametrize("tool", ["ssh-agent", "gpg-agent"])
def test_agents_work_in_the_base(tool):
    text = {"ssh-agent": "ssh-keygen -q -t ed25519 -N '' -f k; eval $(ssh-agent -a $PWD/a) "
                         ">/dev/null; ssh-add -q k && ssh-add -l; ssh-agent -k >/dev/null",
            "gpg-agent": "mkdir -m 700 g; export GNUPGHOME=$PWD/g; gpg -q --batch --passphrase '' "
                         "--quick-gen-key t@e default default never; echo x | gpg -q --batch "
                         "--clearsign | grep -c BEGIN; gpgconf --kill all"}[tool]
    place = harness.Place(named_account())
    try:
        d = place.dir("d")
        result = ok(run("base", f"cd {d} && export HOME={d} && {text}", ["-w", d]))
        assert re.match(r"256 SHA256:|2", result.out), f"{result!r}"
    finally:
        place.remove()
