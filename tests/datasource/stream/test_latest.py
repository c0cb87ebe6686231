"""The ends of partitions are always asked for anew, but not too often."""

from collections.abc import Callable
from typing import Any

import pytest

from sparklog.model.ids import TopicId, TopicPartition
from sparklog_datasource.reads.read_options import ReadOptions
from sparklog_datasource.stream import latest as module
from sparklog_datasource.stream.latest import ASK_INTERVAL_MS, LatestOffsets

T0 = TopicPartition("t", 0)


class World:
    """A cluster of one partition, its clock, and what was asked of it."""

    def __init__(self) -> None:
        self.now = 1_000
        self.ends = [5]
        self.topic_id = TopicId(int=1)
        self.asked_at: list[int] = []
        self.clock = self

    def monotonic_ms(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1_000)

    def latest_offsets(self, *_: Any) -> dict[TopicPartition, int]:
        self.asked_at.append(self.now)
        return {T0: self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]}

    def partitions(self, *_: Any) -> dict[TopicPartition, TopicId]:
        return {T0: self.topic_id}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(module, "cluster_client", lambda _: made)
    monkeypatch.setattr(module, "latest_offsets", made.latest_offsets)
    monkeypatch.setattr(module.Discovery, "partitions", lambda *_: made.partitions())
    return made


@pytest.fixture
def latest_of(world: World) -> Callable[..., LatestOffsets]:
    def make(**more: str) -> LatestOffsets:
        given = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", **more}
        return LatestOffsets(ReadOptions.of_stream(given), world.sleep)

    return make


def test_a_question_too_soon_waits_and_is_then_answered_afresh(
    world: World, latest_of: Callable[..., LatestOffsets]
) -> None:
    latest = latest_of()
    world.ends = [5, 6, 7]
    assert [latest.latest({}, {}) for _ in range(2)] == [{T0: 5}, {T0: 6}]
    world.now += 10 * ASK_INTERVAL_MS
    latest.latest({}, {})
    assert world.asked_at == [1_000, 1_000 + ASK_INTERVAL_MS, 1_000 + 11 * ASK_INTERVAL_MS]


def test_an_end_below_what_is_known_is_asked_for_again(
    world: World, latest_of: Callable[..., LatestOffsets]
) -> None:
    world.ends = [3, 4, 5]
    assert latest_of(**{"fetchOffset.retryIntervalMs": "20"}).latest({T0: 5}, {}) == {T0: 5}
    assert world.asked_at == [1_000, 1_020, 1_040]


def test_an_end_that_stays_below_is_returned_after_the_retries(
    world: World, latest_of: Callable[..., LatestOffsets]
) -> None:
    world.ends = [3]
    assert latest_of(**{"fetchOffset.numRetries": "2"}).latest({T0: 5}, {}) == {T0: 3}
    assert len(world.asked_at) == 3


def test_an_end_of_another_topic_of_the_same_name_is_not_asked_for_again(
    world: World, latest_of: Callable[..., LatestOffsets]
) -> None:
    world.ends = [3]
    latest = latest_of()
    assert latest.latest({T0: 5}, {"t": TopicId(int=2)}) == {T0: 3}
    assert latest.topic_ids == {"t": TopicId(int=1)}
    assert len(world.asked_at) == 1
