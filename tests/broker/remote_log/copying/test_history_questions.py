"""A leader whose disk lost what the store has serves nobody before it has compared the two."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparklog.broker.remote_log.copying.heads import Leadership, head_path, read_head, write_head
from sparklog.broker.remote_log.copying.history_questions import HistoryQuestions, QuestionPorts
from sparklog.core.remote_log.head import TAIL_MAX, Head
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch
from sparklog.model.loops import Await, go_on
from sparklog.network.clock import SystemClock
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.remote.ownership import MARK, MARK_BYTES
from sparklog.remote.store import RemoteStore
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.testing.memory_zookeeper import MemoryZooKeeper
from tests.broker.partition_harness import TP, Harness, batch
from tests.broker.remote_log.copying.conftest import led_by_us
from tests.broker.remote_log.copying.copies import QUAKES, FaultyStore
from tests.broker.remote_log.copying.test_copier import round_of

CLUSTER = "our cluster"
URL = "file:///h"
COPIED = TAIL_MAX + 1
"""Offsets in the store; one more was on the disk that is lost."""
LOSSY_EPOCH = 9


@pytest.fixture
def store(harness: Harness, zookeeper: MemoryZooKeeper) -> FaultyStore:
    """It has all sealed segments of ``harness``, and is this cluster's."""
    store = FaultyStore()
    round_of(harness, zookeeper, store, itertools.count(1))
    store.objects[MARK] = CLUSTER.encode().ljust(MARK_BYTES, b"\n")
    return store


@pytest.fixture
def lost(tmp_path: Path, store: FaultyStore, zookeeper: MemoryZooKeeper) -> Harness:
    """A replica on an empty disk that leads, after an election that may have lost records."""
    return leads_after_a_loss(tmp_path / "other", zookeeper)


def leads_after_a_loss(directory: Path, zookeeper: MemoryZooKeeper) -> Harness:
    directory.mkdir()
    made = Harness(directory)
    made.partition.log_guard.configure(LogConfig(segment_bytes=100, remote_storage=True))
    lead_after_a_loss(made, zookeeper)
    return made


def lead_after_a_loss(harness: Harness, zookeeper: MemoryZooKeeper, epoch: int = LOSSY_EPOCH) -> None:
    led_by_us(zookeeper, epoch)
    harness.told(1, epoch, isr=(1,), replicas=(1, 2), lost_in_epoch=LOSSY_EPOCH)


def questions(
    harness: Harness,
    zookeeper: MemoryZooKeeper,
    store: RemoteStore | None,
    url: str = URL,
    cluster: str = CLUSTER,
) -> HistoryQuestions:
    ports = QuestionPorts(zookeeper, store, url, cluster, SystemClock())
    return HistoryQuestions(lambda: [harness.partition], ports, loops=1)


def ask(asking: HistoryQuestions) -> None:
    """Until the loop awaits something: another leadership, or the time of its next try."""
    loop = asking.loop(0)
    while not isinstance(go_on(loop), Await):
        pass
    loop.close()


def compare(harness: Harness, zookeeper: MemoryZooKeeper, store: RemoteStore | None, **more: str) -> None:
    ask(questions(harness, zookeeper, store, **more))


# Before the answer


REQUESTS: list[tuple[Callable[[Harness], object], ErrorCode]] = [
    (lambda one: one.produce(batch()).error, ErrorCode.not_enough_replicas),
    (lambda one: one.produce(batch(), acks=1).error, ErrorCode.not_enough_replicas),
    (lambda one: one.consumer_fetches(0).error, ErrorCode.offset_not_available),
    (lambda one: one.follower_fetches(0).error, ErrorCode.offset_not_available),
    (
        lambda one: one.partition.reads.leader_offset(-1, lambda leader, log: 0),
        ErrorCode.offset_not_available,
    ),
    (lambda one: one.partition.reads.epoch_end(-1, 4), ErrorCode.offset_not_available),
    (lambda one: one.partition.delete_records(0, (), 1).error, ErrorCode.leader_not_available),
]


@pytest.mark.bug("B85")
@pytest.mark.parametrize(
    ("request_of", "error"),
    REQUESTS,
    ids=["acks=all", "acks=1", "fetch", "follower's fetch", "offsets", "epochs", "deletion"],
)
def test_nobody_is_served_before_the_answer(
    lost: Harness, request_of: Callable[[Harness], object], error: ErrorCode
) -> None:
    assert lost.partition.awaits_history
    assert request_of(lost) is error
    assert lost.log.log_end_offset == 0


