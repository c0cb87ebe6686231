"""The thread that copies to the remote store, and how it finds its store."""

import threading
import uuid
from collections.abc import Iterator
from typing import Final

from sparklog.broker.replica_manager import ReplicaManager
from sparklog.broker.tiering.copier import CopierPorts, CopyStatistics, CopyStopped, RemoteCopier
from sparklog.core.compaction import Throttle
from sparklog.model.config import BrokerConfig
from sparklog.model.errors import ConfigError
from sparklog.model.ids import BrokerId
from sparklog.model.metric import Metric, counter, gauge
from sparklog.model.time import Clock
from sparklog.model.zookeeper import ZooKeeper
from sparklog.network.loop_threads import LoopThreads, no_calls
from sparklog.remote.open_store import open_store
from sparklog.remote.ownership import claim
from sparklog.remote.probe import probe
from sparklog.remote.store import RemoteStore

_RATE: Final = "remote.log.manager.copy.max.bytes.per.second"


class Tiering:
    """Copies while it is started; only made for a broker with ``remote.log.storage.url``."""

    def __init__(
        self, replicas: ReplicaManager, broker: BrokerId, cluster_id: str, zookeeper: ZooKeeper, clock: Clock
    ) -> None:
        settings = replicas.settings
        self._url = settings.at_start.get_str("remote.log.storage.url")
        self._cluster_id = cluster_id
        self._clock = clock
        self._stopping = threading.Event()
        self._loops = LoopThreads(no_calls)
        self._throttle = _throttle(settings.now)
        settings.on_change(self._set_rate)
        self.copier = RemoteCopier(
            broker,
            replicas.partitions,
            CopierPorts(zookeeper, self._open_store, self._url, clock, lambda: uuid.uuid4().hex, self._pace),
            interval_ms=settings.at_start.get_int("remote.log.manager.task.interval.ms"),
        )

    def start(self) -> None:
        self._loops.start("remote-copier", self.copier.loop)

    def close(self) -> None:
        """Stop in the middle of an upload, which leaves nothing behind that counts."""
        self._stopping.set()
        self._loops.close()

    def _open_store(self) -> RemoteStore:
        """ConfigError if the store lacks an ability, or is another cluster's."""
        store = open_store(self._url)
        lacking = [finding for finding in probe(store) if not finding.has]
        if lacking:
            raise ConfigError(
                f"{self._url} is not fit to hold history: {lacking[0].ability}: {lacking[0].seen}; "
                f"`sparklog remote check {self._url}` shows all"
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
