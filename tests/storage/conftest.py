"""Batches, logs and a clock for the storage tests."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sparklog.model.ids import NO_TOPIC_ID, TopicPartition
from sparklog.model.parts import read_parts
from sparklog.model.time import MonotonicMs, WallMs
from sparklog.records.envelope import TRANSACTIONAL_BIT, BatchHeader, build_envelope, split
from sparklog.storage.disk import Disk, LocalDisk
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig

TP = TopicPartition("events", 3)


@dataclass
class ManualClock:
    """A clock that stands still until it is set."""

    now_ms: int = 1_000_000

    def monotonic_ms(self) -> MonotonicMs:
        return MonotonicMs(self.now_ms)

    def wall_ms(self) -> WallMs:
        return WallMs(self.now_ms)


@dataclass
class Bench:
    """Makes batches, opens logs in one directory, reads them back."""

    directory: Path
    disk: Disk = field(default_factory=LocalDisk)
    clock: ManualClock = field(default_factory=ManualClock)

    def batch(
        self,
        base_offset: int,
        count: int = 1,
        *,
        size: int = 100,
        epoch: int = 0,
        timestamp: int = 1_000,
        producer: tuple[int, int, int] = (-1, -1, -1),
        transactional: bool = False,
    ) -> bytes:
        """A batch of exactly ``size`` bytes (61 at least), with a payload unlike that of others."""
        filling = f"{base_offset}/{epoch}/{timestamp};".encode() * (size // 5)
        return build_envelope(
            filling[: size - 61],
            attributes=TRANSACTIONAL_BIT if transactional else 0,
            record_count=count,
            last_offset_delta=count - 1,
            base_timestamp_ms=timestamp,
            max_timestamp_ms=timestamp,
            base_offset=base_offset,
            leader_epoch=epoch,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=producer[2],
        )

    def open(
        self,
        config: LogConfig | None = None,
        *,
        recovery_point: int = 0,
        clean: bool = False,
        same_boot: bool = True,
        high_watermark: int = 0,
        log_start: int = 0,
        name: str = "events-3",
    ) -> Log:
        log = Log.open(
            str(self.directory / name),
            TP,
            NO_TOPIC_ID,
            config or LogConfig(),
            self.disk,
            self.clock,
            recovery_point=recovery_point,
            clean=clean,
            same_boot=same_boot,
            high_watermark=high_watermark,
            log_start_offset=log_start,
        )
        log.check_invariants()
        return log

    def append(self, log: Log, count: int = 1, **kwargs: object) -> bytes:
        """Append one batch at the log's end; the batch."""
        data = self.batch(log.log_end_offset, count, **kwargs)  # type: ignore[arg-type]
        log.append(data, split(data))
        log.check_invariants()
        return data

    def append_all(self, log: Log, *batches: bytes) -> None:
        """Append several batches in one go, as a follower does."""
        data = b"".join(batches)
        log.append(data, split(data))
        log.check_invariants()

    def read(self, log: Log, offset: int, max_bytes: int = 1 << 30, max_offset: int = 1 << 60) -> bytes:
        found = log.read(offset, max_bytes, max_offset, at_least_one_batch=True)
        assert found is not None
        data = read_parts(found.parts)
        assert len(data) == found.size_bytes
        return data

    def headers(self, log: Log) -> list[BatchHeader]:
        """Every batch of the log, by reading it from its start in small steps."""
        found: list[BatchHeader] = []
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            batches = [header for _, header in split(self.read(log, offset, 4_000))]
            assert batches, (log, offset)
            found += batches
            offset = batches[-1].next_offset
        return found

    def segment_file(self, base_offset: int, suffix: str = ".log", name: str = "events-3") -> Path:
        return self.directory / name / f"{base_offset:020d}{suffix}"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    return Bench(tmp_path)


@pytest.fixture(scope="session")
def make_bench() -> type[Bench]:
    """For tests that make many benches of their own."""
    return Bench
