"""Writes in a producer's transaction, and its end, reach the machine in the order of the log."""

import pytest

from sparklog.core.coordinator.actions import Producer
from sparklog.core.coordinator.shard import Committed, MayBeCommitted, NotAppended
from sparklog.model.errors import ErrorCode
from tests.core.coordinator.toy_machine import Driven

ALICE, BOB = Producer(7, 0), Producer(8, 3)
COMMIT_OF_ALICE, ABORT_OF_ALICE = (7, True), (7, False)


@pytest.fixture
def shard():
    return Driven()


def test_an_append_has_one_producer_or_none_and_the_order_of_writes_is_kept(shard):
    shard.ask(1, "first", "v")
    for token, (key, producer) in enumerate(
        [("a", ALICE), ("b", ALICE), ("c", BOB), ("d", None), ("e", None), ("f", ALICE)], start=2
    ):
        shard.ask(token, key, "v", producer=producer)
    for _ in range(5):
        shard.commit()
    assert [append.producer for append in shard.appends] == [None, ALICE, BOB, None, ALICE]
    assert [len(append.records) for append in shard.appends] == [1, 2, 1, 2, 1]
    assert shard.machine.seen == ["first", "a", "b", "c", "d", "e", "f"]


def test_an_end_counts_at_once_if_no_append_is_under_way(shard):
    shard.ask(1, "a", "v", producer=ALICE)
    shard.commit()
    shard.end(7, offset=1)
    assert shard.machine.seen == ["a", COMMIT_OF_ALICE]


@pytest.mark.parametrize(
    ("marker_offset", "seen"),
    [(4, [ABORT_OF_ALICE, "late"]), (6, ["late", ABORT_OF_ALICE])],
    ids=["marker before the records", "marker behind the records"],
)
def test_an_end_waits_for_the_append_under_way_and_counts_where_its_marker_is(shard, marker_offset, seen):
    shard.ask(1, "late", "v", producer=ALICE)
    shard.end(7, offset=marker_offset, is_commit=False)
    assert shard.machine.seen == []
    shard.outcome(Committed(6))
    assert shard.machine.seen == seen


def test_an_end_behind_a_refused_append_counts(shard):
    shard.ask(1, "a", "v", producer=ALICE)
    shard.end(7, offset=3)
    shard.outcome(NotAppended(ErrorCode.not_enough_replicas))
    assert shard.machine.seen == [COMMIT_OF_ALICE]


def test_the_marker_behind_an_append_in_doubt_settles_it(shard):
    """What is below a committed marker is committed."""
    shard.ask(1, "a", "v", producer=ALICE)
    shard.outcome(MayBeCommitted(ErrorCode.request_timed_out, 1))
    assert shard.machine.seen == []
    shard.end(7, offset=1)
    assert shard.machine.seen == ["a", COMMIT_OF_ALICE]


def test_an_end_during_the_load_counts_after_it(shard):
    loading = Driven(is_active=False)
    loading.end(7, offset=5)
    assert loading.machine.seen == []
    loading.load()
    assert loading.machine.is_loaded
    assert loading.machine.seen == [COMMIT_OF_ALICE]


def test_ends_after_the_resignation_are_void(shard):
    shard.ask(1, "a", "v", producer=ALICE)
    shard.end(7, offset=1)
    shard.resign()
    shard.end(7, offset=1)
    shard.outcome(Committed(1))
    assert shard.machine.seen == []
