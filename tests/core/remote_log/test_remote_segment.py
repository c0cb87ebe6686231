"""Names of objects in a remote store."""

from dataclasses import replace
from uuid import UUID

import pytest

from sparklog.core.remote_log.remote_segment import RemotePartition
from tests.core.remote_log.manifests import ORDERS, segment


def test_names_have_day_offset_epoch_topic_and_segment() -> None:
    name = ORDERS.object_name(segment(100, 200, time=1_706_745_599_999), "arrow")
    day_and_base = "20240131-00000000000000000100"
    assert name == f"topic=orders/partition=3/{day_and_base}-5-{UUID(int=7).hex}-{100:032x}.arrow"


def test_a_raw_segment_has_no_arrow_object() -> None:
    names = ORDERS.object_names(replace(segment(1, 2), arrow_bytes=0))
    assert [name.rpartition(".")[2] for name in names] == ["rest", "state"]


@pytest.mark.parametrize("time", [-(2**63), 2**63 - 1])
def test_times_that_no_calendar_has_name_no_day(time: int) -> None:
    assert "/undated-" in ORDERS.object_name(segment(1, 2, time=time), "rest")


def test_objects_of_an_earlier_topic_of_the_same_name_are_not_ours() -> None:
    again = RemotePartition("orders", UUID(int=8), 3)
    page = ORDERS.page_name(0, f"{1:032x}")
    for name in [*ORDERS.object_names(segment(1, 2)), page]:
        assert ORDERS.is_ours(name)
        assert not again.is_ours(name)
        assert not RemotePartition("orders", UUID(int=7), 33).is_ours(name)


@pytest.mark.parametrize("wrong", ["", "ab", "g" * 32, "A" * 32, " " * 32, "é" * 32])
def test_a_segments_id_is_32_hexadecimal_digits(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"is no id|hexadecimal"):
        replace(segment(1, 2), segment_id=wrong)


@pytest.mark.parametrize(
    "wrong", [{"end_offset": 1}, {"base_offset": -1}, {"rest_bytes": 0}, {"arrow_bytes": -1}]
)
def test_a_segment_without_records_or_objects_is_none(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"has none|no segment has"):
        replace(segment(1, 2), **wrong)  # type: ignore[arg-type]
