"""What a consumer of a compacted topic has to have found when all is healed."""

from types import SimpleNamespace

import pytest

from simulation.clients.consumers import consumer_unrest
from simulation.invariants.invariant import Violation

TRUTH = SimpleNamespace(
    topic_partition="quakes-0",
    committed_end=10,
    is_thinned=True,
    forgiven_end=0,
    latest={b"ak1": 7, b"ci2": 9},
    records={7: SimpleNamespace(is_tombstone=True), 9: SimpleNamespace(is_tombstone=False)},
)
WITHOUT_THE_TOMBSTONE = {b"ak1": (5, b"x"), b"ci2": (9, b"y")}


class Reader:
    def __init__(self, table, *, offset=10, has_followed=False):
        self.name, self.table, self.offset, self.has_followed = "consumer-0", table, offset, has_followed

    def start_again_at_the_leader(self):
        self.table, self.offset, self.has_followed = {}, 0, False


@pytest.mark.parametrize("table", [{b"ci2": (9, b"y")}, {b"ak1": (7, None), b"ci2": (9, b"y")}])
def test_who_found_the_last_of_each_key_is_at_rest(table):
    assert consumer_unrest(Reader(table), TRUTH) is None


def test_who_never_heard_that_a_key_was_deleted_shows_a_violation():
    with pytest.raises(Violation, match="CompactionKeepsTheLatest"):
        consumer_unrest(Reader(WITHOUT_THE_TOMBSTONE), TRUTH)


def test_who_read_from_a_follower_that_has_followed_reads_again_and_has_to_find_it_then():
    """The leader may have removed a tombstone before it came to that follower; seeds 281314, 400580."""
    reader = Reader(WITHOUT_THE_TOMBSTONE, has_followed=True)
    assert "reads again" in consumer_unrest(reader, TRUTH)
    assert "up to 0 of 10" in consumer_unrest(reader, TRUTH)
    reader.table, reader.offset = WITHOUT_THE_TOMBSTONE, 10
    with pytest.raises(Violation, match="CompactionKeepsTheLatest"):
        consumer_unrest(reader, TRUTH)


@pytest.mark.parametrize(
    "table",
    [
        pytest.param({}, id="nothing"),
        pytest.param({b"ci2": (8, b"x")}, id="an older value"),
        pytest.param({b"ci2": (9, b"y"), b"nc3": (4, b"z")}, id="a key that nobody wrote"),
    ],
)
def test_nothing_but_a_missed_deletion_is_excused_by_that(table):
    with pytest.raises(Violation, match="CompactionKeepsTheLatest"):
        consumer_unrest(Reader(table, has_followed=True), TRUTH)
