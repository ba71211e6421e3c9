# SPDX-License-Identifier: Apache-2.0
"""Issue 3, point 5: metadata inside and outside grants, and directories handed in as descriptors."""

import os
import shutil
import subprocess

import pytest

import harness
from checks import ok, python, quiet_ok, refused, script


def test_metadata_works_inside_write_grants_in_the_base(place):
    work = place.dir("work")
    place.file("work/f", "x")
    text = (f"chmod 600 {work}/f && touch -d @1 {work}/f && chown $(id -u) {work}/f && "
            f"cp -p {work}/f {work}/g && stat -c '%a %Y' {work}/g")
    assert quiet_ok(script(["-w", work], text)).out == "600 1\n"


@pytest.mark.parametrize("mode", ["unsup", "nested"])
def test_metadata_is_refused_as_a_class_without_a_supervisor(place, mode):
    work = place.dir("work")
    place.file("work/f", "x")
    r = script(["-w", work], f"chmod 600 {work}/f", mode=mode)
    assert r.code == 1
    assert "Operation not permitted" in r.err
    assert os.stat(work / "f").st_mode & 0o777 == 0o644


@pytest.mark.parametrize("mode", ["nobase", "unsup"])
def test_allow_metadata_lets_them_through(place, mode):
    work = place.dir("work")
    place.file("work/f", "x")
    quiet_ok(script(["-w", work, "--allow-metadata"], f"chmod 600 {work}/f", mode=mode))
    assert os.stat(work / "f").st_mode & 0o777 == 0o600


def test_base_is_read_only_all_over(place):
    work = place.dir("work")
    text = ("import os\n"
            "bad = []\n"
            "for line in open('/proc/self/mountinfo'):\n"
            "    words = line.split()\n"
            f"    if words[4].startswith(('/proc', '/dev/pts', '/dev/shm', '{work}')):\n"
            "        continue\n"
            "    if 'ro' not in words[5].split(','):\n"
            "        bad.append(words[4])\n"
            "print(bad)\n")
    assert quiet_ok(python(["-w", work], text)).out == "[]\n"


def test_access_tells_the_truth_in_the_base(place):
    work = place.dir("work")
    out = place.dir("out")
    text = (f"import os\nprint(os.access('{work}', os.W_OK), os.access('{out}', os.W_OK),"
            " os.access('/tmp', os.W_OK))\n")
    assert quiet_ok(python(["-w", work], text)).out == "True False False\n"


def test_nested_write_grants_and_files(place):
    place.dir("a/b")
    place.file("f", "")
    r = quiet_ok(script(["-r", place.top, "-w", place.top / "a/b", "-w", place.top / "f"],
                        f"echo x > {place.top}/a/b/new && echo y > {place.top}/f && "
                        f"chmod 600 {place.top}/f; ! (echo z > {place.top}/a/new) 2>/dev/null"))
    assert r.out == ""
    assert (place.top / "f").read_text() == "y\n"


@pytest.mark.parametrize("fd", [0, 1, 2])
@pytest.mark.parametrize("mode", ["base", "nobase", "unsup"])
def test_directory_as_standard_descriptor_is_refused(place, mode, fd):
    d = os.open(place.dir("d"), os.O_RDONLY | os.O_DIRECTORY)
    try:
        kw = {("stdin", "stdout", "stderr")[fd]: d}
        running = harness.Running(harness.MODES[mode].command([], ["/usr/bin/touch", "/x"]), **kw)
        r = running.finish()
    finally:
        os.close(d)
    assert r.code == 125
    if fd != 2:
        assert len(r.err_lines) == 1 and "director" in r.err, f"{r!r}"


@pytest.mark.parametrize("mode", harness.USER_MODES)
def test_opath_directory_as_stdin_is_refused(place, mode):
    d = os.open(place.dir("d"), os.O_PATH | os.O_DIRECTORY)
    try:
        r = harness.run(harness.MODES[mode].command([], ["/usr/bin/true"]), stdin=d)
    finally:
        os.close(d)
    refused(r, "director")


def test_symlinked_write_grant_is_writable_in_the_base(place):
    place.dir("real")
    os.symlink("real", place.top / "link")
    quiet_ok(script(["-w", place.top / "link"], f"echo x > {place.top}/link/f && "
                                                f"chmod 600 {place.top}/real/f"))


def test_devices_stay_usable_in_the_base():
    quiet_ok(script([], "echo x > /dev/null && test ! -w /etc/passwd"))


def test_reading_metadata_of_foreign_owners(place):
    """Owners that the user namespace does not map show as the overflow id, and nothing breaks."""
    r = quiet_ok(script([], "stat -c %u /etc/passwd; id -u"))
    owner, uid = r.lines
    assert uid == str(harness.USER.uid)
    assert owner == "65534" or harness.USER.uid == 0


def test_grant_over_another_mount(place, is_root):
    """A write grant that is itself a mount point, and one below a mount point."""
    if not is_root:
        return
    top = place.dir("mnt")
    argv = harness.MODES["base"].command(["-w", top], ["/bin/sh", "-c",
                                                       f"echo x > {top}/f && chmod 600 {top}/f"])
    line = (f"mount -t tmpfs none {top} && chmod 777 {top} && exec setpriv --reuid "
            f"{harness.USER.uid} --regid {harness.USER.gid} --clear-groups " + " ".join(
                f"'{a}'" for a in argv))
    quiet_ok(harness.run(["/usr/bin/unshare", "-m", "/bin/sh", "-c", line],
                         account=harness.ROOT_USER))


def test_h7_33_write_grant_below_dev_shm():
    """A grant below /dev/shm is carried over into the private one, at every start."""
    top = f"/dev/shm/h4-{os.getpid()}"
    os.mkdir(top)
    try:
        harness.USER.own(top)
        for i in range(20):
            quiet_ok(script(["-w", top], f"echo x > {top}/{i}; ls /dev/shm"))
        assert len(os.listdir(top)) == 20
    finally:
        shutil.rmtree(top)


def test_mounts_of_the_host_stay_as_they_were(place):
    before = harness.mounts()
    ok(harness.sandbox(["-w", place.dir("work")], ["/usr/bin/true"]))
    assert harness.mounts() == before
    assert subprocess.run(["/usr/bin/test", "-w", str(place.top / "work")],
                          **harness.USER.popen_args(), check=False).returncode == 0
