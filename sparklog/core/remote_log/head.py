"""The head of a partition's manifest: the remote log's pages and latest segments, in one ZooKeeper node.

    {"version": 1, "topic_id": …, "url": …, "start_offset": …, "pages": [[…], …], "tail": [[…], …]}

The latest segments, the tail, stand in the head itself. A full tail becomes a page, together with the last
page if that is not full. Objects that the head does not lead to are not in the log. The node is written in
one multi-operation that checks the version of the partition's state, so a replaced leader changes nothing
(`broker/remote_log/copying`).

A cut after an unclean election may leave a hole: offsets between the cut and the new leader's disk, which no
disk and no store has any more. Copies go on after the hole.

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
"""Pages of four million segments. Such a head has less than 600 KB; ZooKeeper takes a megabyte."""

HeadEntry = PageRef | RemoteSegment
"""A segment in the tail, or the page that has to be read to find it."""


@dataclass(frozen=True, slots=True)
class Head:
    """The start, the pages and the tail of a remote log."""

    topic_id: TopicId
    url: str
    """The store's URL at the first copy. A broker configured with another URL must not use this head."""
    start_offset: int = 0
    """The first offset that is still in the log. It may be within an entry."""
    pages: tuple[PageRef, ...] = ()
    """In the order of offsets, all before those of the tail."""
    tail: tuple[RemoteSegment, ...] = ()
    """In the order of offsets. A gap is of expired records, or the hole of a cut."""
    cut_epoch: int = NO_EPOCH
    """The epoch of the leader that cut the end, until a segment after the cut is copied."""

    @property
    def entries(self) -> tuple[HeadEntry, ...]:
        return (*self.pages, *self.tail)

    @property
    def end_offset(self) -> int | None:
        """The first offset that is not in the store; None if nothing is."""
        entries = self.entries
        return entries[-1].end_offset if entries else None

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments. A page counts whole even after its first segments expired."""
        return sum(entry.size_bytes for entry in self.entries)

    def entry_of(self, offset: int) -> HeadEntry | None:
        """The entry of ``offset``, or of the first offset after it; None below the start and from the end on.

        The entry begins after ``offset`` if that expired before its copy, or was lost in an unclean election.
        """
        end = self.end_offset
        if end is None or not self.start_offset <= offset < end:
            return None
        entries = self.entries
        return entries[_nth_at(entries, offset)]

    def with_copied(self, segment: RemoteSegment) -> "Head":
        """The head with one more segment. ValueError unless the segment begins at the end.

        After a cut, or once every earlier record is deleted, it may begin later.
        """
        end = self.end_offset
        may_skip = end is not None and (self.is_cut or end <= self.start_offset)
        if end is not None and (segment.base_offset < end or (segment.base_offset != end and not may_skip)):
            raise ValueError(f"a copy from {segment.base_offset} on does not fit a tier that ends at {end}")
        return replace(self, tail=(*self.tail, segment), cut_epoch=NO_EPOCH)

    @property
    def is_cut(self) -> bool:
        """Whether an unclean election lost the records after the end, and nothing was copied since."""
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
        """The head whose tail is in ``page``, after the segments of ``page_to_grow``."""
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
        """The head that ends at ``end_offset``. A segment that reaches across the cut stays up to it, and its
        objects do not change.

        ``page`` replaces ``page_to_cut``. ``leader_epoch`` is that of the leader that cuts.
        """
        cut = self.page_to_cut(end_offset)
        if (page is None) != (cut is None) or (page is not None and page.end_offset > end_offset):
            raise ValueError(f"{page} is not what a cut to {end_offset} leaves of {cut}")
        kept = (
            *(known for known in self.pages if known.end_offset <= end_offset),
            *((page,) if page else ()),
        )
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
    """The segments that begin before ``end_offset``, the last one cut there."""
    return tuple(
        replace(segment, end_offset=min(segment.end_offset, end_offset))
        for segment in segments
        if segment.base_offset < end_offset
    )


def segment_for_offset(
    head: Head, offset: int, read_page: Callable[[PageRef], Sequence[RemoteSegment]]
) -> RemoteSegment | None:
    """The segment of ``offset``, or of the first offset after it; None as for ``Head.entry_of``."""
    entry = head.entry_of(offset)
    if not isinstance(entry, PageRef):
        return entry
    segments = read_page(entry)
    return segments[_nth_at(segments, offset)]


def _nth_at(entries: Sequence[HeadEntry], offset: int) -> int:
    """The index of the first entry that ends after ``offset``."""
    return bisect_right(entries, offset, key=lambda entry: entry.end_offset)


def encode_head(head: Head) -> bytes:
    """The node of a head; ValueError for a head that no ZooKeeper node can hold."""
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
    for before, entry in pairwise(head.entries):
        if entry.base_offset < before.end_offset:
            raise ValueError(f"offset {entry.base_offset} stands behind {before.end_offset}")