@pytest.mark.parametrize("calls", range(5))
def test_a_store_that_fails_at_any_call_is_asked_again(
    lost: Harness, zookeeper: MemoryZooKeeper, store: FaultyStore, calls: int
) -> None:
    asking = questions(lost, zookeeper, store)
    store.fails_at = store.calls + 1 + calls
    ask(asking)
    if store.calls >= store.fails_at:
        assert lost.partition.awaits_history
        assert lost.partition.store_share is not None
        assert "serves nobody" in lost.partition.store_share.trouble
        ask(asking)
    assert lost.log.log_end_offset == COPIED


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cluster": "another"}, "belongs to cluster 'our cluster', not to 'another'"),
        (
            {"url": "file:///elsewhere"},
            "its history is in file:///h, and remote.log.storage.url=file:///elsewhere",
        ),
    ],
)
def test_another_store_is_not_taken_for_this_one(
    lost: Harness, zookeeper: MemoryZooKeeper, store: FaultyStore, given: dict[str, str], words: str
) -> None:
    compare(lost, zookeeper, store, **given)
    assert lost.partition.awaits_history
    assert lost.partition.store_share is not None
    assert words in lost.partition.store_share.trouble


def test_a_broker_without_a_store_waits_where_there_is_a_history(
    lost: Harness, zookeeper: MemoryZooKeeper
) -> None:
    compare(lost, zookeeper, None, url="")
    assert lost.partition.awaits_history


def test_a_damaged_state_is_named_and_the_leader_waits(
    lost: Harness, zookeeper: MemoryZooKeeper, store: FaultyStore
) -> None:
    name = max(one for one in store.objects if one.endswith("state"))
    store.objects[name] = store.objects[name][:-1] + b"?"
    compare(lost, zookeeper, store)
    assert lost.partition.awaits_history
    assert lost.partition.store_share is not None
    assert lost.partition.store_share.end_offset == COPIED


def test_a_head_that_cannot_be_read_is_no_empty_history(
    lost: Harness, zookeeper: MemoryZooKeeper, store: FaultyStore
) -> None:
    zookeeper.set(head_path(QUAKES), b"{}")
    compare(lost, zookeeper, store)
    assert lost.partition.awaits_history
    assert lost.partition.store_share is not None
    assert "is no manifest" in lost.partition.store_share.trouble


# The answer


def test_an_empty_log_begins_anew_at_the_end_of_the_history(
    lost: Harness, zookeeper: MemoryZooKeeper, store: FaultyStore
) -> None:
    compare(lost, zookeeper, store)
    log = lost.log
    assert not lost.partition.awaits_history
    assert (log.log_start_offset, log.local_start_offset, log.log_end_offset) == (0, COPIED, COPIED)
    assert lost.partition.high_watermark == COPIED
    assert [tuple(entry) for entry in log.epochs.entries] == [(4, 0), (LOSSY_EPOCH, COPIED)]
    assert lost.produce(batch(), acks=1).base_offset == COPIED
    assert lost.consumer_fetches(0).history is not None


def test_what_it_knows_of_before_is_there_after_a_restart(
    tmp_path: Path, lost: Harness, zookeeper: MemoryZooKeeper, store: FaultyStore
) -> None:
    compare(lost, zookeeper, store)
    lost.log.close()
    again = Log.open(
        lost.log.directory, TP, lost.log.topic_id, LogConfig(), lost.log.disk, SystemClock(),
        recovery_point=0, clean=False,
    )  # fmt: skip
    assert (again.log_start_offset, again.local_start_offset, again.log_end_offset) == (0, COPIED, COPIED)
    assert again.epochs.entries[0] == (4, 0)


def test_a_log_that_began_anew_and_has_no_record_yet_asks_again_and_goes_on(
    lost: Harness, zookeeper: MemoryZooKeeper, store: FaultyStore
) -> None:
    compare(lost, zookeeper, store)
    lead_after_a_loss(lost, zookeeper, LOSSY_EPOCH + 1)
    assert lost.partition.awaits_history, "its predecessor may have died before it compared"
    generation = lost.log.generation
    compare(lost, zookeeper, store)
    assert (lost.log.log_end_offset, lost.log.generation) == (COPIED, generation)


def test_with_a_record_since_the_loss_it_asks_no_more(
    lost: Harness, zookeeper: MemoryZooKeeper, store: FaultyStore
) -> None:
    compare(lost, zookeeper, store)
    assert lost.produce(batch(), acks=1).error is ErrorCode.none
    lead_after_a_loss(lost, zookeeper, LOSSY_EPOCH + 1)
    assert not lost.partition.awaits_history


def test_deleted_records_do_not_return(lost: Harness, zookeeper: MemoryZooKeeper, store: FaultyStore) -> None:
    stored = read_head(zookeeper, QUAKES)
    assert stored is not None
    leadership = Leadership(BrokerId(1), LeaderEpoch(LOSSY_EPOCH))
    assert write_head(zookeeper, QUAKES, leadership, stored.head.from_offset(5), stored)
    compare(lost, zookeeper, store)
    assert (lost.log.log_start_offset, lost.log.log_end_offset) == (5, COPIED)
    assert lost.log.epochs.entries[0] == (4, 5)
    assert lost.consumer_fetches(4).error is ErrorCode.offset_out_of_range


