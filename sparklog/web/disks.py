"""The log directories of the brokers that answer, with the space of their disks and the size of each log."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeVar

from sparklog.client.changes import ClusterChanges, LogDirDescription, ReplicaInLogDir
from sparklog.client.cluster import ClusterClient
from sparklog.client.settings import describe_broker
from sparklog.core.disk_floor import FREE_MIN_BYTES, floor_bytes
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition

ANSWER_TIMEOUT_MS: Final = 1_500
"""How long a broker may take; the page does not wait longer for one that hangs."""
AT_ONCE: Final = 8

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Disk:
    """A log directory. Bytes are -1 where its broker does not know them."""

    broker_id: int
    log_dir: str
    is_offline: bool
    total_bytes: int
    free_bytes: int
    floor_bytes: int = -1
    """With less free than this, what clients write is refused."""
    replicas: Mapping[TopicPartition, ReplicaInLogDir] = field(default_factory=dict)

    @property
    def is_low(self) -> bool:
        return 0 <= self.free_bytes < self.floor_bytes

    @property
    def used_share(self) -> float:
        """From 0 to 1; 0 where the size is not known."""
        return 1 - self.free_bytes / self.total_bytes if self.total_bytes > 0 else 0.0

    def as_json(self) -> dict[str, object]:
        return {
            "broker_id": self.broker_id,
            "log_dir": self.log_dir,
            "is_offline": self.is_offline,
            "total_bytes": self.total_bytes,
            "free_bytes": self.free_bytes,
            "floor_bytes": self.floor_bytes,
            "replicas": len(self.replicas),
            "log_bytes": sum(replica.size_bytes for replica in self.replicas.values()),
        }


def disks_of(cluster: ClusterClient, brokers: Iterable[int], *, with_replicas: bool = True) -> list[Disk]:
    """Those of these brokers, as far as they answer in time; without ``with_replicas`` the disks alone."""
    found = ask_each(brokers, lambda broker: _disks_of_one(cluster, broker, with_replicas=with_replicas))
    return [disk for broker in sorted(found) for disk in found[broker]]


def ask_each(brokers: Iterable[int], ask: Callable[[int], T]) -> dict[int, T]:
    """What each broker answers; those that fail are left out."""

    def answer(broker: int) -> T | None:
        try:
            return ask(broker)
        except (OSError, SparklogError):
            return None  # its state is in the report, which says why

    wanted = list(brokers)
    if not wanted:
        return {}
    with ThreadPoolExecutor(min(AT_ONCE, len(wanted)), "page-brokers") as pool:
        answers = zip(wanted, pool.map(answer, wanted), strict=True)
        return {broker: found for broker, found in answers if found is not None}


def _disks_of_one(cluster: ClusterClient, broker: int, *, with_replicas: bool) -> list[Disk]:
    directories = ClusterChanges(cluster).describe_log_dirs(
        broker, with_replicas=with_replicas, timeout_ms=ANSWER_TIMEOUT_MS
    )
    setting = int(describe_broker(cluster, broker, timeout_ms=ANSWER_TIMEOUT_MS)[FREE_MIN_BYTES].value)
    return [_disk(broker, path, directory, setting) for path, directory in directories.items()]


def _disk(broker: int, path: str, directory: LogDirDescription, setting: int) -> Disk:
    known = directory.total_bytes >= 0
    return Disk(
        broker,
        path,
        directory.is_offline,
        directory.total_bytes,
        directory.usable_bytes,
        floor_bytes(setting, directory.total_bytes) if known else -1,
        directory.replicas,
    )
