"""Ranges are split, and put together, to about the bytes of a task."""

from types import SimpleNamespace
from typing import Any

import pytest

from sparklog.model.ids import TopicPartition
from sparklog_datasource.batch import byte_sizes as module
from sparklog_datasource.batch.byte_sizes import bytes_per_offset, gathered, split_by_bytes
from sparklog_datasource.reads.ranges import OffsetRange

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


def pieces(density: float, size: int, bytes_max: int) -> list[tuple[int, int]]:
    found = split_by_bytes([OffsetRange(T0, 10, 10 + size)], {T0: density}, bytes_max)
    return [(piece.start_offset, piece.end_offset) for piece in found]


def test_a_large_range_is_split_and_a_small_one_stays_whole() -> None:
    assert pieces(10.0, 100, 1_000) == [(10, 110)]
    assert pieces(10.0, 100, 500) == [(10, 60), (60, 110)]
    assert pieces(0.0, 5, 500) == [(10, 15)]


def test_a_piece_has_an_offset_at_least_and_an_empty_range_has_none() -> None:
    assert pieces(1_000.0, 2, 10) == [(10, 11), (11, 12)]
    assert pieces(1_000.0, 0, 10) == []


def test_neighbours_are_put_together_up_to_the_size_of_a_task() -> None:
    assert gathered("abcde", [40, 60, 1, 200, 5], 100) == [["a", "b"], ["c"], ["d"], ["e"]]
    assert gathered("abc", [0, 0, 0], 100) == [["a", "b", "c"]]
    assert gathered("", [], 100) == []


class Cluster:
    """Partition 0 is led by broker 1, the others by broker 2; both have replicas of all."""

    def metadata(self, topics: list[str], *, max_age_ms: int) -> Any:
        leaders = {0: 1, 1: 2, 2: 2}
        partitions = {number: SimpleNamespace(leader=leader) for number, leader in leaders.items()}
        return SimpleNamespace(topics={"t": SimpleNamespace(partitions=partitions)})


def test_the_bytes_of_an_offset_are_those_of_its_leaders_log(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = {1: {T0: 1_000, T1: 7}, 2: {T0: 7, T1: 500, T2: 0}}

    def directories(_: Any, broker: int) -> Any:
        replicas = {one: SimpleNamespace(size_bytes=size) for one, size in logs[broker].items()}
        return {"/data": SimpleNamespace(replicas=replicas)}

    monkeypatch.setattr(module.ClusterChanges, "describe_log_dirs", directories)
    monkeypatch.setattr(module.Admin, "earliest", lambda *_: {T0: 0, T1: 50, T2: 3})
    monkeypatch.setattr(module.Admin, "latest", lambda *_: {T0: 100, T1: 100, T2: 3})
    assert bytes_per_offset(Cluster(), [T0, T1, T2]) == {T0: 10.0, T1: 10.0, T2: 0.0}  # type: ignore[arg-type]
    assert bytes_per_offset(Cluster(), []) == {}  # type: ignore[arg-type]
