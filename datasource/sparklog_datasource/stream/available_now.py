"""``Trigger.AvailableNow``: the end of the run is fixed by Spark's first question for an end.

PURE. Not the preparation of the run fixes it (SPARK-53560), because Spark first replays a micro-batch that an
earlier run planned and did not commit, with that run's partitions. Each later plan is compared with the
captured ends. A plan that does not fit fails the query, because the run would be endless or lose records.
"""

from dataclasses import dataclass

from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog_datasource.reads.offset_json import Offsets


@dataclass(slots=True)
class AvailableNow:
    """The end of one run."""

    target: dict[TopicPartition, int] | None = None
    """The captured ends, which never change; None before the first question."""

    def check_end(self, ends: Offsets, latest: Offsets) -> None:
        """Compare the end of a micro-batch with the captured ends and with the log's ends now."""
        target = self.target
        if target is None:
            return
        if ends.keys() != target.keys():
            raise _error("the partitions of a micro-batch are not those captured at the start", ends, target)
        if any(end > target[topic_partition] for topic_partition, end in ends.items()):
            raise _error("a micro-batch ends beyond the offsets captured at the start", ends, target)
        if not ends.keys() <= latest.keys():
            raise _error("partitions of a micro-batch are gone", ends, latest)
        if any(end > latest[topic_partition] for topic_partition, end in ends.items()):
            raise _error("a micro-batch ends beyond the end of the log", ends, latest)


def _error(what: str, ends: Offsets, others: Offsets) -> SparklogError:
    return SparklogError(
        f"Trigger.AvailableNow: {what}. Its ends: {_text(ends)}; against: {_text(others)}. A topic was "
        "probably deleted, or created again, during the run; start the query again"
    )


def _text(offsets: Offsets) -> str:
    return (
        ", ".join(f"{topic_partition}:{offset}" for topic_partition, offset in sorted(offsets.items()))
        or "none"
    )
