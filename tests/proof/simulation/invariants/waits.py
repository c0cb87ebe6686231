"""What must happen soon, although faults go on: a wait ends when its condition holds.

``ComesToRest`` asks for progress only after everything is mended, when a follower's next fetch wakes a wait
that was forgotten. Until then the write of a real client would have timed out.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from simulation.invariants.invariant import Violation
from simulation.truth import PartitionTruth
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.core.replication.isr import effective_isr
from sparklog.core.replication.leader import Leader
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.time import MonotonicMs

LOOK_MS = 100
"""How often is looked."""

SLACK_MS = 50


class _Standstill(NamedTuple):
    """A leader that commits nothing although it could."""

    leader: Leader
    high_watermark: int
    since_ms: int


@dataclass(slots=True)
class CommitsWhatTheIsrHas:
    """What every replica in sync has is committed, unless another one seems about to join; and when that one
    has not been heard of for ``replica.lag.time.max.ms``, as soon as the leader looks for such."""

    _standstills: dict[tuple[BrokerId, TopicPartition], _Standstill] = field(default_factory=dict)

    def look_at(
        self,
        broker_id: BrokerId,
        replicas: PartitionTable | None,
        truths: dict[TopicPartition, PartitionTruth],
        now_ms: MonotonicMs,
    ) -> None:
        """At a broker that runs; ``replicas`` is None for one that does not, which nobody can blame.
        ``now_ms`` is by the broker's own clock.
        """
        for topic_partition in truths:
            key = broker_id, topic_partition
            partition = None if replicas is None else replicas.get(topic_partition)
            leader = None if partition is None or partition.is_offline else partition._replica.leader
            if leader is None or _end(leader, now_ms) <= leader.marks.high_watermark:
                self._standstills.pop(key, None)
                continue
            known, mark = self._standstills.get(key), leader.marks.high_watermark
            if known is None or known.leader is not leader or known.high_watermark != mark:
                self._standstills[key] = _Standstill(leader, mark, now_ms)
            elif now_ms - known.since_ms > leader.lag_max_ms // 2 + LOOK_MS + SLACK_MS:
                raise Violation(
                    type(self).__name__,
                    f"{topic_partition}: leader {broker_id} has its high watermark at {mark} since "
                    f"{known.since_ms} ms, though all of its ISR {sorted(effective_isr(leader.isr))} have "
                    f"what is below {_end(leader, now_ms)}",
                )


def _end(leader: Leader, now_ms: MonotonicMs) -> int:
    """Up to where a leader may commit; -1 below the minimum, and while its log waits for the history."""
    if leader.is_under_min_isr or leader.awaits_history:
        return -1
    members, own_end = effective_isr(leader.isr), leader.marks.log_end_offset
    ends = [leader.marks.own_end_offset]
    for follower, progress in leader.followers.items():
        if follower in members or progress.is_caught_up(own_end, now_ms, leader.lag_max_ms):
            ends.append(progress.log_end_offset)
    return min(ends)
