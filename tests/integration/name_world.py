# SPDX-License-Identifier: Apache-2.0
"""A small world for tests of names: run as root, in a network and a mount namespace of its own.

    name_world.py SPEC.json COMMAND...

SPEC: "user" (uid to run COMMAND as), "addresses" (added to the loopback interface), "resolv" and
"hosts" (texts of the files in /etc), "servers" (addresses that answer port 53, by default one),
"zone" (what they say), "echo" (ADDRESS:PORT where TCP connections are answered with that text),
"log" (a file that gets one line per question: NAME TYPE PROTOCOL).

A zone maps a name to a list of [TYPE, VALUE, TTL], or to a word for what is wrong with the server:
see `misbehave`. {"turns": [LIST, LIST…]} answers each question in turn, the last one for ever.
"""

import ctypes
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

A, CNAME, TXT, AAAA, HTTPS = 1, 5, 16, 28, 65
TYPES = {"A": A, "CNAME": CNAME, "TXT": TXT, "AAAA": AAAA, "HTTPS": HTTPS}
CLONE_NEWNS, CLONE_NEWNET, MS_REC, MS_PRIVATE, MS_BIND = 0x20000, 0x40000000, 0x4000, 0x40000, 0x1000
LIBC = ctypes.CDLL(None, use_errno=True)


def check(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


# --- Messages --------------------------------------------------------------------------------


def wire(name):
    return b"".join(bytes([len(p)]) + p.encode() for p in name.split(".") if p) + b"\0"


def read_question(data):
    labels, at = [], 12
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]].decode("latin-1"))
        at += 1 + data[at]
    kind, = struct.unpack(">H", data[at + 1:at + 3])
    return ".".join(labels).lower(), kind, data[12:at + 5]


def record(owner, kind, value, ttl):
    if kind == A:
        data = socket.inet_pton(socket.AF_INET, value)
    elif kind == AAAA:
        data = socket.inet_pton(socket.AF_INET6, value)
    elif kind == CNAME:
        data = wire(value)
    else:
        data = bytes([len(value)]) + value.encode()
    return wire(owner) + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


def message(query, question, records=(), rcode=0, flags=0x8180):
    ident, = struct.unpack(">H", query[:2])
    return struct.pack(">6H", ident, flags | rcode, 1, len(records), 0, 0) + question + b"".join(records)


class Zone:
    def __init__(self, names):
        self.names = names
        self.asked = {}
        self.lock = threading.Lock()

    def find(self, name):
        entry = self.names.get(name)
        if entry is None:
            parent = name.partition(".")[2]
            entry = self.names.get("*." + parent)
        if isinstance(entry, dict):
            with self.lock:
                n = self.asked[name] = self.asked.get(name, -1) + 1
            turns = entry["turns"]
            entry = turns[min(n, len(turns) - 1)]
        return entry

    def records(self, name, kind):
        """What a recursive server answers: the aliases on the way, and what is at their end."""
        out = []
        for _ in range(16):
            entry = self.find(name)
            if not isinstance(entry, list):
                break
            out += [record(name, TYPES[t], v, ttl) for t, v, ttl in entry if TYPES[t] == kind]
            alias = [r for r in entry if r[0] == "CNAME"]
            if not alias or kind == CNAME:
                break
            out.append(record(name, CNAME, alias[0][1], alias[0][2]))
            name = alias[0][1]
        return out


def misbehave(word, query, question, stream):
    """The replies that a server with the fault WORD sends."""
    name, kind, _ = read_question(query)
    good = record(name, kind, "203.0.113.5" if kind == A else "2001:db8::5", 60)
    evil = record(name, kind, "203.0.113.66" if kind == A else "2001:db8::66", 60)
    answer = message(query, question, [good])
    if word == "drop":
        return []
    if word == "late":
        time.sleep(2.5)
        return [answer]
    if word == "servfail":
        return [message(query, question, rcode=2)]
    if word == "wrong-id":
        forged = message(query, question, [evil])
        return [bytes([forged[0] ^ 1]) + forged[1:], answer]
    if word == "wrong-question":
        other = wire("other.example") + struct.pack(">HH", kind, 1)
        return [message(query, other, [evil]), answer]
    if word == "wrong-owner":
        return [message(query, question, [record("other.example", kind, "203.0.113.66", 60)
                                          if kind == A else evil, good])]
    if word == "truncate":
        return [answer if stream else message(query, question, flags=0x8380)]
    if word == "loop":
        return [message(query, question, [record(name, CNAME, "b.example", 60),
                                          record("b.example", CNAME, name, 60)])]
    if word == "pointers":
        return [message(query, question, []) [:6] + b"\0\1\0\0\0\0" + question + b"\xc0\xff" * 20]
    if word == "junk":
        return [os.urandom(n) for n in (0, 1, 11, 12, 40, 600)] + [b"\xff" * 512, query, answer]
    if word == "only-junk":
        return [os.urandom(100) for _ in range(100)]
    if word == "huge":
        many = [record(name, kind, f"203.0.113.{i}", 60) for i in range(1, 200)] if kind == A else []
        return [message(query, question, many) if stream else message(query, question, flags=0x8380)]
    if word == "cut":
        return [answer[:-2]] if stream else [message(query, question, flags=0x8380)]
    raise ValueError(word)


