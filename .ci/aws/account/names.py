"""Starts the loopback device of a new network, and a DNS server that resolves every name to 127.0.0.1."""

import fcntl
import socket
import struct

SIOCSIFFLAGS, IFF_UP = 0x8914, 1
HEADER, TYPE_A = 12, 1

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(server, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))
server.bind(("127.0.0.1", 53))
while True:
    query, client = server.recvfrom(4096)
    end = query.index(b"\0", HEADER) + 5
    question = query[HEADER:end]
    (kind,) = struct.unpack(">H", question[-4:-2])
    # The answer refers to the name in the question. Only a question for type A gets a record.
    answer = struct.pack(">HHHIH4B", 0xC000 | HEADER, TYPE_A, 1, 60, 4, 127, 0, 0, 1) if kind == TYPE_A else b""
    counts = struct.pack(">HHHHH", 0x8180, 1, 1 if answer else 0, 0, 0)
    server.sendto(query[:2] + counts + question + answer, client)
