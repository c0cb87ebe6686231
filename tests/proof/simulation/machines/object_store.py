"""A remote store, and the ways of brokers to it: slow, now and then away, and unsure of what it has done.

What it promises it keeps, as the probe of ``sparklog.remote`` demands: an object is whole or absent, a name
is given once, and what was written is read. What it does not promise it breaks under faults: calls fail
before or after they have acted, an upload ends in the middle, or takes place after its caller has given it
up; and a listing may be that of a while ago.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

from simulation.machines.blocking_work import Wake, WorkThreads
from simulation.schedule import US_PER_MS, Schedule
from sparklog.remote.ownership import MARK, MARK_BYTES
from sparklog.remote.store import Failure, RemoteStoreError

PATIENCE_MS: Final = 300
"""How long a caller waits for a store that does not answer."""

LATE_MS: Final = (20.0, 200.0, 800.0)
"""How long after its failure an upload may take place."""

Fate = Literal["done", "refused", "torn", "answer lost", "late"]


@dataclass(slots=True)
class StoreTrouble:
    """What is wrong with the store now; shares say how likely something is."""

    away: int = 0
    """How many faults keep it away."""
    extra_ms: float = 0.0
    failing: float = 0.0
    """Share of the calls that fail."""
    stale_ms: float = 0.0
    """How old a listing may be."""


@dataclass(slots=True)
class ObjectStore:
    """What all brokers share. ``on_put`` and ``on_delete`` hear the name of an object that comes or goes, and
    of the process that caused it.
    """

    schedule: Schedule
    delay_ms: tuple[float, float]
    owner: str = ""
    """The cluster that it belongs to. Its mark is no object here: no copy or deletion concerns it."""
    objects: dict[str, bytes] = field(default_factory=dict)
    trouble: StoreTrouble = field(default_factory=StoreTrouble)
    tell: Callable[[str, str], None] = lambda who, what: None
    on_put: Callable[[str, str], None] = lambda name, process: None
    on_delete: Callable[[str, str], None] = lambda name, process: None
    _changes: list[tuple[int, str, bool]] = field(default_factory=list)
    """When each object came or went, and whether it came."""

    def put(self, name: str, data: bytes, process: str) -> bool:
        """Whether the name was free."""
        if name in self.objects:
            return False
        self.tell("store", f"{name} is there, {len(data)} bytes")
        self.objects[name] = data
        self.on_put(name, process)
        self._changes.append((self.schedule.now_us, name, True))
        return True

    def delete(self, name: str, process: str) -> None:
        if name in self.objects:
            self.tell("store", f"{name} is deleted")
            self.on_delete(name, process)
            del self.objects[name]
            self._changes.append((self.schedule.now_us, name, False))

    def names(self, folder: str, age_ms: float = 0.0) -> list[str]:
        """What is in a folder, as it was so long ago."""
        there, then_us = set(self.objects), self.schedule.now_us - age_ms * US_PER_MS
        for at_us, name, has_come in reversed(self._changes):
            if at_us <= then_us:
                break
            (there.discard if has_come else there.add)(name)
        return sorted(name for name in there if name.startswith(f"{folder}/" if folder else ""))


@dataclass(frozen=True, slots=True)
class StoreLink:
    """``remote.store.RemoteStore`` for the work in some threads of one broker."""

    store: ObjectStore
    threads: WorkThreads
    draw: random.Random

    def put(self, name: str, pieces: Iterable[bytes]) -> int:
        fate = self._fate("put")
        self._travel(name)
        data = b"".join(self._until_torn(pieces) if fate == "torn" else pieces)
        if fate == "late":
            late_us = int(self.draw.uniform(1, self.draw.choice(LATE_MS)) * US_PER_MS)
            self.store.schedule.after(late_us, None, partial(self._put_late, name, data))
        if fate in ("refused", "torn", "late"):
            raise self._failed(name)
        if not self.store.put(name, data, self.threads.process.name):
            raise RemoteStoreError(Failure.EXISTS, f"there is an object {name}")
        self._answer(name, fate)
        return len(data)

    def _put_late(self, name: str, data: bytes) -> None:
        """Nobody hears any more whether the name was free."""
        self.store.put(name, data, self.threads.process.name)

    def read(self, name: str, start: int, length: int) -> bytes:
        self._ask(name)
        if name == MARK:
            return self.store.owner.encode().ljust(MARK_BYTES, b"\n")
        if name not in self.store.objects:
            raise RemoteStoreError(Failure.MISSING, f"there is no object {name}")
        data = self.store.objects[name][start : start + length]
        if len(data) < length:
            raise RemoteStoreError(Failure.SHORT, f"{name} ends before {start + length}")
        self._answer(name)
        return data

    def names(self, folder: str) -> list[str]:
        self._ask(folder)
        stale_ms = self.store.trouble.stale_ms
        found = self.store.names(folder, self.draw.random() * stale_ms if stale_ms else 0.0)
        self._answer(folder)
        return found

    def delete(self, name: str) -> None:
        fate = self._fate("delete")
        self._travel(name)
        if fate == "refused":
            raise self._failed(name)
        self.store.delete(name, self.threads.process.name)
        self._answer(name, fate)

    def _fate(self, call: Literal["put", "read", "delete"]) -> Fate:
        share = self.store.trouble.failing
        if not share or self.draw.random() >= share:
            return "done"
        if call == "put":
            return self.draw.choice(("refused", "torn", "answer lost", "late"))
        return "refused" if call == "read" else self.draw.choice(("refused", "answer lost"))

    def _ask(self, name: str) -> None:
        fate = self._fate("read")
        self._travel(name)
        if fate != "done":
            raise self._failed(name)

    def _until_torn(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            yield piece
            if self.draw.random() < 0.5:
                return

    def _travel(self, name: str) -> None:
        """The way there. AWAY if nobody is there."""
        self.rest_ms(self._half_ms())
        if self.store.trouble.away:
            self.rest_ms(PATIENCE_MS)
            raise self._failed(name)

    def _answer(self, name: str, fate: Fate = "done") -> None:
        self.rest_ms(self._half_ms())
        if fate == "answer lost":
            raise self._failed(name)

    def _half_ms(self) -> float:
        delay_ms = self.draw.uniform(*self.store.delay_ms)
        if self.store.trouble.extra_ms:
            delay_ms += self.draw.random() * self.store.trouble.extra_ms
        return delay_ms / 2

    def rest_ms(self, delay_ms: float) -> None:
        """The thread waits; its broker and all the world go on."""
        process = self.threads.process

        def ask(wake: Wake) -> None:
            process.schedule.after(int(delay_ms * US_PER_MS), process, partial(wake, None))

        self.threads.wait(ask)

    def _failed(self, name: str) -> RemoteStoreError:
        return RemoteStoreError(Failure.AWAY, f"the store does not answer for {name}")
