"""A log directory as a broker leaves it, with every kind of batch that the format knows, and the command."""

import json
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparklog.cli.main import main
from sparklog.model.ids import TopicPartition
from sparklog.model.time import MonotonicMs, WallMs
from sparklog.records.envelope import (
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    Compression,
    build_envelope,
    split,
    stamp,
)
from sparklog.records.kafka.encode import Record, build_records_batch, encode
from sparklog.records.payload import payload
from sparklog.records.payload_kinds import PayloadKind
from sparklog.records.row_columns import HEADERS_TYPE
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig

TOPIC_ID = uuid.UUID("00000000-0000-4000-8000-00000000002a")
FIRST = "00000000000000000000"
T0 = 1_700_000_000_000


class StillClock:
    def monotonic_ms(self) -> MonotonicMs:
        return MonotonicMs(T0)

    def wall_ms(self) -> WallMs:
        return WallMs(T0 + 7)


def records(count: int, first: int = 0, **options: Any) -> bytes:
    """A *records* batch with keys, values, headers, and a null of each."""
    rows = [
        Record(
            key=None if n % 3 == 0 else f"key-{first + n}".encode(),
            value=None if n % 5 == 4 else f"value-{first + n}".encode(),
            timestamp_ms=T0 + first + (n * 7) % count,
            headers=[("trace", b"1"), ("über", None)] if n % 4 == 1 else (),
        )
        for n in range(count)
    ]
    return build_records_batch(rows, now_ms=T0, **options)


def arrow(count: int, first: int = 0, **options: Any) -> bytes:
    """An *arrow* batch: every third key is null, one row has headers."""
    columns = pa.record_batch(
        {
            "key": pa.array([None if n % 3 == 0 else b"k%d" % n for n in range(count)], pa.binary()),
            "value": pa.array([b"v%d" % n for n in range(count)], pa.binary()),
            "timestamp": pa.array([T0 + first + n for n in range(count)], pa.timestamp("ms", "UTC")),
            "headers": pa.array(
                [[{"key": "h", "value": b"x"}] if n == 1 else None for n in range(count)], HEADERS_TYPE
            ),
        }
    )
    return payload(PayloadKind.ARROW).from_columns(columns, now_ms=T0, **options)


def marker(kind: int, producer_id: int, coordinator_epoch: int = 3) -> bytes:
    """A control batch: 0 aborts, 1 commits, others are Kafka's own."""
    encoded = encode(
        np.arange(1),
        np.array([T0]),
        [struct.pack(">hh", 0, kind)],
        [struct.pack(">hi", 0, coordinator_epoch)],
        [[]],
    )
    return raw(encoded, 1, CONTROL_BIT | TRANSACTIONAL_BIT, producer_id=producer_id, producer_epoch=0)


def raw(encoded: bytes, count: int, attributes: int, *, base_ms: int = T0, **fields: int) -> bytes:
    return build_envelope(
        encoded,
        attributes=attributes,
        record_count=count,
        last_offset_delta=fields.pop("last_offset_delta", count - 1),
        base_timestamp_ms=base_ms,
        max_timestamp_ms=T0,
        **fields,
    )


def compacted(count: int) -> bytes:
    """What compaction leaves: every second record, one key with no value, a delete horizon."""
    encoded = encode(
        np.arange(count) * 2,
        np.full(count, T0),
        [b"key-%d" % n for n in range(count)],
        [None if n == 1 else b"kept" for n in range(count)],
        [[] for _ in range(count)],
    )
    return raw(encoded, count, DELETE_HORIZON_BIT, base_ms=T0 - 5, last_offset_delta=count * 2 - 1)


def log_append_time(count: int) -> bytes:
    encoded = encode(np.arange(count), np.full(count, T0 - 9), [None] * count, [b"v"] * count, [[]] * count)
    return raw(encoded, count, LOG_APPEND_TIME_BIT)


@dataclass
class Maker:
    """Writes logs by the code that brokers write them with."""

    root: Path
    logs: list[Log] = field(default_factory=list)

    def log(self, name: str = "orders-0", **settings: Any) -> Log:
        topic, _, partition = name.rpartition("-")
        log = Log.open(
            str(self.root / name),
            TopicPartition(topic, int(partition)),
            TOPIC_ID,
            LogConfig(**{"index_interval_bytes": 200, **settings}),
            LocalDisk(),
            StillClock(),
            recovery_point=0,
            clean=False,
        )
        self.logs.append(log)
        return log

    def append(self, log: Log, *batches: bytes, epoch: int = 0) -> None:
        for batch in batches:
            stamped = bytearray(batch)
            stamp(stamped, 0, log.log_end_offset, epoch)
            log.assign_epoch(epoch, log.log_end_offset)
            log.append(bytes(stamped), split(bytes(stamped)))

    def records_log(self, name: str = "orders-0", **settings: Any) -> Path:
        """A closed log of *records* of every sort; its directory."""
        log = self.log(name, **settings)
        self.append(
            log,
            records(5),
            records(40, 5, producer_id=9, producer_epoch=1, base_sequence=0),
            *(records(60, 45 + 60 * n, compression=codec) for n, codec in enumerate(Compression)),
        )
        self.append(
            log,
            records(2, 400, producer_id=11, producer_epoch=0, base_sequence=2**31 - 1, is_transactional=True),
            marker(1, 11),
            log_append_time(3),
            records(4, 500, producer_id=9, producer_epoch=1, base_sequence=40),
            epoch=4,
        )
        log.close()
        return self.root / name


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Dump = Callable[..., Ran]


@pytest.fixture
def dump(capfd: pytest.CaptureFixture[str]) -> Dump:
    """Runs ``sparklog dump-log --files FILES ARGUMENTS``."""

    def run(files: Path | list[Path], *arguments: str) -> Ran:
        paths = ",".join(str(path) for path in (files if isinstance(files, list) else [files]))
        status = main(["dump-log", "--files", paths, *arguments])
        out, err = capfd.readouterr()
        return Ran(status, out, err)

    return run


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    return Maker(tmp_path)


@pytest.fixture
def batches() -> SimpleNamespace:
    """The makers of single batches, for test modules, which cannot import each other."""
    return SimpleNamespace(
        T0=T0,
        records=records,
        arrow=arrow,
        marker=marker,
        compacted=compacted,
        log_append_time=log_append_time,
        raw=raw,
    )
