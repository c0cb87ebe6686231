"""How fast one core compacts a log, beside plainly reading the same file and checking its CRCs.

python benchmarks/compaction.py [MEGABYTES]

CPU time of this process, on files in the page cache, one round over a log of which all is dirty. Each key
occurs about ten times, keys are 16 bytes, values 100. "read" is the same file in chunks, split into batches,
every CRC compared: what any copy that trusts nothing must at least do.
"""

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from sparklog.core.compaction import dirty_range
from sparklog.model.ids import NO_TOPIC_ID, TopicPartition
from sparklog.network.clock import SystemClock
from sparklog.records.envelope import Compression, crc_matches, split, stamp
from sparklog.records.payload import payload
from sparklog.records.payload_kinds import PayloadKind
from sparklog.storage.cleaner.round import CleanerMemory, Round
from sparklog.storage.cleaner.view import LogView, remaining, view_of
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.storage.segments.segment import Segment

CHUNK_BYTES = 4 << 20
VALUE_BYTES = 100
LAYOUTS = [
    ("records", PayloadKind.RECORDS, Compression.NONE, 10_000),
    ("records, zstd", PayloadKind.RECORDS, Compression.ZSTD, 10_000),
    ("records, 10 a batch", PayloadKind.RECORDS, Compression.NONE, 10),
    ("arrow", PayloadKind.ARROW, Compression.NONE, 10_000),
    ("arrow, lz4", PayloadKind.ARROW, Compression.LZ4, 10_000),
]


class Access:
    """The log without a lock: nobody else is here."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.begin_swap, self.finish_swap = log.begin_swap, log.finish_swap

    def view(self) -> LogView | None:
        return view_of(self.log, self.log.log_end_offset)

    def remaining(self, segments: Sequence[Segment], generation: int) -> tuple[Segment, ...] | None:
        return remaining(self.log, segments, generation)

    def fail(self, error: OSError) -> None:
        raise error


def batches(kind: PayloadKind, codec: Compression, count: int, records: int) -> Iterator[bytes]:
    """Batches of ``count`` rows, ``records`` in all, whose keys are drawn from a tenth as many."""
    draw = np.random.default_rng(1)
    for _ in range(records // count):
        numbers = draw.integers(0, records // 10, count)
        keys = pa.array([b"%016d" % number for number in numbers.tolist()])
        text = draw.integers(97, 123, count * VALUE_BYTES, np.uint8).tobytes()
        offsets = pa.py_buffer(np.arange(0, (count + 1) * VALUE_BYTES, VALUE_BYTES, np.int32))
        values = pa.Array.from_buffers(pa.binary(), count, [None, offsets, pa.py_buffer(text)])
        rows = pa.record_batch({"key": keys, "value": values})
        yield payload(kind).from_columns(rows, now_ms=1, compression=codec)


def filled(directory: str, data: Iterator[bytes]) -> Log:
    config = LogConfig(cleanup_policy=("compact",), segment_bytes=1 << 30)
    log = Log.open(
        f"{directory}/table-0", TopicPartition("table", 0), NO_TOPIC_ID, config, LocalDisk(), SystemClock(),
        recovery_point=0, clean=False,
    )  # fmt: skip
    for batch in data:
        stamped = bytearray(batch)
        stamp(stamped, 0, log.log_end_offset, 0)
        log.append(stamped, split(stamped))
    log.roll()
    return log


def read_plainly(path: Path) -> None:
    file = LocalDisk().open(str(path))
    position = 0
    while position < file.size():
        buffer = file.pread(CHUNK_BYTES, position)
        for start, header in split(buffer):
            assert crc_matches(buffer, start, header)
            position += header.size_bytes


def compact(log: Log) -> Round:
    access = Access(log)
    view = access.view()
    now_ms = int(time.time() * 1_000)
    dirty = dirty_range(
        view.extents, log_start_offset=0, checkpoint=None, stable_end=view.stable_end, rules=view.rules,
        now_ms=now_ms,
    )  # fmt: skip
    work = Round(access, view, dirty, memory=CleanerMemory(chunk_bytes=CHUNK_BYTES), now_ms=now_ms, seed=1)
    for _ in work.run():
        """No pause."""
    return work


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print("| batches | MB | read MB/s | compacted MB/s | million records/s | of it left |")
    print("|---|---|---|---|---|---|")
    for name, kind, codec, count in LAYOUTS:
        with tempfile.TemporaryDirectory() as directory:
            records = megabytes * 1_000_000 // (VALUE_BYTES + 24) // count * count
            log = filled(directory, batches(kind, codec, count, records))
            size_bytes = log.size_bytes
            began = time.process_time()
            read_plainly(Path(log.segments[0].path(".log")))
            reading = time.process_time() - began
            began = time.process_time()
            report = compact(log).report
            compacting = time.process_time() - began
            print(
                f"| {name} | {size_bytes / 1e6:.0f} | {size_bytes / 1e6 / reading:,.0f} "
                f"| {size_bytes / 1e6 / compacting:.0f} | {report.records_read / 1e6 / compacting:.2f} "
                f"| {report.bytes_written / size_bytes:.0%} |"
            )


if __name__ == "__main__":
    main()
