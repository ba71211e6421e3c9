#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Cross-builds the libraries that sandlock needs from Debian's source packages, since Debian 12 has
# no riscv64 packages: `tools/cross/build-deps.sh aarch64|riscv64` leaves static libraries and
# pkg-config files in build-deps/ARCH/ and a Meson file that names them. Done once; the machine's own
# package set is left alone.
set -eu
cd "$(dirname "$0")/../.."
arch=$1
triplet=$arch-linux-gnu
prefix=$PWD/build-deps/$arch
[ -f "$prefix/meson.ini" ] && exit 0

work=$prefix/work
rm -rf "$prefix"
mkdir -p "$prefix/include" "$prefix/lib/pkgconfig" "$work"

# archive NAME PREFIXES SOURCE... builds libNAME.a with the flags in $flags. As in a shared library,
# only symbols with one of the PREFIXES are seen outside (all if there are none).
archive() {
	name=$1
	keep=""
	for prefix_word in $2; do
		keep="$keep --keep-global-symbol=${prefix_word}*"
	done
	shift 2
	objects=""
	for source in "$@"; do
		object=$work/$name-$(basename "$source" .c).o
		# shellcheck disable=SC2086 # flags are a list of words
		"$triplet-gcc" -O2 -g -fPIC -fstack-protector-strong $flags -c "$source" -o "$object"
		objects="$objects $object"
	done
	# shellcheck disable=SC2086
	"$triplet-ld" -r -o "$work/$name.o" $objects
	# shellcheck disable=SC2086
	"$triplet-objcopy" --wildcard $keep "$work/$name.o"
	"$triplet-ar" rcs "$prefix/lib/lib$name.a" "$work/$name.o"
}

# describe NAME VERSION writes NAME.pc.
describe() {
	cat >"$prefix/lib/pkgconfig/$1.pc" <<-END
		Name: $1
		Description: $1, from Debian's source package
		Version: $2
		Cflags: -I$prefix/include
		Libs: -L$prefix/lib -l$1
	END
}

# version DIRECTORY prints the upstream part of a source package's version.
version() { dpkg-parsechangelog -l "$1/debian/changelog" -S Version | sed 's/^[0-9]*://; s/-[^-]*$//'; }

tools/debsrc.py source jansson build-cache "$work/jansson"
source=$work/jansson/src
sed -e 's/@json_inline@/inline/; s/@json_have_long_long@/1/; s/@json_have_localeconv@/1/' \
	-e 's/@json_have_atomic_builtins@/1/; s/@json_have_sync_builtins@/1/' \
	"$source/jansson_config.h.in" >"$prefix/include/jansson_config.h"
cp "$source/jansson.h" "$prefix/include/"
cat >"$work/jansson_private_config.h" <<-END
	#define HAVE_ENDIAN_H 1
	#define HAVE_FCNTL_H 1
	#define HAVE_SCHED_H 1
	#define HAVE_UNISTD_H 1
	#define HAVE_SYS_PARAM_H 1
	#define HAVE_SYS_STAT_H 1
	#define HAVE_SYS_TIME_H 1
	#define HAVE_SYS_TYPES_H 1
	#define HAVE_STDINT_H 1
	#define HAVE_CLOSE 1
	#define HAVE_GETPID 1
	#define HAVE_GETTIMEOFDAY 1
	#define HAVE_OPEN 1
	#define HAVE_READ 1
	#define HAVE_SCHED_YIELD 1
	#define HAVE_ATOMIC_BUILTINS 1
	#define HAVE_SYNC_BUILTINS 1
	#define HAVE_LOCALE_H 1
	#define HAVE_SETLOCALE 1
	#define USE_URANDOM 1
	#define INITIAL_HASHTABLE_ORDER 3
END
flags="-DHAVE_CONFIG_H -I$work -I$prefix/include"
archive jansson "json_ jansson_" "$source"/*.c
describe jansson "$(version "$work/jansson")"

tools/debsrc.py source cmocka build-cache "$work/cmocka"
cp "$work"/cmocka/include/cmocka*.h "$prefix/include/"
cat >"$work/config.h" <<-END
	#define HAVE_ASSERT_H 1
	#define HAVE_INTTYPES_H 1
	#define HAVE_MALLOC_H 1
	#define HAVE_SETJMP_H 1
	#define HAVE_SIGNAL_H 1
	#define HAVE_STDARG_H 1
	#define HAVE_STDDEF_H 1
	#define HAVE_STDINT_H 1
	#define HAVE_STDIO_H 1
	#define HAVE_STDLIB_H 1
	#define HAVE_STRING_H 1
	#define HAVE_STRINGS_H 1
	#define HAVE_TIME_H 1
	#define HAVE_UNISTD_H 1
	#define HAVE_STRUCT_TIMESPEC 1
	#define HAVE_SIGLONGJMP 1
	#define HAVE_SNPRINTF 1
	#define HAVE_VSNPRINTF 1
	#define HAVE_STRSIGNAL 1
	#define HAVE_CLOCK_GETTIME 1
	#define HAVE_CLOCK_REALTIME 1
	#define HAVE_GCC_THREAD_LOCAL_STORAGE 1
	#define WORDS_SIZEOF_VOID_P 8
END
flags="-DHAVE_CONFIG_H -I$work -I$prefix/include"
archive cmocka "" "$work/cmocka/src/cmocka.c"
describe cmocka "$(version "$work/cmocka")"

cat >"$work/meson.ini" <<-END
	[properties]
	pkg_config_libdir = ['$prefix/lib/pkgconfig']
END
mv "$work/meson.ini" "$prefix/meson.ini"
rm -rf "$work"
