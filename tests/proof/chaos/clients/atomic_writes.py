"""Atomic writes of sparklog's own client: a driver and its tasks, as a job of Spark has them, in one process.

The driver writes version after version of its app, each until it is told that it is committed. A life that
follows another reads in the histories how far that came, and writes the version again that may be open, as
Spark does after a crash. So a driver that only stalled competes with its successor, version for version.

In the history each try at a version is a transaction of the rows of its winners. The rows of each other task
are a transaction of their own, which nobody commits. What an error says of the write is judged, too.
"""

import itertools
import json
import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from chaos.clients.client_parts import REQUEST_TIMEOUT_MS, Numbers, Pace, Settings, begin_send
from chaos.clients.transaction_parts import HELD, HOLD_S, TIMEOUT_MS
from histories import Writer
from sparklog.client.cluster import ClusterClient
from sparklog.client.producer import BatchProducer, Transaction
from sparklog.client.transactions.writes.failed_writes import AlreadyCommitted, WriteFailed
from sparklog.client.transactions.writes.write_driver import Commit, abort_write, commit_write
from sparklog.client.transactions.writes.write_identity import WriteIdentity
from sparklog.client.transactions.writes.write_member import WriteMember
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.records.kafka.encode import Record, build_records_batch

MEMBERS_MAX: Final = 3
ROWS_MAX: Final = 4
"""Of a task in one partition."""
LOSES: Final = 0.2
"""So many tasks behind the first are no winners."""
ABORTS: Final = 0.15
"""So many tries are aborted by their driver."""
CALL_MS: Final = 20_000
"""For so long a call is tried again."""
PAUSE_S: Final = 0.2
NOT_COMMITTED: Final = "is not committed"
"""With these words the driver's errors promise that nothing of the try will ever be visible."""


def write(settings: Settings, writer: Writer) -> None:
    """One version after the other, until told to stop."""
    write_versions(settings, writer, Driver)


def write_versions(
    settings: Settings, writer: Writer, make: "Callable[[Settings, Writer, ClusterClient], Driver]"
) -> None:
    """What ``make`` makes tries at them."""
    with ClusterClient(
        settings.access.bootstrap,
        client_id=settings.name,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        connector=settings.access.connector(),
    ) as cluster:
        driver = make(settings, writer, cluster)
        version = next_version(Path(settings.folder), settings.name)
        while not settings.is_stopping:
            if driver.is_written(version):
                version += 1
            else:
                time.sleep(PAUSE_S)


def next_version(folder: Path, name: str) -> int:
    """The first version of which no earlier life of the client was told that it is committed.

    A killed life's last line may be cut off.
    """
    client, _, life = name.rpartition("/")
    found = 0
    for history in (folder / f"{client}-{earlier}.jsonl" for earlier in range(int(life))):
        for line in history.read_text(encoding="utf-8").splitlines() if history.exists() else ():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if entry.get("f") == "written":
                found = max(found, int(entry["write"].rpartition("/")[2]) + 1)
    return found


@dataclass
class _Task:
    """A member of a try; ``transaction`` is where its rows belong in the history."""

    member: WriteMember
    number: int
    transaction: str
    is_winner: bool


