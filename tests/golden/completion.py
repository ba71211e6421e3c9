#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The completion scripts work: completion.py TOOL. bash is asked for completions; zsh and fish, where
they are installed, as well."""
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile

TOOL = os.path.abspath(sys.argv[1])
FAILED = []


def script(shell):
    return subprocess.run([TOOL, "text", shell], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          check=True).stdout.decode()


def expect(got, wanted, what):
    if got != wanted:
        FAILED.append(what)
        print(f"{what}:\n  got      {got}\n  expected {wanted}")


class Bash:
    """Asks bash for completions of a word list, as readline would hand it over."""

    def __init__(self, directory, path):
        self.directory = directory
        self.path = path

    def complete(self, *words):
        program = (f"source {self.path}\n"
                   'COMP_WORDS=("$@")\nCOMP_CWORD=$(($# - 1))\n_sandlock\n'
                   '((${#COMPREPLY[@]})) && printf "%s\\n" "${COMPREPLY[@]}"\ntrue\n')
        done = subprocess.run(["/bin/bash", "--norc", "--noprofile", "-c", program, "bash", *words],
                              cwd=self.directory, env={"PATH": f"{self.directory}/bin:/usr/bin:/bin"},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        return done.stdout.decode().splitlines()


def test_bash(directory):
    path = os.path.join(directory, "sandlock.bash")
    with open(path, "w", encoding="utf-8") as f:
        f.write(script("bash"))
    if subprocess.run(["/bin/bash", "-n", path], check=False).returncode:
        FAILED.append("bash -n")
        return
    bash = Bash(directory, path)
    expect(bash.complete("sandlock", ""),
           ["run", "ps", "inspect", "kill", "answer", "check", "profile", "complete-script", "--help",
            "--version"], "subcommands")
    expect(bash.complete("sandlock", "pro"), ["profile"], "subcommand prefix")
    expect(bash.complete("sandlock", "run", "--fs-re"), ["--fs-read", "--fs-read-if-exists"],
           "flag prefix")
    expect(bash.complete("sandlock", "run", "--sess"), [], "flags of later work are not offered")
    expect(bash.complete("sandlock", "run", "--view", ""), ["auto", "namespace", "notify"],
           "words of an enumeration")
    expect(bash.complete("sandlock", "run", "--view", "=", "n"), ["namespace", "notify"],
           "--flag=word")
    expect(bash.complete("sandlock", "run", "--view", "="), ["auto", "namespace", "notify"],
           "--flag= alone")
    expect(bash.complete("sandlock", "run", "--disable", "fs-"),
           ["fs-refer", "fs-truncate", "fs-ioctl-dev"], "protections")
    expect(sorted(bash.complete("sandlock", "run", "-r", "fi")), ["file one", "file2"],
           "files, with blanks")
    expect(sorted(bash.complete("sandlock", "run", "--cwd", "")), ["bin", "dir"], "directories only")
    expect(bash.complete("sandlock", "run", "-t", ""), [], "a number has no completion")
    expect(bash.complete("sandlock", "run", "-p", "builtin:s"), ["builtin:system"], "profiles")
    expect(bash.complete("sandlock", "run", "-r", "/usr", "-w", ".", "--", "onlycm"),
           ["onlycmd"], "the command behind --")
    expect(sorted(bash.complete("sandlock", "run", "-r", "/usr", "--", "onlycmd", "fi")),
           ["file one", "file2"], "arguments of the command")
    expect(bash.complete("sandlock", "run", "-r", "/usr", "onlycmd", "--fs-re"), [],
           "no flags behind the command")
    expect(bash.complete("sandlock", "profile", "s"), ["show"], "profile actions")
    expect(bash.complete("sandlock", "profile", "show", "w"), ["web"], "profile names")
    expect(bash.complete("sandlock", "complete-script", ""), ["bash", "zsh", "fish"], "shells")


def check_syntax(shell, directory):
    program = shutil.which(shell, path="/usr/bin:/bin")
    if not program:
        print(f"{shell} is not installed: its script is not checked")
        return None
    path = os.path.join(directory, f"sandlock.{shell}")
    with open(path, "w", encoding="utf-8") as f:
        f.write(script(shell))
    done = subprocess.run([program, "-n", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    expect((done.returncode, done.stdout), (0, b""), f"{shell} -n")
    return path


def test_fish(directory):
    path = check_syntax("fish", directory)
    if not path:
        return

    def complete(line):
        env = {"PATH": f"{directory}/bin:/usr/bin:/bin", "HOME": directory, "TERM": "dumb"}
        done = subprocess.run(["/usr/bin/fish", "--no-config", "-c",
                               f"source {path}; complete -C '{line}'"], cwd=directory, env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
        return [line.split("\t")[0] for line in done.stdout.decode().splitlines()]

    expect(sorted(complete("sandlock ")),
           ["answer", "check", "complete-script", "inspect", "kill", "profile", "ps", "run"],
           "fish: subcommands")
    expect(complete("sandlock run --fs-re"), ["--fs-read", "--fs-read-if-exists"], "fish: flags")
    expect(complete("sandlock run --view "), ["auto", "namespace", "notify"], "fish: words")
    expect(complete("sandlock run -p bui"), ["builtin:system"], "fish: profiles")
    expect(complete("sandlock run -- --fs-re"), [], "fish: no flags behind --")


class Zsh:
    """An interactive zsh on a terminal of its own: _arguments works in a completion widget only."""

    def __init__(self, directory, path):
        self.master, slave = pty.openpty()
        env = {"PATH": f"{directory}/bin:/usr/bin:/bin", "TERM": "dumb", "HOME": directory}
        self.process = subprocess.Popen(["/usr/bin/zsh", "-f", "-i"], cwd=directory, env=env,
                                        stdin=slave, stdout=slave, stderr=slave,
                                        start_new_session=True)
        os.close(slave)
        self.type("PS1=; autoload -Uz compinit; compinit -u -D\n")
        self.type(f"source {path}; LISTMAX=9999; bindkey '^X' list-choices\n")
        self.ask("echo READY-$((40 + 2))\n", "READY-42")

    def type(self, text):
        os.write(self.master, text.encode())

    def ask(self, text, until):
        """Types TEXT and reads until UNTIL appears, for half a minute at most."""
        self.type(text)
        out = ""
        while until not in out:
            if not select.select([self.master], [], [], 30)[0]:
                return out
            out += os.read(self.master, 65536).decode(errors="replace")
        return out

    def choices(self, line, until):
        out = self.ask(line + "\x18", until)
        self.ask("\x15echo AGAIN-$((40 + 2))\n", "AGAIN-42")
        return out

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)


def test_zsh(directory):
    path = check_syntax("zsh", directory)
    if not path:
        return
    zsh = Zsh(directory, path)
    for line, word in (("sandlock ", "complete-script"), ("sandlock run --fs-re", "--fs-read-if-exists"),
                       ("sandlock run --view ", "namespace"), ("sandlock run -p ", "builtin:system"),
                       ("sandlock run -r /usr -- only", "onlycmd"),
                       ("sandlock profile ", "validate")):
        out = zsh.choices(line, word)
        expect(word in out, True, f"zsh: {line!r} (printed {out!r})")
    zsh.close()


def main():
    with tempfile.TemporaryDirectory() as directory:
        os.makedirs(os.path.join(directory, "bin"))
        os.makedirs(os.path.join(directory, "dir"))
        for name in ("file one", "file2"):
            with open(os.path.join(directory, name), "w", encoding="utf-8"):
                pass
        # Stands for the program where a script asks it for profiles.
        for name, text in (("sandlock", "printf '  web\\n  builtin:system\\n'"), ("onlycmd", "true")):
            path = os.path.join(directory, "bin", name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(f"#!/bin/sh\n{text}\n")
            os.chmod(path, 0o755)
        test_bash(directory)
        test_fish(directory)
        test_zsh(directory)
    if FAILED:
        sys.exit(f"failed: {', '.join(FAILED)}")


main()
