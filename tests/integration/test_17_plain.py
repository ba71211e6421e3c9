# SPDX-License-Identifier: Apache-2.0
"""Issue 4, point 6: /proc, terminals, /dev/shm and the tuning of processes, with the base and
without it. The sandbox sees its own; what belongs to others, the same user's too, is not there."""

import os
import re
import subprocess
import textwrap

import pytest

import harness
from checks import ok, python, script

BOTH = pytest.mark.parametrize("mode", harness.SUPERVISED)

HEAD = textwrap.dedent("""
    import errno, os, sys
    def read(path, flags=os.O_RDONLY, **kw):
        try:
            fd = os.open(path, flags, **kw)
        except OSError as e:
            return errno.errorcode[e.errno]
        try:
            return os.read(fd, 4096).decode(errors="replace")
        except OSError as e:
            return "read " + errno.errorcode[e.errno]
        finally:
            os.close(fd)
    def attempt(f, *args, **kw):
        try:
            return f(*args, **kw)
        except OSError as e:
            return errno.errorcode[e.errno]
    def numbers(where):
        return sorted(int(n) for n in os.listdir(where) if n.isdigit())
    me = os.getpid()
""")


@pytest.fixture
def bystander():
    """A process of the same user outside of the sandbox."""
    with harness.Running(["/usr/bin/sleep", "600"]) as running:
        yield running


@pytest.fixture
def place():
    p = harness.Place()
    yield p
    p.remove()


def lines_of(mode, text, flags=(), **kw):
    return ok(python(list(flags), HEAD + textwrap.dedent(text), mode=mode, **kw)).lines


def check_all(mode, text, flags=(), **kw):
    """Every line that TEXT prints ends in True."""
    lines = lines_of(mode, text, flags, **kw)
    assert lines
    assert [line for line in lines if "False" in line or not line.endswith("True")] == []


# --- /proc: opening ----------------------------------------------------------------------------


@BOTH
def test_own_processes_can_be_read(mode):
    check_all(mode, """
        for path in ["/proc/self/comm", "/proc/thread-self/comm", f"/proc/{me}/comm",
                     f"/proc/self/task/{me}/comm", "/proc/self/root/proc/self/comm",
                     f"/proc/{me}/root/proc/{me}/comm"]:
            print(path, read(path) == "python3\\n")
        print("environ", "PATH=" in read("/proc/self/environ"))
        print("maps", "python3" in read("/proc/self/maps"))
        print("stat", read("/proc/self/stat").split()[0] == str(me))
        pid = os.fork()
        if pid == 0:
            os.execv("/usr/bin/sleep", ["sleep", "60"])
        import time
        while read(f"/proc/{pid}/comm") != "sleep\\n":
            time.sleep(0.01)
        print("child", read(f"/proc/{pid}/cmdline") == "sleep\\0" + "60\\0")
        print("child's environ", "PATH=" in read(f"/proc/{pid}/environ"))
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        print("gone", read(f"/proc/{pid}/comm") == "ENOENT")
    """)


@BOTH
def test_each_process_has_its_own_self(mode):
    """B8: a grant for /proc/self/maps is not about the process that was first."""
    result = ok(script(["-r", "/proc/self/maps"], "cat /proc/self/comm; "
                       "python3 -c 'print(open(\"/proc/self/comm\").read(), end=\"\")'; "
                       "grep -c cat /proc/self/maps; (head -c 0 /proc/self/maps && echo yes)",
                       mode=mode))
    assert result.lines == ["cat", "python3", "0", "yes"]


@BOTH
def test_threads_have_their_own_self(mode):
    check_all(mode, """
        import threading
        def look():
            tid = threading.get_native_id()
            print(read("/proc/thread-self/stat").split()[0] == str(tid))
            print(read("/proc/self/stat").split()[0] == str(me))
            print(sorted(map(int, os.listdir("/proc/self/task"))) == sorted([me, tid]))
        t = threading.Thread(target=look)
        t.start()
        t.join()
    """)


