"""The size of a micro-batch: ``maxOffsetsPerTrigger``, ``minOffsetsPerTrigger``, ``maxTriggerDelay``.

PURE. The maximum is divided among the partitions in proportion to their backlogs. A share below one is
rounded up, so that huge partitions do not starve a small one; the sum may exceed the limit by that. The
minimum delays a micro-batch until that many offsets are new or ``maxTriggerDelay`` has passed. The first
micro-batch never waits.
"""

import math
from dataclasses import dataclass

from sparklog.model.ids import TopicPartition
from sparklog.model.time import MonotonicMs
from sparklog_datasource.reads.offset_json import Offsets


def limited(offsets_max: int, starts: Offsets, ends: Offsets) -> dict[TopicPartition, int]:
    """The ends, moved towards the starts until about ``offsets_max`` offsets are between them."""
    backlog = {
        topic_partition: end - starts[topic_partition]
        for topic_partition, end in ends.items()
        if end > starts.get(topic_partition, end)
    }
    total = sum(backlog.values())
    nearer = dict(ends)
    for topic_partition, size in backlog.items():
        share = offsets_max * (size / total)
        taken = math.ceil(share) if share < 1 else math.floor(share)
        nearer[topic_partition] = min(ends[topic_partition], starts[topic_partition] + taken)
    return nearer


@dataclass(slots=True)
class MinimumGate:
    """The minimum of a micro-batch, with the time of the last one."""

    offsets_min: int
    delay_max_ms: int
    last_trigger_ms: MonotonicMs | None = None

    def holds_back(self, starts: Offsets, ends: Offsets, now_ms: MonotonicMs) -> bool:
        """Whether to wait for more offsets; if not, this is the time of a micro-batch."""
        is_due = self.last_trigger_ms is None or now_ms - self.last_trigger_ms >= self.delay_max_ms
        backlog = sum(end - starts.get(topic_partition, end) for topic_partition, end in ends.items())
        if not is_due and backlog < self.offsets_min:
            return True
        self.last_trigger_ms = now_ms
        return False
