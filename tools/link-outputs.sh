#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Puts what a build made at the top of its build directory: `tools/link-outputs.sh BUILD`. Meson
# leaves each program in the folder of its source; people and tests look for BUILD/sandlock and
# BUILD/libsandlock.so. Relative links, so that the directory can be moved.
set -eu
build=$1
cd "$build"
for file in src/cli/sandlock src/confine/sandlock-guardian src/lib/sandlock-guardian \
	src/lib/libsandlock.so src/lib/libsandlock.so.?; do
	[ -e "$file" ] || continue
	ln -sfn "$file" "$(basename "$file")"
done