class Server:
    def __init__(self, address, zone, log):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.zone, self.log = zone, log
        self.udp = socket.socket(family, socket.SOCK_DGRAM)
        self.udp.bind((address, 53))
        self.tcp = socket.socket(family, socket.SOCK_STREAM)
        self.tcp.bind((address, 53))
        self.tcp.listen(16)
        threading.Thread(target=self.serve_udp, daemon=True).start()
        threading.Thread(target=self.serve_tcp, daemon=True).start()

    def replies(self, query, stream):
        name, kind, question = read_question(query)
        word = next((w for w, k in TYPES.items() if k == kind), kind)
        self.log.write(f"{name} {word} {'tcp' if stream else 'udp'}\n")
        self.log.flush()
        entry = self.zone.find(name)
        if isinstance(entry, str):
            return misbehave(entry, query, question, stream)
        if entry is None:
            return [message(query, question, rcode=3)]
        if isinstance(self.zone.names.get(name), dict):
            records = [record(name, TYPES[t], v, ttl) for t, v, ttl in entry if TYPES[t] == kind]
        else:
            records = self.zone.records(name, kind)
        return [message(query, question, records)]

    def answer_udp(self, data, peer):
        for reply in self.replies(data, False):
            self.udp.sendto(reply, peer)

    def serve_udp(self):
        while True:
            data, peer = self.udp.recvfrom(65536)
            threading.Thread(target=self.answer_udp, args=(data, peer), daemon=True).start()

    def serve_tcp(self):
        while True:
            peer, _ = self.tcp.accept()
            threading.Thread(target=self.answer_tcp, args=(peer,), daemon=True).start()

    def answer_tcp(self, peer):
        with peer:
            size, = struct.unpack(">H", peer.recv(2))
            for reply in self.replies(peer.recv(size), True):
                peer.sendall(struct.pack(">H", len(reply)) + reply)


def echo(place):
    address, _, port = place.rpartition(":")
    address = address.strip("[]")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    s = socket.socket(family, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, int(port)))
    s.listen(64)
    body = f"{place}\n".encode()

    def serve():
        while True:
            peer, _ = s.accept()
            try:
                peer.settimeout(0.3)
                asked = b""
                try:
                    asked = peer.recv(4096)
                except TimeoutError:
                    pass
                head = b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
                peer.sendall(head + body if asked[:4] == b"GET " else body)
            except OSError:
                pass
            peer.close()

    threading.Thread(target=serve, daemon=True).start()


# --- The world -------------------------------------------------------------------------------


def mount_text(path, text):
    source = f"/dev/shm/world-{os.getpid()}-{os.path.basename(path)}"
    with open(source, "w") as f:
        f.write(text)
    os.chmod(source, 0o644)
    check(LIBC.mount(source.encode(), os.path.realpath(path).encode(), None, MS_BIND, None))
    os.unlink(source)


def make_world(spec):
    check(LIBC.unshare(CLONE_NEWNS | CLONE_NEWNET))
    check(LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in spec.get("addresses", []):
        bits = "128" if ":" in address else "32"
        extra = ["nodad"] if ":" in address else []
        subprocess.run(["ip", "addr", "add", f"{address}/{bits}", "dev", "lo", *extra], check=True)
    mount_text("/etc/resolv.conf", spec.get("resolv", "nameserver 127.0.0.53\n"))
    mount_text("/etc/hosts", spec.get("hosts", "127.0.0.1 localhost\n"))
    # Whatever the machine's own file says, names are looked for in the file, then by DNS.
    mount_text("/etc/nsswitch.conf", "hosts: files dns\n")


def main():
    with open(sys.argv[1]) as f:
        spec = json.load(f)
    make_world(spec)
    zone = Zone(spec.get("zone", {}))
    with open(spec["log"], "w") as log:
        for address in spec.get("servers", ["127.0.0.53"]):
            Server(address, zone, log)
        for place in spec.get("echo", []):
            echo(place)

        def become():
            os.setgroups([])
            os.setgid(spec["user"])
            os.setuid(spec["user"])

        child = subprocess.Popen(sys.argv[2:], preexec_fn=become)
        signal.signal(signal.SIGTERM, lambda *_: child.kill())
        code = child.wait()
        os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
