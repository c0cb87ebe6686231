"""The threads that copy to the remote store, delete behind it and read from it; how they find their store."""

import shlex
import threading
import uuid
from collections.abc import Iterator
from functools import partial
from typing import Final

from sparklog.broker.history.reader import Counts, HistoryReader
from sparklog.broker.history.runs import RunCache
from sparklog.broker.history.segments import StoredSegments
from sparklog.broker.ports import Ports
from sparklog.broker.replica_manager import ReplicaManager
from sparklog.broker.tiering.catalog import ManifestCatalog
from sparklog.broker.tiering.copier import CopierPorts, CopyStatistics, CopyStopped, RemoteCopier
from sparklog.broker.tiering.deletion import TieredDeletion
from sparklog.broker.tiering.history_questions import HistoryQuestions, QuestionPorts
from sparklog.broker.waiting.history_fetches import HistoryFetches
from sparklog.core.compaction import Throttle
from sparklog.model.config import BrokerConfig
from sparklog.model.errors import ConfigError
from sparklog.model.ids import BrokerId
from sparklog.model.metric import Metric, counter, gauge
from sparklog.model.zookeeper import ZooKeeper
from sparklog.network.executor import ThreadExecutor
from sparklog.network.loop_threads import LoopThreads, no_calls
from sparklog.remote.open_store import open_store
from sparklog.remote.ownership import claim
from sparklog.remote.patience import Stop
from sparklog.remote.probe import probe
from sparklog.remote.store import RemoteStore

STORE_STOP_S: Final = 1.0
"""For each loop, so that a store that answers is not cut off."""

_RATE: Final = "remote.log.manager.copy.max.bytes.per.second"


class Tiering:
    """Copies while it is started; only made for a broker with ``remote.log.storage.url``."""

    def __init__(
        self, replicas: ReplicaManager, broker: BrokerId, cluster_id: str, zookeeper: ZooKeeper, ports: Ports
    ) -> None:
        settings, clock = replicas.settings, ports.clock
        self._url = settings.at_start.get_str("remote.log.storage.url")
        self._cluster_id = cluster_id
        self._clock = clock
        self._stopping = threading.Event()
        self._store_stop = Stop()
        self._loops, self._question_loops = LoopThreads(no_calls), LoopThreads(no_calls)
        self._throttle = _throttle(settings.now)
        settings.on_change(self._set_rate)
        self.copier = RemoteCopier(
            broker,
            replicas.partitions,
            CopierPorts(zookeeper, self._open_store, self._url, clock, lambda: uuid.uuid4().hex, self._pace),
            interval_ms=settings.at_start.get_int("remote.log.manager.task.interval.ms"),
        )

        # Asks nothing yet: a store that is away must not hold up a start.
        store = open_store(self._url, stop=self._store_stop)
        self.deletion = TieredDeletion(
            replicas.partitions,
            zookeeper,
            store,
            clock,
            interval_ms=settings.at_start.get_int("log.retention.check.interval.ms"),
        )
        self._threads = ThreadExecutor(
            name=f"broker-{broker}-history", threads=settings.at_start.get_int("remote.log.reader.threads")
        )
        self.questions = HistoryQuestions(
            replicas.partitions, QuestionPorts(zookeeper, store, self._url, cluster_id, clock)
        )
        catalog = ManifestCatalog(zookeeper, store, clock, ports.new_guard())
        self.reader = HistoryReader(
            StoredSegments(store, catalog, ports.new_guard()),
            self._threads,
            ports.new_guard(),
            RunCache(settings.at_start.get_int("remote.log.reader.cache.bytes")),
            settings.at_start.get_int("remote.log.reader.max.pending.tasks"),
            self.copier.suspect,
        )
        self._replicas = replicas
        self._fetches = replicas.fetches
        self._history = HistoryFetches(
            ports, self.reader, settings.at_start.get_int("remote.fetch.max.wait.ms")
        )

    def start(self) -> None:
        self._fetches.history = self._history
        self._loops.start("remote-copier", self.copier.loop)
        self._loops.start("remote-deletion", self.deletion.loop)
        start_questions(self._question_loops, self.questions, self._replicas)

    def close(self) -> None:
        """Stop in the middle of an upload, which leaves nothing behind that counts.

        What a store does not answer soon is left behind: a stop must not wait for one that hangs.
        """
        self._stopping.set()
        self._fetches.history = None
        self.reader.close()
        self._question_loops.close(0)
        self._loops.close(STORE_STOP_S)
        self._store_stop.give()
        self._question_loops.close()
        self._loops.close()
        self._threads.stop()

    def _open_store(self) -> RemoteStore:
        """ConfigError if the store lacks an ability, or is another cluster's."""
        store = open_store(self._url, stop=self._store_stop)
        lacking = [finding for finding in probe(store) if not finding.has]
        if lacking:
            raise ConfigError(
                f"{self._url} is not fit to hold history: {lacking[0].ability}: {lacking[0].seen}; "
                f"`sparklog remote check {shlex.quote(self._url)}` shows all"
            )
        claim(store, self._cluster_id)
        return store

    def _set_rate(self, config: BrokerConfig) -> None:
        if self._throttle.bytes_per_second != config.get_int(_RATE):
            self._throttle = _throttle(config)

    def _pace(self, done_bytes: int) -> None:
        pause_ms = self._throttle.pause_ms(done_bytes, self._clock.monotonic_ms())
        if self._stopping.wait(pause_ms / 1_000):
            raise CopyStopped("the broker stops in the middle of an upload")


def start_questions(loops: LoopThreads, questions: HistoryQuestions, replicas: ReplicaManager) -> None:
    """Ask from now on, also for partitions that led before."""
    replicas.leadership.add_listener(questions)
    for number in range(questions.loops):
        loops.start(f"history-questions-{number}", partial(questions.loop, number))


def _throttle(config: BrokerConfig) -> Throttle:
    return Throttle(config.get_int(_RATE))


def tiering_metrics(statistics: CopyStatistics) -> Iterator[Metric]:
    yield counter(
        "sparklog_broker_remote_copied_segments_total",
        "Segments that were copied to the remote store.",
        statistics.segments,
    )
    yield counter(
        "sparklog_broker_remote_copied_bytes_total",
        "Bytes that were written to the remote store.",
        statistics.bytes,
    )
    yield counter(
        "sparklog_broker_remote_copy_failures_total",
        "Rounds of copying that a failure of the store, of ZooKeeper or of a log has ended.",
        statistics.failures,
    )
    yield gauge(
        "sparklog_broker_remote_copy_lag_bytes",
        "Bytes of sealed segments led here that are not in the remote store yet.",
        statistics.lag_bytes,
    )
    yield gauge(
        "sparklog_broker_remote_unreadable_histories",
        "Partitions led here with something in the remote store that is gone or damaged; the log names it.",
        statistics.unreadable,
    )


def history_metrics(counts: Counts) -> Iterator[Metric]:
    yield counter(
        "sparklog_broker_remote_fetch_requests_total",
        "Reads of the remote store for consumers.",
        counts.requests,
    )
    yield counter(
        "sparklog_broker_remote_fetch_bytes_total",
        "Bytes of batches that were read from the remote store.",
        counts.bytes_read,
    )
    yield counter(
        "sparklog_broker_remote_fetch_errors_total",
        "Reads of the remote store that failed; the log names the object.",
        counts.errors,
    )
    yield counter(
        "sparklog_broker_remote_fetch_refused_total",
        "Reads that were not begun, because remote.log.reader.max.pending.tasks were under way.",
        counts.refused,
    )
