"""The tier of a simulated broker: the shipped copier, deletion and reads of history, over a simulated store.

The counterpart of ``broker.life.tiering.Tiering``. Loops and reads have threads (``machines.blocking_work``),
so that a broker serves and is told of other leaders in the middle of an upload.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from simulation.machines.blocking_work import WorkThreads
from simulation.machines.loops import TURN_US
from simulation.machines.object_store import ObjectStore, StoreLink
from simulation.plans.tier import URL, TierPlan
from simulation.schedule import US_PER_MS, Process, Tripwire, dice
from sparklog.broker.history import reader as reading
from sparklog.broker.history.reader import HistoryReader
from sparklog.broker.history.runs import RunCache
from sparklog.broker.history.segments import StoredSegments
from sparklog.broker.ports import Ports
from sparklog.broker.replica_manager import ReplicaManager
from sparklog.broker.tiering import catalog as catalogs
from sparklog.broker.tiering import garbage_search
from sparklog.broker.tiering.catalog import ManifestCatalog
from sparklog.broker.tiering.copier import CopierPorts, RemoteCopier
from sparklog.broker.tiering.deletion import TieredDeletion
from sparklog.broker.tiering.history_questions import HistoryQuestions, QuestionPorts
from sparklog.broker.waiting.history_fetches import HistoryFetches
from sparklog.core.tiering import head as heads
from sparklog.model.config import BrokerConfig
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.loops import Await, Loop, Pause, go_on
from sparklog.model.zookeeper import ZooKeeper

LOOPS: Final = 3
LOOK_MS: Final = 60
"""How often a loop that awaits a signal looks whether there is work; the signal itself is not looked at."""
READERS: Final = 2

PACED: Final = 0.2
"""Share of the pieces of an upload after which the copier rests."""


class BrokerTier:
    """Of one process of a broker."""

    def __init__(
        self,
        broker_id: BrokerId,
        replicas: ReplicaManager,
        zookeeper: ZooKeeper,
        store: ObjectStore,
        ports: Ports,
        process: Process,
        seed: int,
        cluster_id: str,
    ) -> None:
        config = replicas.config
        self._replicas = replicas
        self._process = process
        self._draw = dice(seed, f"copies of {process.name}")
        self._loops, self._reads = WorkThreads(process, LOOPS), WorkThreads(process, READERS)
        self._store = StoreLink(store, self._loops, dice(seed, f"store of {process.name}"))
        self._copier = RemoteCopier(
            broker_id,
            replicas.partitions,
            CopierPorts(zookeeper, lambda: self._store, URL, process, self._new_id, self._pace),
            config.get_int("remote.log.manager.task.interval.ms"),
        )
        self._deletion = TieredDeletion(
            replicas.partitions,
            zookeeper,
            self._store,
            process,
            config.get_int("log.retention.check.interval.ms"),
        )
        store.owner = cluster_id
        self._questions_link = StoreLink(store, self._loops, dice(seed, f"questions of {process.name}"))
        self._questions = HistoryQuestions(
            replicas.partitions,
            QuestionPorts(zookeeper, self._questions_link, URL, cluster_id, process),
            loops=1,
        )
        replicas.leadership.add_listener(self._questions)
        link = StoreLink(store, self._reads, dice(seed, f"reads of {process.name}"))
        self._reader = _reader(config, zookeeper, link, self._reads, self._copier.suspect)
        self._history = HistoryFetches(ports, self._reader, config.get_int("remote.fetch.max.wait.ms"))

    def start(self) -> None:
        self._replicas.fetches.history = self._history
        for loop in (self._copier.loop, self._deletion.loop, partial(self._questions.loop, 0)):
            self._loops.submit(partial(self._drive, loop))

    def end(self) -> None:
        """The process is gone, or closes."""
        self._replicas.fetches.history = None
        self._reader.close()
        self._loops.end()
        self._reads.end()

    def _drive(self, begin: Callable[[], Loop]) -> None:
        loop = begin()
        while (question := go_on(loop)) is not None:
            rest_ms = question.delay_ms if isinstance(question, Pause) else LOOK_MS
            assert isinstance(question, Pause | Await), question
            self._store.rest_ms(max(rest_ms, TURN_US / US_PER_MS))

    def _new_id(self) -> str:
        return f"{self._draw.getrandbits(128):032x}"

    def _pace(self, done_bytes: int) -> None:
        if self._draw.random() < PACED:
            self._store.rest_ms(self._draw.uniform(0, 20))


def _reader(
    config: BrokerConfig,
    zookeeper: ZooKeeper,
    link: StoreLink,
    threads: WorkThreads,
    suspect: Callable[[TopicPartition], None],
) -> HistoryReader:
    catalog = ManifestCatalog(zookeeper, link, threads.process, Tripwire())
    return HistoryReader(
        StoredSegments(link, catalog, Tripwire()),
        threads,
        Tripwire(),
        RunCache(config.get_int("remote.log.reader.cache.bytes")),
        config.get_int("remote.log.reader.max.pending.tasks"),
        suspect,
    )


@contextmanager
def small_tiers(plan: TierPlan | None) -> Iterator[None]:
    """For the length of a run: manifests, reads, and the spans after which something is read again or
    deleted, as small as a run needs them.
    """
    if plan is None:
        yield
        return
    smaller: list[tuple[Any, str, int]] = [
        (heads, "TAIL_MAX", plan.tail_max),
        (heads, "SEGMENTS_MAX", 3 * plan.tail_max),
        (reading, "RUN_BYTES", plan.run_bytes),
        (catalogs, "HEAD_AGE_MAX_MS", plan.grace_ms // 4),
        (garbage_search, "GRACE_MS", plan.grace_ms),
        (garbage_search, "GARBAGE_INTERVAL_MS", plan.grace_ms // 4),
        (garbage_search, "WHOLE_STORE_INTERVAL_MS", 2 * plan.grace_ms),
    ]
    originals = [(module, name, getattr(module, name)) for module, name, _ in smaller]
    for module, name, value in smaller:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in originals:
            setattr(module, name, value)
