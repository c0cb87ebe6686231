"""The copier upon a store that fails at any call, also after it acted: what the head leads to is the log."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sparklog.broker.remote_log.copying.copier import CopierPorts, RemoteCopier
from sparklog.broker.remote_log.copying.deletion import RemoteLogDeletion
from sparklog.broker.remote_log.copying.heads import Leadership, read_head, write_head
from sparklog.broker.remote_log.copying.segment_source import facts_of
from sparklog.core.controller.state.znodes import (
    encode_state,
    state_path,
)
from sparklog.core.remote_log.head import TAIL_MAX, segments_before
from sparklog.core.remote_log.page import build_page
from sparklog.core.remote_log.remote_segment import RemoteSegment
from sparklog.core.remote_log.state_object import parse_state
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId, ControllerEpoch, LeaderEpoch
from sparklog.model.loops import Loop, Pause, go_on
from sparklog.model.zookeeper import ConnectionLost, Operation
from sparklog.network.clock import SystemClock
from sparklog.records.envelope import split, stamp
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.remote_segment.rest_object import open_rest_object, rebuild
from sparklog.records.restamp import set_producer
from sparklog.storage.log_config import LogConfig
from sparklog.testing.memory_zookeeper import MemoryZooKeeper
from tests.broker.partition_harness import TP, Harness
from tests.broker.remote_log.copying.copies import INTERVAL_MS, QUAKES, FaultyStore, copied


def round_of(harness: Harness, zookeeper: MemoryZooKeeper, store: FaultyStore, ids: Iterator[int]) -> None:
    """One round, to its pause, of a copier that has just started."""
    ports = CopierPorts(
        zookeeper, lambda: store, "file:///h", SystemClock(), lambda: f"{next(ids):032x}", lambda _: None
    )
    loop = RemoteCopier(BrokerId(1), lambda: [harness.partition], ports, INTERVAL_MS).loop()
    question = go_on(loop)
    while question != Pause(INTERVAL_MS):
        question = go_on(loop)
    loop.close()


def batches_of(store: FaultyStore, segment: RemoteSegment) -> bytes:
    rest, arrow = (store.objects[QUAKES.object_name(segment, suffix)] for suffix in ("rest", "arrow"))
    assert parse_state(segment, store.objects[QUAKES.object_name(segment, "state")]).epochs == ((4, 0),)
    _, entries = open_rest_object(lambda start, length: rest[start : start + length], segment.rest_bytes)
    return b"".join(
        rebuild(
            entry,
            lambda start, length: rest[start : start + length],
            lambda start, length: arrow[start : start + length],
        )
        for entry in entries
    )


def log_bytes(harness: Harness) -> bytes:
    """Of the sealed segments."""
    return b"".join(one.file.pread(one.size_bytes, 0) for one in harness.log.segments[:-1])


def test_all_sealed_segments_are_copied_and_the_tail_becomes_a_page(
    harness: Harness, zookeeper: MemoryZooKeeper
) -> None:
    store = FaultyStore()
    round_of(harness, zookeeper, store, itertools.count(1))
    segments = copied(zookeeper, store)
    assert len(segments) == TAIL_MAX + 1
    assert b"".join(batches_of(store, one) for one in segments) == log_bytes(harness)
    named = {name for one in segments for name in QUAKES.object_names(one)}
    assert {name for name in store.objects if not name.endswith(".page")} == named


@pytest.mark.parametrize("acts", [False, True], ids=["instead", "after"])
def test_a_failure_at_any_call_loses_and_repeats_nothing(
    harness: Harness, zookeeper: MemoryZooKeeper, acts: bool
) -> None:
    ids = itertools.count(1)
    store = FaultyStore(acts=acts)
    failures = 0
    while len(copied(zookeeper, store)) < TAIL_MAX + 1:
        store.fails_at = store.calls + 1 + failures % 7
        failures += 1
        round_of(harness, zookeeper, store, ids)
        for segment in copied(zookeeper, store):
            batches_of(store, segment)
    assert failures > TAIL_MAX / 2
    segments = copied(zookeeper, store)
    assert [one.base_offset for one in segments] == list(range(TAIL_MAX + 1))
    assert b"".join(batches_of(store, one) for one in segments) == log_bytes(harness)


def test_what_leaves_the_log_leaves_the_head_first(harness: Harness, zookeeper: MemoryZooKeeper) -> None:
    ids, store = itertools.count(1), FaultyStore()
    round_of(harness, zookeeper, store, ids)
    harness.partition.log_guard.rearrange(lambda log: log.raise_log_start(10))
    deletes_from = store.calls + 3  # a page is read before and after the head is written
    store.fails_at = deletes_from
    round_of(harness, zookeeper, store, ids)
    stored = read_head(zookeeper, QUAKES)
    assert stored is not None
    assert stored.head.start_offset == 10
    live = [one for one in copied(zookeeper, store) if one.end_offset > 10]
    assert (
        b"".join(batches_of(store, one) for one in live)
        == log_bytes(harness)[-sum(one.size_bytes for one in live) :]
    )


@pytest.mark.parametrize(
    ("end", "pages"),
    [
        pytest.param(TAIL_MAX + 1, 1, id="through the tail"),
        pytest.param(10, 1, id="through a page"),
        pytest.param(0, 0, id="before all"),
    ],
)
def test_an_unclean_election_cuts_the_history_and_nothing_of_the_new_log_is_lost(
    harness: Harness, zookeeper: MemoryZooKeeper, end: int, pages: int
) -> None:
    """Its log ends at ``end``, and has grown behind that when the copier first sees it."""
    ids, store = itertools.count(1), FaultyStore()
    harness.produce(several(3, number=90))
    harness.produce(several(1, number=91))
    round_of(harness, zookeeper, store, ids)
    lost = copied(zookeeper, store)
    assert lost[-1].end_offset == TAIL_MAX + 5
    led_again(harness, zookeeper, end, epoch=6)
    for number in range(4):
        harness.produce(several(3, number=number))
    one_round(history_of(harness, zookeeper, store).loop())
    assert harness.log.local_start_offset <= end, "no disk gives up what the store has of a lost log alone"
    round_of(harness, zookeeper, store, ids)
    stored = read_head(zookeeper, QUAKES)
    assert stored is not None
    assert (stored.head.end_offset, len(stored.head.pages)) == (harness.log.segments[-1].base_offset, pages)
    segments = copied(zookeeper, store)
    assert [one.leader_epoch for one in segments if one.base_offset >= end] == [6, 6, 6]
    assert all(one in lost for one in segments if one.end_offset <= end)
    one_round(history_of(harness, zookeeper, store).loop())
    assert harness.log.local_start_offset == stored.head.end_offset


def test_a_history_that_shares_less_than_the_disk_lacks_is_never_cut(
    harness: Harness, zookeeper: MemoryZooKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    ids, store = itertools.count(1), FaultyStore()
    round_of(harness, zookeeper, store, ids)
    before = read_head(zookeeper, QUAKES)
    one_round(history_of(harness, zookeeper, store).loop())
    assert harness.log.local_start_offset == TAIL_MAX + 1
    harness.log.epochs.begin_with(())
    led_again(harness, zookeeper, TAIL_MAX + 1, epoch=6)
    round_of(harness, zookeeper, store, ids)
    assert read_head(zookeeper, QUAKES) == before
    assert (
        "this one, which begins on this disk at 33, lost the leader epochs that show what both" in caplog.text
    )


def test_behind_a_hole_that_two_unclean_elections_left_copies_go_on(
    harness: Harness, zookeeper: MemoryZooKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    """Another leader, whose log ended at 10, cut what this one has given up on its disk."""
    ids, store = itertools.count(1), FaultyStore()
    round_of(harness, zookeeper, store, ids)
    one_round(history_of(harness, zookeeper, store).loop())
    assert harness.log.local_start_offset == TAIL_MAX + 1
    before = copied(zookeeper, store)
    cut_by_another(zookeeper, store, 10)
    led_again(harness, zookeeper, TAIL_MAX + 2, epoch=6)
    for number in range(3):
        harness.produce(several(1, number=number))
    round_of(harness, zookeeper, store, ids)
    segments = copied(zookeeper, store)
    assert segments[:10] == before[:10]
    bounds = [(one.base_offset, one.end_offset) for one in segments[10:]]
    assert (bounds[0][0], bounds[-1][1]) == (TAIL_MAX + 1, harness.log.segments[-1].base_offset)
    assert harness.log.log_start_offset == 0
    assert caplog.text.count("unclean elections lost offsets 10 to 33, which no disk") == 1
    round_of(harness, zookeeper, store, ids)
    assert caplog.text.count("unclean elections lost offsets") == 1


def test_a_log_of_which_the_store_has_nothing_any_more_begins_with_its_disk(
    harness: Harness, zookeeper: MemoryZooKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    ids, store = itertools.count(1), FaultyStore()
    round_of(harness, zookeeper, store, ids)
    one_round(history_of(harness, zookeeper, store).loop())
    cut_by_another(zookeeper, store, 0)
    led_again(harness, zookeeper, TAIL_MAX + 2, epoch=6)
    harness.produce(several(1, number=1))
    round_of(harness, zookeeper, store, ids)
    assert harness.log.log_start_offset == harness.log.local_start_offset == TAIL_MAX + 1
    assert copied(zookeeper, store)[0].base_offset == TAIL_MAX + 1
    assert caplog.text.count("unclean elections lost offsets 0 to 33, which no disk") == 1


def test_a_leader_that_was_replaced_does_not_give_up_the_start_of_its_log(
    harness: Harness, zookeeper: MemoryZooKeeper
) -> None:
    ids, store = itertools.count(1), FaultyStore()
    round_of(harness, zookeeper, store, ids)
    one_round(history_of(harness, zookeeper, store).loop())
    cut_by_another(zookeeper, store, 0)
    round_of(harness, zookeeper, store, ids)
    assert harness.log.log_start_offset == 0


class StoreWhereSomethingHappens(FaultyStore):
    """Calls ``happens`` in the middle of the upload of the first object with ``suffix``."""

    def __init__(self, suffix: str, happens: Callable[[], None]) -> None:
        super().__init__()
        self._suffix, self._happens = suffix, happens

    def put(self, name: str, pieces: Iterable[bytes]) -> int:
        if name.endswith(self._suffix):
            self._suffix = "never again"
            self._happens()
        return super().put(name, pieces)


@pytest.mark.parametrize("suffix", ["arrow", "rest", "state"])
def test_a_copy_that_is_given_up_as_another_leads_deletes_what_it_has_uploaded(
    harness: Harness, zookeeper: MemoryZooKeeper, suffix: str
) -> None:
    def elect_another() -> None:
        state = PartitionState(BrokerId(2), LeaderEpoch(5), (BrokerId(2),), (BrokerId(1), BrokerId(2)))
        zookeeper.set(state_path(*TP), encode_state(state, ControllerEpoch(1)))

    store = StoreWhereSomethingHappens(suffix, elect_another)
    round_of(harness, zookeeper, store, itertools.count(1))
    assert store.objects == {}
    assert read_head(zookeeper, QUAKES) is None


@pytest.mark.parametrize("suffix", ["arrow", "rest"])
def test_a_copy_whose_segment_leaves_the_log_deletes_what_it_has_uploaded(
    harness: Harness, zookeeper: MemoryZooKeeper, suffix: str
) -> None:
    end = harness.log.segments[-1].base_offset
    store = StoreWhereSomethingHappens(
        suffix, lambda: harness.partition.log_guard.rearrange(lambda log: log.raise_log_start(end))
    )
    round_of(harness, zookeeper, store, itertools.count(1))
    assert store.objects == {}
    assert read_head(zookeeper, QUAKES) is None


def test_a_copy_whose_outcome_is_unknown_deletes_nothing(
    harness: Harness, zookeeper: MemoryZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The head may name the segment."""
    multi = zookeeper.multi

    def lose_the_answer(operations: Sequence[Operation]) -> list[Any]:
        results = multi(operations)
        if len(operations) > 1:  # that of the head
            raise ConnectionLost("the answer is lost")
        return results

    store = FaultyStore()
    monkeypatch.setattr(zookeeper, "multi", lose_the_answer)
    round_of(harness, zookeeper, store, itertools.count(1))
    monkeypatch.undo()
    (segment,) = copied(zookeeper, store)
    assert {QUAKES.object_name(segment, "rest"), QUAKES.object_name(segment, "state")} <= store.objects.keys()


