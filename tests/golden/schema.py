#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema accepts every golden policy and refuses broken ones: schema.py TOOL."""
import copy
import glob
import json
import os
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))

# What the parser refuses by form, the schema refuses too.
BROKEN = [
    {"filesytem": {}},
    {"fs_read": ["/x"]},
    {"filesystem": {"raed": ["/x"]}},
    {"filesystem": {"read": "/x"}},
    {"filesystem": {"read": [3]}},
    {"filesystem": {"read": [""]}},
    {"program": {"clean_env": 1}},
    {"program": {"env": ["A=B"]}},
    {"program": {"env": {"A": 1}}},
    {"program": {"uid": 1}},
    {"program": {"uid": -1, "gid": 1}},
    {"limits": {"open_files": 0}},
    {"limits": {"open_files": "5"}},
    {"limits": {"memory": 1.5}},
    {"limits": {"memory": "1.5"}},
    {"limits": {"memory": "5X"}},
    {"limits": {"timeout": 0}},
    {"limits": {"timeout": -1}},
    {"limits": {"cpu": 101}},
    {"limits": {"cpu_cores": [-1]}},
    {"network": {"allow_bind": [65536]}},
    {"network": {"allow_bind": ["x"]}},
    {"config": {"view": "fast"}},
    {"protections": {"disable": ["everything"]}},
    {"include": "x"},
    {"filesystem": {"mount": ["x"]}},
    [],
]


def accepted_by_tool(tool, policy):
    done = subprocess.run([tool, "print", "json", "--profile-file", "-"], cwd="/",
                          env={"HOME": "/home/user"}, input=json.dumps(policy).encode(),
                          stdout=subprocess.PIPE, check=False)
    return done.returncode == 0


def main():
    tool = os.path.abspath(sys.argv[1])
    schema = json.loads(subprocess.run([tool, "text", "schema"], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, check=True).stdout)
    validator = jsonschema.Draft202012Validator
    validator.check_schema(schema)
    checker = validator(schema)
    failed = 0
    paths = sorted(glob.glob(os.path.join(HERE, "expected", "policy-*.json")))
    if len(paths) < 12:
        sys.exit(f"only {len(paths)} golden policies found")
    for path in paths:
        with open(path, encoding="utf-8") as f:
            policy = json.load(f)
        for error in checker.iter_errors(policy):
            failed += 1
            print(f"{os.path.basename(path)}: {error.message}")
        # One more key anywhere is refused.
        for section in policy:
            worse = copy.deepcopy(policy)
            worse[section]["surely_unknown"] = 1
            if checker.is_valid(worse):
                failed += 1
                print(f"{path}: an unknown key in {section} is accepted")
    for policy in BROKEN:
        if checker.is_valid(policy):
            failed += 1
            print(f"the schema accepts {policy}")
        # uid without gid is found when the policy is used, not when it is printed.
        if policy != {"program": {"uid": 1}} and accepted_by_tool(tool, policy):
            failed += 1
            print(f"the parser accepts {policy}")
    sys.exit(1 if failed else 0)


main()
