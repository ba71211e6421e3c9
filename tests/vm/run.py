#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Boots Debian's kernel in QEMU with the built sandlock and runs tests/vm/tests.sh there.

    run.py BUILD [--tap FILE] [--keep-output]

The kernel package is downloaded (not installed), the root is an initramfs of busybox and the product
with its libraries. KVM is used if a guest boots in it, else emulation. Prints the TAP lines and the
closing `N passed, N failed, N skipped`; FILE gets the TAP lines. Nothing outlives the time limit.
"""

import argparse
import gzip
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
CACHE = ROOT / "build-cache"
KERNEL = CACHE / "vm-kernel"
QEMU = "/usr/bin/qemu-system-x86_64"
BUSYBOX = "/bin/busybox"
LIMIT_S = 240
APPLETS = ("sh", "cat", "true", "sleep", "echo", "ls", "mount")


class Failure(Exception):
    """Said as one line."""


def kernel():
    found = sorted(KERNEL.glob("boot/vmlinuz-*"))
    if not found:
        done = subprocess.run([str(ROOT / "tools" / "debsrc.py"), "binary", "linux-image-amd64",
                               str(CACHE), str(KERNEL)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failure(done.stderr.strip())
        found = sorted(KERNEL.glob("boot/vmlinuz-*"))
    return found[-1]


def libraries(program, path):
    """The shared libraries that PROGRAM needs, the loader included."""
    text = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False,
                          env={"LD_LIBRARY_PATH": path, "PATH": "/usr/bin:/bin"}).stdout
    return [pathlib.Path(word) for word in re.findall(r"(/\S+) \(0x", text)]


def make_root(build, top):
    for folder in ("bin", "etc", "lib64", "lib", "usr", "opt"):
        (top / folder).mkdir(parents=True)
    shutil.copy(BUSYBOX, top / "bin" / "busybox")
    for name in APPLETS:
        (top / "bin" / name).symlink_to("busybox")
    for name in ("sandlock", "sandlock-guardian", "libsandlock.so.0"):
        if (build / name).exists():
            shutil.copy(build / name, top / "opt" / name)
    for path in libraries(build / "sandlock", str(build)):
        if "sandlock" in path.name:
            continue
        folder = "lib64" if path.name.startswith("ld-linux") else "lib"
        shutil.copy(path, top / folder / path.name)
    subprocess.run(["gcc", "-O2", "-static", "-D_GNU_SOURCE", "-o", str(top / "bin" / "asuser"),
                    str(HERE / "asuser.c")], check=True)
    (top / "etc" / "passwd").write_text("root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n")
    for name in ("init", "tests.sh"):
        shutil.copy(HERE / name, top / name)
        (top / name).chmod(0o755)


def pack(top, target):
    names = sorted(str(p.relative_to(top)) for p in top.rglob("*"))
    done = subprocess.run(["cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0"], cwd=top, check=True,
                          input="\n".join(names).encode(), stdout=subprocess.PIPE)
    with gzip.open(target, "wb", compresslevel=1) as file:
        file.write(done.stdout)


def boot(image, initrd, accelerator, limit_s):
    """The serial console's text; what the time limit cut off is kept."""
    command = [QEMU, "-accel", accelerator, "-m", "1024", "-smp", "2", "-nographic", "-no-reboot",
               "-net", "none", "-kernel", str(image), "-initrd", str(initrd), "-append",
               "console=ttyS0 quiet panic=-1 oops=panic"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=limit_s, check=False)
        return done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode(errors="replace")


def console(image, initrd):
    text = ""
    if pathlib.Path("/dev/kvm").exists():
        text = boot(image, initrd, "kvm", 15)
    if "VM-END" not in text:
        text = boot(image, initrd, "tcg", LIMIT_S)
    return text.replace("\r", "")


def main():
    parser = argparse.ArgumentParser(description="Run what differs on Debian's kernel.")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--tap", type=pathlib.Path)
    parser.add_argument("--keep-output", action="store_true", help="print the whole console")
    args = parser.parse_args()
    image = kernel()
    with tempfile.TemporaryDirectory(prefix="sandlock-vm-") as name:
        top = pathlib.Path(name)
        make_root(args.build.resolve(), top / "root")
        pack(top / "root", top / "initrd")
        text = console(image, top / "initrd")
    if args.keep_output:
        print(text)
    rows = re.findall(r"^(?:(?:not )?ok \d+ - .*|# .*|1\.\.\d+)$", text, re.M)
    if "VM-END" not in text:
        rows.append("not ok 999 - the virtual machine reached the end of its tests")
        rows += [f"# {line}" for line in text.splitlines()[-20:]]
    print("\n".join(rows))
    if args.tap:
        args.tap.write_text("\n".join(rows) + "\n")
    passed = sum(row.startswith("ok ") for row in rows)
    failed = sum(row.startswith("not ok ") for row in rows)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, subprocess.CalledProcessError) as problem:
        print(f"check-vm: {problem}", file=sys.stderr)
        sys.exit(1)
