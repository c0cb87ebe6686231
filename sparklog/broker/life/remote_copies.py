"""A broker's work with its remote store, put together: copies, deletion after them, reads of history.

``BrokerBody`` makes it over the ports of a store, for a broker with ``remote.log.storage.url``. The owner of
the body runs the loops on threads of their own, because a store may not answer for minutes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from sparklog.broker.current_settings import CurrentSettings
from sparklog.broker.ports import Ports
from sparklog.broker.remote_log.copying.catalog import ManifestCatalog
from sparklog.broker.remote_log.copying.copier import CopierPorts, RemoteCopier
from sparklog.broker.remote_log.copying.deletion import RemoteLogDeletion
from sparklog.broker.remote_log.copying.history_questions import LOOPS
from sparklog.broker.remote_log.reading.history_reader import HistoryReader
from sparklog.broker.remote_log.reading.runs import RunCache
from sparklog.broker.remote_log.reading.segments import StoredSegments
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.broker.waiting.fetch_purgatory import FetchPurgatory
from sparklog.broker.waiting.history_fetches import HistoryFetches
from sparklog.model.ids import BrokerId
from sparklog.model.loops import Loop
from sparklog.model.ports import Executor
from sparklog.model.zookeeper import ZooKeeper
from sparklog.remote.store import RemoteStore


@dataclass(frozen=True, slots=True)
class StorePorts:
    """How a broker reaches its remote store. The stores may be the same; none is asked before a loop runs."""

    url: str
    open_for_copies: Callable[[], RemoteStore]
    """Raises ConfigError if the store lacks an ability, or is another cluster's."""
    for_deletion: RemoteStore
    for_questions: RemoteStore
    for_reads: RemoteStore
    readers: Executor
    """The threads of reads for consumers."""
    new_id: Callable[[], str]
    """Names of objects that nobody gave before."""
    pace: Callable[[int], None]
    """Called with the bytes of each piece that was uploaded; waits, or raises CopyStopped."""
    question_loops: int = LOOPS
    """How many partitions are compared with their histories at the same time."""


@dataclass(frozen=True, slots=True)
class RemoteCopies:
    """The remote copies of one broker. Reads of consumers reach the store from ``compose`` to ``close``."""

    copier: RemoteCopier
    deletion: RemoteLogDeletion
    reader: HistoryReader
    _fetches: FetchPurgatory

    @classmethod
    def compose(
        cls,
        broker_id: BrokerId,
        replicas: PartitionTable,
        settings: CurrentSettings,
        fetches: FetchPurgatory,
        zookeeper: ZooKeeper,
        inside: Ports,
        store: StorePorts,
    ) -> Self:
        config = settings.at_start
        copier = RemoteCopier(
            broker_id,
            replicas.partitions,
            CopierPorts(zookeeper, store.open_for_copies, store.url, inside.clock, store.new_id, store.pace),
            interval_ms=config.get_int("remote.log.manager.task.interval.ms"),
        )
        deletion = RemoteLogDeletion(
            replicas.partitions,
            zookeeper,
            store.for_deletion,
            inside.clock,
            interval_ms=config.get_int("log.retention.check.interval.ms"),
        )
        catalog = ManifestCatalog(zookeeper, store.for_reads, inside.clock, inside.new_guard())
        reader = HistoryReader(
            StoredSegments(store.for_reads, catalog, inside.new_guard()),
            store.readers,
            inside.new_guard(),
            RunCache(config.get_int("remote.log.reader.cache.bytes")),
            config.get_int("remote.log.reader.max.pending.tasks"),
            copier.suspect,
        )
        fetches.history = HistoryFetches(inside, reader, config.get_int("remote.fetch.max.wait.ms"))
        return cls(copier, deletion, reader, fetches)

    @property
    def loops(self) -> tuple[tuple[str, Callable[[], Loop]], ...]:
        """Names and beginnings of the loops that copy and delete."""
        return (("remote-copier", self.copier.loop), ("remote-deletion", self.deletion.loop))

    def close(self) -> None:
        """Answer no further read of history."""
        self._fetches.history = None
        self.reader.close()