@BOTH
def test_foreign_processes_are_absent(mode, bystander):
    pid = bystander.pid
    check_all(mode, f"""
        for name in ["", "/stat", "/status", "/cmdline", "/comm", "/environ", "/maps", "/mem", "/fd",
                     "/task", "/task/{pid}/stat", "/io", "/net/tcp"]:
            print(name, read("/proc/{pid}" + name) in ["ENOENT"])
            print(name, read("/proc/self/root/proc/{pid}" + name) == "ENOENT")
            for odd in ["/proc/./{pid}", "/proc//{pid}", "//proc/{pid}/.", "/proc/self/../{pid}",
                        "/./proc/{pid}", "/dev/../proc/{pid}", "/proc/sys/../{pid}"]:
                print(odd, name, read(odd + name) == "ENOENT")
        for name in ["/exe", "/cwd", "/root", "/fd/0", "/root/etc/passwd", "/ns/mnt"]:
            print(name, read("/proc/{pid}" + name) in ["ENOENT", "EACCES"])
        print("guardian", read(f"/proc/{{os.getppid()}}/status") == "ENOENT")
        print("1", read("/proc/1/status") == "ENOENT")
        print("list", {pid} not in numbers("/proc"))
        print("write", read("/proc/{pid}/comm", os.O_WRONLY) in ["ENOENT", "EACCES"])
    """)


@BOTH
def test_by_way_of_links(mode, bystander, place):
    d = place.dir("d")
    check_all(mode, f"""
        os.chdir("{d}")
        for name, text in [("a", "/proc/self/comm"), ("b", "/proc"), ("c", "/proc/self"),
                           ("d", "b/self"), ("e", "/proc/{bystander.pid}/comm"),
                           ("f", "/proc/self/fd"), ("g", "/proc/{bystander.pid}")]:
            os.symlink(text, name)
        print(read("a") == "python3\\n", read("b/self/comm") == "python3\\n")
        print(read("c/comm") == "python3\\n", read("d/comm") == "python3\\n")
        print(read("b/self/root{d}/a") == "python3\\n")
        print(read("e") == "ENOENT", read("b/{bystander.pid}/comm") == "ENOENT")
        print(read("g/comm") == "ENOENT", read("{d}/g/cmdline") == "ENOENT")
        print(numbers("b") == [me])
        r, w = os.pipe()
        os.write(w, b"x")
        print(read(f"f/{{r}}") == "x")
    """, ["-w", d])


@BOTH
def test_relative_to_descriptors(mode, bystander):
    check_all(mode, f"""
        fd = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
        print("names", numbers(fd) == [me] == numbers("/proc"))
        print("self", read("self/comm", dir_fd=fd) == "python3\\n")
        print("number", read(f"{{me}}/comm", dir_fd=fd) == "python3\\n")
        print("foreign", read("{bystander.pid}/comm", dir_fd=fd) == "ENOENT")
        print("foreign dir", read("{bystander.pid}", dir_fd=fd) == "ENOENT")
        print("again", numbers(os.open(".", os.O_RDONLY, dir_fd=fd)) == [me])
        os.fchdir(fd)
        print("cwd", read("self/comm") == "python3\\n", read(f"{{me}}/comm") == "python3\\n")
        print("cwd foreign", read("{bystander.pid}/comm") == "ENOENT")
        print("list", numbers(".") == [me])
        print("out", read("../etc/passwd") == open("/etc/passwd").read(4096))
        own = os.open("/proc/self", os.O_RDONLY)
        print("up", numbers(os.open("..", os.O_RDONLY, dir_fd=own)) == [me])
        print("over", read("../{bystander.pid}/comm", dir_fd=own) == "ENOENT")
        os.chdir("/proc/self")
        print("in", read("comm") == "python3\\n", numbers("..") == [me])
        bare = os.open("/proc", os.O_PATH)
        print("bare", numbers(f"/proc/self/fd/{{bare}}") == [me])
        print("bare", read("{bystander.pid}/comm", dir_fd=bare) == "ENOENT")
    """)


