"""The head of a partition's manifest: what is in the log of a remote store, in one small ZooKeeper node.

    {"version": 1, "topic_id": …, "url": …, "start_offset": …, "pages": [[…], …], "tail": [[…], …]}

The head lists its pages and, itself, the latest segments: the tail. A full tail becomes a page, together with
the last page if that is not full. Whatever the head does not lead to is not in the log, whatever the store
has. The node is written in one multi-operation with a check of the version of the partition's state, so a
leader that another has replaced changes nothing (`broker/remote_log/copying`).

A cut after an unclean election may leave a hole: the new leader's disk begins behind it, and what was between
is on no disk and in no log of the store any more. Copies go on behind the hole.

A node that cannot be read is a ManifestError, never an empty manifest.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from typing import Final
from uuid import UUID

from sparklog.core.remote_log.page import SEGMENTS_MAX, ManifestError, PageRef
from sparklog.core.remote_log.remote_segment import RemoteSegment
from sparklog.model.ids import NO_EPOCH, TopicId

VERSION: Final = 1
TAIL_MAX: Final = 32
"""Segments in the head itself; one more makes a page."""

PAGES_MAX: Final = 4_000
"""So that a head stays below 600 KB, far from ZooKeeper's megabyte: four million segments."""

Place = PageRef | RemoteSegment
"""A segment in the tail, or the page that has to be read to find it."""


@dataclass(frozen=True, slots=True)
class Head:
    """``start_offset`` is the first offset that is still in the log; it may be within a segment or a page.

    ``url`` is the store's when the first segment was copied: a broker with another URL must not use it.
    ``cut_epoch`` is the epoch of the leader that cut the end, until a segment after the cut is copied.
    """

    topic_id: TopicId
    url: str
    start_offset: int = 0
    pages: tuple[PageRef, ...] = ()
    tail: tuple[RemoteSegment, ...] = ()
    cut_epoch: int = NO_EPOCH

    @property
    def places(self) -> tuple[Place, ...]:
        return (*self.pages, *self.tail)

    @property
    def end_offset(self) -> int | None:
        """The first offset that is not in the store; None if nothing is."""
        places = self.places
        return places[-1].end_offset if places else None

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments. A page counts whole even after its first segments expired."""
        return sum(place.size_bytes for place in self.places)

    def place_of(self, offset: int) -> Place | None:
        """Where ``offset`` is, or the first offset behind it; None below the start and behind the end.

        The base offset of the place may be greater: what expired before its copy is between two segments, and
        so is what an unclean election has lost.
        """
        end = self.end_offset
        if end is None or not self.start_offset <= offset < end:
            return None
        places = self.places
        return places[_nth_at(places, offset)]

    def with_copied(self, segment: RemoteSegment) -> "Head":
        """The head with one more segment. ValueError unless it begins where the tier ends, behind a cut, or
        where all that the tier has is deleted.
        """
        end = self.end_offset
        is_behind = end is not None and (self.is_cut or end <= self.start_offset)
        if end is not None and (segment.base_offset < end or (segment.base_offset != end and not is_behind)):
            raise ValueError(f"a copy from {segment.base_offset} on does not fit a tier that ends at {end}")
        return replace(self, tail=(*self.tail, segment), cut_epoch=NO_EPOCH)

    @property
    def is_cut(self) -> bool:
        """Whether an unclean election lost what was behind the end, and nothing was copied since."""
        return self.cut_epoch != NO_EPOCH

    @property
    def needs_page(self) -> bool:
        """Whether the tail is full: a page comes before the next segment."""
        return len(self.tail) >= TAIL_MAX

    @property
    def page_to_grow(self) -> PageRef | None:
        """The page that the tail's segments join; None if they begin a new one."""
        if not self.pages or self.pages[-1].segment_count + len(self.tail) > SEGMENTS_MAX:
            return None
        return self.pages[-1]

    def with_page(self, page: PageRef) -> "Head":
        """The head whose tail is in ``page``, behind the segments of ``page_to_grow``."""
        grown = self.page_to_grow
        kept = self.pages[:-1] if grown else self.pages
        first = grown or self.tail[0]
        if page.end_offset != self.tail[-1].end_offset or page.base_offset != first.base_offset:
            raise ValueError(f"{page} is not the page of a tail of {len(self.tail)} segments behind {grown}")
        return replace(self, pages=(*kept, page), tail=())

    def page_to_cut(self, end_offset: int) -> PageRef | None:
        """The page that a cut to ``end_offset`` goes through, and that has to be written anew."""
        if end_offset <= self.start_offset:
            return None
        return next((page for page in self.pages if page.base_offset < end_offset < page.end_offset), None)

    def cut_to(self, end_offset: int, leader_epoch: int, page: PageRef | None = None) -> "Head":
        """The head that ends at ``end_offset``, which is before its end, or before a hole around that.
        ``page``: in the place of ``page_to_cut``. A segment that reaches across the cut stays up to it; its
        objects do not change. ``leader_epoch``: of who cuts.
        """
        cut = self.page_to_cut(end_offset)
        if (page is None) != (cut is None) or (page is not None and page.end_offset > end_offset):
            raise ValueError(f"{page} is not what a cut to {end_offset} leaves of {cut}")
        kept = (*(one for one in self.pages if one.end_offset <= end_offset), *((page,) if page else ()))
        head = replace(
            self,
            start_offset=min(self.start_offset, end_offset),
            pages=kept,
            tail=segments_before(self.tail, end_offset),
            cut_epoch=leader_epoch,
        )
        return head if self.start_offset < end_offset else replace(head, pages=(), tail=())

    def from_offset(self, start_offset: int) -> "Head":
        """The head with a later start, without pages and segments that are wholly below it."""
        start = max(self.start_offset, start_offset)
        return replace(
            self,
            start_offset=start,
            pages=tuple(page for page in self.pages if page.end_offset > start),
            tail=tuple(segment for segment in self.tail if segment.end_offset > start),
        )


