"""How many requests and bytes per second the reactor moves, by number of processors and handlers.

    python benchmarks/reactor.py [--seconds 2] [--rounds 3] [--layouts 1,1 1,2 1,4 3,8]

The server runs in this process, the clients in processes of their own. Layouts take turns within each round,
and a cell is the median of its rounds, so that a busy neighbour disturbs all of them alike. The loads:

    echo       1 KiB there and back, 32 connections, one request in flight each: the cost of a request
    pipelined  1 KiB there and back, 8 connections with five requests in flight each
    append     1 KiB there, written to a file, a few bytes back: a handler with a short system call
    compute    1 KiB there, 200 us of Python in the handler: handlers that hold the interpreter lock
    stall      1 KiB there, one request in a hundred waits 10 ms for a disk: handlers that block
    produce    1 MiB there, checksum, written to a file, a few bytes back
    fetch      a few bytes there, 1 MiB back by sendfile
"""

import argparse
import itertools
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import crc32c

from sparklog.model.parts import FileSlice
from sparklog.network.acceptor import Listener
from sparklog.network.exchange import Exchange
from sparklog.network.reactor import Reactor

SIZE: Final = struct.Struct(">i")
KIB: Final = 1024
MIB: Final = 1024 * 1024
SHORT_REPLY: Final = SIZE.pack(8) + bytes(8)
COMPUTE_NS: Final = 200_000
STALL_S: Final = 0.01
STALLS_EVERY: Final = 100
request_numbers: Final = itertools.count()


class OpenFile:
    """A file that parts can point to."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.write(self._fd, bytes(MIB))

    def fileno(self) -> int:
        return self._fd

    def pread(self, length: int, position: int) -> bytes:
        return os.pread(self._fd, length, position)

    def overwrite(self, data: memoryview) -> None:
        os.pwrite(self._fd, data, 0)

    def close(self) -> None:
        os.close(self._fd)


def echo(exchange: Exchange, _file: OpenFile) -> None:
    exchange.reply([SIZE.pack(len(exchange.frame)), exchange.frame])


def append(exchange: Exchange, file: OpenFile) -> None:
    file.overwrite(exchange.frame)
    exchange.reply([SHORT_REPLY])


def compute(exchange: Exchange, _file: OpenFile) -> None:
    end_ns = time.thread_time_ns() + COMPUTE_NS
    while time.thread_time_ns() < end_ns:
        sum(range(50))
    exchange.reply([SHORT_REPLY])


def stall(exchange: Exchange, _file: OpenFile) -> None:
    if next(request_numbers) % STALLS_EVERY == 0:
        time.sleep(STALL_S)
    exchange.reply([SHORT_REPLY])


def produce(exchange: Exchange, file: OpenFile) -> None:
    crc32c.crc32c(exchange.frame)
    file.overwrite(exchange.frame)
    exchange.reply([SHORT_REPLY])


def fetch(exchange: Exchange, file: OpenFile) -> None:
    exchange.reply([SIZE.pack(MIB), FileSlice(file, 0, MIB)])


@dataclass(frozen=True, slots=True)
class Load:
    handle: Callable[[Exchange, OpenFile], None]
    request_bytes: int
    reply_bytes: int  # with the size prefix
    processes: int
    connections: int  # per process
    in_flight: int
    unit: str
    per_request: float


LOADS: Final = {
    "echo": Load(echo, KIB, KIB + 4, 2, 16, 1, "requests/s", 1),
    "pipelined": Load(echo, KIB, KIB + 4, 2, 4, 5, "requests/s", 1),
    "append": Load(append, KIB, len(SHORT_REPLY), 2, 16, 1, "requests/s", 1),
    "compute": Load(compute, KIB, len(SHORT_REPLY), 2, 16, 1, "requests/s", 1),
    "stall": Load(stall, KIB, len(SHORT_REPLY), 2, 16, 1, "requests/s", 1),
    "produce": Load(produce, MIB, len(SHORT_REPLY), 2, 4, 1, "MB/s", MIB / 1e6),
    "fetch": Load(fetch, 64, MIB + 4, 2, 4, 1, "MB/s", MIB / 1e6),
}


def drive(port: int, load: Load, seconds: float) -> int:
    """The client's side: keeps ``in_flight`` requests on each connection; returns how many were answered."""
    request = (SIZE.pack(load.request_bytes) + bytes(load.request_bytes)) * load.in_flight
    answer = memoryview(bytearray(load.reply_bytes * load.in_flight))
    socks = [socket.create_connection(("127.0.0.1", port)) for _ in range(load.connections)]
    for sock in socks:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    answered = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for sock in socks:
            sock.sendall(request)
        for sock in socks:
            if sock.recv_into(answer, len(answer), socket.MSG_WAITALL) != len(answer):
                raise ConnectionError("the server closed the connection")
            answered += load.in_flight
    for sock in socks:
        sock.close()
    return answered


def measure(load_name: str, processors: int, handlers: int, seconds: float) -> float:
    """Requests or megabytes per second of one load on one layout."""
    load = LOADS[load_name]
    with tempfile.TemporaryDirectory() as directory:
        file = OpenFile(os.path.join(directory, "data"))
        handle = load.handle
        reactor = Reactor(
            [Listener("127.0.0.1", 0)],
            lambda exchange: handle(exchange, file),
            processors=processors,
            handlers=handlers,
        )
        with reactor:
            command = [sys.executable, __file__, "--drive", load_name, str(reactor.ports[0]), str(seconds)]
            clients = [
                subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(load.processes)
            ]
            answered = sum(int(client.communicate()[0]) for client in clients)
        file.close()
    return answered * load.per_request / seconds


def table(layouts: Sequence[tuple[int, int]], seconds: float, rounds: int) -> None:
    print("| load |" + "".join(f" {p} + {h} |" for p, h in layouts) + " unit |")
    print("|---|" + "---:|" * len(layouts) + "---|")
    for name, load in LOADS.items():
        cells: dict[tuple[int, int], list[float]] = {layout: [] for layout in layouts}
        for _ in range(rounds):
            for layout in layouts:
                cells[layout].append(measure(name, *layout, seconds))
        medians = [statistics.median(cells[layout]) for layout in layouts]
        shown = "".join(f" {median / medians[0]:.2f} ({median:,.0f}) |" for median in medians)
        print(f"| {name} |{shown} {load.unit} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one measurement")
    parser.add_argument(
        "--rounds", type=int, default=3, help="measurements per cell, of which the median is shown"
    )
    parser.add_argument(
        "--layouts", nargs="+", default=["1,1", "1,2", "1,4", "3,8"], help="processors,handlers"
    )
    parser.add_argument("--drive", nargs=3, metavar=("LOAD", "PORT", "SECONDS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drive:
        name, port, seconds = options.drive
        print(drive(int(port), LOADS[name], float(seconds)))
        return
    layouts = [tuple(map(int, layout.split(","))) for layout in options.layouts]
    table([(processors, handlers) for processors, handlers in layouts], options.seconds, options.rounds)


if __name__ == "__main__":
    main()
