# SPDX-License-Identifier: Apache-2.0
"""The table of the escape corpus: a row per attack, with its victim, its control and what must come
of it in each mode.

Invariant: every attack that the program knows has a row, every row has a control that succeeds
unsandboxed (or says what the machine lacks), and an outcome that SECURITY.md names as open is
written OPEN here, so that closing it makes this table fail until it is corrected.

Words in arguments: {work} a directory granted for writing, {ro} one granted for reading, {out} one
that is not granted, {secret} a file in it, and the victim's properties (escape/victim.py).
"""

MODE_NAMES = ("base", "nobase", "unsup", "nested", "root")

# The attack works, and SECURITY.md says so.
OPEN = "OPEN"
# The call succeeds and reaches nothing outside: the witness of the row says that.
HARMLESS = "HARMLESS"
# No process is left when the sandbox has ended.
DEAD = "DEAD"
# The row's flags mean nothing there: the start is refused.
NOT_STARTED = "NOT_STARTED"


def per_mode(base, nobase, unsup=None, nested=None, root=None):
    return {
        "base": base,
        "nobase": nobase,
        "unsup": unsup or nobase,
        "nested": nested or base,
        "root": root or base,
    }


def everywhere(outcome):
    return {mode: outcome for mode in MODE_NAMES}


# Writing without a grant (decisions 10).
WRITE = per_mode("EROFS", "EACCES")
READ = everywhere("EACCES")
# Metadata: judged by the mounts of the base, else by the supervisor or refused as a class.
META = per_mode("EROFS", "EPERM", nested="EPERM")
# A name carried across the edge of a grant.
MOVE = per_mode("EXDEV", "EACCES")
# Landlock lets the source of a link be anything readable or not, and asks for REFER only.
LINK_IN = everywhere("EXDEV")
# The kernel judges the new name of a link before it compares the mounts.
LINK_OUT = WRITE
# Processes outside have no number in the sandbox's own PID namespace.
SIGNAL = per_mode("ESRCH", "EPERM")
# Calls that tune a process: without a supervisor every number but the caller's is refused, also in
# the inner one of two sandboxes.
TUNE = per_mode("ESRCH", "ESRCH", unsup="EPERM", nested="EPERM")
# Number 1 is the guardian in the base, and a stranger without it.
TUNE_1 = per_mode("EPERM", "ESRCH", unsup="EPERM")
PROC = per_mode("ENOENT", "ENOENT", unsup="EACCES")
# By a link of the process: the kernel refuses to follow it where there is no PID namespace.
PROC_LINK = per_mode("ENOENT", "EACCES")
EPERM = everywhere("EPERM")
ENOSYS = everywhere("ENOSYS")
EACCES = everywhere("EACCES")
NOFAMILY = everywhere("EAFNOSUPPORT")
NOPROTO = everywhere("EPROTONOSUPPORT")
FASTOPEN = everywhere("EOPNOTSUPP")

# Controls: the account whose unsandboxed run succeeds, or what the machine answers there.
AS_USER = "user"
AS_ROOT = "root"


class Lacks:
    """Some machines cannot do it even unsandboxed, WHY; the control then expects ERRNO_NAME."""

    def __init__(self, errno_name, why, account=AS_USER):
        self.errno_name = errno_name
        self.why = why
        self.account = account


class Row:
    def __init__(self, attack, *args, expect, control=AS_USER, name=None, flags=(), stdin=None,
                 terminal=False, fds=None, witness=None, setup=None, limits=None):
        self.attack = attack
        self.args = args
        self.expect = expect
        self.control = control
        self.name = name or attack
        self.flags = flags
        self.stdin = stdin
        self.terminal = terminal
        self.fds = fds or {}
        self.witness = witness
        self.setup = setup
        self.limits = limits or {}


def with_modes(outcome, **changes):
    return {**outcome, **changes}


# What the supervisor stops as the kernel's own scope would; without it there are no Unix sockets.
ABSTRACT = with_modes(EACCES, base="EPERM", nobase="EPERM", root="EPERM")
# A datagram pair is judged when it sends; without a supervisor there is none.
JUDGED_LATER = with_modes(EACCES, base=OPEN, nobase=OPEN, root=OPEN)
# The supervisor answers; it knows the loopback only.
LOOPBACK_ONLY = with_modes(EPERM, base=HARMLESS, nobase=HARMLESS, root=HARMLESS)
# What a rule with an address is judged by.
BY_ADDRESS = with_modes(everywhere("ECONNREFUSED"), unsup=NOT_STARTED, nested=NOT_STARTED)
UDP_BIND = with_modes(EACCES, unsup=NOT_STARTED, nested=NOT_STARTED)
UNIX_BIND = with_modes(EACCES, base="EROFS", root="EROFS")

