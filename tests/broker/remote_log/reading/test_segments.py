"""Batches of remote segments out of a store, and of stores whose objects are damaged."""

import threading
import uuid
from dataclasses import replace

import pytest

from sparklog.broker.partition.answers import HistoryRange, HistoryTime
from sparklog.broker.remote_log.reading import segments as under_test
from sparklog.broker.remote_log.reading.segments import (
    HistoryCut,
    HistoryMissing,
    StoredSegment,
    StoredSegments,
)
from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.model.errors import CorruptBatch
from sparklog.model.ids import TopicPartition
from sparklog.model.transaction_end import TransactionEnd
from sparklog.records.control import build_marker
from sparklog.records.envelope import Compression, stamp
from sparklog.records.remote_segment.rest_object import open_rest_object
from sparklog.remote.open_store import open_store
from sparklog.remote.store import Failure, RemoteStoreError
from tests.records.remote_segment.segments import PLAIN, build, make, reader

TP = TopicPartition("orders", 3)
TOPIC_ID = uuid.UUID(int=7)
ABORTED = AbortedTransaction(9, 110, 130, 110)


def wanted(offset, *epochs) -> HistoryRange:
    return HistoryRange(
        TOPIC_ID, TP, offset, 10_000, 1 << 20, True, False, EpochHistory.of(epochs).before(10_000)
    )


class Store:
    """Objects in memory; what was read of them."""

    def __init__(self, objects) -> None:
        self.objects, self.reads = objects, []

    def read(self, name, start, length) -> bytes:
        self.reads.append((name, length))
        if name not in self.objects:
            raise RemoteStoreError(Failure.MISSING, f"{name} is missing")
        data = self.objects[name][start : start + length]
        if len(data) < length:
            raise RemoteStoreError(Failure.SHORT, f"{name} ends at {len(self.objects[name])}")
        return data


class OneSegment:
    """A catalog of one segment. ``asked``: whether what it says had to be fresh."""

    def __init__(self, segment) -> None:
        self.segment, self.asked = segment, []

    def segment_for(self, topic_id, topic_partition, offset, *, is_fresh=False):
        self.asked.append(is_fresh)
        if not self.segment.base_offset <= offset < self.segment.end_offset:
            raise HistoryMissing(f"no remote segment has offset {offset}")
        return self.segment

    def segments_from_time(self, topic_id, topic_partition, timestamp_ms):
        return [self.segment]


def marker_at(offset: int) -> bytes:
    """The end of a transaction, later than all records."""
    marker = bytearray(build_marker(TransactionEnd(True, 0), producer_id=9, producer_epoch=0, now_ms=9_000))
    stamp(marker, 0, offset, 0)
    return bytes(marker)


class Shelf:
    """A segment of ten batches of five records from offset 100 on, and its two objects."""

    def __init__(self, kind="arrow", codec=Compression.NONE, *, kinds=None, marker=None, **options) -> None:
        self.batches = [
            make(kinds[nth % len(kinds)] if kinds else kind, codec, PLAIN, 100 + 5 * nth) for nth in range(10)
        ]
        if marker is not None:
            self.batches[marker] = marker_at(100 + 5 * marker)
        built = build(self.batches, **options)
        self.store = Store({"x.arrow": built.arrow, "x.rest": built.rest})
        segment = StoredSegment(100, 150, "x.rest", len(built.rest), "x.arrow", (ABORTED,))
        self.source = StoredSegments(self.store, OneSegment(segment), threading.Lock())

    def run(self, offset, size=1 << 20):
        return self.source.run_from(wanted(offset), offset, size)

    def damage(self, name, position, text=b"\xff\xfe") -> None:
        data = bytearray(self.store.objects[name])
        data[position : position + len(text)] = text
        self.store.objects[name] = bytes(data)

    def place_of(self, batch: int) -> int:
        """Where a batch's body begins in its object of rows."""
        rest = self.store.objects["x.rest"]
        return open_rest_object(reader(rest), len(rest))[1][batch].body_position


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
@pytest.mark.parametrize(
    "options", [{"kind": "arrow"}, {"kind": "records"}, {"kinds": ["arrow", "records"]}, {"is_raw": True}]
)
def test_every_batch_comes_back_byte_for_byte(codec, options) -> None:
    shelf = Shelf(codec=codec, **options)
    run = shelf.run(100)
    assert run.data == b"".join(shelf.batches)
    assert (run.first_offset, run.next_offset, len(run.ends)) == (100, 150, 10)


