"""With log.flush.acks=fsync a record counts where it is on disk; and flushes by count and by time."""

import threading
from dataclasses import replace

import pytest

from sparklog.broker.partition.flusher import Flusher
from sparklog.core.replication.actions import FlushLog, TruncateTo
from sparklog.model.errors import ErrorCode
from sparklog.storage.flush import Flush
from tests.of_this_thread import of_this_thread


class Workers:
    """An executor whose work is done when a test says so."""

    def __init__(self) -> None:
        self.work = []

    def submit(self, work) -> None:
        self.work.append(work)

    def run(self) -> int:
        work, self.work = self.work, []
        for one in work:
            one()
        return len(work)


@pytest.fixture
def pair(members):
    """Brokers 1 and 2 in fsync mode; 1 leads. Flushes of a leader wait in ``workers``."""
    for member in members.values():
        member.workers = Workers()
        object.__setattr__(member.parts.effects, "flusher", Flusher(member.workers, threading.Lock))
        member.become(1, 1)
        marks = member.partition._replica.marks
        marks.flushed_offset = 0
    return members


def fetch(members, rounds=2):
    for _ in range(rounds):
        members[2].fetch_once()


def test_a_write_waits_for_its_leaders_disk_although_the_follower_has_it(pair, batch):
    answers = pair[1].produce(batch(3))
    fetch(pair)
    assert (answers, pair[1].partition.high_watermark) == ([], 0)
    assert pair[1].workers.run() == 1
    assert [one.error for answer in answers for one in answer.values()] == [ErrorCode.none]
    assert (pair[1].partition.high_watermark, pair[1].partition.log.recovery_point) == (3, 3)


def test_a_follower_flushes_before_it_claims_an_offset(pair, batch):
    pair[1].produce(batch(3))
    fetch(pair, rounds=1)
    assert pair[2].partition.log_end_offset == 3
    assert pair[2].partition.log.recovery_point == 0
    assert pair[2].partition.follower_append.fetch_position().fetch_offset == 3
    assert pair[2].partition.log.recovery_point == 3


def test_a_follower_whose_fsync_fails_claims_nothing(pair, batch, monkeypatch):
    pair[1].produce(batch(3))
    fetch(pair, rounds=1)
    monkeypatch.setattr(Flush, "run", of_this_thread(Flush.run, failing))
    pair[2].parts.log_dirs.home_of = lambda _tp: None
    assert pair[2].partition.follower_append.fetch_position() is None
    assert pair[2].partition.is_offline


def failing(_flush):
    raise OSError("the disk is gone")


def test_what_is_appended_during_a_flush_is_flushed_by_one_more_for_all_of_it(pair, batch, monkeypatch):
    answers = [pair[1].produce(batch()) for _ in range(5)]
    assert len(pair[1].workers.work) == 1
    flushed = []
    run = pair[1].partition.log_guard.flush

    def flush():
        if not flushed:
            answers.extend(pair[1].produce(batch()) for _ in range(5))
        flushed.append(pair[1].partition.log_end_offset)
        run()

    monkeypatch.setattr(pair[1].partition.log_guard, "flush", flush)
    fetch(pair)
    pair[1].workers.run()
    fetch(pair, rounds=3)
    assert flushed == [10, 10]
    assert all(answers)
    assert len(pair[1].workers.work) == 0


def test_a_flush_that_a_truncation_overtook_vouches_for_nothing(pair, batch):
    pair[1].produce(batch(3), acks=1)
    replica, log = pair[1].partition._replica, pair[1].partition.log
    generation = replica.generation
    pair[1].become(2, 2)
    pair[1].partition.follower_append.on_leader_offsets(2, 0, 1)
    assert (replica.generation > generation, log.log_end_offset) == (True, 0)
    assert replica.on_flushed(3, generation, 0) == []
    assert replica.marks.flushed_offset == 0
    replica.check_invariants()


def test_machine_and_log_count_truncations_for_themselves(pair, batch):
    """A truncation that removes nothing is one for the machine alone, a new name is one for the log."""
    pair[1].produce(batch(3), acks=1)
    partition = pair[1].partition
    replica, log = partition._replica, partition.log
    before = replica.generation, log.generation
    with partition.log_guard.step:
        partition.log_guard.apply([TruncateTo(3)])
    assert (replica.generation, log.generation) == (before[0] + 1, before[1])
    log.set_aside()
    assert (replica.generation, log.generation) == (before[0] + 1, before[1] + 1)


def test_a_new_leader_brings_to_disk_what_it_has_before_it_counts(pair, batch):
    pair[1].produce(batch(3))
    fetch(pair, rounds=1)
    pair[2].become(2, 2, isr=(2,), min_isr=1)
    assert pair[2].partition.high_watermark == 0
    assert pair[2].workers.run() == 1
    assert pair[2].partition.high_watermark == 3


def test_a_log_is_flushed_after_so_many_records_or_so_much_time(members, batch):
    members[1].become(1, 1)
    partition, flushes = members[1].partition, []
    partition.log_guard._outlet = lambda effect: flushes.append(effect == FlushLog())
    partition.log_guard.configure(replace(partition.log.config, flush_messages=5, flush_ms=1_000))
    for _ in range(5):
        members[1].produce(batch(), acks=1)
    assert flushes.count(True) == 1
    partition.log_guard.flush_by_time()
    assert partition.log.recovery_point == 0
    members[1].clock.now_ms += 1_000
    partition.log_guard.flush_by_time()
    assert partition.log.recovery_point == 5