@BOTH
def test_openat2_and_creat(mode, bystander):
    """The legacy call and the newest one are judged as the usual one is."""
    check_all(mode, f"""
        import ctypes, platform, struct
        libc = ctypes.CDLL(None, use_errno=True)
        def openat2(path, flags, resolve=0):
            how = struct.pack("QQQ", flags, 0, resolve)
            fd = libc.syscall(437, -100, path.encode(), how, ctypes.c_size_t(len(how)))
            return errno.errorcode[ctypes.get_errno()] if fd < 0 else os.read(fd, 100).decode()
        print(openat2("/proc/self/comm", 0) == "python3\\n")
        print(openat2("/proc/{bystander.pid}/comm", 0) == "ENOENT")
        print(openat2("/proc/self/comm", os.O_WRONLY) == "EACCES")
        print(openat2("/proc/self/comm", 0, 4) in ["ELOOP"]) # RESOLVE_NO_SYMLINKS
        if platform.machine() == "x86_64":
            def legacy(nr, path, flags=0):
                fd = libc.syscall(nr, path.encode(), flags, 0)
                return errno.errorcode[ctypes.get_errno()] if fd < 0 else os.read(fd, 100).decode()
            print(legacy(2, "/proc/self/comm") == "python3\\n")
            print(legacy(2, "/proc/{bystander.pid}/comm") == "ENOENT")
            print(legacy(85, "/proc/self/comm", 0o644) == "EACCES")
    """)


@BOTH
def test_nothing_is_written(mode):
    check_all(mode, """
        for path in ["/proc/self/comm", "/proc/self/oom_score_adj", "/proc/self/attr/current",
                     f"/proc/{me}/mem"]:
            for flags in [os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC]:
                print(path, flags, read(path, flags) == "EACCES")
        for path in ["/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern"]:
            print(path, read(path, os.O_WRONLY) in ["EACCES", "EROFS", "ENOENT"])
        print(read("/proc/new", os.O_WRONLY | os.O_CREAT) in ["EACCES", "ENOENT"])
    """)


@BOTH
def test_the_machines_files(mode):
    check_all(mode, """
        for name in ["uptime", "meminfo", "cpuinfo", "stat", "loadavg", "version", "filesystems",
                     "sys/kernel/pid_max", "sys/vm/overcommit_memory", "net/unix", "mounts",
                     "self/mountinfo", "cmdline", "self/net/tcp"]:
            print(name, len(read("/proc/" + name)) > 10 or read("/proc/" + name) [:1].isdigit())
        print("mtab", "/proc" in read("/etc/mtab"))
        print("absent", read("/proc/nosuch") == "ENOENT", read("/proc/self/nosuch") == "ENOENT")
        print("no dir", read("/proc/self/comm/x") == "ENOTDIR")
        print("flag", read("/proc/self/comm", os.O_DIRECTORY) == "ENOTDIR")
        print("link", read("/proc/self", os.O_NOFOLLOW) == "ELOOP")
        print("dir", read("/proc/self") == "read EISDIR")
    """)


@BOTH
def test_inherited_descriptors_can_be_opened_again(mode, place):
    f = place.file("f", "content")
    text = """
        for path in ["/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"]:
            print(read(path))
    """
    with open(f, encoding="ascii") as stdin:
        assert lines_of(mode, text, stdin=stdin) == ["EACCES"] * 3
    with open(f, encoding="ascii") as stdin:
        assert lines_of(mode, text, ["-r", f], stdin=stdin) == ["content"] * 3
    # Through a pipe, which has no name that a grant could cover.
    result = ok(script([], "echo x | cat /dev/stdin; cat /proc/self/fd/3 3<<E\ny\nE\n", mode=mode))
    assert result.lines[0] == "x"