def segments_before(segments: Sequence[RemoteSegment], end_offset: int) -> tuple[RemoteSegment, ...]:
    """Those that begin before ``end_offset``, none of them beyond it."""
    return tuple(
        replace(one, end_offset=min(one.end_offset, end_offset))
        for one in segments
        if one.base_offset < end_offset
    )


def segment_for_offset(
    head: Head, offset: int, read_page: Callable[[PageRef], Sequence[RemoteSegment]]
) -> RemoteSegment | None:
    """The segment that has ``offset`` or the first offset behind it; None as for ``Head.place_of``."""
    place = head.place_of(offset)
    if not isinstance(place, PageRef):
        return place
    segments = read_page(place)
    return segments[_nth_at(segments, offset)]


def _nth_at(places: Sequence[Place], offset: int) -> int:
    """The index of the first place that ends behind ``offset``."""
    return bisect_right(places, offset, key=lambda place: place.end_offset)


def encode_head(head: Head) -> bytes:
    """ValueError for a head that would not fit into a node of ZooKeeper."""
    if len(head.pages) > PAGES_MAX:
        raise ValueError(f"a manifest of {len(head.pages)} pages is larger than its {PAGES_MAX}")
    document = {
        "version": VERSION,
        "topic_id": str(head.topic_id),
        "url": head.url,
        "start_offset": head.start_offset,
        "pages": [astuple(page) for page in head.pages],
        "tail": [astuple(segment) for segment in head.tail],
    }
    if head.is_cut:
        document["cut_epoch"] = head.cut_epoch
    return json.dumps(document, separators=(",", ":")).encode()


def decode_head(path: str, data: bytes) -> Head:
    """The head in the node ``path``; ManifestError for bytes that no release up to this one writes there."""
    try:
        fields = json.loads(data)
        if fields["version"] != VERSION:
            raise ValueError(
                f"version {fields['version']!r} is unknown to this release; a newer one may read it"
            )
        head = Head(
            topic_id=UUID(fields["topic_id"]),
            url=str(fields["url"]),
            start_offset=_number(fields["start_offset"]),
            pages=tuple(PageRef(page[0], *map(_number, page[1:])) for page in fields["pages"]),
            tail=tuple(_segment(entry) for entry in fields["tail"]),
            cut_epoch=_number(fields.get("cut_epoch", NO_EPOCH)),
        )
        _check_order(head)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ManifestError(f"ZooKeeper node {path} is no manifest ({error!r}): {data[:200]!r}") from None
    return head


def _segment(entry: Sequence[object]) -> RemoteSegment:
    numbers = list(entry)
    segment_id = numbers.pop(4)
    base_offset, end_offset, time, size, epoch, arrow, rest, state, crc = map(_number, numbers)
    return RemoteSegment(base_offset, end_offset, time, size, str(segment_id), epoch, arrow, rest, state, crc)


def _number(value: object) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is not a whole number")
    return value


def _check_order(head: Head) -> None:
    for before, place in pairwise(head.places):
        if place.base_offset < before.end_offset:
            raise ValueError(f"offset {place.base_offset} stands behind {before.end_offset}")