FILES = [
    Row("open_read", "{secret}", expect=READ),
    Row("open_write", "{out}/file", expect=WRITE),
    Row("open_rdwr", "{out}/file", expect=WRITE),
    Row("open_rdwr", "{ro}/file", expect=WRITE, name="open_rdwr_readable"),
    Row("open_trunc", "{out}/file", expect=WRITE),
    Row("open_trunc", "{ro}/file", expect=WRITE, name="open_trunc_readable"),
    Row("open_read_trunc", "{ro}/file", expect=WRITE),
    Row("open_append", "{out}/file", expect=WRITE),
    Row("open_creat", "{out}/new", expect=WRITE),
    Row("open_creat", "{ro}/new", expect=WRITE, name="open_creat_readable"),
    Row("open_creat_excl", "{out}/new", expect=WRITE),
    Row("open_creat_read", "{out}/new", expect=WRITE),
    Row("open_legacy", "{out}/file", expect=WRITE),
    Row("creat_legacy", "{out}/file", expect=WRITE),
    Row("creat_legacy", "{out}/new", expect=WRITE, name="creat_new"),
    Row("openat2_read", "{secret}", expect=READ),
    Row("openat2_write", "{out}/file", expect=WRITE),
    Row("list_dir", "{out}", expect=READ),
    Row("truncate_path", "{out}/file", expect=WRITE),
    Row("truncate_path", "{ro}/file", expect=WRITE, name="truncate_readable"),
    Row("tmpfile_outside", "{out}", expect=WRITE),
    Row("tmpfile_link_out", "{work}", "{out}/new", expect=LINK_OUT),
    Row("symlink_read", "{secret}", "{work}", expect=READ),
    Row("symlink_write", "{out}/file", "{work}", expect=WRITE),
    Row("symlink_write", "{out}/new", "{work}", expect=WRITE, name="symlink_write_new"),
    Row("symlink_dir_creat", "{out}", "{work}", expect=WRITE),
    Row("symlink_chain", "{secret}", "{work}", "../out/secret", expect=READ),
    Row("dotdot_read", "{work}", "../out/secret", expect=READ),
    Row("dirfd_dotdot", "{work}", "../out/secret", expect=READ),
    Row("proc_prefix_read", "/proc/self/root", "{secret}", expect=READ, name="proc_root_read"),
    Row("proc_prefix_read", "/proc/self/task/../root", "{secret}", expect=READ,
        name="proc_task_root_read"),
    Row("proc_prefix_write", "/proc/self/root", "{out}/file", expect=WRITE, name="proc_root_write"),
    Row("proc_prefix_read", "/proc/{pid}/root", "{secret}", expect=PROC_LINK,
        name="victim_root_read"),
    Row("proc_prefix_read", "/proc/{pid}/cwd", "victim/secret", expect=PROC_LINK,
        name="victim_cwd_read"),
    Row("proc_prefix_read", "/proc/{pid}/fd", "{vfd}", expect=PROC_LINK, name="victim_fd_read"),
    Row("proc_cwd_read", "{work}", "../out/secret", expect=READ),
    Row("opath_reopen_read", "{secret}", expect=READ),
    Row("opath_reopen_write", "{out}/file", expect=WRITE),
    Row("reopen_for_writing", "{ro}/file", expect=WRITE),
    Row("opath_fchdir", "{out}", "secret", expect=READ),
    Row("mmap_exec", "{out}/tool", expect=READ),
    Row("inherited_fd_read", "9", expect=everywhere("EBADF"), fds={9: "{secret}"}),
    Row("inherited_dirfd_read", "9", "secret", expect=everywhere("EBADF"), fds={9: "{out}"}),
    Row("exec_path", "{out}/tool", expect=READ),
    Row("exec_symlink", "{work}", "{out}/tool", expect=READ),
    Row("exec_by_loader", "/lib64/ld-linux-x86-64.so.2", "{out}/tool", expect=READ),
    Row("exec_interpreter", "{work}", "{out}/tool", expect=READ),
    Row("exec_opath", "{out}/tool", expect=READ),
    # Devices and files of the kernel that only root may open: what is left is the grant.
    Row("open_rdwr", "/dev/kmsg", expect=READ, control=AS_ROOT, name="dev_kmsg"),
    Row("open_rdwr", "/dev/vda", expect=READ, name="dev_disk",
        control=Lacks("EPERM", "a device cgroup of the machine refuses it", AS_ROOT)),
    Row("open_rdwr", "/dev/userfaultfd", expect=READ, control=AS_ROOT, name="dev_userfaultfd"),
    Row("open_rdwr", "/dev/loop-control", expect=READ, control=AS_ROOT, name="dev_loop_control"),
    Row("open_rdwr", "/dev/net/tun", expect=READ, control=AS_ROOT, name="dev_tun"),
    Row("open_rdwr", "/dev/fuse", expect=READ, control=AS_ROOT, name="dev_fuse"),
    Row("open_write", "/proc/sys/kernel/core_pattern", expect=per_mode("EACCES", "EACCES"),
        control=AS_ROOT, name="core_pattern"),
    Row("open_write", "/sys/fs/cgroup/memory/release_agent",
        expect=per_mode("EACCES", "EACCES", root="EROFS"), control=AS_ROOT,
        name="release_agent"),
]