@BOTH
def test_closed_on_exec_as_asked(mode):
    check_all(mode, """
        import fcntl
        fd = os.open("/proc/self/comm", os.O_RDONLY)  # Python asks for it
        print(fcntl.fcntl(fd, fcntl.F_GETFD) == 1)
        import ctypes
        fd = ctypes.CDLL(None).open(b"/proc/self/comm", 0)
        print(fcntl.fcntl(fd, fcntl.F_GETFD) == 0)
        fd = ctypes.CDLL(None).open(b"/proc/uptime", os.O_NONBLOCK)
        print(bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK))
    """)


# --- /proc: links ------------------------------------------------------------------------------


@BOTH
def test_links_can_be_read(mode, bystander):
    check_all(mode, f"""
        print(os.readlink("/proc/self") == str(me))
        print(os.readlink("/proc/thread-self") == f"{{me}}/task/{{me}}")
        print("python" in os.readlink("/proc/self/exe"), os.readlink("/proc/self/cwd") == "/")
        r, w = os.pipe()
        print(os.readlink(f"/proc/self/fd/{{r}}").startswith("pipe:"))
        for name in ["exe", "cwd", "root", "fd/0", "ns/pid"]:
            print(name, attempt(os.readlink, "/proc/{bystander.pid}/" + name) in ["ENOENT", "EACCES"])
    """)


# --- Programs ----------------------------------------------------------------------------------


@BOTH
def test_programs_see_their_own_tree(mode, bystander):
    """B37."""
    result = ok(script([], """
        sleep 61.25 & p=$!
        ps -e -o comm= | grep -c sleep
        pgrep -x sleep | grep -cx $p
        pgrep -x sleep | wc -l
        cat /proc/$p/status | head -1
        top -b -n1 | grep -c 'sleep$'
        ps -p $p -o comm=
        pstree -A $$ | grep -c sleep
        kill $p
    """, mode=mode))
    assert result.lines == ["1", "1", "1", "Name:\tsleep", "1", "sleep", "1"]


@BOTH
def test_grandchildren_and_orphans_are_own(mode):
    result = ok(script([], """
        setsid sh -c 'sleep 62.5 & :'
        for i in $(seq 100); do pgrep -x sleep > /dev/null && break; sleep 0.05; done
        pgrep -x -c sleep
        pkill -x sleep
    """, mode=mode))
    assert result.lines == ["1"]


# --- Terminals ---------------------------------------------------------------------------------


@BOTH
def test_own_terminals(mode):
    check_all(mode, """
        import pty, termios
        master, slave = pty.openpty()
        name = os.ttyname(slave)
        fd = os.open(name, os.O_RDWR | os.O_NOCTTY)
        print("opened", os.isatty(fd))
        print("listed", name[len("/dev/pts/"):] in os.listdir("/dev/pts"))
        print("size", os.get_terminal_size(fd) == os.terminal_size((0, 0)))
        os.write(master, b"line\\n")
        print("talks", os.read(fd, 100) == b"line\\n")
        pid = os.fork()
        if pid == 0:
            os.setsid()
            again = os.open(name, os.O_RDWR | os.O_NOCTTY) # the parent holds the master
            os._exit(0)
        print("child", os.waitpid(pid, 0)[1] == 0)
    """)


@BOTH
def test_foreign_terminals_are_absent(mode):
    terminal = harness.Terminal()
    try:
        number = terminal.name[len("/dev/pts/"):]
        check_all(mode, f"""
            import pty
            print(read("/dev/pts/{number}", os.O_RDWR | os.O_NOCTTY) == "ENOENT")
            print(os.listdir("/dev/pts") == ["ptmx"])
            held = []
            # Its number is not reached by terminals of the sandbox's own.
            held.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
            print(len(os.listdir("/dev/pts")) == 2)
        """)
    finally:
        terminal.close()


