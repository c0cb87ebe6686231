"""The threads of a broker's work with its remote store, and how they find and leave the store."""

import shlex
import threading
import uuid
from typing import Final

from sparklog.broker.current_settings import CurrentSettings
from sparklog.broker.life.body import BrokerBody
from sparklog.broker.life.remote_copies import StorePorts
from sparklog.broker.remote_log.copying.copier import CopyStopped
from sparklog.core.compaction import Throttle
from sparklog.model.errors import ConfigError
from sparklog.model.ids import BrokerId
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.time import Clock
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


class StoreThreads:
    """The threads of one broker with ``remote.log.storage.url``: made before its body, started with it."""

    def __init__(self, broker: BrokerId, cluster_id: str, config: BrokerConfig, clock: Clock) -> None:
        self._url = config.get_str("remote.log.storage.url")
        self._cluster_id = cluster_id
        self._clock = clock
        self._stopping = threading.Event()
        self._store_stop = Stop()
        self._loops, self._question_loops = LoopThreads(no_calls), LoopThreads(no_calls)
        self._throttle = Throttle(config.get_int(_RATE))
        self._readers = ThreadExecutor(
            name=f"broker-{broker}-history", threads=config.get_int("remote.log.reader.threads")
        )
        self._body: BrokerBody | None = None

    def ports(self) -> StorePorts:
        """Asks the store nothing yet: one that is away must not hold up a start."""
        store = open_store(self._url, stop=self._store_stop)
        return StorePorts(
            url=self._url,
            open_for_copies=self._open_for_copies,
            for_deletion=store,
            for_questions=store,
            for_reads=store,
            readers=self._readers,
            new_id=lambda: uuid.uuid4().hex,
            pace=self._pace,
        )

    def start(self, body: BrokerBody, settings: CurrentSettings) -> None:
        """Copy, delete and compare from now on; a change of ``settings`` changes the rate of copying."""
        assert body.copies is not None
        self._body = body
        settings.on_change(self._set_rate)
        for name, loop in body.copies.loops:
            self._loops.start(name, loop)
        for name, loop in body.question_loops():
            self._question_loops.start(name, loop)

    def close(self) -> None:
        """Stop in the middle of an upload, which leaves nothing that counts.

        Twice is fine. A stop does not wait for a store that hangs, and ignores its answer.
        """
        self._stopping.set()
        if self._body is not None and self._body.copies is not None:
            self._body.copies.close()
        self._question_loops.close(0)
        self._loops.close(STORE_STOP_S)
        self._store_stop.give()
        self._question_loops.close()
        self._loops.close()
        self._readers.stop()

    def _open_for_copies(self) -> RemoteStore:
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
            self._throttle = Throttle(config.get_int(_RATE))

    def _pace(self, done_bytes: int) -> None:
        pause_ms = self._throttle.pause_ms(done_bytes, self._clock.monotonic_ms())
        if self._stopping.wait(pause_ms / 1_000):
            raise CopyStopped("the broker stops in the middle of an upload")
