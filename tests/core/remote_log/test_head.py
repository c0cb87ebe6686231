"""The head of a manifest: what it leads to, what it may become, and what is refused."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.core.remote_log.head import (
    TAIL_MAX,
    Head,
    decode_head,
    encode_head,
    segment_for_offset,
    segments_before,
)
from sparklog.core.remote_log.page import SEGMENTS_MAX, ManifestError, PageRef, build_page
from sparklog.core.remote_log.remote_segment import RemoteSegment
from tests.core.remote_log.manifests import ORDERS, segment

EMPTY = Head(ORDERS.topic_id, "file:///history")


@dataclass
class Manifest:
    """A head with its pages at hand, beside the plain list of what was copied."""

    head: Head = EMPTY
    pages: dict[str, Sequence[RemoteSegment]] = field(default_factory=dict)
    copied: list[RemoteSegment] = field(default_factory=list)

    def copy(self, length: int, *, time: int = 0, skipped: int = 0) -> None:
        if self.head.needs_page:
            grown = self.head.page_to_grow
            earlier = self.pages[grown.page_id] if grown else ()
            page, _ = build_page(ORDERS, f"{len(self.pages):032x}", [*earlier, *self.head.tail])
            self.pages[page.page_id] = [*earlier, *self.head.tail]
            self.head = self.head.with_page(page)
        base = (self.copied[-1].end_offset if self.copied else 0) + skipped
        self.copied.append(segment(base, base + length, time=time))
        self.head = self.head.with_copied(self.copied[-1])

    def read_page(self, page: PageRef) -> Sequence[RemoteSegment]:
        return self.pages[page.page_id]


def manifest(count: int, length: int = 10) -> Manifest:
    made = Manifest()
    for nth in range(count):
        made.copy(length, time=nth)
    return made


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(-3, 9)), max_size=100),
    st.integers(-1, 520),
    st.integers(0, 300),
)
def test_a_reader_finds_what_was_copied(copies: list[tuple[int, int]], offset: int, start: int) -> None:
    made = Manifest()
    for length, time in copies:
        made.copy(length, time=time)
    head = decode_head("/head", encode_head(made.head.from_offset(start)))
    live = [one for one in made.copied if one.end_offset > start]
    expected = next((one for one in live if one.end_offset > offset), None) if offset >= start else None
    assert segment_for_offset(head, offset, made.read_page) == expected


def test_a_tail_becomes_a_page_and_a_full_page_stays() -> None:
    assert len(manifest(TAIL_MAX).head.pages) == 0
    assert [page.segment_count for page in manifest(TAIL_MAX + 1).head.pages] == [TAIL_MAX]
    assert [page.segment_count for page in manifest(2 * TAIL_MAX + 1).head.pages] == [2 * TAIL_MAX]
    large = manifest(SEGMENTS_MAX + TAIL_MAX + 1).head
    assert [page.segment_count for page in large.pages] == [SEGMENTS_MAX, TAIL_MAX]


def test_offsets_below_the_start_and_behind_the_end_are_nowhere() -> None:
    head = manifest(40).head.from_offset(15)
    assert head.entry_of(14) is None
    assert head.entry_of(15) == head.pages[0]
    assert head.entry_of(399) == head.tail[-1]
    assert head.entry_of(400) is None
    assert EMPTY.entry_of(0) is None


def test_a_later_start_drops_what_is_wholly_below_it() -> None:
    head = manifest(40).head
    assert head.from_offset(320).entries == head.tail
    assert head.from_offset(319).entries == head.entries
    assert head.from_offset(10_000).end_offset is None
    assert head.from_offset(330).from_offset(0).start_offset == 330


def test_a_copy_begins_where_the_tier_ends() -> None:
    head = EMPTY.with_copied(segment(5, 10))
    assert head.with_copied(segment(10, 12)).end_offset == 12
    for base in (9, 11):
        with pytest.raises(ValueError, match="does not fit a tier that ends at 10"):
            head.with_copied(segment(base, 20))


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=90),
    st.integers(0, 300),
    st.integers(0, 300),
    st.integers(0, 300),
)
@settings(max_examples=60, deadline=None)
def test_a_cut_leaves_what_is_before_it_and_nothing_else(
    lengths: list[int], start: int, end: int, offset: int
) -> None:
    made = Manifest()
    for length in lengths:
        made.copy(length)
    before = made.head.from_offset(min(start, sum(lengths)))
    end = min(end, sum(lengths) - 1)
    through, page = before.page_to_cut(end), None
    if through is not None:
        kept = segments_before(made.read_page(through), end)
        page, _ = build_page(ORDERS, "f" * 32, kept)
        made.pages[page.page_id] = kept
    head = decode_head("/head", encode_head(before.cut_to(end, 7, page)))
    assert head.cut_epoch == 7
    assert head.start_offset == min(before.start_offset, end)
    found = segment_for_offset(head, offset, made.read_page)
    expected = segment_for_offset(before, offset, made.read_page) if offset < end else None
    assert found == (
        None if expected is None else replace(expected, end_offset=min(expected.end_offset, end))
    )
    assert head.end_offset in (None, end)
    assert head.with_copied(segment(end, end + 1)).end_offset == end + 1


def test_a_cut_through_a_page_needs_that_page_anew() -> None:
    head = manifest(40).head
    with pytest.raises(ValueError, match="is not what a cut to 15 leaves"):
        head.cut_to(15, 7)
    with pytest.raises(ValueError, match="is not what a cut to 335 leaves"):
        head.cut_to(335, 7, head.pages[0])


def test_behind_a_cut_a_copy_may_begin_later_and_the_next_cut_may_be_in_that_hole() -> None:
    """No page has anything of the hole, so the page that is written anew ends before the cut."""
    cut = manifest(1).head.cut_to(8, 7)
    with pytest.raises(ValueError, match="does not fit"):
        cut.with_copied(segment(7, 40))
    head = cut.with_copied(segment(20, 40))
    assert not head.is_cut
    assert (head.entry_of(7), head.entry_of(8), head.entry_of(39)) == (cut.tail[0], *(2 * [head.tail[1]]))
    assert head.cut_to(15, 9).end_offset == 8
    whole, _ = build_page(ORDERS, "0" * 32, head.tail)
    left, _ = build_page(ORDERS, "1" * 32, segments_before(head.tail, 15))
    again = replace(head, pages=(whole,), tail=()).cut_to(15, 9, left)
    assert (again.end_offset, again.cut_epoch) == (8, 9)
    assert again.from_offset(8).is_cut


def test_behind_a_history_that_was_deleted_a_copy_may_begin_later() -> None:
    made = manifest(1)
    head = Head(ORDERS.topic_id, EMPTY.url, 10, (), made.head.tail).with_copied(segment(50, 60))
    assert head.entry_of(20) == segment(50, 60)


def test_a_page_that_is_not_the_tails_is_refused() -> None:
    with pytest.raises(ValueError, match="is not the page of a tail"):
        manifest(TAIL_MAX).head.with_page(build_page(ORDERS, "0" * 32, [segment(0, 10)])[0])


def test_the_head_of_a_million_segments_fits_into_a_node_of_zookeeper() -> None:
    ref, _ = build_page(ORDERS, f"{2**127:032x}", [segment(2**62, 2**62 + 1)])
    large = {"size_bytes": 2**62, "segment_count": SEGMENTS_MAX, "max_timestamp_ms": 2**62}
    pages = tuple(
        PageRef(**{**_fields(ref), **large, "base_offset": 2**61 + nth, "end_offset": 2**61 + nth + 1})
        for nth in range(4_000)
    )
    assert len(encode_head(Head(ORDERS.topic_id, EMPTY.url, 0, pages))) < 700_000
    with pytest.raises(ValueError, match="4001 pages"):
        encode_head(Head(ORDERS.topic_id, EMPTY.url, 0, (*pages, pages[-1])))


def _fields(ref: PageRef) -> dict[str, Any]:
    return {name: getattr(ref, name) for name in PageRef.__dataclass_fields__}


GOOD = json.loads(encode_head(manifest(TAIL_MAX + 2).head))


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": 2},
        {"topic_id": "none"},
        {"start_offset": "0"},
        {"start_offset": True},
        {"pages": [[]]},
        {"pages": 7},
        {"tail": [GOOD["tail"][0][:-1]]},
        {"tail": [[*GOOD["tail"][0][:-1], 1.5]]},
        {"tail": GOOD["tail"][::-1]},
        {"pages": GOOD["pages"] * 2},
        {"tail": None},
    ],
)
def test_a_node_that_is_no_head_is_never_taken_for_an_empty_one(wrong: dict[str, Any]) -> None:
    with pytest.raises(ManifestError, match="ZooKeeper node /head is no manifest"):
        decode_head("/head", json.dumps({**GOOD, **wrong}).encode())


def test_a_node_that_is_cut_at_any_byte_is_refused() -> None:
    data = encode_head(manifest(2).head)
    for length in range(len(data)):
        with pytest.raises(ManifestError):
            decode_head("/head", data[:length])