@BOTH
def test_programs_with_terminals(mode):
    result = ok(script([], "script -qec 'test -t 0 && tty && echo inside' /dev/null < /dev/null",
                       mode=mode))
    assert re.fullmatch(r"/dev/pts/\d+\s+inside\s+", result.out), result.out
    result = ok(python([], "import pty; pty.spawn(['/bin/sh', '-c', 'tty; ps > /dev/null'])",
                       mode=mode))
    assert re.fullmatch(r"/dev/pts/\d+\s*", result.out), result.out


# --- /dev/shm ----------------------------------------------------------------------------------


@BOTH
def test_shared_memory(mode):
    check_all(mode, """
        import multiprocessing
        from multiprocessing import shared_memory
        name = "sandlock-test-own"
        memory = shared_memory.SharedMemory(create=True, size=4096, name=name)
        print(os.listdir("/dev/shm") == [name])
        pid = os.fork()
        if pid == 0:
            other = shared_memory.SharedMemory(name=name)
            other.buf[0] = 42
            os._exit(0)
        os.waitpid(pid, 0)
        print(memory.buf[0] == 42)
        memory.close()
        memory.unlink()
        print(os.listdir("/dev/shm") == [])
        lock = multiprocessing.Lock()
        print(lock.acquire() and lock.release() is None)
    """)


@BOTH
def test_named_semaphores(mode):
    """They are made under another name, then linked."""
    check_all(mode, """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        libc.sem_open.restype = ctypes.c_void_p
        def sem_open(flags):
            return libc.sem_open(b"/own", flags, 0o600, 1)
        s = sem_open(os.O_CREAT | os.O_EXCL)
        print(bool(s), os.listdir("/dev/shm") == ["sem.own"])
        print(sem_open(os.O_CREAT | os.O_EXCL) is None, ctypes.get_errno() == errno.EEXIST)
        print(bool(sem_open(0)))
        print(libc.sem_unlink(b"/own") == 0, os.listdir("/dev/shm") == [])
    """)


@BOTH
def test_names_in_shared_memory(mode):
    check_all(mode, """
        os.umask(0o027)
        with open("/dev/shm/a", "w") as f:
            print(oct(os.fstat(f.fileno()).st_mode) == "0o100640")
            f.write("text")
        os.rename("/dev/shm/a", "/dev/shm/b")
        os.link("/dev/shm/b", "/dev/shm/c")
        os.mkdir("/dev/shm/d")
        print(sorted(os.listdir("/dev/shm")) == ["b", "c", "d"])
        print(attempt(os.open, "/dev/shm/a", os.O_RDONLY) == "ENOENT")
        print(attempt(os.open, "/dev/shm/b", os.O_CREAT | os.O_EXCL) == "EEXIST")
        print(attempt(os.open, "/dev/shm/d", os.O_WRONLY) == "EISDIR")
        print(attempt(os.rmdir, "/dev/shm/b") == "ENOTDIR")
        print(attempt(os.unlink, "/dev/shm/nosuch") == "ENOENT")
        os.chdir("/dev/shm")
        print(open("b").read() == "text", sorted(os.listdir(".")) == ["b", "c", "d"])
        open("d/f", "w").close()
        print(attempt(os.rmdir, "/dev/shm/d") == "ENOTEMPTY")
        os.unlink("d/f")
        os.rmdir("d")
        os.unlink("b")
        os.unlink("c")
        print(os.listdir(".") == [])
    """)


