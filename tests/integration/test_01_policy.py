# SPDX-License-Identifier: Apache-2.0
"""Issue 3, point 1: the option table, its front ends and the profiles.

Invariant: what is refused runs nothing, and what every front end says about the same words is the
same policy.
"""

import json
import tomllib

import pytest

import harness
from checks import ok, quiet_ok, refused

# Flags whose enforcement arrives with later work, with a well-formed value.
LATER = [
    ["-m", "1G"], ["-P", "64"], ["-c", "50"], ["--max-disk", "1G"], ["--num-cpus", "1"],
    ["--gpu", "all"], ["--random-seed", "42"], ["--time-start", "2000-01-01T00:00:00Z"],
    ["--time-rate", "2"], ["--deterministic-dirs"], ["--deterministic"], ["--session", "s"],
    ["--fs-deny", "/etc/shadow"], ["--fs-hide", "/etc/shadow"],
    ["--chroot", "/"], ["--fs-mount", "/x:/tmp"], ["--image", "oci:/x"],
    ["--http-allow", "GET example.org/*"], ["--http-deny", "* */admin/*"],
    ["--net-allow", "example.org:443"],
]


@pytest.mark.parametrize("flags", LATER, ids=" ".join)
def test_later_settings_are_refused_not_ignored(place, flags):
    work = place.dir("work")
    r = harness.sandbox(["-w", work, *flags], ["/usr/bin/touch", work / "ran"])
    refused(r, flags[0] if flags[0].startswith("--") else "--")
    assert not (work / "ran").exists()


def test_print_policy_runs_nothing(place):
    work = place.dir("work")
    r = ok(harness.sandlock("run", "--print-policy", "toml", "-w", work, "--", "/usr/bin/touch",
                            work / "ran"))
    policy = tomllib.loads(r.out)
    assert policy["filesystem"]["write"] == [str(work)]
    assert not (work / "ran").exists()


def test_print_policy_json_has_the_same_nesting(place):
    work = place.dir("work")
    words = ["-r", "/usr", "-w", work, "--clean-env", "--env", "A=b", "-t", "1.5",
             "--max-open-files", "64", "--no-coredump", "--name", "n1", "--allow-degraded",
             "net-tcp", "--net-allow", "tcp://:443", "--net-allow-bind", "8080,9000-9005",
             "--extra-deny-syscall", "chroot"]
    toml = ok(harness.sandlock("run", "--print-policy", "toml", *words, "--", "true")).out
    text = ok(harness.sandlock("run", "--print-policy", "json", *words, "--", "true")).out
    assert tomllib.loads(toml) == json.loads(text)


def test_round_trip_flags_toml_json_toml(place):
    work = place.dir("work")
    words = ["-r", "/usr", "-r", "/etc", "-w", work, "--cwd", "/", "--env", "A=b=c", "--env",
             "EMPTY=", "--clean-env", "-t", "90", "--max-open-files", "64", "--cpu-cores", "0",
             "--no-randomize-memory", "--no-huge-pages", "--no-coredump", "--disable",
             "signal-scope", "--allow-metadata", "--net-allow", "tcp://:443,80",
             "--net-allow-bind", "0,8080", "--view", "auto"]
    first = ok(harness.sandlock("run", "--print-policy", "toml", *words, "--", "true")).out
    toml_file = place.file("p.toml", first)
    as_json = ok(harness.sandlock("run", "--print-policy", "json", "--profile-file", toml_file,
                                  "--", "true")).out
    json_file = place.file("p.json", as_json)
    last = ok(harness.sandlock("run", "--print-policy", "toml", "--profile-file", json_file,
                               "--", "true")).out
    assert last == first


@pytest.mark.parametrize("kind", ["toml", "json"])
def test_profile_from_standard_input(place, kind):
    work = place.dir("work")
    if kind == "toml":
        text = f'[filesystem]\nread = ["/usr", "/lib", "/lib64"]\nwrite = ["{work}"]\n'
    else:
        text = json.dumps({"filesystem": {"read": ["/usr", "/lib", "/lib64"],
                                          "write": [str(work)]}})
    quiet_ok(harness.sandlock("run", "--profile-file", "-", "--", "/usr/bin/touch", work / "ran",
                              data=text))
    assert (work / "ran").exists()


def profile_env(place, **profiles):
    top = place.dir("config")
    place.dir("config/sandlock")
    place.dir("config/sandlock/profiles")
    for name, text in profiles.items():
        place.file(f"config/sandlock/profiles/{name}.toml", text)
    return {"XDG_CONFIG_HOME": str(top)}


SYSTEM_TOML = '["/usr", "/lib", "/lib64", "/bin", "/etc"]'


