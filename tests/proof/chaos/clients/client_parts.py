"""What all clients of a run have: what they are to do, names of records, positions, and their histories."""

import json
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from chaos.access import Access
from histories import Writer

FLUSH_S = 40.0
DELIVERY_TIMEOUT_MS = 30_000
IDEMPOTENT_DELIVERY_TIMEOUT_MS = 300_000
"""librdkafka's default. One send that it gives up makes it take another producer epoch, and send again under
that what it does not know the fate of, in other partitions too: there its idempotence ends, whatever brokers
do.
"""
REQUEST_TIMEOUT_MS = 5_000
SOCKET_TIMEOUT_MS = 2 * REQUEST_TIMEOUT_MS
"""After so long without an answer librdkafka gives a request up, and ends its connection."""
RETRY_MS = 50
PADDING_MAX = 600
ASK_TIMEOUT_MS = 5_000
KEYS = 40
"""Of each partition of a compacted topic."""
TOMBSTONES = 0.1
IN_FLIGHT_MAX = 5
"""Requests of an idempotent producer."""

PLAIN_IN_FLIGHT = 1
"""Those of any other, which so keeps its order: the next could overtake one that is tried again."""
ID_HEADER = "id"
RE_READ_RECORDS = 200
TAIL_RECORDS = 500
REMEMBERED = 500
"""A tailing consumer that has read nothing of a partition yet begins so many records before its end."""


@dataclass
class Settings:
    """What the client is to do; the JSON of the command line."""

    role: str
    library: str
    name: str
    access: Access
    topics: dict[str, int]
    folder: str
    seed: int
    acks: Any = "all"
    idempotent: bool = False
    rate: float = 20.0
    compression: str = "none"
    compacted: list[str] = field(default_factory=list)
    isolation: Literal["committed", "uncommitted"] | None = None
    """What a consumer of topics with transactions reads."""
    is_stopping: bool = field(default=False, init=False)
    writer: Writer = field(init=False)

    def partitions(self) -> list[tuple[str, int]]:
        return [(topic, number) for topic, count in self.topics.items() for number in range(count)]


class Pace:
    """``rate`` turns a second; after a stall it does not hurry to catch up."""

    def __init__(self, rate: float) -> None:
        self._step = 1 / rate
        self._due = time.monotonic()

    def next_in_s(self) -> float:
        """Begin another turn; how long until it is due."""
        self._due = max(self._due + self._step, time.monotonic() - 1.0)
        return self.left_s()

    def left_s(self) -> float:
        return max(0.0, self._due - time.monotonic())


class Numbers:
    """The next number of this session's sends to each partition."""

    def __init__(self, session: str) -> None:
        self.session = session
        self._next: dict[tuple[str, int], int] = {}

    def take(self, topic: str, partition: int) -> tuple[int, str]:
        seq = self._next.get((topic, partition), 0)
        self._next[topic, partition] = seq + 1
        return seq, f"{topic}/{partition}/{self.session}/{seq}"


def delivery_timeout_ms(settings: Settings) -> int:
    return IDEMPOTENT_DELIVERY_TIMEOUT_MS if settings.idempotent else DELIVERY_TIMEOUT_MS


@dataclass(frozen=True)
class Record:
    """What is sent. A tombstone has its name in a header."""

    value: bytes | None
    key: bytes
    headers: list[tuple[str, bytes]]


def begin_send(
    settings: Settings,
    writer: Writer,
    numbers: Numbers,
    topic: str,
    partition: int,
    rng: random.Random,
    *,
    transaction: str | None = None,
    source: str | None = None,
) -> tuple[int, Record]:
    seq, value = numbers.take(topic, partition)
    padding = bytes(rng.randrange(PADDING_MAX))
    key, is_tombstone = None, False
    record = Record(value.encode(), padding, [])
    if topic in settings.compacted:
        key, is_tombstone = f"key-{rng.randrange(KEYS)}", rng.random() < TOMBSTONES
        headers = [("padding", padding), *([(ID_HEADER, value.encode())] if is_tombstone else [])]
        record = Record(None if is_tombstone else value.encode(), key.encode(), headers)
    op = writer.send(
        settings.name,
        topic,
        partition,
        value,
        acks=settings.acks,
        session=numbers.session,
        seq=seq,
        idempotent=settings.idempotent,
        key=key,
        tombstone=is_tombstone,
        transaction=transaction,
        source=source,
        in_flight=None if settings.idempotent else PLAIN_IN_FLIGHT,
    )
    return op, record


def value_of(value: bytes | None, headers: Iterable[tuple[str, bytes | None]] | None) -> str:
    """By which a history knows a record. What was never written so is there for the judge, who finds that
    nobody has sent it.
    """
    named = dict(headers or ()).get(ID_HEADER) if value is None else value
    return "a record without value and name" if named is None else named.decode(errors="backslashreplace")


# -- reading


Place = tuple[str, int]
"""Topic and partition."""
Seen = tuple[int, str, int | None]
"""Offset, value, and in which leader epoch it was appended, where the library tells."""


def epochs_of(records: list[Seen]) -> list[tuple[int, int]]:
    """Where each leader epoch begins; nothing unless all are known."""
    found: list[tuple[int, int]] = []
    for offset, _, epoch in records:
        if epoch is None or epoch < 0:
            return []
        if not found or found[-1][1] != epoch:
            found.append((offset, epoch))
    return found


class Positions:
    """Where an assigned consumer stands in each partition; writes down what it is given."""

    def __init__(self, settings: Settings, writer: Writer) -> None:
        self._settings, self._writer = settings, writer
        self.at: dict[tuple[str, int], int] = {}

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self.at[topic, partition] = offset
        self._writer.seek(self._settings.name, topic, partition, offset)

    def take(self, records: dict[tuple[str, int], list[Seen]]) -> None:
        for (topic, partition), some in records.items():
            self._writer.polled(
                self._settings.name,
                topic,
                partition,
                self.at[topic, partition],
                [(offset, value) for offset, value, _ in some],
                epochs=epochs_of(some),
                isolation=self._settings.isolation,
            )
            self.at[topic, partition] = some[-1][0] + 1


def where_earlier_lives_stopped(folder: Path, name: str) -> dict[tuple[str, int], int]:
    """The next offset of each partition, by the histories of ``consumer-1/0``, ``/1``, ... before this one.

    A killed life's last line may be cut off, or it has not come to write any.
    """
    client, _, life = name.rpartition("/")
    found: dict[tuple[str, int], int] = {}
    histories = [folder / f"{client}-{earlier}.jsonl" for earlier in range(int(life))]
    for history in histories:
        for line in history.read_text(encoding="utf-8").splitlines() if history.exists() else ():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if entry.get("type") != "ok":
                continue
            if entry["f"] == "seek":
                found[entry["topic"], entry["partition"]] = entry["offset"]
            elif entry["f"] == "poll" and entry["records"]:
                found[entry["topic"], entry["partition"]] = entry["records"][-1][0] + 1
    return found


def known_epoch(leader_epoch: int | None) -> int | None:
    """Libraries have a -1 for what a broker does not tell."""
    return None if leader_epoch is None or leader_epoch < 0 else leader_epoch
