"""Copies of a typed topic: each file has one version of the columns, and all of them give the log back."""

import itertools
from pathlib import Path

import pyarrow as pa
import pytest

from sparklog.broker.remote_log.copying import survey
from sparklog.core.remote_log.remote_segment import RemoteSegment
from sparklog.records.envelope import split
from sparklog.storage.log_config import LogConfig
from sparklog.testing.memory_zookeeper import MemoryZooKeeper
from tests.broker.partition_harness import Harness
from tests.broker.remote_log.copying.copies import QUAKES, FaultyStore, copied
from tests.broker.remote_log.copying.test_copier import batches_of, log_bytes, round_of
from tests.records.remote_segment.typed_segments import FIRST, TOPIC, typed

ROWS = pa.table({"id": pa.array(range(3), pa.int64())})


def harness_with(tmp_path: Path, versions: list[int], **config: bool) -> Harness:
    """A leader with a sealed segment of batches of these versions, three rows each."""
    harness = Harness(tmp_path)
    harness.told(1, 4, isr=(1,), replicas=(1,))
    harness.partition.keep_columns(TOPIC.document)
    harness.partition.log_guard.configure(LogConfig(remote_storage=True, **config))
    for version in versions:
        harness.produce(bytearray(typed(ROWS, 0, version=version)))
    harness.partition.log_guard.configure(LogConfig(segment_bytes=100, remote_storage=True, **config))
    harness.produce(bytearray(typed(ROWS, 0)))
    assert harness.log.segment_bases == [0, 3 * len(versions)]
    return harness


def table_of(store: FaultyStore, segment: RemoteSegment) -> pa.Table:
    return pa.ipc.open_file(store.objects[QUAKES.object_name(segment, "arrow")]).read_all()


def log_back(store: FaultyStore, segments: list[RemoteSegment]) -> bytes:
    return b"".join(batches_of(store, one) for one in segments)


def test_a_file_ends_before_the_first_batch_of_another_version(
    tmp_path: Path, zookeeper: MemoryZooKeeper
) -> None:
    harness, store = harness_with(tmp_path, [1, 1, 2, 2, 2, 1]), FaultyStore()
    round_of(harness, zookeeper, store, itertools.count(1))
    segments = copied(zookeeper, store)
    assert [(one.base_offset, one.end_offset) for one in segments] == [(0, 6), (6, 15), (15, 18)]
    assert log_back(store, segments) == log_bytes(harness)
    assert sum(one.size_bytes for one in segments) == len(log_bytes(harness))
    tables = [table_of(store, one) for one in segments]
    assert ["felt" in one.schema.names for one in tables] == [False, True, False]
    assert [row for one in tables for row in one.column("_offset").to_pylist()] == list(range(18))


def test_a_copy_that_failed_goes_on_where_the_last_file_ended(
    tmp_path: Path, zookeeper: MemoryZooKeeper
) -> None:
    harness, ids = harness_with(tmp_path, [1, 2, 1]), itertools.count(1)
    store = FaultyStore(fails_at=5)
    round_of(harness, zookeeper, store, ids)
    assert [one.end_offset for one in copied(zookeeper, store)] == [3]
    store.fails_at = -1
    round_of(harness, zookeeper, store, ids)
    segments = copied(zookeeper, store)
    assert [one.end_offset for one in segments] == [3, 6, 9]
    assert log_back(store, segments) == log_bytes(harness)


def raw_batches(store: FaultyStore, segment: RemoteSegment) -> bytes:
    assert segment.arrow_bytes == 0
    rest = store.objects[QUAKES.object_name(segment, "rest")]
    return rest[32 : 32 + segment.size_bytes]


def test_a_segment_in_which_versions_take_turns_is_copied_raw_and_whole(
    tmp_path: Path, zookeeper: MemoryZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "CHANGES_MAX", 3)
    harness, store = harness_with(tmp_path, [1, 2, 1, 2, 1]), FaultyStore()
    round_of(harness, zookeeper, store, itertools.count(1))
    (segment,) = copied(zookeeper, store)
    assert raw_batches(store, segment) == log_bytes(harness)


def test_a_typed_topic_may_have_the_layout_raw(tmp_path: Path, zookeeper: MemoryZooKeeper) -> None:
    harness, store = harness_with(tmp_path, [1, 2], remote_raw=True), FaultyStore()
    round_of(harness, zookeeper, store, itertools.count(1))
    (segment,) = copied(zookeeper, store)
    assert raw_batches(store, segment) == log_bytes(harness)


def test_a_file_ends_before_it_has_too_many_record_batches(
    tmp_path: Path, zookeeper: MemoryZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "RECORD_BATCHES_MAX", 2)
    harness, store = harness_with(tmp_path, [1] * 5), FaultyStore()
    round_of(harness, zookeeper, store, itertools.count(1))
    segments = copied(zookeeper, store)
    assert [one.end_offset for one in segments] == [6, 12, 15]
    assert len(split(log_back(store, segments))) == 5


def test_a_leader_that_lacks_a_version_copies_once_it_has_it(
    tmp_path: Path, zookeeper: MemoryZooKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    harness, store, ids = harness_with(tmp_path, [1, 2]), FaultyStore(), itertools.count(1)
    harness.partition.keep_columns(FIRST)
    round_of(harness, zookeeper, store, ids)
    assert [one.end_offset for one in copied(zookeeper, store)] == [3]
    assert "rows of version 2 of the topic's columns: known are 1 to 1" in caplog.text
    harness.partition.keep_columns(TOPIC.document)
    round_of(harness, zookeeper, store, ids)
    assert [one.end_offset for one in copied(zookeeper, store)] == [3, 6]
