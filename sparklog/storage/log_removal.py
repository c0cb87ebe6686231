"""How what is on disk of a log goes: single segments, or all of it under another name."""

from collections.abc import Sequence
from typing import Final

from sparklog.model.ids import TopicId, TopicPartition
from sparklog.storage.disk import Disk
from sparklog.storage.recovery.log_recovery import remove_segment_files
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


def says_whose_it_is(name: str) -> bool:
    """Whether a name that ``rename_away`` gave is whole: a long topic's is cut to the greatest length."""
    return len(name) < _DIRECTORY_NAME_MAX


def deleted_name(topic_partition: TopicPartition, topic_id: TopicId) -> str:
    """What the directory of a log is called while it is being deleted."""
    return _name_away(str(topic_partition), topic_id, DELETED_SUFFIX)


def _name_away(name: str, topic_id: TopicId, suffix: str) -> str:
    topic, _, number = name.rpartition("-")
    ending = f"-{number}.{topic_id.hex}{suffix}"
    return f"{topic[: _DIRECTORY_NAME_MAX - len(ending)]}{ending}"


def rename_away(disk: Disk, directory: str, topic_id: TopicId, suffix: str) -> str:
    """Give a log's directory a name that no start takes for a partition's; the new path."""
    parent, _, name = directory.rpartition("/")
    path = f"{parent}/{_name_away(name, topic_id, suffix)}"
    if disk.exists(path):
        disk.remove_directory(path)
    disk.rename(directory, path)
    disk.sync_directory(parent)
    return path