def test_profile_by_name(place):
    work = place.dir("work")
    env = profile_env(place, mine=f'[filesystem]\nread = {SYSTEM_TOML}\nwrite = ["{work}"]\n')
    quiet_ok(harness.sandlock("run", "-p", "mine", "--", "/usr/bin/touch", work / "ran", env=env))
    assert (work / "ran").exists()


def test_profile_in_home_where_xdg_has_none(place):
    place.dir("home/.config/sandlock/profiles")
    place.file("home/.config/sandlock/profiles/mine.toml", f"[filesystem]\nread = {SYSTEM_TOML}\n")
    env = {"HOME": str(place.top / "home"), "XDG_CONFIG_HOME": str(place.dir("nothing"))}
    quiet_ok(harness.sandlock("run", "-p", "mine", "--", "/usr/bin/true", env=env))


def test_profile_command_of_its_own(place):
    env = profile_env(place, mine=f'[program]\nexec = "/bin/echo"\nargs = ["a", "b c"]\n'
                                  f"[filesystem]\nread = {SYSTEM_TOML}\n")
    assert quiet_ok(harness.sandlock("run", "-p", "mine", env=env)).out == "a b c\n"
    # A trailing command beats it.
    assert quiet_ok(harness.sandlock("run", "-p", "mine", "--", "/bin/echo", "x",
                                     env=env)).out == "x\n"


def test_no_command_at_all(place):
    refused(harness.sandlock("run", "-r", "/usr"), "command")


def test_include_appends_and_overrides(place):
    env = profile_env(
        place,
        base=f'[filesystem]\nread = {SYSTEM_TOML}\n[program]\nenv = {{A = "base", B = "base"}}\n'
             "[limits]\nopen_files = 100\n",
        mine='include = ["base"]\n[program]\nenv = {A = "mine"}\n[limits]\nopen_files = 50\n')
    text = ok(harness.sandlock("run", "-p", "mine", "--print-policy", "json", "--", "true",
                               env=env)).out
    policy = json.loads(text)
    assert policy["program"]["env"] == {"A": "mine", "B": "base"}
    assert policy["limits"]["open_files"] == 50
    assert policy["filesystem"]["read"] == ["/usr", "/lib", "/lib64", "/bin", "/etc"]
    # Flags override scalars and append to lists.
    text = ok(harness.sandlock("run", "-p", "mine", "--max-open-files", "20", "-r", "/var",
                               "--print-policy", "json", "--", "true", env=env)).out
    policy = json.loads(text)
    assert policy["limits"]["open_files"] == 20
    assert policy["filesystem"]["read"][-1] == "/var"


def test_include_by_relative_path(place):
    place.dir("d/sub")
    place.file("d/other.toml", "[limits]\nopen_files = 77\n")
    main = place.file("d/main.toml", 'include = ["./other.toml"]\n')
    text = ok(harness.sandlock("run", "--profile-file", main, "--print-policy", "json", "--",
                               "true")).out
    assert json.loads(text)["limits"]["open_files"] == 77


def test_include_loop_is_refused(place):
    env = profile_env(place, a='include = ["b"]\n', b='include = ["a"]\n')
    refused(harness.sandlock("run", "-p", "a", "--", "/usr/bin/true", env=env), "include")


def test_include_depth(place):
    fine = {f"p{i}": f'include = ["p{i + 1}"]\n' for i in range(15)}
    fine["p15"] = f"[filesystem]\nread = {SYSTEM_TOML}\n"
    env = profile_env(place, **fine)
    quiet_ok(harness.sandlock("run", "-p", "p0", "--", "/usr/bin/true", env=env))


def test_include_too_deep(place):
    deep = {f"p{i}": f'include = ["p{i + 1}"]\n' for i in range(20)}
    deep["p20"] = ""
    env = profile_env(place, **deep)
    refused(harness.sandlock("run", "-p", "p0", "--", "/usr/bin/true", env=env), "16")


def test_missing_include_is_refused(place):
    env = profile_env(place, a='include = ["nothing"]\n')
    refused(harness.sandlock("run", "-p", "a", "--", "/usr/bin/true", env=env), "nothing")


def test_variables_in_paths(place):
    work = place.dir("home/work")
    env = profile_env(place, mine=f'[filesystem]\nread = {SYSTEM_TOML}\n'
                                  'write = ["${WHERE}", "~/work", "${NONE:-/dev/shm}"]\n'
                                  '[program]\nenv = {PRICE = "$$5"}\n')
    env.update(HOME=str(place.top / "home"), WHERE=str(work))
    r = ok(harness.sandlock("run", "-p", "mine", "--print-policy", "json", "--", "true", env=env))
    policy = json.loads(r.out)
    # The same path twice is one grant.
    assert policy["filesystem"]["write"] == [str(work), "/dev/shm"]
    # What is printed is a policy file, in which a dollar sign is written twice.
    assert policy["program"]["env"] == {"PRICE": "$$5"}
    r = ok(harness.sandlock("run", "-p", "mine", "--", "/bin/sh", "-c", "echo $PRICE", env=env))
    assert r.out == "$5\n"