class Driver:
    """Tries at versions of one app, which is named after the client."""

    def __init__(self, settings: Settings, writer: Writer, cluster: ClusterClient) -> None:
        self._settings, self._writer, self._cluster = settings, writer, cluster
        self._app = settings.name.split("/")[0]
        self._rng, self._pace = random.Random(settings.seed), Pace(settings.rate)
        self._tries = itertools.count()

    def is_written(self, version: int) -> bool:
        """One try at the version; whether it is committed, by this try or another."""
        run = f"{self._settings.name}#{version}.{next(self._tries)}"
        identity = WriteIdentity(self._app, version, run, is_plain=False, timeout_ms=TIMEOUT_MS)
        try:
            winners = self._write_rows(identity)
            if self._rng.random() < HELD:
                self._hold()
            if self._rng.random() < ABORTS:
                self._abort(identity)
                return False
            self._commit(identity, winners)
        except AlreadyCommitted:
            pass
        except SparklogError as error:
            self._trouble(error)
            self._abort(identity)
            return False
        self._writer.written(self._settings.name, self._write_of(identity))
        return True

    def _write_of(self, identity: WriteIdentity) -> str:
        return f"{self._app}/{identity.version}"

    def _write_rows(self, identity: WriteIdentity) -> list[int]:
        """Of tasks that are open at the same time; the producer ids of the winners."""
        with ExitStack() as ends:
            tasks = [
                self._open(identity, number, ends) for number in range(self._rng.randint(1, MEMBERS_MAX))
            ]
            for task in tasks:
                self._send(task, identity)
            for task in tasks:
                if task.is_winner or self._rng.random() < 0.5:
                    task.member.finish()
                else:
                    task.member.withdraw()
            return [task.member.producer_id for task in tasks if task.is_winner]

    def _open(self, identity: WriteIdentity, number: int, ends: ExitStack) -> _Task:
        member = WriteMember(self._cluster, identity, str(number), timeout_ms=CALL_MS)
        ends.callback(member.close)
        is_winner = number == 0 or self._rng.random() >= LOSES
        transaction = identity.run if is_winner else f"{identity.run} lost by {number}"
        places = [TopicPartition(*place) for place in self._settings.partitions()]
        member.open(self._rng.sample(places, 1))
        return _Task(member, number, transaction, is_winner)

    def _send(self, task: _Task, identity: WriteIdentity) -> None:
        """A batch for each of some partitions, registered before; all are answered, or it raises."""
        every = self._settings.partitions()
        places = [TopicPartition(*one) for one in self._rng.sample(every, self._rng.randint(1, len(every)))]
        task.member.add(places)
        numbers = Numbers(f"{identity.run}/{task.number}")
        rows = {place: self._begin_rows(task, place, numbers) for place in places}
        transaction = Transaction(identity.app_id, task.member.producer_id, 0)
        try:
            with BatchProducer(self._cluster, transaction=transaction, timeout_ms=CALL_MS) as producer:
                for place, some in rows.items():
                    records = [record for _, record in some]
                    producer.send(place, build_records_batch(records, now_ms=time.time_ns() // 1_000_000))
                delivered = producer.flush()
        except SparklogError as error:
            for op, _ in itertools.chain(*rows.values()):
                self._writer.unknown(self._settings.name, op, error)
            raise
        for batch in delivered:
            for number, (op, _) in enumerate(rows[batch.topic_partition]):
                offset = None if batch.base_offset < 0 else batch.base_offset + number
                self._writer.sent(self._settings.name, op, offset=offset)

    def _begin_rows(self, task: _Task, place: TopicPartition, numbers: Numbers) -> list[tuple[int, Record]]:
        found = []
        for _ in range(self._rng.randint(1, ROWS_MAX)):
            time.sleep(self._pace.next_in_s())
            op, record = begin_send(
                self._settings, self._writer, numbers, *place, self._rng, transaction=task.transaction
            )
            found.append((op, Record(key=record.key, value=record.value)))
        return found

    def _commit(self, identity: WriteIdentity, winners: list[int]) -> None:
        name, write = self._settings.name, self._write_of(identity)
        op = self._writer.finish(name, identity.run, commit=True, write=write)
        try:
            found = commit_write(self._cluster, identity, winners, timeout_ms=CALL_MS)
        except WriteFailed as error:
            tell = self._writer.failed if NOT_COMMITTED in str(error) else self._writer.unknown
            tell(name, op, error, what="finish")
            raise
        if found is Commit.now:
            self._writer.happened(name, op, what="finish")
        else:  # by another try, or by this one, whose answer was lost
            self._writer.unknown(name, op, "the version was committed before", what="finish")

    def _abort(self, identity: WriteIdentity) -> None:
        """Nobody knows whether this ended the try: it may be committed, or have been aborted long before,
        for its silence or for a later version.
        """
        op = self._writer.finish(self._settings.name, identity.run, commit=False)
        try:
            abort_write(self._cluster, identity, timeout_ms=CALL_MS)
        except SparklogError as error:  # it ends by its time-out, or with the next try
            self._writer.unknown(self._settings.name, op, error, what="finish")
        else:
            self._writer.unknown(self._settings.name, op, "it is open no more", what="finish")

    def _hold(self) -> None:
        until = time.monotonic() + HOLD_S
        while not self._settings.is_stopping and time.monotonic() < until:
            time.sleep(PAUSE_S)

    def _trouble(self, error: Any) -> None:
        self._writer.line(self._settings.name, "info", "poll", error=str(error)[:900])
