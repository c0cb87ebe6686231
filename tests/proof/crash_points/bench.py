"""The hands of a scenario: shipped storage on a real directory, and telling what was promised.

What the logs hold is remembered here in lists of our own, not read from the logs; it is compared with them
each time it is told.
"""

import contextlib
import json
import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from crash_points.promises import Batch, State
from sparklog.core.compaction import dirty_range
from sparklog.model.ids import TopicPartition
from sparklog.model.parts import read_parts
from sparklog.model.time import MonotonicMs, WallMs
from sparklog.model.transaction_end import TransactionEnd
from sparklog.records.control import build_marker
from sparklog.records.envelope import parse_header, split, stamp
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.payload import payload_of
from sparklog.storage.cleaner.round import CleanerMemory, Round
from sparklog.storage.cleaner.view import LogView, remaining, view_of
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.storage.log_directory import LogDirectory
from sparklog.storage.segments.segment import Segment
from sparklog.storage.segments.swap import Swap

BOOT, OTHER_BOOT = "boot-1", "boot-2"
DIRECTORY_ID = uuid.UUID(int=77)
TOPIC_ID = uuid.UUID(int=5)
BROKER_EPOCH = 4
CONFIG = LogConfig(segment_bytes=1_500, index_interval_bytes=200, retention_ms=50_000, file_delete_delay_ms=0)
COMPACTED = replace(CONFIG, cleanup_policy=("compact",), segment_bytes=1_200)

Row = tuple[int, str, str]


@dataclass
class ManualClock:
    now_ms: int = 1_000_000

    def monotonic_ms(self) -> MonotonicMs:
        return MonotonicMs(self.now_ms)

    def wall_ms(self) -> WallMs:
        return WallMs(self.now_ms)


def config_of(topic: str) -> LogConfig:
    return COMPACTED if topic.startswith("table") else CONFIG


def open_directory(root: str, clock: ManualClock, boot_id: str) -> LogDirectory:
    return LogDirectory.open(
        root, 1, "c1", LocalDisk(), clock, boot_id=boot_id, new_uuid=lambda: DIRECTORY_ID
    )


def batch_of(data: bytes) -> Batch:
    header = parse_header(data)
    return Batch(header.base_offset, header.next_offset, header.leader_epoch, header.crc)


def rows_of(data: bytes) -> list[Row]:
    """Offset, key and value of the records of one batch."""
    header = parse_header(data)
    if not header.record_count:
        return []
    columns = payload_of(header).to_columns(data, header)
    names = ("offset", "key", "value")
    return [
        (offset, (key or b"").decode(), (value or b"").decode()[:20])
        for offset, key, value in zip(*(columns.column(name).to_pylist() for name in names), strict=True)
    ]


def batches_in(log: Log) -> list[bytes]:
    """All that a reader gets, from the log's first segment on, in small reads."""
    found: list[bytes] = []
    offset = int(log.log_start_offset)
    while offset < log.log_end_offset:
        read = log.read(offset, 700, 1 << 60, at_least_one_batch=True)
        assert read is not None, (log, offset)
        data = read_parts(read.parts)
        if not data:
            break
        found += [data[at : at + header.size_bytes] for at, header in split(data)]
        assert read.next_offset > offset, (log, offset)
        offset = read.next_offset
    return found


@dataclass
class Kept:
    """What a log should hold."""

    batches: list[bytes] = field(default_factory=list)
    start: int = 0
    end: int = 0
    epochs: tuple[tuple[int, int], ...] = ()


