"""Recovery's fast way finds what its thorough one finds."""

import random

import pytest

from sparklog.core.producers.producer_state import ProducerStates
from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.records.envelope import BatchHeader
from sparklog.storage.log_config import LogConfig
from sparklog.storage.segments.intact_run import IntactRun, intact_run
from sparklog.storage.segments.scan import check
from sparklog.storage.segments.segment import Segment
from sparklog.storage.segments.snapshots import producer_batch


class Found:
    """What a walk over a segment's file makes of it."""

    def __init__(self, bench, name) -> None:
        self.segment = Segment.found(
            bench.disk, str(bench.directory / name), 0, 0, LogConfig(index_interval_bytes=300), 5
        )
        self.segment.forget_batches()
        self.epochs, self.producers = EpochHistory(), ProducerStates()
        self.runs = 0

    def visit(self, position: int, header: BatchHeader) -> None:
        self.segment.note_batch(position, header)
        self.epochs.assign(header.leader_epoch, header.base_offset)
        if header.has_producer:
            self.producers.apply(producer_batch(header), 7)

    def visit_run(self, run: IntactRun) -> None:
        self.runs += 1
        self.segment.note_run(run)
        for epoch, start in run.epoch_starts():
            self.epochs.assign(epoch, start)
        for _, header in run.producers_batches():
            self.producers.apply(producer_batch(header), 7)

    def all(self):
        segment = self.segment
        offsets, times = segment.indexes()
        return (
            (segment.size_bytes, segment.end_offset, segment.max_timestamp, segment.first_timestamp_ms),
            (offsets.to_bytes(), times.to_bytes(), segment._unindexed_bytes),
            (self.epochs.entries, self.producers),
        )


def both_ways(bench):
    slow, fast = Found(bench, "events-3"), Found(bench, "events-3")
    troubles = (
        check(slow.segment.file, 0, slow.visit),
        check(fast.segment.file, 0, fast.visit, fast.visit_run),
    )
    assert fast.all() == slow.all()
    assert troubles[0] == troubles[1]
    return troubles[0], fast


def filled(bench, draw, batches=200, transactional=False):
    log = bench.open(LogConfig())
    sequences = [0, 0, 0]
    for number in range(batches):
        pid = draw.randrange(-1, 3)
        count = draw.randint(1, 5)
        producer = (-1, -1, -1)
        if pid >= 0:
            producer = (pid, number // 150, sequences[pid])
            sequences[pid] += count
        bench.append(
            log,
            count,
            size=draw.choice((70, 200, 900)),
            epoch=number // 60,
            timestamp=draw.randint(-1, 1_000),
            producer=producer,
            transactional=transactional and pid == 1,
        )
    log.flush()
    return bench.directory / "events-3" / "00000000000000000000.log"


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("chunk", [1_000, 5_000, 4 << 20])
def test_indexes_epochs_and_producers_are_the_same(bench, monkeypatch, chunk, transactional) -> None:
    monkeypatch.setattr("sparklog.storage.segments.scan.CHECK_CHUNK_BYTES", chunk)
    filled(bench, random.Random(chunk), transactional=transactional)
    trouble, fast = both_ways(bench)
    assert trouble is None
    assert fast.runs > 0
    assert fast.segment.size_bytes > 50_000


@pytest.mark.parametrize("seed", range(40))
def test_damage_is_found_at_the_same_place_and_told_in_the_same_words(bench, monkeypatch, seed) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr(
        "sparklog.storage.segments.scan.CHECK_CHUNK_BYTES", draw.choice((1_000, 20_000, 4 << 20))
    )
    path = filled(bench, draw, batches=60)
    data = bytearray(path.read_bytes())
    at = draw.randrange(len(data))
    match draw.randrange(3):
        case 0:
            data[at] ^= 1 << draw.randrange(8)
        case 1:
            del data[at:]
        case 2:
            data[at : at + 500] = bytes(min(500, len(data) - at))
    path.write_bytes(data)
    both_ways(bench)


def test_nothing_is_made_of_what_is_no_batch() -> None:
    assert intact_run(b"", 0, 0) is None
    assert intact_run(bytes(4_000), 0, 0) is None
    assert intact_run(b"\xff" * 4_000, 0, 0) is None
