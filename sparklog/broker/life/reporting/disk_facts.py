"""What the disks under a broker's log directories say, directory by directory."""

from sparklog.broker.disks.log_dirs import LogDirs
from sparklog.broker.partition.free_space import FreeSpaces, space_of
from sparklog.wire.messages.discovery.broker_report import ReportedDirectory


def reported_directories(log_dirs: LogDirs, free_spaces: FreeSpaces) -> list[ReportedDirectory]:
    """Asks each disk, and so may wait for one that hangs."""
    found = []
    for directory, held in log_dirs.contents().items():
        one = ReportedDirectory(path=directory.path, replicas=len(held))
        found.append(one)
        space, room = space_of(directory), free_spaces.room(directory)
        if space is not None and room is not None:
            one.device, one.floor_bytes = space.device, room.floor_bytes
            one.total_bytes, one.free_bytes = space.total_bytes, space.free_bytes
            one.total_inodes, one.free_inodes = space.total_inodes, space.free_inodes
    offline = list(log_dirs.offline.items())
    return [*found, *(ReportedDirectory(path=path, is_online=False, reason=why) for path, why in offline)]