@BOTH
def test_shared_memory_of_others(mode, place):
    """The host's objects, and those of another sandbox that runs meanwhile."""
    name = f"sandlock-test-{os.getpid()}"
    path = f"/dev/shm/{name}"
    d = place.dir("d")
    with open(path, "w", encoding="ascii") as f:
        f.write("host's")
    try:
        os.chmod(path, 0o666)
        other = harness.MODES[mode].command(
            ["-w", d], [harness.PYTHON, "-c", "import time; open('/dev/shm/other', 'w').close(); "
                        f"open('{d}/ready', 'w').close(); time.sleep(600)"])
        with harness.Running(other):
            harness.wait_until(lambda: (d / "ready").exists(), what="the other sandbox")
            assert not os.path.exists("/dev/shm/other")
            check_all(mode, f"""
                print(read("{path}") == "ENOENT", read("/dev/shm/other") == "ENOENT")
                print(os.listdir("/dev/shm") == [])
                print(attempt(os.unlink, "{path}") == "ENOENT")
                open("{path}", "w").write("ours")
                print(read("{path}") == "ours")
                os.unlink("{path}")
            """)
        with open(path, encoding="ascii") as f:
            assert f.read() == "host's"
    finally:
        os.unlink(path)


@BOTH
def test_no_way_out_of_shared_memory(mode, place):
    """Links made there lead nowhere else than the sandbox itself could go."""
    secret = place.file("secret", "secret")
    check_all(mode, f"""
        os.symlink("{place.top}", "/dev/shm/d")
        os.symlink("{secret}", "/dev/shm/l")
        print(read("/dev/shm/l") == "EACCES", read("/dev/shm/d/secret") == "EACCES")
        print(read("/dev/shm/l", os.O_WRONLY) in ["EACCES", "EROFS"])
        print(attempt(os.unlink, "/dev/shm/d/secret") in ["EACCES", "EROFS"])
        print(attempt(os.mkdir, "/dev/shm/d/new") in ["EACCES", "EROFS"])
        print(attempt(os.rename, "/dev/shm/d/secret", "/dev/shm/x") in ["EACCES", "EXDEV", "EROFS"])
        os.mkfifo("/dev/shm/fifo") if "{mode}" == "base" else None
        print(read("/dev/shm/../..{secret}") in ["EACCES"])
    """)
    assert secret.read_text() == "secret"


def remaining():
    return [n for n in os.listdir("/dev/shm") + os.listdir("/tmp") if n.endswith("-box")
            and os.stat(f"/dev/shm/{n}" if os.path.exists(f"/dev/shm/{n}") else f"/tmp/{n}").st_uid
            in harness.OURS]


def test_nothing_stays_behind():
    """Neither after the end nor after the command and its supervisor were killed."""
    text = "open('/dev/shm/a', 'w'); import os; os.mkdir('/dev/shm/d'); os.listdir('/proc')"
    ok(python([], text, mode="nobase"))
    assert remaining() == []
    words = harness.MODES["nobase"].command([], [harness.PYTHON, "-c", text +
                                                 "; import time; print('x', flush=True); time.sleep(600)"])
    with harness.Running(words) as running:
        assert running.proc.stdout.read(1) == b"x"
        assert len(remaining()) == 1
        running.proc.kill()
        running.proc.wait()
        assert harness.gone_within(running.tag) == []
    harness.wait_until(lambda: remaining() == [], what="the end of its directory")


# --- Tuning ------------------------------------------------------------------------------------


@BOTH
def test_own_processes_can_be_tuned(mode):
    check_all(mode, """
        import resource
        pid = os.fork()
        if pid == 0:
            os.execv("/usr/bin/sleep", ["sleep", "60"])
        print(resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0)) is not None)
        print(resource.prlimit(pid, resource.RLIMIT_CORE) == (0, 0))
        print(attempt(resource.prlimit, pid, resource.RLIMIT_NOFILE, (64, 128)) is not None)
        print(resource.prlimit(pid, resource.RLIMIT_NOFILE) == (64, 128))
        try:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (64, 256))
        except PermissionError:
            print("not raised", True)
        print(attempt(os.setpriority, os.PRIO_PROCESS, pid, 5) is None)
        print(os.getpriority(os.PRIO_PROCESS, pid) == 5)
        print(attempt(os.setpriority, os.PRIO_PROCESS, pid, 1) == "EACCES")
        cpu = min(os.sched_getaffinity(0))
        print(attempt(os.sched_setaffinity, pid, {cpu}) is None)
        print(os.sched_getaffinity(pid) == {cpu})
        print(attempt(os.sched_setscheduler, pid, os.SCHED_BATCH, os.sched_param(0)) is None)
        print(os.sched_getscheduler(pid) == os.SCHED_BATCH)
        print(attempt(os.sched_setscheduler, pid, os.SCHED_FIFO, os.sched_param(1)) == "EPERM")
        os.kill(pid, 9)
    """)