def test_undefined_variable_is_refused(place):
    env = profile_env(place, mine='[filesystem]\nread = ["${NO_SUCH_VARIABLE}"]\n')
    refused(harness.sandlock("run", "-p", "mine", "--", "/usr/bin/true", env=env),
            "NO_SUCH_VARIABLE", "mine")


def test_no_flag_switches_a_profile_boolean_off(place):
    env = profile_env(place, mine="[program]\nclean_env = true\nno_coredump = true\n")
    r = ok(harness.sandlock("run", "-p", "mine", "--no-clean-env", "--no-coredump=false",
                            "--print-policy", "json", "--", "true", env=env))
    program = json.loads(r.out).get("program", {})
    assert program.get("clean_env", False) is False
    assert program.get("no_coredump", False) is False


def test_empty_list_is_not_unset(place):
    """An empty list in a profile is kept as such, and grants nothing."""
    file = place.file("p.toml", "[filesystem]\nread = []\n")
    r = harness.sandlock("run", "--profile-file", file, "--", "/usr/bin/true")
    assert r.code in (126, 127), f"{r!r}"


@pytest.mark.parametrize("name", ["../mine", "a/b", "/etc/passwd", ".hidden", "", "-x"])
def test_names_are_not_paths(place, name):
    env = profile_env(place, mine="")
    refused(harness.sandlock("run", f"--profile={name}", "--", "/usr/bin/true", env=env))


def test_profile_commands(place):
    env = profile_env(place, mine="[limits]\nopen_files = 9\n", other="")
    r = ok(harness.sandlock("profile", "list", env=env))
    names = [line.split()[0] for line in r.lines]
    assert "mine" in names and "other" in names
    r = ok(harness.sandlock("profile", "show", "mine", env=env))
    assert r.out == "[limits]\nopen_files = 9\n"
    r = ok(harness.sandlock("profile", "show", "mine", "--json", env=env))
    assert json.loads(r.out) == {"limits": {"open_files": 9}}
    ok(harness.sandlock("profile", "validate", "mine", env=env))
    ok(harness.sandlock("profile", "delete", "mine", env=env))
    assert harness.sandlock("profile", "show", "mine", env=env).code == 1
    assert harness.sandlock("profile", "delete", "mine", env=env).code == 1


def test_profile_validate_says_what_is_wrong(place):
    env = profile_env(place, bad="[limits]\nopen_files = -1\n")
    r = harness.sandlock("profile", "validate", "bad", env=env)
    assert r.code == 1
    assert "open_files" in r.err


@pytest.mark.parametrize("words", [["profile"], ["profile", "nonsense"], ["profile", "show"],
                                   ["profile", "show", "a", "b"], ["nonsense"], []],
                         ids=lambda w: " ".join(w) or "nothing")
def test_usage_of_other_subcommands_is_2(words):
    r = harness.sandlock(*words)
    assert r.code == 2, f"{r!r}"
    assert r.out == "" and r.err


def test_builtin_profiles_are_listed_and_shown():
    r = ok(harness.sandlock("profile", "list"))
    for name in ("system", "python", "node", "c-build"):
        assert f"builtin:{name}" in r.out
        text = ok(harness.sandlock("profile", "show", f"builtin:{name}")).out
        tomllib.loads(text)


def test_own_profile_beats_builtin(place):
    env = profile_env(place, system="[limits]\nopen_files = 11\n")
    own = ok(harness.sandlock("profile", "show", "system", "--json", env=env)).out
    assert json.loads(own) == {"limits": {"open_files": 11}}
    forced = ok(harness.sandlock("profile", "show", "builtin:system", "--json", env=env)).out
    files = json.loads(forced)["filesystem"]
    assert "/usr" in files.get("read", []) + files.get("read_if_exists", [])


def test_help_lists_every_flag_of_the_table():
    r = ok(harness.sandlock("run", "--help"))
    for flag in ("--fs-read", "--fs-write", "--net-allow", "--no-supervisor", "--timeout",
                 "--status-fd", "--view", "--pty", "--name", "--allow-degraded"):
        assert flag in r.out


def test_version():
    r = quiet_ok(harness.sandlock("--version"))
    assert r.lines and "0.1.0" in r.lines[0]


def test_unknown_flag_names_the_near_one():
    refused(harness.sandlock("run", "--fs-raed", "/usr", "--", "true"), "--fs-raed", "--fs-read")
