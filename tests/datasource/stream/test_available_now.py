"""A run with Trigger.AvailableNow has a fixed end, and every plan is held against it."""

import pytest

from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog_datasource.stream.available_now import AvailableNow

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_before_the_capture_anything_may_be_replayed() -> None:
    AvailableNow().check_end({T0: 99}, {})


def test_ends_up_to_the_capture_are_fine() -> None:
    AvailableNow({T0: 10, T1: 5}).check_end({T0: 7, T1: 5}, {T0: 12, T1: 5})


@pytest.mark.parametrize(
    ("ends", "latest", "message"),
    [
        ({T0: 7}, {T0: 10, T1: 5}, "not those captured"),
        ({T0: 11, T1: 5}, {T0: 12, T1: 5}, "beyond the offsets captured"),
        ({T0: 7, T1: 5}, {T0: 10}, "are gone"),
        ({T0: 7, T1: 5}, {T0: 6, T1: 5}, "beyond the end of the log"),
    ],
)
def test_what_does_not_fit_is_told_apart(
    ends: dict[TopicPartition, int], latest: dict[TopicPartition, int], message: str
) -> None:
    with pytest.raises(SparklogError, match=f"AvailableNow: .*{message}.*start the query again"):
        AvailableNow({T0: 10, T1: 5}).check_end(ends, latest)
