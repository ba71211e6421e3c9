#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How Python runs something that it does not trust, by ctypes and the public C functions.

    ctypes_run.py [LIBRARY]

The structures are those of sandlock/sandlock.h; `struct_size` tells the library how much of them the
caller knows, so that a program built against an older header goes on working.
"""

import ctypes
import os
import sys


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("sys_errno", ctypes.c_int), ("msg", ctypes.c_char * 512)]


class Result(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("reason", ctypes.c_int), ("exit_code", ctypes.c_int),
        ("signal", ctypes.c_int), ("run_ms", ctypes.c_uint64),
        ("peak_rss_bytes", ctypes.c_uint64), ("peak_is_tree", ctypes.c_int),
    ]


class Spawn(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("argv", ctypes.POINTER(ctypes.c_char_p)),
        ("envp", ctypes.POINTER(ctypes.c_char_p)), ("fds", ctypes.c_int * 3),
        ("flags", ctypes.c_uint), ("pty_rows", ctypes.c_ushort), ("pty_cols", ctypes.c_ushort),
        ("ret_pty", ctypes.c_int),
    ]


class SandlockError(Exception):
    """The library's own sentence."""


def load(path):
    lib = ctypes.CDLL(path)
    lib.sandlock_policy_new.restype = ctypes.c_void_p
    lib.sandlock_policy_free.argtypes = [ctypes.c_void_p]
    lib.sandlock_policy_set.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p,
                                        ctypes.POINTER(Error)]
    lib.sandlock_policy_load_profile.argtypes = [ctypes.c_void_p, ctypes.c_char_p,
                                                 ctypes.POINTER(Error)]
    lib.sandlock_spawn.argtypes = [ctypes.c_void_p, ctypes.POINTER(Spawn),
                                   ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(Error)]
    lib.sandlock_wait.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(Result),
                                  ctypes.POINTER(Error)]
    lib.sandlock_process_free.argtypes = [ctypes.c_void_p]
    return lib


def check(status, error):
    if status < 0:
        raise SandlockError(error.msg.decode(errors="replace"))


def run(lib, argv, options):
    """Runs ARGV under builtin:system and OPTIONS; returns (exit code or -signal, output)."""
    error, result, process = Error(), Result(ctypes.sizeof(Result)), ctypes.c_void_p()
    policy = lib.sandlock_policy_new()
    read_end, write_end = os.pipe()
    try:
        check(lib.sandlock_policy_load_profile(policy, b"builtin:system", error), error)
        for name, value in options:
            check(lib.sandlock_policy_set(policy, name.encode(), value.encode(), error), error)
        words = (ctypes.c_char_p * (len(argv) + 1))(*(word.encode() for word in argv), None)
        spawn = Spawn(struct_size=ctypes.sizeof(Spawn), argv=words,
                      fds=(ctypes.c_int * 3)(-1, write_end, 2))
        check(lib.sandlock_spawn(policy, spawn, process, error), error)
        os.close(write_end)
        write_end = -1
        with os.fdopen(read_end, "rb", closefd=False) as pipe:
            output = pipe.read()
        check(lib.sandlock_wait(process, -1, result, error), error)
    finally:
        lib.sandlock_process_free(process)
        lib.sandlock_policy_free(policy)
        os.close(read_end)
        if write_end >= 0:
            os.close(write_end)
    return (-result.signal if result.signal else result.exit_code), output.decode()


def main():
    lib = load(sys.argv[1] if len(sys.argv) > 1 else "libsandlock.so.0")
    try:
        status, output = run(lib, ["/bin/sh", "-c", "echo hello from the sandbox; exit 3"],
                             [("timeout", "10")])
    except SandlockError as problem:
        print(f"ctypes_run: {problem}", file=sys.stderr)
        return 1
    print(output, end="")
    print(f"exited with {status}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