def test_a_run_begins_with_the_batch_that_holds_the_offset_and_ends_when_it_is_large() -> None:
    shelf = Shelf()
    run = shelf.run(112, 3 * len(shelf.batches[0]))
    assert run.data == b"".join(shelf.batches[2:5])
    assert (run.first_offset, run.next_offset) == (110, 125)
    assert shelf.run(149, 1).data == shelf.batches[9]


def test_a_run_takes_two_reads_and_the_index_is_read_once() -> None:
    shelf = Shelf()
    shelf.run(100)
    assert [name for name, _ in shelf.store.reads] == ["x.rest", "x.rest", "x.rest", "x.arrow"]
    shelf.run(120)
    assert len(shelf.store.reads) == 6


def test_bodies_that_lie_far_apart_are_not_read_as_one(monkeypatch) -> None:
    monkeypatch.setattr(under_test, "GAP_BYTES_MAX", 0)
    shelf = Shelf()
    run = shelf.run(100)
    assert run.data == b"".join(shelf.batches)
    bodies = [length for name, length in shelf.store.reads if name == "x.arrow"]
    assert len(bodies) == 10
    assert sum(bodies) < len(run.data)


def test_few_indexes_stay_in_memory(monkeypatch) -> None:
    monkeypatch.setattr(under_test, "ENTRIES_KEPT_MAX", 15)
    shelf = Shelf()
    shelf.run(100)
    shelf.store.objects["y.rest"] = shelf.store.objects["x.rest"]
    segment = shelf.source.catalog.segment
    shelf.source.catalog.segment = StoredSegment(100, 150, "y.rest", segment.rest_size, "x.arrow")
    shelf.run(100)
    shelf.source.catalog.segment = segment
    shelf.store.reads.clear()
    shelf.run(100)
    assert len(shelf.store.reads) == 4, "the first index was read again"


def test_the_aborted_transactions_of_a_run_come_along() -> None:
    shelf = Shelf()
    one = len(shelf.batches[0])
    assert shelf.run(100, 2 * one).aborted == ()
    assert shelf.run(105, 2 * one).aborted == (ABORTED,)
    assert shelf.run(130, one).aborted == (ABORTED,)
    assert shelf.run(135, one).aborted == ()


def test_a_rotten_batch_ends_a_run_and_is_an_error_only_by_itself(caplog) -> None:
    shelf = Shelf()
    shelf.damage("x.arrow", shelf.place_of(4))
    assert shelf.run(100).data == b"".join(shelf.batches[:4])
    with pytest.raises(CorruptBatch, match=r"x\.rest or x\.arrow: "):
        shelf.run(120)
    assert shelf.run(125).data == b"".join(shelf.batches[5:])


def test_of_a_cut_object_what_is_before_the_cut_is_read() -> None:
    shelf = Shelf()
    shelf.store.objects["x.arrow"] = shelf.store.objects["x.arrow"][: shelf.place_of(3)]
    assert shelf.run(100).data == shelf.batches[0]
    with pytest.raises(RemoteStoreError, match=r"x\.arrow ends at"):
        shelf.run(116)


@pytest.mark.parametrize("name", ["x.rest", "x.arrow"])
def test_an_object_that_is_gone_is_told_by_its_name(name) -> None:
    shelf = Shelf()
    del shelf.store.objects[name]
    with pytest.raises(RemoteStoreError, match=name):
        shelf.run(100)


@pytest.mark.parametrize("position", [-3, -40, -100])
def test_a_rotten_index_is_told_with_the_object(position) -> None:
    shelf = Shelf()
    shelf.damage("x.rest", len(shelf.store.objects["x.rest"]) + position, b"\xff")
    with pytest.raises(CorruptBatch, match=r"x\.rest: "):
        shelf.run(100)


def test_an_object_of_another_segment_is_not_taken_for_this_one() -> None:
    shelf = Shelf()
    shelf.store.objects["x.arrow"] = Shelf("records").store.objects["x.arrow"] + bytes(100_000)
    with pytest.raises(CorruptBatch):
        shelf.run(100)


def test_a_manifest_that_says_more_than_the_object_has_is_told() -> None:
    shelf = Shelf()
    segment = shelf.source.catalog.segment
    shelf.source.catalog.segment = StoredSegment(100, 200, "x.rest", segment.rest_size, "x.arrow")
    with pytest.raises(HistoryMissing, match=r"x\.rest has no batch with offset 150"):
        shelf.run(150)


def first_of_time(shelf, timestamp_ms, *, start=100, end=150):
    return shelf.source.first_of_time(HistoryTime(TOPIC_ID, TP, timestamp_ms, start, end))