def cut_by_another(zookeeper: MemoryZooKeeper, store: FaultyStore, end: int) -> None:
    """The leader of epoch 5 cuts the history to ``end``, and copies nothing."""
    state = PartitionState(BrokerId(2), LeaderEpoch(5), (BrokerId(2),), (BrokerId(1), BrokerId(2)))
    zookeeper.set(state_path(*TP), encode_state(state, ControllerEpoch(1)))
    stored = read_head(zookeeper, QUAKES)
    assert stored is not None
    through, page = stored.head.page_to_cut(end), None
    if through is not None:
        page, data = build_page(QUAKES, "f" * 32, segments_before(copied(zookeeper, store), end))
        store.objects[QUAKES.page_name(page.base_offset, page.page_id)] = data
    cut = stored.head.cut_to(end, 5, page)
    assert write_head(zookeeper, QUAKES, Leadership(BrokerId(2), 5), cut, stored)


def several(count: int, *, number: int) -> bytearray:
    records = [Record(value=b"%d" % number)] * count
    return bytearray(build_records_batch(records, now_ms=1_000 + number))


def led_again(harness: Harness, zookeeper: MemoryZooKeeper, end: int, *, epoch: int) -> None:
    """The log loses what is from ``end`` on, and is elected."""
    harness.told(2, epoch - 1, isr=(2,), replicas=(1, 2))
    harness.partition.log_guard.rearrange(lambda log: log.truncate_to(end))
    harness.told(1, epoch, isr=(1,), replicas=(1,))
    only = (BrokerId(1),)
    state = PartitionState(BrokerId(1), LeaderEpoch(epoch), only, only)
    zookeeper.set(state_path(*TP), encode_state(state, ControllerEpoch(1)))


