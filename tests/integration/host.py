# SPDX-License-Identifier: Apache-2.0
"""libsandlock by ctypes, for hosts that the library tests run as programs of their own.

Invariant: nothing here knows more than the public header says.
"""

import ctypes
import os

EXITED, SIGNALED, TIMED_OUT, KILLED, LIMIT, START_FAILED = range(6)
SHARE_PGRP, FOREGROUND, PTY, REPORT_STOPS = 1, 2, 4, 8


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("sys_errno", ctypes.c_int), ("msg", ctypes.c_char * 512)]


class Result(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("reason", ctypes.c_int),
                ("exit_code", ctypes.c_int), ("signal", ctypes.c_int),
                ("run_ms", ctypes.c_uint64), ("peak_rss_bytes", ctypes.c_uint64),
                ("peak_is_tree", ctypes.c_int)]


class Spawn(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("argv", ctypes.POINTER(ctypes.c_char_p)),
                ("envp", ctypes.POINTER(ctypes.c_char_p)), ("fds", ctypes.c_int * 3),
                ("flags", ctypes.c_uint), ("pty_rows", ctypes.c_ushort),
                ("pty_cols", ctypes.c_ushort), ("ret_pty", ctypes.c_int)]


def strings(words):
    array = (ctypes.c_char_p * (len(words) + 1))()
    array[:len(words)] = [os.fsencode(w) for w in words]
    return array


class Library:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.sandlock_policy_new.restype = ctypes.c_void_p
        self.lib.sandlock_policy_warning.restype = ctypes.c_char_p

    def policy(self, *pairs):
        """A policy from (option, value) pairs; raises ValueError with the library's message."""
        p = ctypes.c_void_p(self.lib.sandlock_policy_new())
        for option, value in pairs:
            err = Error()
            r = self.lib.sandlock_policy_set(p, option.encode(),
                                             None if value is None else os.fsencode(value),
                                             ctypes.byref(err))
            if r < 0:
                self.lib.sandlock_policy_free(p)
                raise ValueError(err.msg.decode(), err.code)
        return p

    def free_policy(self, p):
        self.lib.sandlock_policy_free(p)

    def spawn(self, policy, argv, fds=(-1, 1, 2), flags=0):
        s = Spawn(struct_size=ctypes.sizeof(Spawn), argv=strings(argv), flags=flags)
        s.fds[:] = fds
        process, err = ctypes.c_void_p(), Error()
        r = self.lib.sandlock_spawn(policy, ctypes.byref(s), ctypes.byref(process),
                                    ctypes.byref(err))
        if r < 0:
            raise OSError(-r, err.msg.decode())
        return process

    def wait(self, process, timeout_ms=-1):
        """(outcome, Result); a negative outcome is an error code."""
        result, err = Result(struct_size=ctypes.sizeof(Result)), Error()
        r = self.lib.sandlock_wait(process, timeout_ms, ctypes.byref(result), ctypes.byref(err))
        return r, result

    def kill(self, process):
        return self.lib.sandlock_kill(process)

    def pid(self, process):
        return self.lib.sandlock_process_pid(process)

    def free(self, process):
        self.lib.sandlock_process_free(process)


def system_grants():
    return [("fs-read", d) for d in ("/usr", "/lib", "/lib64", "/bin", "/etc") if
            os.path.exists(d)]
