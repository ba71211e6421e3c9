#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs BUILD into a temporary directory and uses what was installed as a packager and an embedding
# program would: `tools/check-install.sh BUILD`. Says what is missing, one line each.
set -eu
cd "$(dirname "$0")/.."
build=$1
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
faults=0
fault() {
	echo "install: $1" >&2
	faults=$((faults + 1))
}

/usr/bin/meson install -C "$build" --no-rebuild --destdir "$top/dest" --quiet </dev/null
prefix=$(/usr/bin/meson introspect --buildoptions "$build" |
	/usr/bin/python3 -c 'import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))')
tree=$top/dest$prefix

for name in bin/sandlock include/sandlock/sandlock.h libexec/sandlock/sandlock-guardian \
	share/man/man1/sandlock.1 share/man/man1/sandlock-run.1 share/man/man5/sandlock-policy.5 \
	share/bash-completion/completions/sandlock share/zsh/site-functions/_sandlock \
	share/fish/vendor_completions.d/sandlock.fish; do
	[ -e "$tree/$name" ] || fault "$prefix/$name is missing"
done
library=$(find "$tree" -name 'libsandlock.so.0' -print | head -n 1)
[ -n "$library" ] || fault "libsandlock.so.0 is missing"
config=$(find "$tree" -name sandlock.pc -print | head -n 1)
[ -n "$config" ] || fault "sandlock.pc is missing"
[ "$faults" -eq 0 ] || exit 1

needs=$(readelf -d "$library" "$tree/bin/sandlock" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | sort -u)
for name in $needs; do
	case $name in
	libc.so.6 | libjansson.so.4 | libsandlock.so.0 | ld-linux-*) ;;
	*) fault "library or command links $name" ;;
	esac
done

export PKG_CONFIG_PATH="${config%/*}" PKG_CONFIG_SYSROOT_DIR="$top/dest"
export LD_LIBRARY_PATH="${library%/*}"
flags=$(pkg-config --cflags --libs sandlock)
# shellcheck disable=SC2086 # flags are a list of words
gcc -Wall -Wextra -Werror -o "$top/embed" examples/embed.c $flags || fault "the example does not build"
/usr/bin/python3 examples/test_examples.py "$top/embed" "$library" || fault "the examples failed"
version=$("$tree/bin/sandlock" --version) || fault "sandlock --version failed"
[ "$version" = "sandlock $(pkg-config --modversion sandlock)" ] ||
	fault "the command says '$version', sandlock.pc $(pkg-config --modversion sandlock)"
[ "$faults" -eq 0 ]
