"""Offsets of streaming queries as those of a consumer group, so that Kafka's tools show them and their lag.

The group is ``sparklog-query-<name>-<eight digits of the id>``, for a query without a name
``sparklog-query-<id>``, or option ``reportAs``. Only tasks know id and name of their query. One task of each
micro-batch knows the ends of all partitions, and commits them while it begins to read. So the group shows the
end of the micro-batch that runs, or ran last. The metadata of each commit are JSON with the query's ``name``,
``id``, ``run`` and ``batch``. Nothing reads these offsets back: a query goes on by its checkpoint.

A thread of the process commits, so that no row waits for it. It ends when nothing is left to commit. Offsets
that newer ones overtake are not committed. A cluster that refuses costs one warning in each process, and the
query goes on.
"""

import json
import logging
import os
import threading
from collections.abc import Callable
from typing import Final

from pyspark import TaskContext

from sparklog.client.coordinator import Coordinator
from sparklog.client.group.committed_offsets import Refused, commit_offsets
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog_datasource.clients import cluster_client
from sparklog_datasource.options.option_parsing import ConnectionOptions
from sparklog_datasource.reads.offset_json import Offsets

QUERY_ID: Final = "sql.streaming.queryId"
"""The local property of a task that has the id of its streaming query."""

DESCRIPTION: Final = "spark.job.description"
"""The local property of a task that has its query's name, before a line with the id, in HTML."""

RUN_ID: Final = "spark.jobGroup.id"
"""The local property of a task that has the id of its query's run, as Spark groups its jobs by it."""

BATCH_ID: Final = "streaming.sql.batchId"
"""The local property of a task that has the number of its micro-batch."""

METADATA_BYTES_MAX: Final = 1_024
NAME_CHARACTERS_MAX: Final = 200

GROUP_PREFIX: Final = "sparklog-query-"
ID_DIGITS: Final = 8
Commit = Callable[[str, Offsets, str], Refused]
"""Commits offsets of a group, with metadata; the partitions that were refused."""

logger: Final = logging.getLogger(__name__)


def group_of_task(report_as: str | None) -> str | None:
    """The group of the query that the current task belongs to; None outside of a streaming query."""
    context = TaskContext.get()
    query_id = None if context is None else context.getLocalProperty(QUERY_ID)
    if query_id is None:
        return None
    if report_as is not None:
        return report_as
    name = _name_in(context.getLocalProperty(DESCRIPTION) or "", query_id)
    return GROUP_PREFIX + (f"{name}-{query_id[:ID_DIGITS]}" if name else query_id)


def metadata_of_task() -> str:
    """Which query, run and batch the current task belongs to; empty outside of a streaming query."""
    context = TaskContext.get()
    query_id = None if context is None else context.getLocalProperty(QUERY_ID)
    if context is None or query_id is None:
        return ""
    name = _name_in(context.getLocalProperty(DESCRIPTION) or "", query_id)[:NAME_CHARACTERS_MAX]
    batch = context.getLocalProperty(BATCH_ID) or ""
    fields = {
        "name": name,
        "id": query_id,
        "run": context.getLocalProperty(RUN_ID),
        "batch": int(batch) if batch.isdecimal() else None,
    }
    text = json.dumps(fields, ensure_ascii=False)
    if len(text.encode()) <= METADATA_BYTES_MAX:
        return text
    return json.dumps({**fields, "name": ""})  # of characters that JSON writes as six


def _name_in(description: str, query_id: str) -> str:
    """The query's name; empty if it has none, or if a description of the user's stands there."""
    before, found, _ = description.partition(f"id = {query_id}")
    return before.strip().removesuffix("<br/>").strip() if found else ""


class Reporter:
    """Commits the newest offsets of each group of one cluster."""

    def __init__(self, commit: Commit) -> None:
        self._commit = commit
        self._waiting: dict[str, tuple[Offsets, str]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._has_warned = False

    def report(self, group: str, offsets: Offsets, metadata: str = "") -> None:
        """Commit soon; returns at once."""
        with self._lock:
            self._waiting[group] = offsets, metadata
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="sparklog-reporter", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while True:
            with self._lock:
                waiting, self._waiting = self._waiting, {}
                if not waiting:
                    self._thread = None
                    return
            for group, (offsets, metadata) in waiting.items():
                self._commit_one(group, offsets, metadata)

    def _commit_one(self, group: str, offsets: Offsets, metadata: str) -> None:
        try:
            refused = self._commit(group, offsets, metadata)
        except (SparklogError, OSError) as error:
            self._warn(group, str(error))
            return
        # A topic that was deleted has no place in the group; the query itself tells of its loss.
        codes = set(refused.values()) - {ErrorCode.unknown_topic_or_partition}
        if codes:
            self._warn(group, ", ".join(sorted(code.name.upper() for code in codes)))

    def _warn(self, group: str, why: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "the offsets of the query could not be reported as those of group %r: %s. The query goes on; "
                "set option reportOffsets to false to leave this out",
                group,
                why,
            )


_reporters: dict[ConnectionOptions, Reporter] = {}


def reporter(connection: ConnectionOptions) -> Reporter:
    """The process's reporter for this cluster."""
    if connection not in _reporters:

        def commit(group: str, offsets: Offsets, metadata: str) -> Refused:
            coordinator = Coordinator(cluster_client(connection), group)
            return commit_offsets(coordinator, offsets, metadata=metadata)

        _reporters[connection] = Reporter(commit)
    return _reporters[connection]


os.register_at_fork(after_in_child=_reporters.clear)