class Bench:
    """A log directory in which a scenario works."""

    def __init__(self, root: str, marks: int | None = None) -> None:
        self.root = root
        self.clock = ManualClock()
        self.directory: LogDirectory
        self.kept: dict[TopicPartition, Kept] = {}
        self.sequences: dict[int, int] = {}
        self.epoch = 0
        self.timestamp = self.clock.now_ms - 1_000
        self._marks = marks
        self._is_telling = False

    # ---- telling -------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """From now on everything is told; what is there now is promised as if it had been told."""
        self._is_telling = True
        told = {str(tp): self.state(tp) for tp in self.kept}
        self._tell(synced=told)
        self._tell({"is": told})

    def operation(self, name: str) -> None:
        self._tell(operation=name)

    def _tell(self, told: dict[str, Any] | None = None, **more: Any) -> None:
        if self._is_telling and self._marks is not None:
            os.write(self._marks, json.dumps({**(told or {}), **more}).encode())

    def state(self, tp: TopicPartition) -> dict[str, Any]:
        kept, log = self.kept[tp], self.directory.logs.get(tp)
        readable = [one for one in kept.batches if batch_of(one).next_offset > kept.start]
        if log is not None:
            kept.epochs = tuple((int(epoch), int(start)) for epoch, start in log.epochs.entries)
        rows = [row for one in readable for row in rows_of(one)] if tp.topic.startswith("table") else None
        state = State(
            tuple(batch_of(one) for one in readable),
            kept.start,
            kept.end,
            kept.epochs,
            None if rows is None else tuple(rows),
        )
        return state.told()

    @contextlib.contextmanager
    def change(self, tp: TopicPartition) -> Iterator[Kept]:
        """What is about to be done to a log; the block changes what should be kept, and then does it."""
        yield self.kept[tp]
        self._check(tp)
        self._tell({"is": {str(tp): self.state(tp)}})

    def _may(self, tp: TopicPartition) -> None:
        self._tell(may={str(tp): self.state(tp)})

    def _check(self, tp: TopicPartition) -> None:
        kept, log = self.kept[tp], self.directory.logs[tp]
        log.check_invariants()
        readable = [one for one in kept.batches if batch_of(one).next_offset > kept.start]
        assert (log.log_start_offset, log.log_end_offset) == (kept.start, kept.end), (
            log,
            kept.start,
            kept.end,
        )
        assert batches_in(log) == readable, log

    # ---- starting and stopping -----------------------------------------------------------------------------

    def start(self, boot_id: str = BOOT, *, is_suspect: bool = False) -> None:
        self.directory = open_directory(self.root, self.clock, boot_id)
        self.directory.take_clean_marker()
        self._tell(clean=False)
        self.directory.load_logs(config_of, is_suspect=is_suspect, tell=lambda text: None)

    def stop(self, *, clean: bool) -> None:
        for tp in self.kept:
            self.state(tp)
        if clean:
            self._tell(clean=True)
            self.directory.close(clean_epoch=BROKER_EPOCH)
            told = {str(tp): self.state(tp) for tp in self.kept}
            self._tell(synced=told)
            self._tell({"is": told})
        else:
            self.directory.close()

    def create(self, topic: str, topic_id: uuid.UUID = TOPIC_ID) -> TopicPartition:
        tp = TopicPartition(topic, 0)
        self.kept[tp] = Kept()
        self._may(tp)
        self.directory.create_log(tp, topic_id, config_of(topic))
        self._tell({"is": {str(tp): self.state(tp)}})
        return tp

    def delete(self, tp: TopicPartition, *, aside: bool = False) -> None:
        self._tell(may={str(tp): None})
        (self.directory.set_aside_log if aside else self.directory.delete_log)(tp)
        del self.kept[tp]
        self._tell(synced={str(tp): None})
        self._tell({"is": {str(tp): None}})

    def log(self, tp: TopicPartition) -> Log:
        return self.directory.logs[tp]

    # ---- what a partition does with its log ----------------------------------------------------------------

    def batch(
        self,
        offset: int,
        *,
        count: int = 2,
        size: int = 120,
        producer: int = -1,
        key: str = "",
        in_transaction: bool = False,
    ) -> bytes:
        self.timestamp += 7
        filling = f"{offset}/{self.epoch};" * (size // 4)
        records = [
            Record((key or f"k{offset + nth}").encode(), filling[:size].encode(), self.timestamp)
            for nth in range(count)
        ]
        sequence = self.sequences.get(producer, 0)
        self.sequences[producer] = sequence + count
        data = bytearray(
            build_records_batch(
                records,
                now_ms=self.clock.now_ms,
                producer_id=producer,
                producer_epoch=0 if producer >= 0 else -1,
                base_sequence=sequence if producer >= 0 else -1,
                is_transactional=in_transaction,
            )
        )
        stamp(data, 0, offset, self.epoch)
        return bytes(data)

    def append(self, tp: TopicPartition, *, batches: int = 1, **shape: Any) -> None:
        """One write with so many batches, as a leader's or a follower's append."""
        with self.change(tp) as kept:
            made: list[bytes] = []
            for _ in range(batches):
                made.append(self.batch(kept.end, **shape))
                kept.end = batch_of(made[-1]).next_offset
            kept.batches += made
            self._may(tp)
            data = b"".join(made)
            self.log(tp).append(data, split(data))

    def end(self, tp: TopicPartition, producer: int, *, commits: bool) -> None:
        """The marker of the producer's transaction, as a leader appends it."""
        with self.change(tp) as kept:
            marker = build_marker(
                TransactionEnd(commits, 1), producer_id=producer, producer_epoch=0, now_ms=self.timestamp
            )
            stamp(marker, 0, kept.end, self.epoch)
            kept.batches.append(bytes(marker))
            kept.end += 1
            self._may(tp)
            self.log(tp).append(bytes(marker), split(marker))

    def lead(self, tp: TopicPartition) -> None:
        self.epoch += 1
        self.log(tp).assign_epoch(self.epoch, self.log(tp).log_end_offset)
        self._tell({"is": {str(tp): self.state(tp)}})

    def roll(self, tp: TopicPartition) -> None:
        with self.change(tp):
            self.log(tp).roll()

    def flush(self, tp: TopicPartition) -> None:
        assert self.log(tp).flush() == self.log(tp).log_end_offset
        self._tell(synced={str(tp): self.state(tp)})
        self._tell({"is": {str(tp): self.state(tp)}})

    def checkpoint(self) -> None:
        """Recovery points, and log starts: only from now on a log begins where somebody asked for."""
        self.directory.checkpoint_recovery_points()
        for tp in self.kept:
            self._tell({"is": {str(tp): self.state(tp)}})

    def commit(self, tp: TopicPartition, offset: int | None = None) -> None:
        """Write the high watermark."""
        self.directory.write_high_watermarks({tp: self.log(tp).log_end_offset if offset is None else offset})

    def truncate(self, tp: TopicPartition, offset: int) -> None:
        with self.change(tp) as kept:
            kept.batches = [one for one in kept.batches if batch_of(one).next_offset <= offset]
            kept.end = batch_of(kept.batches[-1]).next_offset if kept.batches else kept.start
            kept.start = min(kept.start, kept.end)
            self._may(tp)
            self.log(tp).truncate_to(offset)

    def begin_anew(self, tp: TopicPartition, offset: int) -> None:
        with self.change(tp) as kept:
            kept.batches, kept.start, kept.end = [], offset, offset
            self._may(tp)
            self.log(tp).truncate_fully_and_start_at(offset)

    def delete_records(self, tp: TopicPartition, offset: int) -> None:
        self.kept[tp].start = offset
        self._may(tp)
        self.log(tp).raise_log_start(offset)
        self._check(tp)
        self._may(tp)

    def retain(self, tp: TopicPartition) -> None:
        """Let retention remove what it will; which that is, is asked before."""
        with self.change(tp) as kept:
            log = self.log(tp)
            old = self.clock.now_ms - log.config.retention_ms
            segments = [one for one in log.segments if one.size_bytes]
            young = [one for one in segments if one.greatest_timestamp()[0] >= old]
            gone = [one for one in segments if one.end_offset <= kept.start]
            kept.start = young[0].base_offset if young else kept.end
            kept.start = max(
                [kept.start if len(gone) < len(segments) else 0, *(one.end_offset for one in gone)]
            )
            self._may(tp)
            log.delete_old_segments(log.log_end_offset)
            kept.start = int(log.log_start_offset)
        from sparklog.storage.late_removals import remove_files

        remove_files(log.disk, log.late_removals.take_due(self.clock.now_ms))

    def clean(self, tp: TopicPartition, between: "Any" = None) -> None:
        """One round of compaction, and its checkpoint."""
        access = Access(self.log(tp), between)
        view = access.view()
        assert view is not None
        dirty = dirty_range(
            view.extents,
            log_start_offset=view.log_start_offset,
            checkpoint=self.directory.cleaned_up_to(tp),
            stable_end=view.stable_end,
            rules=view.rules,
            now_ms=self.clock.now_ms,
        )
        memory = CleanerMemory(map_bytes=1 << 20, chunk_bytes=4_096)
        found = Round(access, view, dirty, memory=memory, now_ms=self.clock.now_ms, seed=1)
        # Kafka's rule, told anew: of the closed part each key keeps its last record there.
        kept = self.kept[tp]
        closed_end = view.closed[-1].end_offset
        rows = [row for one in kept.batches for row in rows_of(one)]
        last = {row[1]: row[0] for row in rows if row[0] < closed_end}
        after = [row for row in rows if row[0] >= closed_end or last[row[1]] == row[0]]
        told = self.state(tp)
        self._tell(may={str(tp): {**told, "rows": after}})
        for _ in found.run():
            pass
        kept.batches = batches_in(self.log(tp))
        assert [row for one in kept.batches for row in rows_of(one)] == after
        self._tell({"is": {str(tp): {**self.state(tp)}}})
        self.directory.write_cleaned(tp, found.report.end, self.log(tp).generation)


@dataclass
class Access:
    """``LogAccess`` without a lock: nobody else is there."""

    log: Log
    between: Any = None

    def view(self) -> LogView | None:
        return view_of(self.log, self.log.log_end_offset)

    def remaining(self, segments: Sequence[Segment], generation: int) -> tuple[Segment, ...] | None:
        return remaining(self.log, segments, generation)

    def begin_swap(self, swap: Swap) -> bool:
        return self.log.begin_swap(swap)

    def finish_swap(self, swap: Swap) -> bool:
        if self.between is not None:
            self.between()
        return self.log.finish_swap(swap)

    def fail(self, error: OSError) -> None:
        raise error
