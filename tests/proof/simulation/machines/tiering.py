"""The threads of a simulated broker's work with its store: copies, deletion, questions and reads of history.

The counterpart of ``broker.life.store_threads``. Loops and reads have threads (``machines.blocking_work``),
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
from simulation.schedule import US_PER_MS, Process, dice
from sparklog.broker.life.body import BrokerBody
from sparklog.broker.life.remote_copies import StorePorts
from sparklog.broker.remote_log.copying import catalog as catalogs
from sparklog.broker.remote_log.copying import garbage_search
from sparklog.broker.remote_log.reading import history_reader as reading
from sparklog.core.remote_log import head as heads
from sparklog.model.loops import Await, Loop, Pause, go_on

LOOPS: Final = 3
LOOK_MS: Final = 60
"""How often a loop that awaits a signal looks whether there is work; the signal itself is not looked at."""
READERS: Final = 2

PACED: Final = 0.2
"""Share of the pieces of an upload after which the copier rests."""


class StoreTasks:
    """Of one process of a broker: made before its body, started with it."""

    def __init__(self, process: Process, store: ObjectStore, seed: int, cluster_id: str) -> None:
        store.owner = cluster_id
        self._draw = dice(seed, f"copies of {process.name}")
        self._loops, self._reads = WorkThreads(process, LOOPS), WorkThreads(process, READERS)
        self._store = StoreLink(store, self._loops, dice(seed, f"store of {process.name}"))
        self._body: BrokerBody | None = None
        self.ports = StorePorts(
            url=URL,
            open_for_copies=lambda: self._store,
            for_deletion=self._store,
            for_questions=StoreLink(store, self._loops, dice(seed, f"questions of {process.name}")),
            for_reads=StoreLink(store, self._reads, dice(seed, f"reads of {process.name}")),
            readers=self._reads,
            new_id=self._new_id,
            pace=self._pace,
            question_loops=1,
        )

    def start(self, body: BrokerBody) -> None:
        assert body.copies is not None
        self._body = body
        for _, loop in (*body.copies.loops, *body.question_loops()):
            self._loops.submit(partial(self._drive, loop))

    def end(self) -> None:
        """The process is gone, or closes."""
        if self._body is not None and self._body.copies is not None:
            self._body.copies.close()
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
