#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles: where they are found, what they include, and what is refused: profiles.py TOOL."""
import json
import os
import subprocess
import sys
import tempfile

TOOL = os.path.abspath(sys.argv[1])
FAILED = []


class Place:
    """A home directory and what the tool says there."""

    def __init__(self, root):
        self.root = root
        self.home = os.path.join(root, "home")
        self.xdg = os.path.join(root, "xdg")
        self.env = {"HOME": self.home, "XDG_CONFIG_HOME": self.xdg, "FOO": "foo"}

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)
        return full

    def profile(self, name, text, own="xdg/sandlock/profiles"):
        return self.write(f"{own}/{name}.toml", text)

    def run(self, *args, data=b"", env=None):
        done = subprocess.run([TOOL, *args], cwd=self.root, env=self.env if env is None else env,
                              input=data, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)
        return done.stdout.decode().replace(self.root, "ROOT")

    def policy(self, *args, **kwargs):
        out = self.run("print", "json", *args, **kwargs)
        try:
            return json.loads(out)
        except ValueError:
            return out

    def reads(self, *args, **kwargs):
        out = self.policy(*args, **kwargs)
        return out["filesystem"]["read"] if isinstance(out, dict) else out


def expect(got, wanted, what):
    if got != wanted:
        FAILED.append(what)
        print(f"{what}:\n  got      {got!r}\n  expected {wanted!r}")


def read(*paths):
    return "[filesystem]\nread = [" + ", ".join(f"'{p}'" for p in paths) + "]\n"


def test_found(p):
    p.profile("web", read("/xdg"))
    p.profile("web", read("/config"), "home/.config/sandlock/profiles")
    p.profile("only", read("/only"), "home/.config/sandlock/profiles")
    expect(p.reads("-p", "web"), ["/xdg"], "XDG_CONFIG_HOME comes first")
    expect(p.reads("-p", "only"), ["/only"], "then ~/.config")
    expect(p.reads("-p", "web", env={"HOME": p.home}), ["/config"], "without XDG_CONFIG_HOME")
    expect(p.reads("-p", "web", env={"HOME": p.home, "XDG_CONFIG_HOME": "relative"}), ["/config"],
           "a relative XDG_CONFIG_HOME does not count")
    p.profile("system", read("/mine"))
    expect(p.reads("-p", "system"), ["/mine"], "own profiles beat built-in ones")
    expect("read_if_exists" in p.policy("-p", "builtin:system")["filesystem"], True,
           "builtin: forces the built-in one")
    expect(p.run("check", "-p", "nope"),
           'error 2: there is no profile "nope"; sandlock profile list shows all\n', "unknown name")
    expect(p.run("check", "-p", "builtin:web"),
           'error 2: there is no built-in profile "web"; sandlock profile list shows all\n',
           "builtin: does not find own ones")
    expect(p.run("check", "-p", "system", env={}), "ok\n", "no HOME: built-in ones are there")


def test_names(p):
    for name, reason in (("", "is not 1 to 64 bytes long"), ("x" * 65, "is not 1 to 64 bytes long"),
                         ("a/b", "holds a slash; --profile-file takes a path"),
                         ("../../etc/passwd", "holds a slash; --profile-file takes a path"),
                         ("..", "begins with a dot or a dash"),
                         ("a b", "holds a blank, a colon or a control character"),
                         ("builtin:builtin:x", "holds a blank, a colon or a control character")):
        bare = name.removeprefix("builtin:")
        expect(p.run("check", f"--profile={name}"), f'error 1: profile name "{bare}" {reason}\n',
               f"name {name}")


def test_merge(p):
    p.profile("base", read("/a", "/b") + "[program]\nclean_env = true\nenv = { K = 'base', L = 'l' }\n"
              "[limits]\ntimeout = 5\n")
    p.profile("mid", "include = ['base']\n" + read("/m") + "[program]\nenv = { K = 'mid' }\n")
    p.profile("top", "include = ['mid', './extra.toml']\n" + read("/t") + "[limits]\ntimeout = 7\n")
    p.write("xdg/sandlock/profiles/extra.toml", read("/extra", "/a"))
    policy = p.policy("-p", "top", "-r", "/flag", "--no-clean-env", "-t", "9", "--env", "L=flag")
    expect(policy, {"program": {"env": {"K": "mid", "L": "flag"}, "clean_env": False},
                    "filesystem": {"read": ["/a", "/b", "/m", "/extra", "/t", "/flag"]},
                    "limits": {"timeout": 9}}, "includes first, in order, then the file, then flags")
    expect(p.policy("-t", "9", "-p", "top")["limits"], {"timeout": 9},
           "the place of -p among the flags does not matter")


def test_loops(p):
    p.profile("self", "include = ['self']\n")
    expect(p.run("check", "-p", "self"),
           "error 1: ROOT/xdg/sandlock/profiles/self.toml:1: include: "
           "ROOT/xdg/sandlock/profiles/self.toml includes itself by way of "
           "ROOT/xdg/sandlock/profiles/self.toml\n", "a file that includes itself")
    p.profile("one", "include = ['two']\n")
    p.profile("two", "\ninclude = ['./link.toml']\n")
    os.symlink("one.toml", os.path.join(p.xdg, "sandlock/profiles/link.toml"))
    expect(p.run("check", "-p", "one"),
           "error 1: ROOT/xdg/sandlock/profiles/two.toml:2: include: "
           "ROOT/xdg/sandlock/profiles/./link.toml includes itself by way of "
           "ROOT/xdg/sandlock/profiles/two.toml\n", "a loop through a symbolic link")
    for i in range(1, 19):
        p.profile(f"deep{i}", f"include = ['deep{i + 1}']\n" if i < 18 else read("/end"))
    expect(p.reads("-p", "deep2"), ["/end"], "16 deep")
    expect(p.run("check", "-p", "deep1"),
           "error 1: ROOT/xdg/sandlock/profiles/deep17.toml:1: include: "
           "ROOT/xdg/sandlock/profiles/deep18.toml is included more than 16 deep\n", "17 deep")
    for i in range(1, 16):
        p.profile(f"wide{i}", f"include = ['wide{i + 1}', 'wide{i + 1}', 'wide{i + 1}']\n")
    p.profile("wide16", read("/w"))
    out = p.run("check", "-p", "wide1")
    expect(out.endswith("more than 256 profiles are included altogether\n"), True, f"too many: {out}")
    p.profile("twice", "include = ['base', 'base']\n")
    expect(p.reads("-p", "twice"), ["/a", "/b"], "the same file twice is no loop")


