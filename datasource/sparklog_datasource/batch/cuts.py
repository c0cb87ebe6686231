"""The cut of a batch read: all tasks of one execution, and their retries, read the same rows.

Each task asks the cluster for the cut of its execution. The first task makes it, for all partitions of the
subscription. It is kept under a name that the tasks of one execution share, and no others:

    with an execution of Spark SQL   application, its driver's address, execution, subscription
    without one (``df.rdd``)         application, plan, stage

The id of a local application is the millisecond of its start, which two may share. The drivers' addresses
differ as long as both run. The same subscription, read twice in one execution, has one cut.

Without a cluster that serves cuts, and with ``kafka.isolation.level=read_uncommitted``, there is no cut, and
each task reads to the end that it finds.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import Final

from pyspark import TaskContext

from sparklog.client.isolation import IsolationLevel
from sparklog.client.transactions.cut import Cut
from sparklog.client.transactions.cutting import agreed_cut, serves_cuts
from sparklog.model.ids import TopicPartition
from sparklog_datasource.clients import cluster_client
from sparklog_datasource.options.option_parsing import ConnectionOptions
from sparklog_datasource.reads.discovery import Discovery
from sparklog_datasource.reads.read_options import ReadOptions

APP_ID: Final = "spark.app.id"
DRIVER_HOST: Final = "spark.driver.host"
DRIVER_PORT: Final = "spark.driver.port"
EXECUTION_ID: Final = "spark.sql.execution.id"
"""Local properties of a task."""

REMEMBERED_MAX: Final = 8

_remembered: Final[dict[tuple[ConnectionOptions, str], Cut]] = {}
"""The latest cuts of this process, by connection and name. Python workers run many tasks."""


def cut_for_task(options: ReadOptions, plan: str) -> Cut | None:
    """The cut of the current task's execution; None without cuts. ``plan`` is unique to the read's plan."""
    if options.isolation_level is IsolationLevel.READ_UNCOMMITTED:
        return None
    name = name_for_task(options, plan)
    key = (options.connection, name)
    known = _remembered.get(key)
    if known is not None:
        return known
    cluster = cluster_client(options.connection)
    if not serves_cuts(cluster):
        return None
    cut = agreed_cut(cluster, name, _partitions(options))
    while len(_remembered) >= REMEMBERED_MAX:
        _remembered.pop(next(iter(_remembered)), None)
    _remembered[key] = cut
    return cut


def name_for_task(options: ReadOptions, plan: str) -> str:
    context = TaskContext.get()
    if context is None:
        return f"cut-{plan}"
    app, execution = context.getLocalProperty(APP_ID), context.getLocalProperty(EXECUTION_ID)
    if app is None or execution is None:
        return f"cut-{app}-{plan}-{context.stageId()}"
    host, port = context.getLocalProperty(DRIVER_HOST), context.getLocalProperty(DRIVER_PORT)
    subscription = hashlib.sha256(repr(options.subscription).encode()).hexdigest()[:32]
    return f"cut-{app}-{host}-{port}-{execution}-{subscription}"


def _partitions(options: ReadOptions) -> Callable[[], Iterable[TopicPartition]]:
    discovery = Discovery(options.subscription, missing_is_error=True)
    return lambda: discovery.partitions(cluster_client(options.connection))
