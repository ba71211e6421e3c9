/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel constants that the headers of the oldest supported build machine (Debian 12, Linux 6.1
 * headers) lack, and those whose own header cannot be included beside glibc's. Constants and plain
 * structs only, so that pure code may include it. One section per family, names in alphabetical
 * order inside; every name has the kernel's spelling and is defined only where it is missing.
 */
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/ioctl.h>
#include <linux/landlock.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/types.h>

/* ---- clone(2) ---- */

/* Every namespace bit. CLONE_NEWTIME lies in the exit-signal byte: see filter_args.c. */
#define UAPI_CLONE_NAMESPACES                                                                      \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWTIME)

/* ---- fcntl(2), flock(2): what the filter tells apart ---- */

#define UAPI_F_SETDELEG 1040 /* 6.19 */
#define UAPI_F_SETLEASE 1024
#define UAPI_LOCK_EX	2

/* ---- ioctl numbers (linux/fs.h cannot be included beside sys/mount.h) ---- */

#define UAPI_FAT_IOCTL_SET_ATTRIBUTES	      0x40047211u
#define UAPI_FICLONE			      0x40049409u
#define UAPI_FICLONERANGE		      0x4020940du
#define UAPI_FIDEDUPERANGE		      0xc0189436u
#define UAPI_FS_IOC_FIEMAP		      0xc020660bu
#define UAPI_FS_IOC_FSGETXATTR		      0x801c581fu
#define UAPI_FS_IOC_FSSETXATTR		      0x401c5820u
#define UAPI_FS_IOC_GETFLAGS		      0x80086601u
#define UAPI_FS_IOC_GETFSLABEL		      0x81009431u
#define UAPI_FS_IOC_GETVERSION		      0x80087601u
#define UAPI_FS_IOC_GET_ENCRYPTION_KEY_STATUS 0xc080661au
#define UAPI_FS_IOC_GET_ENCRYPTION_NONCE      0x8010661bu
#define UAPI_FS_IOC_GET_ENCRYPTION_POLICY     0x400c6615u
#define UAPI_FS_IOC_GET_ENCRYPTION_POLICY_EX  0xc0096616u
#define UAPI_FS_IOC_MEASURE_VERITY	      0xc0046686u
#define UAPI_FS_IOC_READ_VERITY_METADATA      0xc0286687u
#define UAPI_FS_IOC_SETFLAGS		      0x40086602u
#define UAPI_FS_IOC_SETVERSION		      0x40087602u
#define UAPI_FS_IOC_ENABLE_VERITY	      0x40806685u
#define UAPI_IOC_TYPE_BTRFS		      0x94u /* FICLONE and friends live here as well */
#define UAPI_IOC_TYPE_EXT		      0x66u /* 'f': FS_IOC_*, ext4, fscrypt, fsverity */
#define UAPI_OCFS2_IOC_REFLINK		      0x40186f04u /* makes a file */
/* Socket ioctls 0x8908..0x8bff (wireless ones included) speak of interfaces, routes and drivers;
 * those below do not. */
#define UAPI_SIOC_INTERFACE_FIRST 0x8908u
#define UAPI_SIOC_INTERFACE_LAST  0x8bffu
#define UAPI_SIOCOUTQNSD	  0x894bu
/* Those of them that ask for what an interface is called, its addresses and settings. */
#define UAPI_SIOCGIFNAME    0x8910u
#define UAPI_SIOCGIFCONF    0x8912u
#define UAPI_SIOCGIFFLAGS   0x8913u
#define UAPI_SIOCGIFADDR    0x8915u
#define UAPI_SIOCGIFDSTADDR 0x8917u
#define UAPI_SIOCGIFBRDADDR 0x8919u
#define UAPI_SIOCGIFNETMASK 0x891bu
#define UAPI_SIOCGIFMETRIC  0x891du
#define UAPI_SIOCGIFMTU	    0x8921u
#define UAPI_SIOCGIFHWADDR  0x8927u
#define UAPI_SIOCGIFINDEX   0x8933u
#define UAPI_SIOCGIFTXQLEN  0x8942u
#define UAPI_SIOCGIFMAP	    0x8970u
/* ioctl_console(2): KIOCSOUND, KDSETMODE and so on; VT_OPENQRY to VT_SETACTIVATE. */
#define UAPI_KD_FIRST  0x4b30u
#define UAPI_KD_LAST   0x4bffu
#define UAPI_TIOCEXCL  0x540cu
#define UAPI_VT_FIRST  0x5600u
#define UAPI_VT_LAST   0x56ffu
#define UAPI_TIOCLINUX 0x541cu
#define UAPI_TIOCSETD  0x5423u
#define UAPI_TIOCSTI   0x5412u