def test_a_topic_without_a_history_or_that_has_left_the_store_does_not_wait_for_it(
    tmp_path: Path, zookeeper: MemoryZooKeeper
) -> None:
    one = leads_after_a_loss(tmp_path / "one", zookeeper)
    compare(one, zookeeper, None, url="")
    assert not one.partition.awaits_history
    zookeeper.ensure_path(head_path(QUAKES))
    two = leads_after_a_loss(tmp_path / "two", zookeeper)
    two.partition.log_guard.configure(LogConfig(remote_storage=False))
    compare(two, zookeeper, None, url="")
    assert not two.partition.awaits_history
    assert (one.log.log_end_offset, two.log.log_end_offset) == (0, 0)


def test_the_answer_to_an_earlier_leader_epoch_changes_nothing(
    lost: Harness, zookeeper: MemoryZooKeeper, store: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = questions(lost, zookeeper, store)
    compared = HistoryQuestions._compare

    def deposed_meanwhile(*asked: Any) -> object:
        beginning = compared(*asked)
        lost.told(2, LOSSY_EPOCH + 1, lost_in_epoch=LOSSY_EPOCH)
        return beginning

    monkeypatch.setattr(HistoryQuestions, "_compare", deposed_meanwhile)
    ask(asking)
    assert lost.log.log_end_offset == 0


def test_an_operator_who_gave_up_the_store_is_obeyed(lost: Harness, zookeeper: MemoryZooKeeper) -> None:
    epoch, only = LeaderEpoch(LOSSY_EPOCH + 1), (BrokerId(1),)
    given_up = PartitionState(
        BrokerId(1), epoch, only, only, lost_in_epoch=epoch, store_given_up_in_epoch=epoch
    )
    lost.partition.on_leader_and_isr(given_up, broker_epoch=BrokerEpoch(10))
    lost.partition.log_guard.deliver()
    assert not lost.partition.awaits_history
    assert lost.produce(batch(), acks=1).base_offset == 0


# Producers


def numbered(sequence: int) -> bytearray:
    value = Record(value=b"%d" % sequence)
    return bytearray(
        build_records_batch([value], now_ms=1_000, producer_id=5, producer_epoch=0, base_sequence=sequence)
    )


@pytest.fixture
def numbered_log(tmp_path: Path, zookeeper: MemoryZooKeeper) -> Harness:
    """A leader with a segment for each of a producer's batches."""
    (tmp_path / "numbered").mkdir()
    made = Harness(tmp_path / "numbered")
    made.told(1, 4, isr=(1,), replicas=(1,))
    made.partition.log_guard.configure(LogConfig(segment_bytes=200, remote_storage=True))
    for sequence in range(12):
        assert made.produce(numbered(sequence)).error is ErrorCode.none
    return made


def end_of(zookeeper: MemoryZooKeeper) -> tuple[Head, int]:
    stored = read_head(zookeeper, QUAKES)
    assert stored is not None
    assert stored.head.end_offset is not None
    return stored.head, stored.head.end_offset


def test_a_batch_that_the_store_has_is_known_when_it_is_sent_again(
    tmp_path: Path, numbered_log: Harness, zookeeper: MemoryZooKeeper
) -> None:
    store = FaultyStore()
    round_of(numbered_log, zookeeper, store, itertools.count(1))
    store.objects[MARK] = CLUSTER.encode().ljust(MARK_BYTES, b"\n")
    _, end = end_of(zookeeper)
    lost = leads_after_a_loss(tmp_path / "other", zookeeper)
    compare(lost, zookeeper, store)
    assert lost.produce(numbered(end - 1), acks=1).base_offset == end - 1
    assert lost.produce(numbered(end + 1), acks=1).error is ErrorCode.out_of_order_sequence_number
    assert lost.produce(numbered(end), acks=1).base_offset == end


def test_a_batch_from_behind_a_cut_within_a_segment_is_new_when_it_is_sent_again(
    tmp_path: Path, numbered_log: Harness, zookeeper: MemoryZooKeeper
) -> None:
    store = FaultyStore()
    round_of(numbered_log, zookeeper, store, itertools.count(1))
    store.objects[MARK] = CLUSTER.encode().ljust(MARK_BYTES, b"\n")
    head, end = end_of(zookeeper)
    assert head.entries[-1].base_offset < end - 1, "a segment of one batch cannot be cut within"
    stored = read_head(zookeeper, QUAKES)
    assert stored is not None
    cut = head.cut_to(end - 1, leader_epoch=4)
    assert write_head(zookeeper, QUAKES, Leadership(BrokerId(1), LeaderEpoch(4)), cut, stored)
    lost = leads_after_a_loss(tmp_path / "other", zookeeper)
    compare(lost, zookeeper, store)
    assert lost.log.log_end_offset == end - 1
    assert lost.produce(numbered(end - 2), acks=1).base_offset == end - 2, "a retry of what is there"
    assert lost.produce(numbered(end - 1), acks=1).base_offset == end - 1, "it was cut, and is appended"
    assert lost.log.log_end_offset == end
