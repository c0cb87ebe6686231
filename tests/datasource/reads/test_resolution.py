"""Places become offsets."""

from collections.abc import Mapping
from typing import Any

import pytest

from sparklog.client.admin import OffsetAndTimestamp
from sparklog.client.isolation import IsolationLevel
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog_datasource.reads.bounds import EARLIEST, LATEST, AtOffset, AtTime
from sparklog_datasource.reads.resolution import resolve

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
COMMITTED = IsolationLevel.READ_COMMITTED


class Log:
    """Every partition has offsets 3 to 10, the record at offset n of timestamp 100 * n."""

    def earliest(self, tps: Any) -> dict[TopicPartition, int]:
        return dict.fromkeys(tps, 3)

    def latest(self, tps: Any, *, isolation_level: IsolationLevel) -> dict[TopicPartition, int]:
        assert isolation_level is COMMITTED
        return dict.fromkeys(tps, 10)

    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int], *, isolation_level: IsolationLevel
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        assert isolation_level is COMMITTED
        found = {tp: max(3, -(-ms // 100)) for tp, ms in timestamps_ms.items()}
        return {tp: None if at > 9 else OffsetAndTimestamp(at, 100 * at) for tp, at in found.items()}


def resolved(places: dict[TopicPartition, Any]) -> dict[TopicPartition, int]:
    return resolve(Log(), places, COMMITTED)  # type: ignore[arg-type]


def test_numbers_stay_and_sentinels_are_asked_for() -> None:
    assert resolved({T0: AtOffset(5), T1: EARLIEST, T2: LATEST}) == {T0: 5, T1: 3, T2: 10}


def test_a_timestamp_is_the_first_record_at_or_after_it() -> None:
    assert resolved({T0: AtTime(0, False), T1: AtTime(500, False), T2: AtTime(501, True)}) == {
        T0: 3,
        T1: 5,
        T2: 6,
    }


def test_a_timestamp_later_than_every_record_is_latest_or_an_error() -> None:
    assert resolved({T0: AtTime(901, True)}) == {T0: 10}
    with pytest.raises(SparklogError, match=r"no offset matched: t-0 .* timestamp 901.*Strategy to latest"):
        resolved({T0: AtTime(901, False)})


def test_nothing_is_asked_for_without_places() -> None:
    assert resolved({}) == {}
