# SPDX-License-Identifier: Apache-2.0
"""The process that attacks aim at: it owns a piece of memory, descriptors, a terminal, sockets of
every kind and shared objects, tells what they are in one JSON line, and serves until its standard
input ends.

Usage: victim.py DIRECTORY
"""

import ctypes
import json
import os
import selectors
import signal
import socket
import sys

IPC_CREAT = 0o1000
IPC_RMID = 0


def listen(family, kind, address):
    s = socket.socket(family, kind)
    s.bind(address)
    if kind != socket.SOCK_DGRAM:
        s.listen(512)
    s.setblocking(False)
    return s


def serve(sel, s):
    try:
        if s.type == socket.SOCK_DGRAM:
            s.recv(65536)
        else:
            s.accept()[0].close()
    except OSError:
        pass


def main():
    top = sys.argv[1]
    signals = os.open(os.path.join(top, "signals"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    signal.signal(signal.SIGUSR1, lambda *_: os.write(signals, b"x"))
    libc = ctypes.CDLL(None, use_errno=True)
    librt = ctypes.CDLL("librt.so.1", use_errno=True)
    memory = ctypes.create_string_buffer(b"VICTIM!", 8192)
    secret = os.open(os.path.join(top, "secret"), os.O_RDWR | os.O_CREAT, 0o600)
    os.write(secret, b"the secret of the victim\n")
    master, slave = os.openpty()
    key = 0x5A000000 | os.getpid() & 0xFFFFFF
    shm = libc.shmget(key, 4096, IPC_CREAT | 0o600)
    sem = libc.semget(key, 1, IPC_CREAT | 0o600)
    msg = libc.msgget(key, IPC_CREAT | 0o600)
    name = f"/sandlock-victim-{os.getpid()}"
    mq = librt.mq_open(name.encode(), os.O_RDWR | os.O_CREAT, 0o600, None)
    shm_path = "/dev/shm" + name
    with open(shm_path, "w") as f:
        f.write("shared")
    os.chmod(shm_path, 0o600)
    tcp = listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
    tcp6 = listen(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0))
    udp = listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
    names = {k: os.path.join(top, k) for k in ("stream", "dgram", "seqpacket")}
    socks = [
        tcp, tcp6, udp,
        listen(socket.AF_UNIX, socket.SOCK_STREAM, names["stream"]),
        listen(socket.AF_UNIX, socket.SOCK_DGRAM, names["dgram"]),
        listen(socket.AF_UNIX, socket.SOCK_SEQPACKET, names["seqpacket"]),
        listen(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + name[1:]),
        listen(socket.AF_UNIX, socket.SOCK_DGRAM, "\0" + name[1:]),
    ]
    print(json.dumps({
        "pid": os.getpid(), "addr": ctypes.addressof(memory), "vfd": secret,
        "tty": os.ttyname(slave), "ttyfd": slave, "key": key, "shmid": shm, "mq": name,
        "shm": name, "port": tcp.getsockname()[1], "port6": tcp6.getsockname()[1],
        "udp": udp.getsockname()[1], "abstract": "@" + name[1:],
        **{"sock_" + k: v for k, v in names.items()},
    }), flush=True)
    sel = selectors.DefaultSelector()
    for s in socks:
        sel.register(s, selectors.EVENT_READ, "socket")
    sel.register(sys.stdin, selectors.EVENT_READ, "end")
    running = True
    while running:
        for found, _ in sel.select():
            if found.data == "end":
                running = False
            else:
                serve(sel, found.fileobj)
    libc.shmctl(shm, IPC_RMID, None)
    libc.semctl(sem, 0, IPC_RMID)
    libc.msgctl(msg, IPC_RMID, None)
    librt.mq_unlink(name.encode())
    librt.mq_close(mq)
    os.unlink(shm_path)
    os.close(master)


main()
