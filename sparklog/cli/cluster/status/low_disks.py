"""The log directories whose disks have less free than their broker's floor: what ``status`` says of them.

A broker's leaders refuse what clients write below the floor. Their producers wait meanwhile, and report it
minutes later.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.cli.progress import say
from sparklog.client.changes import ClusterChanges
from sparklog.client.cluster import ClusterClient
from sparklog.client.settings import describe_broker
from sparklog.core.disk_floor import FREE_MIN_BYTES, floor_bytes
from sparklog.model.errors import SparklogError

ANSWER_TIMEOUT_MS: Final = 3_000
"""How long a broker may take to tell the space of its disks."""


@dataclass(frozen=True, slots=True)
class LowDisk:
    """A log directory below the floor, as ``status --json`` has it."""

    broker_id: int
    log_dir: str
    free_bytes: int
    floor_bytes: int


def low_disks(cluster: ClusterClient, brokers: Sequence[int]) -> list[LowDisk]:
    """Those of these brokers. A broker that does not tell is named on standard error."""
    found: list[LowDisk] = []
    for broker in brokers:
        try:
            found += _of_broker(cluster, broker)
        except (OSError, SparklogError) as error:
            say(f"warning: broker {broker} did not tell the free space of its disks: {error}")
    return found


def render_low_disks(disks: Sequence[LowDisk]) -> str:
    """A line for each, with the remedy."""
    return "\n".join(
        f"disk nearly full: broker {disk.broker_id} refuses what clients write to {disk.log_dir}, which has "
        f"{disk.free_bytes} bytes free, and {FREE_MIN_BYTES} is {disk.floor_bytes}: make room there"
        for disk in disks
    )


def _of_broker(cluster: ClusterClient, broker: int) -> list[LowDisk]:
    directories = ClusterChanges(cluster).describe_log_dirs(
        broker, with_replicas=False, timeout_ms=ANSWER_TIMEOUT_MS
    )
    setting = int(describe_broker(cluster, broker, timeout_ms=ANSWER_TIMEOUT_MS)[FREE_MIN_BYTES].value)
    disks = [
        LowDisk(broker, path, directory.usable_bytes, floor_bytes(setting, directory.total_bytes))
        for path, directory in directories.items()
        if directory.total_bytes >= 0
    ]
    return [disk for disk in disks if disk.free_bytes < disk.floor_bytes]
