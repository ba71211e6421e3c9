# SPDX-License-Identifier: Apache-2.0
"""Holes that an attacker of our own found in the supervisor, one test each, under the number that
the attacker gave them (hk-N).
"""

import pytest

from checks import ok, python

SUPERVISED = ["base", "nobase"]
TCP = ["--net-allow-loopback", "own", "--net-allow-bind", "0"]

# A socket that lingers, with data that its peer does not read, is left to the supervisor's copy
# alone: the task that waits in sendmsg closes its own and is killed.
LINGERING = """
import os, signal, socket, struct, threading, time
listener = socket.create_server(("127.0.0.1", 0))
r, w = os.pipe()
pid = os.fork()
if pid == 0:
    s = socket.create_connection(listener.getsockname())
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    s.setblocking(False)
    try:
        while True:
            s.send(bytes(65536))
    except BlockingIOError:
        s.setblocking(True)
    threading.Thread(target=lambda: s.sendmsg([bytes(100000)]), daemon=True).start()
    time.sleep(0.3)
    os.close(s.fileno())
    os.write(w, b"x")
    time.sleep(3600)
peer, _ = listener.accept()
os.read(r, 1)
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
for _ in range(10):
    time.sleep(0.02)
    try:
        socket.socket(socket.AF_UNIX).connect("/nonexistent")
    except FileNotFoundError:
        print("answered")
"""


@pytest.mark.parametrize("flags", [[], ["--explain"]], ids=str)
@pytest.mark.parametrize("mode", SUPERVISED)
def test_hk_1_lingering_sockets_stop_nobody(mode, flags):
    assert ok(python([*TCP, *flags], LINGERING, mode=mode)).lines == ["answered"] * 10


@pytest.mark.parametrize("mode", SUPERVISED)
def test_hk_1_what_is_set_of_lingering(mode):
    text = """
import errno, socket, struct
def ask(s, on, time):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", on, time))
    print(*struct.unpack("ii", s.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)))
tcp = socket.socket()
for value in ((1, 0), (1, 5), (1, -1), (0, 0)):
    ask(tcp, *value)
ask(socket.socket(socket.AF_UNIX), 1, 5)
try:
    tcp.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"1234")
except OSError as e:
    print(errno.errorcode[e.errno])
"""
    expected = ["1 0", "0 0", "0 0", "0 0", "1 5", "EINVAL"]
    assert ok(python([], text, mode=mode)).lines == expected
