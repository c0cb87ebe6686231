"""Removal of segments, and the renaming of a log's directory before its removal."""

from collections.abc import Sequence
from typing import Final

from sparklog.model.ids import TopicId, TopicPartition
from sparklog.storage.disk import Disk
from sparklog.storage.recovery.log_recovery import remove_segment_files
from sparklog.storage.segments.segment import Segment

DELETED_SUFFIX: Final = "-delete"
STRAY_SUFFIX: Final = "-stray"
_DIRECTORY_NAME_MAX: Final = 255


def remove_segments(
    disk: Disk, directory: str, segments: Sequence[Segment], aside: Sequence[int], *, oldest_first: bool
) -> None:
    """Remove segments and sync the directory. ``aside``: the base offsets of segments that were not loaded.

    The newest goes first, so that a crash in between leaves a log without a hole. ``oldest_first`` is for a
    log that keeps a later segment. The sync ensures that no removed segment reappears after a power cut,
    beside batches that were appended in its place.
    """
    for base_offset in reversed(aside):
        remove_segment_files(disk, directory, base_offset)
    for segment in segments if oldest_first else reversed(segments):
        segment.remove()
    if segments or aside:
        disk.sync_directory(directory)


def says_whose_it_is(name: str) -> bool:
    """Whether a name from ``rename_away`` has the whole topic name: a long one is cut to the maximum."""
    return len(name) < _DIRECTORY_NAME_MAX


def deleted_name(topic_partition: TopicPartition, topic_id: TopicId) -> str:
    """The name of a log's directory during its deletion."""
    return _name_away(str(topic_partition), topic_id, DELETED_SUFFIX)


def _name_away(name: str, topic_id: TopicId, suffix: str) -> str:
    topic, _, number = name.rpartition("-")
    ending = f"-{number}.{topic_id.hex}{suffix}"
    return f"{topic[: _DIRECTORY_NAME_MAX - len(ending)]}{ending}"


def rename_away(disk: Disk, directory: str, topic_id: TopicId, suffix: str) -> str:
    """Rename a log's directory to a name that is not a partition's, synced; the new path."""
    parent, _, name = directory.rpartition("/")
    path = f"{parent}/{_name_away(name, topic_id, suffix)}"
    if disk.exists(path):
        disk.remove_directory(path)
    disk.rename(directory, path)
    disk.sync_directory(parent)
    return path