NAMES = [
    Row("mkdir", "{out}/new", expect=WRITE),
    Row("rmdir", "{out}/empty", expect=WRITE),
    Row("unlink", "{out}/file", expect=WRITE),
    Row("unlinkat_dir", "{out}/empty", expect=WRITE),
    Row("mknod_fifo", "{out}/new", expect=WRITE),
    Row("mknod_socket", "{out}/new", expect=WRITE),
    Row("mknod_regular", "{out}/new", expect=WRITE),
    Row("mknod_block", "{work}/new", expect=EPERM, control=AS_ROOT),
    Row("mknod_char", "{work}/new", expect=EPERM, control=AS_ROOT),
    Row("symlink", "{out}/new", expect=WRITE),
    Row("rename", "{secret}", "{work}/new", expect=MOVE, name="rename_in"),
    Row("rename", "{work}/own", "{out}/new", expect=MOVE, name="rename_out"),
    Row("rename", "{out}/file", "{out}/new", expect=WRITE, name="rename_outside"),
    Row("rename_noreplace", "{secret}", "{work}/new", expect=MOVE),
    Row("rename_exchange", "{secret}", "{work}/own", expect=MOVE),
    Row("rename_whiteout", "{out}/file", "{out}/new", expect=WRITE, control=AS_ROOT),
    Row("rename_dir_in", "{out}/dir", "{work}/new", "inner", expect=MOVE),
    Row("link", "{work}/own", "{out}/new", expect=LINK_OUT, name="link_out"),
    Row("link_then_read", "{secret}", "{work}/new", expect=LINK_IN),
    Row("linkat_procfd", "{secret}", "{work}/new", expect=LINK_IN),
    Row("linkat_empty", "{secret}", "{work}/new", expect=LINK_IN),
]

METADATA = [
    Row(attack, target, expect=META, name=f"{attack}{suffix}")
    for attack in ("chmod", "fchmodat", "fchmodat2", "fchmodat2_empty", "chmod_procfd", "chown",
                   "lchown", "fchownat", "fchownat_empty", "utime", "utimes", "futimesat",
                   "utimensat", "setxattr", "lsetxattr", "setxattrat", "setxattr_acl",
                   "removexattr", "lremovexattr", "removexattrat", "file_setattr")
    for target, suffix in (("{out}/file", ""), ("{ro}/file", "_readable"))
] + [
    Row(attack, "{ro}/file", expect=META)
    for attack in ("fchmod_fd", "fchown_fd", "futimens_fd", "fsetxattr_fd", "fremovexattr_fd",
                   "ioctl_setflags", "ioctl_setflags_high", "ioctl_fssetxattr")
] + [
    Row("chmod_stdin", expect=EPERM, stdin="{out}/file"),
    Row("fchmod_stdin", expect=EPERM, stdin="{out}/file"),
    Row("lease", "{ro}/file", expect=with_modes(EACCES, unsup=OPEN)),
    Row("flock_exclusive", "{ro}/file", expect=with_modes(EACCES, unsup=OPEN)),
    Row("inotify_outside", "{out}", expect=with_modes(EACCES, unsup=OPEN)),
]

