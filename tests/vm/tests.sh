#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What differs on an old kernel, told in TAP on the serial console. Debian 12's kernel knows Landlock
# ABI 2: truncation, TCP ports, device ioctls and the two scopes cannot be enforced there.
# shellcheck disable=SC2317 # the tests are called by name

PATH=/bin:/usr/bin
export PATH HOME=/home/user LD_LIBRARY_PATH=/opt
busybox mkdir -p /proc /sys /dev
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs dev /dev
busybox mkdir -p /dev/pts /dev/shm /tmp /home/user/work /run
busybox mount -t devpts devpts /dev/pts
busybox mount -t tmpfs -o mode=1777 tmpfs /dev/shm
busybox chmod 1777 /tmp
echo secret >/home/user/secret
busybox chown -R 1000:1000 /home/user
busybox chmod 755 /home /home/user /
busybox ip link set lo up
cd /home/user/work || exit 1

ALL_WAIVED="--allow-degraded fs-truncate --allow-degraded net-tcp --allow-degraded fs-ioctl-dev
--allow-degraded signal-scope --allow-degraded abstract-unix-socket-scope"
GRANTS="-r /bin -r /usr -r /lib -r /lib64 -r /opt -w /home/user/work"
number=0

# run WORDS: `sandlock run` as the user; leaves $status and $out.
run() {
	# shellcheck disable=SC2086 # words are meant to be split
	/bin/asuser /opt/sandlock run $GRANTS "$@" </dev/null >/tmp/out 2>/tmp/err
	status=$?
	out=$(cat /tmp/out)
}

# expect WHAT TEST...: one TAP line, with what was seen if TEST fails.
expect() {
	what=$1
	shift
	number=$((number + 1))
	if "$@"; then
		echo "ok $number - $what"
	else
		echo "not ok $number - $what"
		echo "# status $status"
		busybox sed 's/^/# out: /' /tmp/out
		busybox sed 's/^/# err: /' /tmp/err
	fi
}
says() { busybox grep -q -e "$1" /tmp/err; }
prints() { busybox grep -q -e "$1" /tmp/out; }
# processes_with WORD: how many command lines hold it.
processes_with() {
	found=0
	for file in /proc/[0-9]*/cmdline; do
		busybox grep -q "$1" "$file" 2>/dev/null && found=$((found + 1))
	done
	echo "$found"
}
is() { [ "$1" = "$2" ]; }

echo
run -- /bin/true
expect "a strict start is refused" is "$status" 125
# Each waiver leads to the next protection that this kernel lacks.
waived=""
for pair in fs-truncate:3 net-tcp:4 fs-ioctl-dev:5 signal-scope:6 abstract-unix-socket-scope:6; do
	name=${pair%:*}
	# shellcheck disable=SC2086
	run $waived -- /bin/true
	expect "the refusal names $name and its ABI" \
		says "Protection $name needs Landlock ABI ${pair#*:}, and this kernel has ABI 2: use a newer"
	waived="$waived --allow-degraded $name"
done

# shellcheck disable=SC2086
run $ALL_WAIVED -- /bin/busybox echo hello
expect "it starts with everything waived that this kernel lacks" is "$status $out" "0 hello"
for name in fs-truncate net-tcp fs-ioctl-dev signal-scope abstract-unix-socket-scope; do
	expect "a warning names $name" says "$name"
done

# shellcheck disable=SC2086
run $ALL_WAIVED -- /bin/busybox cat /home/user/secret
expect "an ungranted file cannot be read" is "$status$out" 1
expect "the reason is EACCES" says "Permission denied"

# shellcheck disable=SC2086
run $ALL_WAIVED -- /bin/busybox truncate -s 0 /home/user/secret
expect "the base's read-only mounts stop truncation in Landlock's place" \
	is "$status $(cat /home/user/secret)" "1 secret"

# shellcheck disable=SC2086
run $ALL_WAIVED -- /bin/busybox sh -c 'echo made >f && cat f'
expect "a write grant works" is "$status $out" "0 made"

# shellcheck disable=SC2086
run $ALL_WAIVED --view notify -- /bin/true
expect "without PID namespace and signal scope the start is refused" is "$status" 125
expect "the refusal names the signal scope" says "signal-scope"

# shellcheck disable=SC2086
run $ALL_WAIVED --disable net-tcp --net-allow tcp://:80 -- /bin/true
expect "a port rule together with its waived protection is told" is "$([ -s /tmp/err ] && echo told)" told

# shellcheck disable=SC2086
run $ALL_WAIVED -t 1 -- /bin/busybox sh -c \
	'busybox setsid busybox sleep 7777 & busybox setsid busybox sleep 7777 & sleep 100'
expect "a time-out ends with 124" is "$status" 124
expect "and leaves no process behind" is "$(processes_with 7777)" 0

/bin/asuser /opt/sandlock check </dev/null >/tmp/out 2>/tmp/err
status=$?
expect "check says that the strict default would not start" is "$status" 1
expect "check tells Landlock's ABI" prints "ABI 2\|ABI v2"
/bin/asuser /opt/sandlock check --json </dev/null >/tmp/out 2>/tmp/err
expect "check --json is one object" prints '^{'

# shellcheck disable=SC2086
/opt/sandlock run $GRANTS $ALL_WAIVED -- /bin/busybox cat /home/user/secret </dev/null >/tmp/out 2>/tmp/err
status=$?
expect "root is held as well" is "$status$(cat /tmp/out)" 1
expect "for the same reason" says "Permission denied"

echo "1..$number"
echo "VM-END"
busybox poweroff -f
