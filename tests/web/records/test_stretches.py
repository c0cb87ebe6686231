"""How a look at a topic goes on from step to step: every record once, none left out."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.web.records.stretches import (
    Stretch,
    cursor_after,
    cursor_of,
    cursor_text,
    newest_first,
    next_stretches,
    offsets_left,
    oldest_first,
)
from sparklog.web.view_question import BadQuestion


@dataclass(frozen=True)
class At:
    partition: int
    offset: int
    timestamp_ms: int


END = 41


def looked_at(logs: dict[int, list[At]], *, is_backward: bool, span: int, limit: int) -> list[At]:
    """All that a look shows, step by step, as the view does it."""
    bounds = {partition: Stretch(0, END) for partition in logs}
    cursor = {one: bound.end if is_backward else bound.begin for one, bound in bounds.items()}
    shown: list[At] = []
    while stretches := next_stretches(cursor, bounds, is_backward=is_backward, span=span):
        found = {
            one: [record for record in logs[one] if stretch.begin <= record.offset < stretch.end]
            for one, stretch in stretches.items()
        }
        merged = newest_first(found.values()) if is_backward else oldest_first(found.values())
        taken = list(merged)[:limit]
        before = offsets_left(cursor, bounds, is_backward=is_backward)
        cursor = cursor_of(
            cursor_text(cursor_after(cursor, stretches, taken, found, is_backward=is_backward))
        )
        assert offsets_left(cursor, bounds, is_backward=is_backward) < before
        shown += taken
    return shown


@given(
    st.lists(st.sets(st.integers(0, 40), max_size=20), min_size=1, max_size=4),
    st.integers(1, 15),
    st.integers(1, 9),
    st.booleans(),
    st.randoms(),
)
def test_each_record_is_shown_once_and_in_the_order_of_its_partition(
    offsets: list[set[int]], span: int, limit: int, is_backward: bool, random: object
) -> None:
    logs = {
        partition: [At(partition, offset, random.randrange(100)) for offset in sorted(found)]  # type: ignore[attr-defined]
        for partition, found in enumerate(offsets)
    }
    shown = looked_at(logs, is_backward=is_backward, span=span, limit=limit)
    assert sorted((one.partition, one.offset) for one in shown) == sorted(
        (one.partition, one.offset) for log in logs.values() for one in log
    )
    for partition, log in logs.items():
        own = [one for one in shown if one.partition == partition]
        assert own == (log[::-1] if is_backward else log)


def test_partitions_are_merged_by_time() -> None:
    logs = [[At(0, 0, 5), At(0, 1, 20)], [At(1, 7, 10)]]
    assert [one.timestamp_ms for one in oldest_first(logs)] == [5, 10, 20]
    assert [one.timestamp_ms for one in newest_first(logs)] == [20, 10, 5]


def test_a_place_outside_of_the_log_is_its_end() -> None:
    bounds = {0: Stretch(10, 20)}
    assert next_stretches({0: 999}, bounds, is_backward=True, span=5) == {0: Stretch(15, 20)}
    assert next_stretches({0: 3}, bounds, is_backward=False, span=5) == {0: Stretch(10, 15)}
    assert next_stretches({0: 20}, bounds, is_backward=False, span=5) == {}
    assert next_stretches({7: 0}, bounds, is_backward=False, span=5) == {}


@pytest.mark.parametrize(
    "text", ["x", "1", "1:", ":1", "1:-2", "0:1,,", "1:2:3", "٣:1", f"0:{2**63}", f"{2**31}:0", "9" * 40]
)
def test_a_cursor_that_no_answer_named_is_refused(text: str) -> None:
    with pytest.raises(BadQuestion, match="at="):
        cursor_of(text)