@pytest.mark.parametrize(
    ("timestamp_ms", "bounds", "found"),
    [
        pytest.param(0, {}, (100, 1_000), id="before all"),
        pytest.param(1_003, {}, (103, 1_003), id="within a batch"),
        pytest.param(1_005, {}, None, id="behind all"),
        pytest.param(1_003, {"start": 105}, (108, 1_003), id="not below the log start"),
        pytest.param(1_003, {"end": 103}, None, id="not from the local start on"),
        pytest.param(0, {"end": 100}, None, id="in no batch before the local start"),
    ],
)
def test_a_record_is_found_by_its_time(timestamp_ms, bounds, found) -> None:
    """Each batch has the times 1,000 to 1,004."""
    for kind in ("arrow", "records"):
        assert first_of_time(Shelf(kind), timestamp_ms, **bounds) == found


def test_a_search_by_time_passes_over_ends_of_transactions() -> None:
    shelf = Shelf(marker=0)
    assert first_of_time(shelf, 1_002) == (107, 1_002)
    assert first_of_time(shelf, 9_000) is None


def test_a_search_by_time_reads_few_ends_of_transactions(monkeypatch) -> None:
    monkeypatch.setattr(under_test, "ENDS_PASSED_MAX", 0)
    assert first_of_time(Shelf(marker=1), 1_003) == (103, 1_003)
    assert first_of_time(Shelf(marker=0), 1_002) == (100, 9_000)


def test_a_search_by_time_reads_the_batches_alone_that_may_have_it() -> None:
    shelf = Shelf()
    assert first_of_time(shelf, 9_999) is None
    assert {name for name, _ in shelf.store.reads} == {"x.rest"}
    assert len(shelf.store.reads) == 2


def test_a_search_by_time_does_not_pass_over_a_rotten_batch() -> None:
    """The record may be in it; a later one would be a wrong answer."""
    shelf = Shelf()
    shelf.damage("x.arrow", shelf.place_of(0))
    with pytest.raises(CorruptBatch, match=r"x\.arrow"):
        first_of_time(shelf, 1_000)


def test_a_segment_is_read_out_of_a_real_store(tmp_path) -> None:
    shelf = Shelf("arrow", Compression.ZSTD)
    store = open_store(f"file://{tmp_path}")
    for name, data in shelf.store.objects.items():
        store.put(f"topic=orders/{name}", [data])
    segment = StoredSegment(
        100, 150, "topic=orders/x.rest", len(shelf.store.objects["x.rest"]), "topic=orders/x.arrow"
    )
    source = StoredSegments(store, OneSegment(segment), threading.Lock())
    assert source.run_from(wanted(100), 100, 1 << 20).data == b"".join(shelf.batches)
    (tmp_path / "topic=orders" / "x.arrow").unlink()
    with pytest.raises(RemoteStoreError, match=r"x\.arrow"):
        source.run_from(wanted(100), 100, 1 << 20)


def test_what_a_segment_has_behind_the_cut_of_its_history_is_not_read() -> None:
    shelf = Shelf()
    shelf.source.catalog.segment = replace(shelf.source.catalog.segment, end_offset=120)
    assert shelf.run(100).next_offset == 120
    with pytest.raises(HistoryMissing, match="has no batch with offset 120"):
        shelf.source._run_of(shelf.source.catalog.segment, 120, 1)


def test_a_segment_of_a_log_that_was_lost_is_looked_for_afresh_and_never_read() -> None:
    shelf = Shelf()
    with pytest.raises(HistoryMissing, match=r"x.rest has another leader epoch at offset 100 than the log"):
        shelf.source.run_from(wanted(100, (99, 0)), 100, 1 << 20)
    assert shelf.source.catalog.asked == [False, True]


@pytest.mark.parametrize("epoch", [4, 5])
def test_behind_a_cut_there_is_nothing_for_those_who_know_of_the_leader_that_cut(epoch) -> None:
    shelf = Shelf()
    shelf.source.catalog.segment_for = lambda *_, is_fresh: HistoryCut(4)
    asked = wanted(150)._replace(leader_epoch=epoch)
    assert shelf.source.run_from(asked, 150, 1 << 20) is None
    with pytest.raises(HistoryMissing, match=r"since leader epoch 4; .* and is in 3"):
        shelf.source.run_from(asked._replace(leader_epoch=3), 150, 1 << 20)


def test_what_begins_where_the_disk_begins_leaves_nothing_before_it_if_it_is_fresh() -> None:
    shelf = Shelf()
    catalog, asked = shelf.source.catalog, []
    catalog.segment_for = lambda *_, is_fresh: asked.append(is_fresh) or catalog.segment
    assert shelf.source.run_from(wanted(90)._replace(end_offset=100), 90, 1 << 20) is None
    assert asked == [False, True]
    assert shelf.source.run_from(wanted(90), 90, 1 << 20).first_offset == 100
