#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes sure that the Debian packages a make target needs are there: `tools/deps.sh GROUP...`.
# Nothing is done when none is missing. As root the missing ones are installed; as an ordinary user
# the one command that installs them is printed and the exit status is 1.
set -eu

packages_of() {
	case $1 in
	build) echo "make meson ninja-build gcc libc6-dev pkg-config libjansson-dev scdoc python3" ;;
	check)
		echo "clang clang-tidy clang-format libclang-rt-14-dev libfuzzer-14-dev cppcheck"
		echo "libcmocka-dev python3-pytest python3-jsonschema git shellcheck procps util-linux"
		echo "nodejs zsh fish openssh-client gpg gpg-agent tmux openssl less psmisc redis-tools"
		echo "curl iproute2 rsync sqlite3 python3-psutil"
		echo "gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-riscv64-linux-gnu"
		echo "libc6-dev-riscv64-cross qemu-user ca-certificates dpkg-dev xz-utils"
		;;
	demo) echo "ca-certificates dpkg-dev xz-utils util-linux" ;;
	bench) echo "bubblewrap firejail runc crun git util-linux" ;;
	fault) echo "strace" ;;
	vm) echo "qemu-system-x86 busybox-static cpio zstd xz-utils ca-certificates" ;;
	*)
		echo "deps.sh: no group of packages is called '$1'; there are build check demo bench fault vm" >&2
		exit 2
		;;
	esac
}

missing=""
for group in "$@"; do
	for package in $(packages_of "$group"); do
		case " $missing " in *" $package "*) continue ;; esac
		status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
		[ "$status" = installed ] || missing="${missing:+$missing }$package"
	done
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
	echo "Some Debian packages are missing. Install them with this command, then try again:" >&2
	echo "  sudo apt-get install -y --no-install-recommends $missing" >&2
	exit 1
fi

echo "Installing $missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of words
install() { apt-get install -qq -y --no-install-recommends $missing </dev/null >/dev/null; }
# The package lists may be absent or older than the archive: then they are fetched once.
install 2>/dev/null || { apt-get update -qq </dev/null && install; }
