"""How what is on disk of a log goes: single segments, or all of it under another name."""

from collections.abc import Sequence
from typing import Final

from sparklog.model.ids import TopicId
from sparklog.storage.disk import Disk
from sparklog.storage.recovery import remove_segment_files
from sparklog.storage.segment import Segment

DELETED_SUFFIX: Final = "-delete"
STRAY_SUFFIX: Final = "-stray"
_DIRECTORY_NAME_MAX: Final = 255


def remove_segments(
    disk: Disk, directory: str, segments: Sequence[Segment], aside: Sequence[int], *, oldest_first: bool
) -> None:
    """Newest first, so that a crash in between leaves a log that is merely longer, unless one stays.
    ``aside`` are the base offsets of segments that nobody loaded.

    The directory is synced: after a power cut none of them may stand behind, or before, what is appended
    in their place.
    """
    for base_offset in reversed(aside):
        remove_segment_files(disk, directory, base_offset)
    for segment in segments if oldest_first else reversed(segments):
        segment.remove()
    if segments or aside:
        disk.sync_directory(directory)


def rename_away(disk: Disk, directory: str, topic_id: TopicId, suffix: str) -> str:
    """Give a log's directory a name that no start takes for a partition's; the new path."""
    parent, _, name = directory.rpartition("/")
    topic, _, number = name.rpartition("-")
    ending = f"-{number}.{topic_id.hex}{suffix}"
    path = f"{parent}/{topic[: _DIRECTORY_NAME_MAX - len(ending)]}{ending}"
    if disk.exists(path):
        disk.remove_directory(path)
    disk.rename(directory, path)
    disk.sync_directory(parent)
    return path
