"""A small compacted log, its cleaner without threads, and what its readers see."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from sparklog.core.compaction import dirty_range
from sparklog.model.ids import NO_TOPIC_ID, TopicPartition
from sparklog.model.parts import read_parts
from sparklog.model.time import MonotonicMs, WallMs
from sparklog.records.envelope import (
    CONTROL_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Compression,
    build_envelope,
    crc_matches,
    split,
    stamp,
)
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.payload import payload, payload_of
from sparklog.records.payload_kinds import PayloadKind
from sparklog.storage.cleaner.round import CleanerMemory, Round, RoundReport
from sparklog.storage.cleaner.view import LogView, remaining, view_of
from sparklog.storage.disk import Disk, LocalDisk
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.storage.segments.segment import Segment
from sparklog.storage.segments.swap import Swap

TP = TopicPartition("table", 0)
KeyValue = tuple[bytes | None, bytes | None]


@dataclass
class Clock:
    now_ms: int = 1_000_000

    def monotonic_ms(self) -> MonotonicMs:
        return MonotonicMs(self.now_ms)

    def wall_ms(self) -> WallMs:
        return WallMs(self.now_ms)


@dataclass
class Table:
    """A log of keys and values. Also what a cleaner wants of a log."""

    directory: Path
    disk: Disk = field(default_factory=LocalDisk)
    clock: Clock = field(default_factory=Clock)
    config: LogConfig = field(
        default_factory=lambda: LogConfig(
            cleanup_policy=("compact",), segment_bytes=1 << 20, index_interval_bytes=0
        )
    )
    checkpoint: int | None = None
    high_watermark: int | None = None
    before_swap: Callable[[], None] = lambda: None
    between_steps: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.log = self.open()

    def open(self, **proof: object) -> Log:
        self.log = Log.open(
            str(self.directory / str(TP)),
            TP,
            NO_TOPIC_ID,
            self.config,
            self.disk,
            self.clock,
            **{"recovery_point": 0, "clean": False, **proof},
        )
        self.log.check_invariants()
        return self.log

    # ---- LogAccess -------------------------------------------------------------------------------------

    def view(self) -> LogView | None:
        end = self.log.log_end_offset if self.high_watermark is None else self.high_watermark
        return view_of(self.log, end)

    def remaining(self, segments: Sequence[Segment], generation: int) -> tuple[Segment, ...] | None:
        return remaining(self.log, segments, generation)

    def begin_swap(self, swap: Swap) -> bool:
        self.before_swap()
        return self.log.begin_swap(swap)

    def finish_swap(self, swap: Swap) -> bool:
        self.between_steps()
        return self.log.finish_swap(swap)

    def fail(self, error: OSError) -> None:
        raise AssertionError(error)

    # ---- writing ---------------------------------------------------------------------------------------

    def put(
        self,
        *rows: KeyValue,
        kind: str = "records",
        codec: Compression = Compression.NONE,
        timestamp_ms: int | None = None,
        producer: tuple[int, int, int] = (-1, -1, -1),
        transactional: bool = False,
        leader_epoch: int = 0,
    ) -> int:
        """Append a batch; its base offset."""
        table = pa.table(
            {
                "key": pa.array([key for key, _ in rows], pa.binary()),
                "value": pa.array([value for _, value in rows], pa.binary()),
            }
        )
        batch = payload(PayloadKind.ARROW if kind == "arrow" else PayloadKind.RECORDS).from_columns(
            table,
            now_ms=self.clock.now_ms if timestamp_ms is None else timestamp_ms,
            compression=codec,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=producer[2],
            is_transactional=transactional,
        )
        return self.append(batch, leader_epoch)

    def mark(self, producer_id: int, *, commit: bool, epoch: int = 0) -> int:
        """Append a transaction marker; its offset."""
        record = Record(b"\0\0\0" + bytes([commit]), b"\0\0\0\0\0\0", self.clock.now_ms)
        return self.append(
            build_envelope(
                build_records_batch([record], now_ms=0)[61:],
                attributes=CONTROL_BIT | TRANSACTIONAL_BIT,
                record_count=1,
                last_offset_delta=0,
                base_timestamp_ms=self.clock.now_ms,
                max_timestamp_ms=self.clock.now_ms,
                producer_id=producer_id,
                producer_epoch=epoch,
            )
        )

    def append(self, batch: bytes, leader_epoch: int = 0) -> int:
        base_offset = self.log.log_end_offset
        stamped = bytearray(batch)
        stamp(stamped, 0, base_offset, leader_epoch)
        self.log.append(stamped, split(stamped))
        return base_offset

    def roll(self) -> None:
        self.log.roll()

    # ---- cleaning --------------------------------------------------------------------------------------

    def round(self, memory: CleanerMemory | None = None) -> Round | None:
        view = self.view()
        if view is None:
            return None
        dirty = dirty_range(
            view.extents,
            log_start_offset=view.log_start_offset,
            checkpoint=self.checkpoint,
            stable_end=view.stable_end,
            rules=view.rules,
            now_ms=self.clock.now_ms,
        )
        return Round(
            self,
            view,
            dirty,
            memory=memory or CleanerMemory(map_bytes=1 << 20, chunk_bytes=4_096),
            now_ms=self.clock.now_ms,
            seed=1,
        )

    def clean(self, memory: CleanerMemory | None = None) -> RoundReport:
        found = self.round(memory)
        assert found is not None
        for _ in found.run():
            self.log.check_invariants()
        self.log.check_invariants()
        self.checkpoint = found.report.end
        return found.report

    # ---- reading ---------------------------------------------------------------------------------------

    def bytes_from(self, offset: int = 0) -> bytes:
        """All that a reader gets from ``offset`` on, in small reads."""
        data = b""
        while offset < self.log.log_end_offset:
            read = self.log.read(offset, 2_000, 1 << 60, at_least_one_batch=True)
            assert read is not None
            assert read.next_offset > offset
            data += read_parts(read.parts)
            offset = read.next_offset
        return data

    def headers(self, offset: int = 0) -> list[BatchHeader]:
        return [header for _, header in split(self.bytes_from(offset))]

    def rows(self, offset: int = 0) -> list[tuple[int, bytes | None, bytes | None]]:
        """Offset, key and value of every record; checks CRCs and that offsets grow."""
        data = self.bytes_from(offset)
        rows: list[tuple[int, bytes | None, bytes | None]] = []
        end = 0
        for position, header in split(data):
            assert crc_matches(data, position, header)
            assert header.base_offset >= end
            end = header.next_offset
            if not header.is_control:
                batch = data[position : position + header.size_bytes]
                payload_of(header).validate(batch, header)
                columns = payload_of(header).to_columns(batch, header)
                names = ("offset", "key", "value")
                rows += zip(*(columns.column(name).to_pylist() for name in names), strict=True)
        assert [row[0] for row in rows] == sorted({row[0] for row in rows})
        return rows

    def values(self) -> dict[bytes | None, bytes | None]:
        """What a reader makes of the log: the last value of each key; deleted keys are not there."""
        table = {key: value for _, key, value in self.rows()}
        return {key: value for key, value in table.items() if value is not None}

    def files(self) -> list[str]:
        return sorted(path.name for path in (self.directory / str(TP)).iterdir())


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


@pytest.fixture(scope="session")
def make_table() -> type[Table]:
    return Table