NAMESPACE_FLAGS = {
    "user": 0x10000000,
    "mount": 0x00020000,
    "cgroup": 0x02000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
NEWUSER = NAMESPACE_FLAGS["user"]

MOUNTS = [
    Row("mount_fs", "{work}", expect=EPERM, control=AS_ROOT),
    Row("mount_bind", "{out}", expect=EPERM, control=AS_ROOT),
    Row("mount_remount", "{work}", expect=EPERM, control=AS_ROOT),
    Row("umount2", "{work}", expect=EPERM, control=AS_ROOT),
    Row("pivot_root", "{work}", expect=EPERM, control=AS_ROOT),
    Row("chroot", "{work}", expect=EPERM, control=AS_ROOT),
    Row("open_tree", "{work}", expect=EPERM),
    Row("open_tree_clone", "{work}", expect=EPERM, control=AS_ROOT),
    Row("move_mount", "{work}", expect=EPERM, control=AS_ROOT),
    Row("fsopen", expect=EPERM, control=AS_ROOT),
    Row("fspick", "{work}", expect=EPERM, control=AS_ROOT),
    Row("fsconfig", expect=EPERM),
    Row("fsmount", expect=EPERM, control=AS_ROOT),
    Row("mount_setattr", "{work}", expect=EPERM, control=AS_ROOT),
    Row("setns", "/proc/self/ns/uts", "0x04000000", expect=EPERM, control=AS_ROOT),
    Row("setns_pidfd", "0x04000000", expect=EPERM, control=AS_ROOT),
    Row("clone_parent", expect=EPERM),
    Row("clone3", "0", expect=ENOSYS, name="clone3_plain"),
    Row("clone3", hex(NEWUSER), expect=ENOSYS, name="clone3_user"),
    Row("clone3", hex(NEWUSER | 0x80), expect=ENOSYS, name="clone3_user_time"),
    Row("clone", hex(NEWUSER | 1 << 40), expect=EPERM, name="clone_high_bits"),
    Row("unshare", "0x80", expect=EPERM, control=AS_ROOT, name="unshare_time"),
    Row("unshare", "0x400", expect=EPERM, name="unshare_files"),
] + [
    Row(call, hex(flag | NEWUSER), expect=EPERM, name=f"{call}_{name}")
    for call in ("unshare", "clone") for name, flag in NAMESPACE_FLAGS.items()
] + [
    Row(call, hex(flag), expect=EPERM, control=AS_ROOT, name=f"{call}_{name}_alone")
    for call in ("unshare", "clone") for name, flag in NAMESPACE_FLAGS.items() if name != "user"
]

NUMBER_1 = Lacks("EACCES", "root of this machine has fewer capabilities than its number 1", AS_ROOT)

PROCESSES = [
    Row("ptrace_attach", "{pid}", expect=EPERM),
    Row("ptrace_seize", "{pid}", expect=EPERM),
    Row("ptrace_traceme", expect=EPERM),
    Row("vm_readv", "{pid}", "{addr}", expect=EPERM),
    Row("vm_writev", "{pid}", "{addr}", expect=EPERM),
    Row("kill", "{pid}", expect=SIGNAL),
    Row("kill_zero", "{pid}", expect=SIGNAL),
    Row("kill_group", "{pid}", expect=SIGNAL),
    Row("tkill", "{pid}", expect=SIGNAL),
    Row("tgkill", "{pid}", expect=SIGNAL),
    Row("sigqueue", "{pid}", expect=SIGNAL),
    Row("tgsigqueue", "{pid}", expect=SIGNAL),
    Row("pidfd_signal", "{pid}", expect=SIGNAL),
    Row("fown_signal", "{pid}", expect=per_mode("ESRCH", HARMLESS), witness="signals"),
    Row("pidfd_getfd", "{pid}", "{vfd}", expect=SIGNAL),
    # A supervised sandbox inside needs it; Landlock keeps it within the sandbox.
    Row("pidfd_getfd_self", expect=with_modes(EPERM, unsup=HARMLESS)),
    Row("kcmp", "{pid}", expect=EPERM),
    Row("process_madvise", expect=EPERM),
    Row("prlimit_set", "{pid}", expect=TUNE),
    Row("prlimit_get", "{pid}", expect=TUNE),
    Row("sched_setaffinity", "{pid}", expect=TUNE),
    Row("sched_setscheduler", "{pid}", expect=TUNE),
    Row("sched_setattr", "{pid}", expect=TUNE),
    Row("setpriority", "{pid}", expect=TUNE),
    # In the base it reaches the sandbox's own processes, and fails on the guardian.
    Row("setpriority_user", expect=EPERM, witness="priority"),
    Row("ioprio_set", "{pid}", expect=TUNE),
    Row("migrate_pages", "{pid}", expect=TUNE),
    # The guardian, which is number 1 in the base; outside, the machine's own number 1.
    Row("prlimit_set", "1", expect=TUNE_1, control=AS_ROOT, name="prlimit_guardian"),
    Row("kill_zero", "1", expect=EPERM, control=AS_ROOT, name="kill_guardian"),
    Row("sched_setaffinity", "1", expect=TUNE_1, control=AS_ROOT, name="affinity_guardian"),
    Row("proc_file", "1", "environ", expect=PROC, control=NUMBER_1, name="guardian_environ"),
    Row("proc_file", "1", "mem", expect=PROC, control=NUMBER_1, name="guardian_mem"),
    Row("proc_prefix_read", "/proc/1/root", "{secret}", expect=PROC_LINK, control=NUMBER_1,
        name="guardian_root"),
    Row("proc_prefix_read", "/proc/1/cwd", "{secret}", expect=PROC_LINK, control=NUMBER_1,
        name="guardian_cwd"),
    Row("proc_visible", "{pid}", expect=PROC),
    Row("proc_mem_write", "{pid}", "{addr}", expect=PROC),
    Row("proc_oom_adj", "{pid}", expect=PROC),
    # Without a PID namespace a number tells whether it is in use, until the supervisor mediates.
    Row("getpgid", "{pid}", expect=per_mode("ESRCH", OPEN)),
] + [
    Row("proc_file", "{pid}", name, expect=PROC, name=f"proc_{name}")
    for name in ("environ", "cmdline", "maps", "status", "auxv", "stack", "mountinfo")
]
for row in PROCESSES:
    if row.name == "proc_stack":
        row.control = AS_ROOT

OUTLIVE = [
    Row("leave_child", expect=everywhere(DEAD)),
    Row("leave_setsid", expect=everywhere(DEAD)),
    Row("leave_daemon", expect=everywhere(DEAD)),
    Row("leave_pipe_holder", expect=everywhere(DEAD)),
    Row("leave_stopped", expect=everywhere(DEAD)),
    Row("leave_vfork", expect=everywhere(DEAD)),
    Row("leave_thread", expect=everywhere(DEAD)),
    Row("leave_subreaper", expect=everywhere(DEAD)),
    Row("leave_chain", "50", expect=everywhere(DEAD)),
    Row("leave_storm", "8", expect=everywhere(DEAD)),
    Row("leave_refork", expect=everywhere(DEAD)),
]
for row in OUTLIVE:
    # Nobody stays behind without a supervisor: SECURITY.md says so.
    row.expect = with_modes(row.expect, unsup=OPEN)

TERMINAL = [
    Row("tiocsti", expect=EPERM, terminal=True),
    Row("tiocsti_high", "1", expect=EPERM, terminal=True),
    Row("tiocsti_high", "0x80000000", expect=EPERM, terminal=True, name="tiocsti_top_bit"),
    Row("tiocsti_dev_tty", expect=EPERM, terminal=True),
    Row("tioclinux", expect=EPERM, terminal=True),
    Row("tioclinux_high", "1", expect=EPERM, terminal=True),
    Row("tioccons", expect=EPERM, terminal=True, control=AS_ROOT),
    Row("terminal_ioctl", "0x540c", expect=EPERM, terminal=True, name="tiocexcl"),
    Row("terminal_ioctl", "0x5423", expect=EPERM, terminal=True, name="tiocsetd"),
    Row("terminal_ioctl", "0x4b3a", expect=EPERM, terminal=True, name="console_mode"),
    Row("terminal_ioctl", "0x4b33", expect=EPERM, terminal=True, name="console_port"),
    Row("terminal_ioctl", "0x5602", expect=EPERM, terminal=True, name="virtual_terminal_mode"),
    Row("terminal_ioctl", "0x5606", expect=EPERM, terminal=True, name="virtual_terminal_switch"),
    Row("other_terminal", "{tty}", expect=PROC),
    Row("other_terminal_fd", "{pid}", "{ttyfd}", expect=PROC_LINK),
]

IPC = [
    Row("shm_key", "{key}", expect=EPERM),
    Row("shm_id", "{shmid}", expect=EPERM),
    Row("sem_key", "{key}", expect=EPERM),
    Row("msg_key", "{key}", expect=EPERM),
    Row("mq_name", "{mq}", expect=per_mode("ENOENT", "EPERM", nested="EPERM")),
    Row("posix_shm", "{shm}", expect=PROC),
    Row("unix_stream", "{sock_stream}", expect=EACCES),
    Row("unix_stream", "{abstract}", expect=ABSTRACT, name="abstract_stream"),
    Row("unix_seqpacket", "{sock_seqpacket}", expect=EACCES),
    Row("unix_dgram_connect", "{sock_dgram}", expect=EACCES),
    Row("unix_dgram_sendto", "{sock_dgram}", expect=EACCES),
    Row("unix_dgram_sendto", "{abstract}", expect=ABSTRACT, name="abstract_dgram"),
    Row("unix_pair_sendto", "{sock_dgram}", expect=EACCES),
    Row("unix_pair_sendto", "{abstract}", expect=ABSTRACT, name="abstract_pair_sendto"),
    Row("unix_pair_sendmsg", "{sock_dgram}", expect=EACCES),
    Row("unix_pair_raw", "{sock_dgram}", expect=EACCES),
    Row("unix_high_bits", "{sock_stream}", expect=EACCES),
    Row("unix_bind", "{out}/sock", expect=UNIX_BIND),
]

AF = {"inet": 2, "ipx": 4, "appletalk": 5, "netlink": 16, "packet": 17, "key": 15, "pppox": 24,
      "can": 29, "tipc": 30, "bluetooth": 31, "rxrpc": 33, "alg": 38, "nfc": 39, "vsock": 40,
      "kcm": 41, "qipcrtr": 42, "smc": 43, "xdp": 44, "mctp": 45}
STREAM, DGRAM, RAW, SEQPACKET, DCCP_TYPE = 1, 2, 3, 5, 6


def no_family(name, kind, proto=0):
    return Row("socket", str(AF[name]), str(kind), str(proto), expect=NOFAMILY,
               control=Lacks("EAFNOSUPPORT", "the kernel is built without this family"),
               name=f"socket_{name}")


def elsewhere_allowed(attack, *args):
    """The same attack where another address is allowed."""
    return Row(attack, *args, expect=BY_ADDRESS, flags=["--net-allow", "127.0.0.2"],
               name=f"{attack}_other_address")


NETWORK = [
    Row("tcp_connect", "{port}", expect=EACCES),
    Row("tcp_connect_nonblock", "{port}", expect=EACCES),
    Row("tcp_connect_mapped", "{port}", expect=EACCES),
    Row("tcp_connect_v6", "{port6}", expect=EACCES),
    Row("mptcp_connect", "{port}", expect=NOPROTO),
    Row("tcp_high_bits", "{port}", expect=NOPROTO),
    Row("udp_send", "{udp}", expect=EPERM),
    Row("udp_high_bits", "{udp}", expect=EPERM),
    Row("udp_send_v6", "{udp}", expect=EPERM),
    Row("fastopen_sendto", "{port}", expect=FASTOPEN),
    Row("fastopen_sendto_high", "{port}", expect=FASTOPEN),
    Row("fastopen_sendmsg", "{port}", expect=FASTOPEN),
    Row("fastopen_sendmmsg", "{port}", expect=FASTOPEN),
    Row("fastopen_option", "{port}", expect=FASTOPEN),
    elsewhere_allowed("tcp_connect", "{port}"),
    elsewhere_allowed("tcp_connect_nonblock", "{port}"),
    elsewhere_allowed("tcp_connect_mapped", "{port}"),
    elsewhere_allowed("tcp_connect_v6", "{port6}"),
    elsewhere_allowed("udp_send", "{udp}"),
    elsewhere_allowed("udp_high_bits", "{udp}"),
    elsewhere_allowed("udp_send_v6", "{udp}"),
    Row("route_ip_options", expect=EPERM, control=AS_ROOT),
    Row("route_ip_options_v6", expect=EPERM, control=AS_ROOT),
    Row("route_header", expect=EPERM,
        control=Lacks("EINVAL", "the kernel knows no routing header of this type")),
    Row("route_packet_options", expect=EPERM,
        control=Lacks("EINVAL", "the kernel knows no routing header of this type")),
    Row("route_flow_label", expect=EPERM),
    Row("udp_bind", "8098", expect=UDP_BIND, flags=["--net-allow", "udp://127.0.0.2"]),
    Row("tcp_bind", "0", expect=EACCES),
    Row("tcp_bind_unspec", "0", expect=EACCES),
    Row("listen_unbound", expect=EACCES),
    Row("listen_unbound_v6", expect=EACCES),
    # With a bind rule nobody tells a bound socket from an unbound one, until the supervisor does.
    Row("listen_unbound", expect=with_modes(EACCES, unsup=OPEN),
        flags=["--net-allow-bind", "8099"], name="listen_unbound_with_a_bind_rule"),
    Row("interface_list", expect=LOOPBACK_ONLY),
    Row("interface_wireless", expect=EPERM),
    Row("interface_address", expect=LOOPBACK_ONLY),
    Row("interface_high_bits", expect=LOOPBACK_ONLY),
    Row("socket", "2", str(RAW), "1", expect=EPERM, control=AS_ROOT, name="socket_raw_icmp"),
    Row("socket", "10", str(RAW), "58", expect=EPERM, control=AS_ROOT, name="socket_raw_icmp6"),
    Row("socket", "2", str(RAW), "255", expect=EPERM, control=AS_ROOT, name="socket_raw_ip"),
    Row("socket", "2", str(DGRAM), "1", expect=EPERM, name="socket_ping",
        control=Lacks("EACCES", "net.ipv4.ping_group_range names no group here")),
    Row("socket", "2", str(STREAM), "262", expect=NOPROTO, name="socket_mptcp"),
    Row("socket", "10", str(STREAM), "262", expect=NOPROTO, name="socket_mptcp6"),
    Row("socket", "2", str(STREAM), "132", expect=NOPROTO, name="socket_sctp",
        control=Lacks("EPROTONOSUPPORT", "the kernel is built without SCTP")),
    Row("socket", "2", str(SEQPACKET), "132", expect=NOPROTO, name="socket_sctp_seqpacket",
        control=Lacks("ESOCKTNOSUPPORT", "the kernel is built without SCTP")),
    Row("socket", "2", str(DCCP_TYPE), "33", expect=NOPROTO, name="socket_dccp",
        control=Lacks("ESOCKTNOSUPPORT", "the kernel is built without DCCP")),
    Row("socket", "2", str(STREAM), "256", expect=NOPROTO, name="socket_smc_protocol",
        control=Lacks("EPROTONOSUPPORT", "the kernel is built without SMC")),
    Row("socket", str(AF["netlink"]), str(RAW), "0",
        expect=with_modes(NOFAMILY, base=HARMLESS, nobase=HARMLESS, root=HARMLESS),
        name="socket_netlink_route"),
    Row("socket", str(AF["netlink"]), str(RAW), "4", expect=NOFAMILY, name="socket_netlink_diag"),
    Row("socket", str(AF["netlink"]), str(DGRAM), "15", expect=NOFAMILY,
        name="socket_netlink_uevent"),
    Row("socket", str(AF["netlink"]), str(RAW), "9", expect=NOFAMILY, control=AS_ROOT,
        name="socket_netlink_audit"),
    Row("socket", str(AF["packet"]), str(RAW), "0", expect=NOFAMILY, control=AS_ROOT,
        name="socket_packet"),
    Row("socket", str(AF["vsock"]), str(STREAM), "0", expect=NOFAMILY, name="socket_vsock"),
    no_family("alg", SEQPACKET),
    no_family("bluetooth", RAW, 1),
    no_family("can", RAW, 1),
    no_family("tipc", RAW),
    no_family("rxrpc", DGRAM, 2),
    no_family("kcm", DGRAM),
    no_family("qipcrtr", DGRAM),
    no_family("smc", STREAM),
    no_family("nfc", RAW),
    no_family("mctp", DGRAM),
    no_family("key", RAW, 2),
    Row("socket", str(AF["xdp"]), str(RAW), "0", expect=NOFAMILY, control=AS_ROOT,
        name="socket_xdp"),
    no_family("appletalk", DGRAM),
    Row("socketpair", "1", str(DGRAM), "0", expect=JUDGED_LATER, name="socketpair_unix_dgram"),
]

NO_RESOURCE_CAP = Lacks("EPERM", "root of this machine has no CAP_SYS_RESOURCE", AS_ROOT)
NOT_BUILT = Lacks("ENOSYS", "the kernel is built without it", AS_ROOT)

SYSCALLS = [
    Row("io_uring_setup", expect=ENOSYS),
    Row("io_uring_enter", expect=ENOSYS),
    Row("io_uring_register", expect=ENOSYS),
    Row("bpf", expect=EPERM, control=AS_ROOT),
    Row("perf_event_open", expect=EPERM),
    Row("userfaultfd", expect=EPERM),
    Row("keyctl", expect=EPERM),
    Row("add_key", expect=EPERM),
    Row("request_key", expect=EPERM),
    Row("memfd_secret", expect=EPERM),
    Row("kexec_load", expect=EPERM, control=NOT_BUILT),
    Row("kexec_file_load", expect=EPERM, control=NOT_BUILT),
    Row("init_module", expect=EPERM, control=NOT_BUILT),
    Row("finit_module", expect=EPERM, control=NOT_BUILT),
    Row("delete_module", expect=EPERM, control=NOT_BUILT),
    Row("clock_settime", expect=EPERM, control=AS_ROOT),
    Row("settimeofday", expect=EPERM, control=AS_ROOT),
    Row("adjtimex", expect=EPERM, control=AS_ROOT),
    Row("clock_adjtime", expect=EPERM, control=AS_ROOT),
    Row("syslog", expect=EPERM, control=AS_ROOT),
    Row("reboot", expect=EPERM, control=AS_ROOT),
    Row("swapon", expect=EPERM, control=AS_ROOT),
    Row("swapoff", expect=EPERM, control=AS_ROOT),
    Row("acct", expect=EPERM, control=AS_ROOT),
    Row("quotactl", expect=EPERM),
    Row("iopl", expect=EPERM, control=NOT_BUILT),
    Row("ioperm", expect=EPERM, control=NOT_BUILT),
    Row("vhangup", expect=EPERM, control=AS_ROOT),
    Row("sethostname", expect=EPERM, control=AS_ROOT),
    Row("setdomainname", expect=EPERM, control=AS_ROOT),
    Row("name_to_handle_at", "{ro}/file", expect=EPERM),
    Row("open_by_handle_at", "{ro}", expect=EPERM, control=AS_ROOT),
    Row("fanotify_init", expect=EPERM),
    Row("lookup_dcookie", expect=EPERM,
        control=Lacks("ENOSYS", "the kernel no longer has this call")),
    Row("personality", "0x0040000", expect=EPERM, name="personality_no_randomize"),
    Row("personality", "0x0400000", expect=EPERM, name="personality_read_implies_exec"),
    # As the kernel answers where a listener exists. Without a supervisor a listener sees the sandbox's own calls only, and a supervised sandbox
    # inside needs it.
    Row("seccomp_listener", expect=with_modes(everywhere("EBUSY"), unsup=HARMLESS)),
    Row("set_securebits", expect=EPERM, control=AS_ROOT),
    Row("set_mm", expect=EPERM, control=NO_RESOURCE_CAP),
    Row("nr", hex(0x40000000 | 39), expect=ENOSYS, name="x32_getpid",
        control=Lacks("ENOSYS", "the kernel is built without x32")),
    Row("nr", "600", expect=ENOSYS, name="number_past_table",
        control=Lacks("ENOSYS", "no kernel has this number")),
    Row("int80_getpid", expect=ENOSYS),
    Row("int80_open", "{out}/file", expect=ENOSYS),
    Row("int80_socketcall", expect=ENOSYS),
]

PRIVILEGE = [
    Row("have_capability", expect=EPERM, control=AS_ROOT),
    # Without a user namespace an ordinary user cannot give up the bounding set; no_new_privs makes
    # it useless there.
    Row("have_bounding", expect=per_mode("EPERM", OPEN)),
    Row("exec_privileged", "{setuid}", expect=EPERM, setup="setuid", name="setuid_program"),
    Row("exec_privileged", "{filecaps}", expect=EPERM, setup="filecaps", name="file_capabilities"),
    Row("capset", expect=EPERM, control=AS_ROOT),
    Row("ambient_raise", expect=EPERM, control=AS_ROOT),
    Row("setuid_root", expect=per_mode("EINVAL", "EPERM", root="EPERM"), control=AS_ROOT),
    Row("setresuid_root", expect=per_mode("EINVAL", "EPERM", root="EPERM"), control=AS_ROOT),
    Row("setgid_root", expect=per_mode("EINVAL", "EPERM", root="EPERM"), control=AS_ROOT),
    Row("setgroups", expect=EPERM, control=AS_ROOT),
    Row("rlimit_beyond", "7", expect=EPERM, control=NO_RESOURCE_CAP, flags=["--max-open-files", "64"],
        limits={"NOFILE": 64}),
    Row("files_beyond", "64", expect=everywhere("EMFILE"), flags=["--max-open-files", "32"]),
    Row("nice_negative", expect=EACCES, control=AS_ROOT),
    Row("realtime", expect=EPERM, control=AS_ROOT),
    Row("clear_no_new_privs", expect=everywhere("EINVAL")),
]

ROWS = (FILES + NAMES + METADATA + MOUNTS + PROCESSES + OUTLIVE + TERMINAL + IPC + NETWORK
        + SYSCALLS + PRIVILEGE)

# --- The table mode x promise of SECURITY.md -----------------------------------------------------
#
# Which rows prove which promise. A promise is named by how its line begins. The test compares both:
# a cell that says "not stopped" or "not promised" must be OPEN here and no other may, and every errno
# expected here must be one that the cell names, where it names any.


def named(rows, *names):
    return [row for row in rows if row.name in names]


def without(rows, *groups):
    taken = {row.name for group in groups for row in group}
    return [row for row in rows if row.name not in taken]


CROSSING = [row for row in NAMES if row.expect is MOVE]
LINKS = [row for row in NAMES if row.expect is LINK_IN]
DEVICES = named(NAMES, "mknod_block", "mknod_char")
OF_PROC = [row for row in FILES + PROCESSES if row.expect is PROC or row.expect is PROC_LINK]
KERNEL_FILES = named(FILES, "core_pattern", "release_agent")
INHERITED = [row for row in FILES if row.fds]
WRITING = [row for row in FILES + NAMES if row.expect is WRITE]
READING = [row for row in FILES if row.expect is READ]
TUNING = [row for row in PROCESSES if row.expect is TUNE]
SIGNALS = [row for row in PROCESSES if row.expect is SIGNAL] + named(PROCESSES, "fown_signal")
# The guardian can be seen by number in the base, and is out of reach.
GUARDIAN = named(PROCESSES, "kill_guardian", "prlimit_guardian", "affinity_guardian",
                 "setpriority_user")
NUMBERS = named(PROCESSES, "getpgid")
PASSED_IN = named(METADATA, "chmod_stdin", "fchmod_stdin")
LEASES = named(METADATA, "lease", "flock_exclusive", "inotify_outside")
OWN_FILES = named(PROCESSES, "pidfd_getfd_self")
UNIX = [row for row in IPC if row.attack.startswith("unix_") and row.attack != "unix_bind"]
UNIX_MADE = named(IPC, "unix_bind") + named(NETWORK, "socketpair_unix_dgram")
OTHER_ADDRESS = [row for row in NETWORK if row.expect is BY_ADDRESS]
ROUTES = [row for row in NETWORK if row.attack.startswith("route_")]
CONNECTS = without([row for row in NETWORK if row.attack.startswith("tcp_connect")], OTHER_ADDRESS)
LISTENS = named(NETWORK, "udp_bind", "tcp_bind", "tcp_bind_unspec", "listen_unbound", "listen_unbound_v6")
LISTEN_OPEN = named(NETWORK, "listen_unbound_with_a_bind_rule")
DATAGRAMS = named(NETWORK, "udp_send", "udp_high_bits", "udp_send_v6") + named(
    NETWORK, "socket_raw_icmp", "socket_raw_icmp6", "socket_raw_ip", "socket_ping")
FAMILIES = [row for row in NETWORK if row.expect is NOFAMILY]
INTERFACES = [row for row in NETWORK if row.attack.startswith("interface_")] + named(
    NETWORK, "socket_netlink_route")
OTHER_TCP = without(NETWORK, CONNECTS, LISTENS, LISTEN_OPEN, DATAGRAMS, FAMILIES, INTERFACES, UNIX_MADE,
                    OTHER_ADDRESS, ROUTES)
LISTENER = named(SYSCALLS, "seccomp_listener")
NOT_KNOWN = [row for row in SYSCALLS + MOUNTS if row.expect is ENOSYS]
BOUNDING = named(PRIVILEGE, "have_bounding")
LIMITS = named(PRIVILEGE, "rlimit_beyond", "files_beyond")
MEMORY = [row for row in PROCESSES if row.expect is EPERM and row not in GUARDIAN]

PROMISES = [
    ("read, list or execute a file", READING),
    ("write, create, remove, truncate outside", WRITING),
    ("rename or link across the edge", CROSSING),
    ("change mode, owner, times", without(METADATA, PASSED_IN, LEASES)),
    ("change these of a regular file that was passed in", PASSED_IN),
    ("take a lease or an exclusive flock", LEASES),
    ("make device nodes", DEVICES),
    ("connect by TCP to a port", CONNECTS),
    ("connect by other ways", OTHER_TCP),
    ("connect or send to an address", OTHER_ADDRESS),
    ("set a route", ROUTES),
    ("bind or listen without", LISTENS),
    ("use UDP and ICMP without a rule", DATAGRAMS),
    ("use other families", FAMILIES),
    ("learn of the host's interfaces", INTERFACES),
    ("reach a named or abstract Unix socket of others", UNIX),
    ("signal a process outside", SIGNALS),
    ("trace, or read or write the memory", MEMORY),
    ("tune a process outside", TUNING),
    ("read `/proc` of other processes", OF_PROC),
    ("find out whether a process number", NUMBERS),
    ("open other terminals, type into", [row for row in TERMINAL if row.terminal]),
    ("make namespaces, mounts, chroot", without(MOUNTS, NOT_KNOWN)),
    ("use io_uring, clone3, x32", NOT_KNOWN),
    ("use bpf, perf, userfaultfd", without(SYSCALLS, NOT_KNOWN, LISTENER)),
    ("gain rights by setuid", without(PRIVILEGE, BOUNDING, LIMITS)),
    ("live on after the run", OUTLIVE),
]

# Rows whose promise the table states without an errno, or that its text below states.
ELSEWHERE = (LINKS + GUARDIAN + KERNEL_FILES + INHERITED + OWN_FILES + LISTEN_OPEN
             + LISTENER + BOUNDING + LIMITS + UNIX_MADE + without(IPC, UNIX, UNIX_MADE)
             + [row for row in TERMINAL if not row.terminal])
