"""The free space of log directories, and the floor below which clients may not write to them.

A full disk takes its log directory offline at its next write, whoever makes it: a follower, a coordinator, a
transaction's marker, a checkpoint. So clients are refused before that (``log.dirs.free.min.bytes``), and what
is below the floor is left for those, which cannot wait.

Each append of a client asks here, under the partition's lock; ``core.disk_floor`` says when that asks the
disk. Directories on one disk are counted apart. A disk that does not answer refuses nobody here; the write
after it finds out what is wrong.
"""

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from sparklog.broker.current_settings import CurrentSettings
from sparklog.core.disk_floor import FREE_MIN_BYTES, FreeBytes, floor_bytes
from sparklog.model.ids import TopicPartition
from sparklog.model.ports import Guard
from sparklog.model.time import Clock
from sparklog.storage.disk import Space
from sparklog.storage.log_directory import LogDirectory

logger: Final = logging.getLogger(__name__)


class Room(NamedTuple):
    """What is left on the disk of a log directory; ``floor_bytes`` is 0 if there is no floor."""

    path: str
    free_bytes: int
    floor_bytes: int

    @property
    def is_low(self) -> bool:
        return self.free_bytes < self.floor_bytes

    def __str__(self) -> str:
        return (
            f"the disk of log directory {self.path} has {self.free_bytes} bytes free, and {FREE_MIN_BYTES} "
            f"is {self.floor_bytes}"
        )


class FreeSpaces:
    """The free space of one broker's log directories."""

    def __init__(
        self,
        settings: CurrentSettings,
        home_of: Callable[[TopicPartition], LogDirectory | None],
        guard: Guard,
        clock: Clock,
    ) -> None:
        """``home_of``: the directory of a partition's log."""
        self._settings = settings
        self._home_of = home_of
        self._guard = guard
        """Not held while a disk is asked: one that hangs must not hold up the others."""
        self._clock = clock
        self._known: dict[str, FreeBytes] = {}
        """By the directories' paths."""
        self._low: frozenset[str] = frozenset()
        """The directories that refuse clients, by their paths. It is replaced, never changed."""

    def why_no_room(self, topic_partition: TopicPartition, size_bytes: int) -> str:
        """Why a client may not write ``size_bytes`` to this partition now; empty if it may."""
        directory = self._home_of(topic_partition)
        if directory is None or self._is_known_to_fit(directory, size_bytes):
            return ""
        space = space_of(directory)
        if space is None:
            return ""
        with self._guard:
            self._known[directory.path].on_answer(space.total_bytes, space.free_bytes, size_bytes)
        room = self._room(directory, space)
        if room.is_low != (room.path in self._low):
            self._cross(room)
        return f"{room}: make room, or send it again later" if room.is_low else ""

    def room(self, directory: LogDirectory) -> Room | None:
        """As the disk says now; None if it does not say."""
        space = space_of(directory)
        return None if space is None else self._room(directory, space)

    def _room(self, directory: LogDirectory, space: Space) -> Room:
        setting = self._settings.now.get_int(FREE_MIN_BYTES)
        return Room(directory.path, space.free_bytes, floor_bytes(setting, space.total_bytes))

    def _is_known_to_fit(self, directory: LogDirectory, size_bytes: int) -> bool:
        setting, now_ms = self._settings.now.get_int(FREE_MIN_BYTES), self._clock.monotonic_ms()
        with self._guard:
            known = self._known.get(directory.path)
            if known is None:
                known = self._known[directory.path] = FreeBytes()
            # The first write that a directory takes again is to say so.
            return known.on_write(size_bytes, setting, now_ms) and directory.path not in self._low

    def _cross(self, room: Room) -> None:
        with self._guard:
            if room.is_low == (room.path in self._low):
                return
            self._low = self._low ^ {room.path}
        if room.is_low:
            logger.error(
                "%s: produces to its partitions are refused from now on. Make room: by a smaller "
                "retention.bytes, or local.retention.bytes of a topic in a remote store, a larger disk, or "
                "moves to other brokers",
                room,
            )
        else:
            logger.warning("%s: produces to its partitions are accepted again", room)


def space_of(directory: LogDirectory) -> Space | None:
    """The space of the disk under ``directory``; None if it does not say."""
    try:
        return directory.space()
    except OSError:
        return None
