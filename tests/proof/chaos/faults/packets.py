"""Holds packets back, or changes their content: what this kernel's own queueing cannot be asked for.

    python packets.py '{"queue": 7, "delay_ms": 50, "jitter_ms": 10, "seed": 1}'

Packets come from iptables' target NFQUEUE in the network namespace in which this runs, over a netlink socket,
and leave by a verdict. A changed packet gets a right TCP checksum, so that nothing below the receiving
program can tell. Changed is one bit of one byte within what ``pattern`` finds: whoever runs it says which
bytes are somebody's promise to protect. SIGTERM lets go what is held, and ends it.
"""

import heapq
import itertools
import json
import re
import select
import signal
import socket
import struct
import sys
import time
from dataclasses import dataclass
from random import Random
from typing import Final

_NETLINK_NETFILTER: Final = 12
_PACKET, _VERDICT, _CONFIG = (3 << 8 | number for number in range(3))
"""Messages of the kernel's subsystem 3, packet queues."""

_CONFIG_COMMAND, _CONFIG_PARAMETERS, _CONFIG_LENGTH = 1, 2, 3
_BIND: Final = 1
_COPY_NOTHING, _COPY_ALL = 1, 2
_PACKET_HEADER, _PAYLOAD, _VERDICT_HEADER = 1, 10, 2
_ACCEPT: Final = 1
_REQUEST: Final = 1
_ERROR: Final = 2
_TCP: Final = 6
_RECEIVE_BYTES: Final = 8 << 20
_QUEUE_LENGTH: Final = 65_535


@dataclass(frozen=True)
class Plan:
    """What happens to every packet of one queue."""

    queue: int
    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    corrupt: float = 0.0
    """The share of packets with the pattern in them that are changed."""
    pattern: str = ""
    seed: int = 0


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _attributes(data: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        found[kind & 0x3FFF] = data[at + 4 : at + length]
        at += max(4, length + -length % 4)
    return found


class Queue:
    """One queue of the kernel's."""

    def __init__(self, number: int, *, with_content: bool) -> None:
        self._number = number
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
        self.socket.bind((0, 0))
        self._send(_CONFIG, _attribute(_CONFIG_COMMAND, struct.pack("!BBH", _BIND, 0, socket.AF_INET)))
        copy = struct.pack("!IB", 0xFFFF, _COPY_ALL if with_content else _COPY_NOTHING)
        self._send(_CONFIG, _attribute(_CONFIG_PARAMETERS, copy))
        self._send(_CONFIG, _attribute(_CONFIG_LENGTH, struct.pack("!I", _QUEUE_LENGTH)))

    def _send(self, kind: int, attributes: bytes) -> None:
        body = struct.pack("!BBH", socket.AF_UNSPEC, 0, self._number) + attributes
        self.socket.send(struct.pack("=IHHII", 16 + len(body), kind, _REQUEST, 0, 0) + body)

    def receive(self) -> list[tuple[int, bytes]]:
        """Packets, each with its id; their content is empty unless it was asked for."""
        try:
            data = self.socket.recv(1 << 17)
        except OSError as error:
            if error.errno == 105:  # ENOBUFS: the kernel has dropped some, as a full queue of a network does
                return []
            raise
        packets, at = [], 0
        while at + 16 <= len(data):
            length, kind = struct.unpack_from("=IH", data, at)
            if kind == _ERROR and (number := struct.unpack_from("=i", data, at + 16)[0]) != 0:
                raise OSError(-number, f"the kernel refuses packet queue {self._number}")
            if kind == _PACKET:
                attributes = _attributes(data[at + 20 : at + length])
                (packet_id,) = struct.unpack_from("!I", attributes[_PACKET_HEADER])
                packets.append((packet_id, attributes.get(_PAYLOAD, b"")))
            at += length + -length % 4
        return packets

    def accept(self, packet_id: int, changed: bytes | None = None) -> None:
        verdict = _attribute(_VERDICT_HEADER, struct.pack("!II", _ACCEPT, packet_id))
        self._send(_VERDICT, verdict + (b"" if changed is None else _attribute(_PAYLOAD, changed)))


def corrupted(packet: bytes, pattern: re.Pattern[bytes], rng: Random) -> bytes | None:
    """An IPv4 packet of TCP with one bit changed within what the pattern finds, and a checksum to go with it;
    None where there is nothing to change."""
    ip_bytes = (packet[0] & 15) * 4
    if packet[0] >> 4 != 4 or packet[9] != _TCP:
        return None
    content = ip_bytes + (packet[ip_bytes + 12] >> 4) * 4
    places = [match.span() for match in pattern.finditer(packet, content)]
    if not places:
        return None
    begin, end = rng.choice(places)
    changed = bytearray(packet)
    changed[rng.randrange(begin, end)] ^= 1 << rng.randrange(8)
    changed[ip_bytes + 16 : ip_bytes + 18] = bytes(2)
    pseudo_header = bytes(changed[12:20]) + struct.pack("!HH", _TCP, len(packet) - ip_bytes)
    struct.pack_into("!H", changed, ip_bytes + 16, _checksum(pseudo_header + bytes(changed[ip_bytes:])))
    return bytes(changed)


def _checksum(data: bytes) -> int:
    data += bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Daemon:
    """Takes packets in, and lets each out when its time has come."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._rng = Random(plan.seed)
        self._pattern = re.compile(plan.pattern.encode()) if plan.corrupt else None
        self._queue = Queue(plan.queue, with_content=self._pattern is not None)
        self._held: list[tuple[float, int, int, bytes | None]] = []
        self._order = itertools.count()
        self.changed = 0

    def run(self, until: socket.socket) -> None:
        """Until something can be read from ``until``."""
        poller = select.poll()
        for source in (self._queue.socket, until):
            poller.register(source, select.POLLIN)
        while True:
            wait_ms = max(0.0, self._held[0][0] - time.monotonic()) * 1000 if self._held else None
            ready = dict(poller.poll(wait_ms))
            if until.fileno() in ready:
                break
            if self._queue.socket.fileno() in ready:
                self._take_in()
            self._let_out(time.monotonic())
        self._let_out(float("inf"))

    def _take_in(self) -> None:
        now, plan = time.monotonic(), self._plan
        for packet_id, content in self._queue.receive():
            delay_ms = max(0.0, plan.delay_ms + self._rng.uniform(-plan.jitter_ms, plan.jitter_ms))
            held = (now + delay_ms / 1000, next(self._order), packet_id, self._changed(content))
            heapq.heappush(self._held, held)

    def _changed(self, content: bytes) -> bytes | None:
        if self._pattern is None or self._rng.random() >= self._plan.corrupt:
            return None
        changed = corrupted(content, self._pattern, self._rng)
        self.changed += changed is not None
        return changed

    def _let_out(self, now: float) -> None:
        while self._held and self._held[0][0] <= now:
            _, _, packet_id, changed = heapq.heappop(self._held)
            self._queue.accept(packet_id, changed)


def main(plan: str) -> int:
    ended, wake = socket.socketpair()
    signal.signal(signal.SIGTERM, lambda *_: wake.send(b"x"))
    daemon = Daemon(Plan(**json.loads(plan)))
    print("ready", flush=True)
    daemon.run(ended)
    print(daemon.changed, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
