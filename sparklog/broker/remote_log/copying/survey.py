"""What a copy of some offsets holds, before its objects are written: how far it goes, and in which layout.

The file of a typed topic has one version of its columns, so a copy ends before the first batch of another
version, and the next copy begins there. Where writers of two versions take turns, each batch would become a
segment: a part of the log with too many changes is copied *raw*, and whole. A copy also ends before its file
has too many record batches.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sparklog.records.arrow.header import schema_version_of
from sparklog.records.remote_segment.build import SegmentBatch

CHANGES_MAX: Final = 8
"""The most changes of the version at which a part of the log is cut."""

RECORD_BATCHES_MAX: Final = 65_536
"""The most *arrow* batches of a copy: each is a record batch of the file. Those of *records* are joined."""


@dataclass(frozen=True, slots=True)
class Survey:
    """The batches of a copy. ``schema_version``: 0 of an untyped topic, and without an ``.arrow`` object."""

    end_offset: int
    size_bytes: int
    max_timestamp_ms: int
    has_arrow: bool
    schema_version: int


def survey(batches: Iterable[SegmentBatch], end_offset: int, *, is_raw: bool) -> Survey:
    """What to copy of ``batches``, which go up to ``end_offset``. ``is_raw``: the layout of all copies."""
    size_bytes, max_timestamp_ms, changes, record_batches = 0, -1, 0, 0
    version: int | None = None
    cut: Survey | None = None
    for batch in batches:
        header = batch.header
        if batch.has_rows and not is_raw:
            found = schema_version_of(batch.data, header)
            is_change = version is not None and found != version
            if cut is None and version is not None and (is_change or record_batches == RECORD_BATCHES_MAX):
                cut = Survey(header.base_offset, size_bytes, max_timestamp_ms, True, version)
            version = found
            changes += is_change
            record_batches += header.is_arrow
        size_bytes += header.size_bytes
        max_timestamp_ms = max(max_timestamp_ms, header.max_timestamp_ms)
    if version is None or changes > CHANGES_MAX:
        return Survey(end_offset, size_bytes, max_timestamp_ms, False, 0)
    return cut or Survey(end_offset, size_bytes, max_timestamp_ms, True, version)
