# SPDX-License-Identifier: Apache-2.0
"""The product where an ordinary user can reach it, for scripts that may be started as root.

A checkout may lie where only root can go, and what runs as root proves little about permissions; so
scripts copy the product to a directory of their own and run it as a user id that nobody has.
"""

import os
import pathlib
import pwd
import shutil

PRODUCTS = ("sandlock", "sandlock-guardian", "libsandlock.so", "libsandlock.so.0")


def spare_id():
    """A user id that no account and no process has."""
    used = {entry.pw_uid for entry in pwd.getpwall()}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            used.add(path.stat().st_uid)
        except OSError:
            continue
    return next(uid for uid in range(61000, 64000) if uid not in used)


def ordinary_ids():
    """(uid, gid) to run as: our own, or as root ones that nobody has."""
    if os.getuid() != 0:
        return os.getuid(), os.getgid()
    spare = spare_id()
    return spare, spare


def become(uid, gid):
    """Gives up root for good; nothing to do for others. For use in a child before exec."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    os.umask(0o022)


def copy_products(build, target):
    """Copies what BUILD made into the directory TARGET, which is made."""
    target.mkdir(exist_ok=True)
    for name in PRODUCTS:
        if (build / name).exists():
            shutil.copy(build / name, target / name)
