"""How long the checker of histories takes, and what memory, beside how long chaos takes for such a history.

    python benchmarks/checker.py [--sends 1000000] [--rate 120]

The history is like one of chaos: for each record a send and its answer, two and a half sights by polls, one
in a final read and three in replicas' logs; faults, elections, questions for the end. It is written by the
checker's own ``Writer`` into one file for each client, as chaos does, and judged by the command that chaos
runs. Time is the CPU's, so that a busy machine does not count; ``--rate``: sends a second of chaos.
"""

import argparse
import itertools
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from histories import Writer

PARTITIONS: Final = 7
PRODUCERS: Final = 6
IN_FLIGHT: Final = 5
POLLED_AT_ONCE: Final = 25
SENDS_PER_FAULT: Final = 1_500
FAULT_SENDS: Final = 600
SENDS_PER_EPOCH: Final = 3_000
REPLICAS: Final = 3
READERS: Final = {"consumer-1": 1.0, "consumer-2": 1.0, "consumer-3": 0.5}
"""Which share of the records each is given."""


@dataclass
class Partition:
    """What is there, as it grows."""

    number: int
    records: list[tuple[int, int, str]] = field(default_factory=list)
    """Offset, leader epoch, value."""
    epoch: int = 0
    read: int = 0

    def append(self, value: str) -> int:
        self.records.append((len(self.records), self.epoch, value))
        return len(self.records) - 1


class Story:
    """Writes the history."""

    def __init__(self, folder: Path, sends: int, step_ns: int) -> None:
        clock = itertools.count(1_000_000_000, step_ns // 4).__next__
        names = ["harness", *READERS, *(f"producer-{number}" for number in range(PRODUCERS))]
        self.writers = {name: Writer(folder / f"{name}.jsonl", clock=clock) for name in names}
        self._partitions = [Partition(number) for number in range(PARTITIONS)]
        self._pending: dict[str, deque[tuple[int, Partition, str]]] = {}
        self._draw = random.Random(1)
        for number in range(sends):
            self._send(number)
            if number % SENDS_PER_FAULT in (0, FAULT_SENDS):
                self._fault(number)
            if number % SENDS_PER_EPOCH == 0:
                self._elect(self._draw.choice(self._partitions))
        self._end()
        for writer in self.writers.values():
            writer.close()

    def _send(self, number: int) -> None:
        name, partition = f"producer-{number % PRODUCERS}", self._draw.choice(self._partitions)
        value = f"plain/{partition.number}/{name}#0/{number}"
        op = self.writers[name].send(
            name,
            "plain",
            partition.number,
            value,
            acks="all",
            session=f"{name}#0",
            seq=number,
            idempotent=True,
        )
        waiting = self._pending.setdefault(name, deque())
        waiting.append((op, partition, value))
        if len(waiting) == IN_FLIGHT:
            self._answer(name)
        if len(partition.records) - partition.read >= POLLED_AT_ONCE:
            self._read(partition)

    def _answer(self, name: str) -> None:
        op, partition, value = self._pending[name].popleft()
        self.writers[name].sent(name, op, offset=partition.append(value))

    def _read(self, partition: Partition) -> None:
        some = partition.records[partition.read :]
        for name, share in READERS.items():
            taken = some[: round(len(some) * share)]
            epochs = [(group[0][0], group[0][1]) for group in _by_epoch(taken)]
            if share < 1:
                self.writers[name].seek(name, "plain", partition.number, taken[0][0])
            self.writers[name].polled(
                name,
                "plain",
                partition.number,
                taken[0][0],
                [(offset, value) for offset, _, value in taken],
                epochs=epochs,
            )
        partition.read = len(partition.records)
        op = self.writers["consumer-3"].end("consumer-3", "plain", partition.number)
        self.writers["consumer-3"].ended("consumer-3", op, partition.read, leader_epoch=partition.epoch)

    def _fault(self, number: int) -> None:
        begins, name = number % SENDS_PER_FAULT == 0, f"{number // SENDS_PER_FAULT}"
        phase = "begin" if begins else "end"
        self.writers["harness"].event("harness", "fault", kind="kill", target="1", phase=phase, id=name)

    def _elect(self, partition: Partition) -> None:
        partition.epoch += 1
        self.writers["harness"].event(
            "harness",
            "leader",
            topic="plain",
            partition=partition.number,
            leader="1",
            leader_epoch=partition.epoch,
        )

    def _end(self) -> None:
        for name, waiting in self._pending.items():
            while waiting:
                self._answer(name)
        self.writers["harness"].event("harness", "heal")
        for partition in self._partitions:
            if partition.read < len(partition.records):
                self._read(partition)
            there = partition.records
            records = [(offset, value) for offset, _, value in there]
            reader = self.writers["harness"]
            reader.final("reader", "plain", partition.number, start=0, end=len(there), records=records)
            for broker in range(REPLICAS):
                reader.dump(
                    "dumper",
                    f"broker-{broker}",
                    "plain",
                    partition.number,
                    start=0,
                    end=len(there),
                    high_watermark=len(there),
                    records=there,
                    batches=[(offset, offset, f"{offset:024}") for offset, _, _ in there],
                )


def _by_epoch(records: list[tuple[int, int, str]]) -> list[list[tuple[int, int, str]]]:
    return [list(group) for _, group in itertools.groupby(records, key=lambda record: record[1])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sends", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=120, help="of chaos, in sends a second")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="checker-") as name:
        folder = Path(name)
        began = time.process_time()
        Story(folder, options.sends, 1_000_000_000 // options.rate)
        written_s = time.process_time() - began
        files = sorted(folder.iterdir())
        size = sum(path.stat().st_size for path in files)
        process = subprocess.Popen([sys.executable, "-m", "histories", *map(str, files)])
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    judged_s, run_s = used.ru_utime + used.ru_stime, options.sends / options.rate
    memory = used.ru_maxrss * 1_024
    print(
        f"{options.sends:,} sends, {size / 1e6:,.0f} MB, written in {written_s:.0f} s of CPU time\n"
        f"judged in {judged_s:.1f} s of CPU time, {options.sends / judged_s:,.0f} sends a second, "
        f"with {memory / 1e6:,.0f} MB of memory, {memory / options.sends:,.0f} bytes for each send\n"
        f"chaos takes {run_s / 60:.0f} minutes for as many: {run_s / judged_s:.0f} times as long; "
        f"an hour of it is judged in {3_600 * options.rate * judged_s / options.sends:.0f} s"
    )
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