def test_include_faults(p):
    where = "error {}: ROOT/xdg/sandlock/profiles/{}.toml"
    for name, text, message in (
            ("i1", "include = 'base'\n",
             where.format(1, "i1") + ":1: include: expected a list of profiles in brackets, found string\n"),
            ("i2", "include = ['base', 3]\n",
             where.format(1, "i2") + ":1: include: expected the name or the path of a profile\n"),
            ("i3", "\n\ninclude = ['missing']\n",
             where.format(2, "i3") + ':3: include: there is no profile "missing"; '
             "sandlock profile list shows all\n"),
            ("i4", "include = ['./missing.toml']\n",
             where.format(2, "i4") + ':1: include: there is no policy file "./missing.toml"\n'),
            ("i5", "include = ['/']\n",
             where.format(1, "i5") + ':1: include: "/" is a directory, not a policy file\n'),
            ("i6", "include = ['bad']\n",
             "error 1: ROOT/xdg/sandlock/profiles/bad.toml:2: limits.timeout: "),
            ("i7", "include = ['${NOPE}/x.toml']\n",
             where.format(1, "i7") + ":1: include: the environment variable NOPE is not set; "
             "set it or write ${NOPE:-default}\n")):
        p.profile("bad", "[limits]\ntimeout = 0\n")
        p.profile(name, text)
        out = p.run("check", "-p", name)
        expect(out[:len(message)], message, f"include {text!r}")
        expect(out.count("\n"), 1, f"one line: {out!r}")


def test_files(p):
    toml = p.write("dir/a.toml", "include = ['./b.toml']\n" + read("rel", "~/h", "${FOO}/x"))
    p.write("dir/b.toml", read("/b"))
    expect([r.replace(p.root, "ROOT") for r in p.reads("--profile-file", toml)],
           ["/b", "ROOT/rel", "ROOT/home/h", "ROOT/foo/x"],
           "relative includes start at the file, relative paths at the cwd")
    expect(p.reads("--profile-file", p.write("j.json", '{"filesystem": {"read": ["/j"]}}')), ["/j"],
           "JSON by its ending")
    expect(p.reads("--profile-file", "-", data=b' \n{"filesystem": {"read": ["/s"]}}'), ["/s"],
           "JSON on standard input")
    expect(p.reads("--profile-file", "-", data=read("/s").encode()), ["/s"],
           "TOML on standard input")
    expect(p.run("check", "--profile-file", "-", data=b"include = ['./x.toml']\n"),
           'error 1: standard input:1: include: the relative path "./x.toml" cannot be included here: '
           "standard input has no directory\n", "a relative include on standard input")
    expect(p.run("check", "--profile-file", "missing.toml"),
           'error 2: there is no policy file "missing.toml"\n', "no such file")
    expect(p.run("check", "--profile-file", "dir"),
           'error 1: "dir" is a directory, not a policy file\n', "a directory")
    os.mkfifo(os.path.join(p.root, "fifo.toml"))
    expect(p.run("check", "--profile-file", "fifo.toml"),
           'error 1: "fifo.toml" is not a regular file; - reads a policy from a pipe\n', "a FIFO")
    expect(p.reads("--profile-file", "/dev/stdin", data=read("/s").encode()), ["/s"], "/dev/stdin")
    expect(p.policy("--profile-file", "/dev/null"), {}, "/dev/null")
    expect(p.run("check", "--profile-file", "-", data=b"#" * (1024 * 1024 + 1)),
           "error 1: standard input is larger than 1 MiB, too large for a policy file\n", "too large")
    expect(p.run("check", "--profile-file", p.write("d.json", '{"limits": {}, "limits": {}}')).count("\n"),
           1, "duplicate keys in JSON")
    expect(p.run("check", "--profile-file", p.write("n.json", '{"limits": {"timeout": null}}')),
           "error 1: ROOT/n.json:1: limits.timeout: expected a number or a string, found null\n",
           "null in JSON")
    expect(p.run("check", "--profile-file", p.write("bad\nname.toml", "x")).count("\n"), 1,
           "a file name with a line break")


def test_command(p):
    p.profile("cmd", "[program]\nexec = '${FOO}/prog'\nargs = ['a b', '${FOO}']\n")
    expect(p.run("check", "-p", "cmd"), "ok\ncommand: foo/prog\ncommand: a b\ncommand: ${FOO}\n",
           "the command of a profile")


def main():
    with tempfile.TemporaryDirectory() as root:
        place = Place(os.path.realpath(root))
        for test in (test_found, test_names, test_merge, test_loops, test_include_faults, test_files,
                     test_command):
            test(place)
    sys.exit(f"failed: {', '.join(FAILED)}" if FAILED else 0)


main()
