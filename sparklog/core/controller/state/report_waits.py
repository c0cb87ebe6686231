"""How long partitions without a leader have waited for reports of logs, which bounds unclean elections.

Only this controller knows it: another one begins each wait anew, because it gets the reports anew.
"""

from dataclasses import dataclass, field

from sparklog.core.controller.state.unproven_choice import REPORT_WAIT_MS
from sparklog.model.ids import TopicPartition


@dataclass(slots=True)
class ReportWaits:
    """``over`` are the partitions without a leader that have waited for ``REPORT_WAIT_MS``."""

    over: set[TopicPartition] = field(default_factory=set)
    _new: set[TopicPartition] = field(default_factory=set)
    _deadlines_ms: dict[TopicPartition, int] = field(default_factory=dict)

    def lost_its_leader(self, partition: TopicPartition) -> None:
        """The partition has no leader; its wait begins at the next ``begin``, unless it has begun already."""
        if partition not in self._deadlines_ms and partition not in self.over:
            self._new.add(partition)

    def forget(self, partition: TopicPartition) -> None:
        """The partition has a leader, or is gone."""
        self._new.discard(partition)
        self._deadlines_ms.pop(partition, None)
        self.over.discard(partition)

    def begin(self, now_ms: int) -> int | None:
        """Begin the waits of partitions that lost their leader; when these end, None if there is none."""
        if not self._new:
            return None
        deadline_ms = now_ms + REPORT_WAIT_MS
        self._deadlines_ms.update(dict.fromkeys(sorted(self._new), deadline_ms))
        self._new.clear()
        return deadline_ms

    def end(self, now_ms: int) -> list[TopicPartition]:
        """The partitions whose waits are over since the last call."""
        ended = [partition for partition, deadline_ms in self._deadlines_ms.items() if deadline_ms <= now_ms]
        for partition in ended:
            del self._deadlines_ms[partition]
        self.over.update(ended)
        return ended