@BOTH
def test_foreign_processes_cannot_be_tuned(mode, bystander):
    pid = bystander.pid
    check_all(mode, f"""
        import ctypes, resource
        libc = ctypes.CDLL(None, use_errno=True)
        def call(nr, *args):
            return errno.errorcode[ctypes.get_errno()] if libc.syscall(nr, *args) < 0 else "done"
        try:
            resource.prlimit({pid}, resource.RLIMIT_NOFILE, (10, 10))
        except ProcessLookupError:
            print("absent", True)
        print(attempt(os.setpriority, os.PRIO_PROCESS, {pid}, 5) == "ESRCH")
        print(attempt(os.sched_setaffinity, {pid}, {{0}}) == "ESRCH")
        print(attempt(os.sched_setscheduler, {pid}, os.SCHED_BATCH, os.sched_param(0)) == "ESRCH")
        print(attempt(os.sched_setparam, {pid}, os.sched_param(0)) == "ESRCH")
    """)
    assert os.getpriority(os.PRIO_PROCESS, pid) == 0
    assert os.sched_getscheduler(pid) == os.SCHED_OTHER


def test_groups_are_not_tuned():
    """They may reach the host's processes, which have the same user."""
    check_all("nobase", """
        print(attempt(os.setpriority, os.PRIO_PGRP, 0, 5) == "EPERM")
        print(attempt(os.setpriority, os.PRIO_USER, 0, 5) == "EPERM")
    """)


# --- Races -------------------------------------------------------------------------------------


@BOTH
def test_a_path_that_changes(mode, bystander, place):
    """What a path is made to mean behind the judge's back stays the kernel's to refuse."""
    d = place.dir("d")
    check_all(mode, f"""
        import threading, time
        os.chdir("{d}")
        os.symlink("/proc/self/cmdline", "a")
        os.symlink("/proc/{bystander.pid}/cmdline", "b")
        over = time.monotonic() + 2
        def flip():
            while time.monotonic() < over:
                os.symlink("/proc/self/cmdline", "n"); os.rename("n", "l")
                os.symlink("/proc/{bystander.pid}/cmdline", "n"); os.rename("n", "l")
        os.symlink("a", "l")
        t = threading.Thread(target=flip)
        t.start()
        seen = set()
        while time.monotonic() < over:
            seen.add("sleep" if "sleep\\0" in read("l") else "other")
        t.join()
        print(seen == {{"other"}})
    """, ["-w", d])


@BOTH
def test_many_at_once(mode):
    """No open fails because the workers have much to do."""
    result = ok(script([], """
        for i in $(seq 60); do (ps -e > /dev/null && cat /proc/uptime > /dev/null || echo bad) & done
        wait
        echo done
    """, mode=mode))
    assert result.lines == ["done"]


def test_control_outside():
    """The attacks above find something where there is no sandbox."""
    with harness.Running(["/usr/bin/sleep", "600"]) as bystander:
        out = subprocess.run(["/bin/sh", "-c", f"tr '\\0' ' ' < /proc/{bystander.pid}/cmdline"],
                             capture_output=True, check=True)
        assert out.stdout == b"/usr/bin/sleep 600 "
