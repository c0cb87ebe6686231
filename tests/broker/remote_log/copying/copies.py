"""A store in memory that fails at any call, and what the head of a manifest leads to in it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sparklog.broker.remote_log.copying.heads import read_head
from sparklog.core.remote_log.page import PageRef, parse_page
from sparklog.core.remote_log.remote_segment import RemotePartition, RemoteSegment
from sparklog.remote.store import Failure, RemoteStoreError
from sparklog.testing.memory_zookeeper import MemoryZooKeeper
from tests.broker.partition_harness import TOPIC_ID, TP

INTERVAL_MS = 7_777
QUAKES = RemotePartition(TP.topic, TOPIC_ID, TP.partition)


@dataclass
class FaultyStore:
    """Objects in memory. Call number ``fails_at`` fails, after it has acted or instead."""

    fails_at: int = -1
    acts: bool = False
    calls: int = 0
    objects: dict[str, bytes] = field(default_factory=dict)

    def _call(self, is_done: bool) -> None:
        if is_done == self.acts and self.calls == self.fails_at:
            raise RemoteStoreError(Failure.AWAY, "the store does not answer")

    def put(self, name: str, pieces: Iterable[bytes]) -> int:
        self.calls += 1
        self._call(False)
        assert name not in self.objects, "a name is never given twice"
        self.objects[name] = b"".join(pieces)
        self._call(True)
        return len(self.objects[name])

    def read(self, name: str, start: int, length: int) -> bytes:
        self.calls += 1
        self._call(False)
        if name not in self.objects:
            raise RemoteStoreError(Failure.MISSING, f"{name} is not there")
        self._call(True)
        return self.objects[name][start : start + length]

    def names(self, folder: str) -> list[str]:
        return sorted(name for name in self.objects if name.startswith(f"{folder}/" if folder else ""))

    def delete(self, name: str) -> None:
        self.calls += 1
        self._call(False)
        self.objects.pop(name, None)
        self._call(True)


def copied(zookeeper: MemoryZooKeeper, store: FaultyStore) -> list[RemoteSegment]:
    """The segments to which the head leads; each gives its batches and its state back."""
    stored = read_head(zookeeper, QUAKES)
    found: list[RemoteSegment] = []
    for place in () if stored is None else stored.head.entries:
        if isinstance(place, PageRef):
            found += parse_page(
                QUAKES, place, store.objects[QUAKES.page_name(place.base_offset, place.page_id)]
            )
        else:
            found.append(place)
    return found
