"""What the disks under a broker's log directories say, directory by directory."""

from dataclasses import dataclass

from sparklog.broker.disks.log_dirs import LogDirs
from sparklog.broker.partition.free_space import FreeSpaces, space_of


@dataclass(frozen=True, slots=True)
class DirectoryFacts:
    """-1 is what a disk does not say; its ``device`` is empty then. ``floor_bytes``: see ``Room``."""

    path: str
    reason: str | None = None
    """Why it is offline; None while it serves."""
    device: str = ""
    total_bytes: int = -1
    free_bytes: int = -1
    floor_bytes: int = -1
    total_inodes: int = -1
    free_inodes: int = -1
    replicas: int = 0


def directory_facts(log_dirs: LogDirs, free_spaces: FreeSpaces) -> list[DirectoryFacts]:
    """Asks each disk, and so may wait for one that hangs."""
    online = []
    for directory, held in log_dirs.contents().items():
        space, room = space_of(directory), free_spaces.room(directory)
        if space is None or room is None:
            online.append(DirectoryFacts(directory.path, replicas=len(held)))
            continue
        online.append(
            DirectoryFacts(
                directory.path,
                None,
                space.device,
                space.total_bytes,
                space.free_bytes,
                room.floor_bytes,
                space.total_inodes,
                space.free_inodes,
                len(held),
            )
        )
    return [*online, *(DirectoryFacts(path, reason) for path, reason in list(log_dirs.offline.items()))]
