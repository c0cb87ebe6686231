"""``Trigger.AvailableNow``: the end of the run is fixed when it is first asked for.

PURE. The capture is late, at the first question for an end and not at the preparation (SPARK-53560): a
micro-batch that an earlier run planned and did not commit is replayed first, with the partitions of its own
time. Afterwards every plan is held against the capture; whatever does not fit would make the run endless or
lose records, so it fails.
"""

from dataclasses import dataclass

from pyspark_sparklog.offsets import Offsets
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition


@dataclass(slots=True)
class AvailableNow:
    """The captured ends, once there are any."""

    target: dict[TopicPartition, int] | None = None

    def check_end(self, ends: Offsets, latest: Offsets) -> None:
        """Hold the end of a micro-batch against the capture and against what the log has now."""
        target = self.target
        if target is None:
            return
        if ends.keys() != target.keys():
            raise _error("the partitions of a micro-batch are not those captured at the start", ends, target)
        if any(end > target[topic_partition] for topic_partition, end in ends.items()):
            raise _error("a micro-batch ends behind what was captured at the start", ends, target)
        if not ends.keys() <= latest.keys():
            raise _error("partitions of a micro-batch are gone", ends, latest)
        if any(end > latest[topic_partition] for topic_partition, end in ends.items()):
            raise _error("a micro-batch ends behind the end of the log", ends, latest)


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