/* ---- Landlock ---- */

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14) /* ABI 3 */
#endif
#ifndef LANDLOCK_ACCESS_FS_RESOLVE_UNIX
#define LANDLOCK_ACCESS_FS_RESOLVE_UNIX (1ULL << 16) /* ABI 9 */
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15) /* ABI 5 */
#endif
#ifndef LANDLOCK_ACCESS_NET_BIND_TCP
#define LANDLOCK_ACCESS_NET_BIND_TCP (1ULL << 0) /* ABI 4 */
#endif
#ifndef LANDLOCK_ACCESS_NET_CONNECT_TCP
#define LANDLOCK_ACCESS_NET_CONNECT_TCP (1ULL << 1) /* ABI 4 */
#endif
#ifndef LANDLOCK_CREATE_RULESET_ERRATA
#define LANDLOCK_CREATE_RULESET_ERRATA (1U << 1) /* ABI 7 */
#endif
#ifndef LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF
#define LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF  (1U << 0) /* ABI 7 */
#define LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON	  (1U << 1)
#define LANDLOCK_RESTRICT_SELF_LOG_SUBDOMAINS_OFF (1U << 2)
#endif
#define UAPI_LANDLOCK_MAX_LAYERS    16 /* landlock(7): layers that one task can stack */
#define UAPI_LANDLOCK_RULE_NET_PORT 2  /* ABI 4; an enumerator in newer headers */
#ifndef LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
#define LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0) /* ABI 6 */
#endif
#ifndef LANDLOCK_SCOPE_SIGNAL
#define LANDLOCK_SCOPE_SIGNAL (1ULL << 1) /* ABI 6 */
#endif

/* struct landlock_ruleset_attr as of ABI 6; older kernels take a shorter size. */
struct uapi_landlock_ruleset_attr {
	__u64 handled_access_fs;
	__u64 handled_access_net;
	__u64 scoped;
};

struct uapi_landlock_net_port_attr {
	__u64 allowed_access;
	__u64 port;
};

/* ---- pidfd ---- */

#ifndef PIDFD_NONBLOCK
#define PIDFD_NONBLOCK 04000
#endif
#ifndef PIDFD_SIGNAL_THREAD
#define PIDFD_SIGNAL_THREAD	   (1U << 0) /* 6.9 */
#define PIDFD_SIGNAL_THREAD_GROUP  (1U << 1)
#define PIDFD_SIGNAL_PROCESS_GROUP (1U << 2)
#endif
#ifndef PIDFD_THREAD
#define PIDFD_THREAD 0200 /* O_EXCL; 6.9 */
#endif

/* ---- prctl ---- */

#define UAPI_PR_OPTION_LAST 79 /* the newest plain option number: PR_RSEQ_SLICE_EXTENSION */
#ifndef PR_FUTEX_HASH
#define PR_FUTEX_HASH 78 /* 6.16 */
#endif
#ifndef PR_GET_AUXV
#define PR_GET_AUXV 0x41555856 /* 6.4 */
#endif
#ifndef PR_GET_MEMORY_MERGE
#define PR_GET_MEMORY_MERGE 68 /* 6.4 */
#endif
#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65 /* 6.3 */
#endif
#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67 /* 6.4 */
#endif

/* ---- seccomp ---- */

#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1) /* 5.14 */
#endif
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5) /* 5.19 */
#endif
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64) /* 6.6 */
#endif
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0) /* 6.7 */
#endif

/* ---- sockets: what the filter tells apart ---- */

#define UAPI_AF_INET		  2
#define UAPI_AF_INET6		  10
#define UAPI_AF_UNIX		  1
#define UAPI_AF_NETLINK		  16
#define UAPI_NETLINK_ROUTE	  0
#define UAPI_SOL_SOCKET		  1
#define UAPI_SO_LINGER		  13
#define UAPI_SOL_NETLINK	  270
#define UAPI_SOCKADDR_NL_SIZE	  12
#define UAPI_MSG_DONTWAIT	  0x40
#define UAPI_IPPROTO_TCP	  6
#define UAPI_IPPROTO_IP		  0
#define UAPI_IPPROTO_ICMP	  1
#define UAPI_IPPROTO_UDP	  17
#define UAPI_IPPROTO_IPV6	  41
#define UAPI_IPPROTO_ICMPV6	  58
#define UAPI_IP_OPTIONS		  4
#define UAPI_IP_RETOPTS		  7 /* ancillary */
#define UAPI_IPV6_2292RTHDR	  5 /* ancillary */
#define UAPI_IPV6_2292PKTOPTIONS  6
#define UAPI_IPV6_FLOWINFO	  11 /* ancillary */
#define UAPI_IPV6_FLOWLABEL_MGR	  32
#define UAPI_IPV6_RTHDR		  57
#define UAPI_MSG_FASTOPEN	  0x20000000u
#define UAPI_SOCK_DCCP		  6
#define UAPI_SOCK_DGRAM		  2
#define UAPI_SOCK_PACKET	  10
#define UAPI_SOCK_RAW		  3
#define UAPI_SOCK_SEQPACKET	  5
#define UAPI_SOCK_STREAM	  1
#define UAPI_SOCK_TYPE_MASK	  0xfu
#define UAPI_TCP_FASTOPEN_CONNECT 30
#define UAPI_TCP_ULP		  31

/* ---- system call numbers newer than the headers (one list for all 64-bit architectures) ---- */

#ifndef __NR_cachestat
#define __NR_cachestat 451
#endif
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif
#ifndef __NR_file_getattr
#define __NR_file_getattr 468
#endif
#ifndef __NR_file_setattr
#define __NR_file_setattr 469
#endif
#ifndef __NR_listmount
#define __NR_listmount 458
#endif
#ifndef __NR_mseal
#define __NR_mseal 462
#endif
#ifndef __NR_open_tree_attr
#define __NR_open_tree_attr 467
#endif
#ifndef __NR_removexattrat
#define __NR_removexattrat 466
#endif
#ifndef __NR_setxattrat
#define __NR_setxattrat 463
#endif
#ifndef __NR_statmount
#define __NR_statmount 457
#endif