def history_of(harness: Harness, zookeeper: MemoryZooKeeper, store: FaultyStore) -> RemoteLogDeletion:
    """Of a topic whose disks keep the active segment alone."""
    config = LogConfig(segment_bytes=100, remote_storage=True, local_retention_bytes=0, retention_ms=-1)
    harness.partition.log_guard.configure(config)
    return RemoteLogDeletion(lambda: [harness.partition], zookeeper, store, SystemClock(), INTERVAL_MS)


def one_round(loop: Loop) -> None:
    while go_on(loop) != Pause(INTERVAL_MS):
        pass


def test_another_url_with_history_behind_the_old_one_copies_nothing(
    harness: Harness, zookeeper: MemoryZooKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    round_of(harness, zookeeper, FaultyStore(), itertools.count(1))
    ports = CopierPorts(
        zookeeper, FaultyStore, "file:///other", SystemClock(), lambda: "0" * 32, lambda _: None
    )
    loop = RemoteCopier(BrokerId(1), lambda: [harness.partition], ports, INTERVAL_MS).loop()
    assert go_on(loop) == Pause(INTERVAL_MS)
    assert "is in file:///h, and remote.log.storage.url=file:///other: set it back" in caplog.text


@pytest.mark.parametrize("start", [1, 3, 4])
def test_a_log_that_begins_in_the_middle_of_a_segment_is_copied_from_that_batch_on(
    tmp_path: Path, zookeeper: MemoryZooKeeper, start: int
) -> None:
    """DeleteRecords raises a start to any offset; batches here have offsets 0, 1-2, 3-4 and 5."""
    harness = Harness(tmp_path)
    harness.told(1, 4, isr=(1,), replicas=(1,))
    harness.partition.log_guard.configure(LogConfig(segment_bytes=250, remote_storage=True))
    for number, count in enumerate((1, 2, 2, 1)):
        records = [Record(value=b"%d" % number)] * count
        harness.produce(bytearray(build_records_batch(records, now_ms=1_000 + number)))
    assert harness.log.segment_bases == [0, 5]
    harness.partition.log_guard.rearrange(lambda log: log.raise_log_start(start))
    store = FaultyStore()
    round_of(harness, zookeeper, store, itertools.count(1))
    (segment,) = copied(zookeeper, store)
    assert (segment.base_offset, segment.end_offset) == (1 if start == 1 else 3, 5)
    rest = store.objects[QUAKES.object_name(segment, "rest")]
    _, entries = open_rest_object(lambda begin, length: rest[begin : begin + length], segment.rest_bytes)
    assert [one.base_offset for one in entries] == ([1, 3] if start == 1 else [3])


def test_a_transaction_above_the_high_watermark_makes_nothing_below_it_stable(tmp_path: Path) -> None:
    """What is not committed may be lost with its leader, and would stay in the store."""
    harness = Harness(tmp_path)
    harness.told(1, 4, isr=(1, 2), replicas=(1, 2))
    harness.partition.log_guard.configure(LogConfig(segment_bytes=100, remote_storage=True))
    for number in range(3):
        harness.produce(bytearray(build_records_batch([Record(value=b"%d" % number)], now_ms=1_000)))
    transactional = bytearray(build_records_batch([Record(value=b"open")], now_ms=1_000))
    set_producer(transactional, 0, 7, 0, 0, is_transactional=True)
    stamp(transactional, 0, 3, 4)
    harness.log.append(transactional, split(transactional))
    facts = harness.partition.inspect(facts_of)
    assert facts is not None
    assert (harness.log.log_end_offset, facts.reach.last_stable_offset) == (4, 0)
