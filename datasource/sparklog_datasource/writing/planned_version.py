"""The version of a topic's columns that a streaming query writes, for as long as it runs.

Names become ids when a query is planned: a column that is renamed later keeps its rows, and one that is
dropped is left out by readers. But Spark makes a stream's writer anew for each micro-batch, in processes that
come and go. So the tasks of a run agree upon the version that the first of them found to fit, and keep it.

A cluster that never had an atomic write has no agreements: there each process keeps the version by itself.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pyspark import TaskContext

from sparklog.client.cluster import ClusterClient
from sparklog.client.transactions.agreement import Agreement
from sparklog.client.transactions.cutting import serves_cuts
from sparklog_datasource.writing.delivery import RUN_ID

RUNS_MAX: Final = 64
ASKED_AGAIN_S: Final = 3_600.0
"""An agreement is forgotten a day after its last use."""


@dataclass(frozen=True, slots=True)
class _Kept:
    version: int
    until_s: float


_kept: Final[dict[tuple[str, str], _Kept]] = {}
"""The versions that this process knows, by run and topic."""


def run_of_task() -> str | None:
    """The id of the streaming query's run; None outside of a task."""
    context = TaskContext.get()
    run: str | None = None if context is None else context.getLocalProperty(RUN_ID)
    return run


def version_of_run(
    cluster: ClusterClient, run: str, topic: str, plan: Callable[[], int], *, is_exactly_once: bool
) -> int:
    """The version that the run writes; ``plan`` says which, if this task is the first to ask.

    ``is_exactly_once``: the cluster will have agreements, if it has none yet.
    """
    kept = _kept.get((run, topic))
    if kept is not None and time.monotonic() < kept.until_s:
        return kept.version
    if is_exactly_once or serves_cuts(cluster):
        agreement = Agreement(cluster, f"columns-{run}-{topic}")
        known = agreement.value()
        version = int(agreement.put(str(plan()).encode()) if known is None else known)
    else:
        version = plan() if kept is None else kept.version
    if len(_kept) >= RUNS_MAX:
        _kept.pop(next(iter(_kept)))
    _kept[run, topic] = _Kept(version, time.monotonic() + ASKED_AGAIN_S)
    return version
