"""Replicas that were deleted here, so that a late message about them does not bring them back.

The network may deliver a LeaderAndIsr after the StopReplica that followed it: late because it was sent again
over another connection, or because an earlier controller sent it. Taking up its role would make a replica
that nobody knows of, with an empty log, which a later election could even count.

Only this incarnation's deletions matter: messages to an earlier one carry its broker epoch and are refused.
"""

from collections import OrderedDict
from typing import Final

from sparklog.model.ids import NO_TOPIC_ID, TopicId

REMEMBERED_MAX: Final = 100_000
"""Deletions, the oldest forgotten first: messages are late by seconds, not by so many deletions."""

FOR_GOOD: Final = 2**31 - 1
"""Above every leader epoch: the topic itself is deleted, and its id never comes back."""


class GoneReplicas:
    """By topic id and partition, the leader epoch up to which (inclusive) the replica is gone."""

    def __init__(self) -> None:
        self._up_to: OrderedDict[tuple[TopicId, int], int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._up_to)

    def note(self, topic_id: TopicId, partition: int, leader_epoch: int) -> None:
        """The replica was deleted in ``leader_epoch``; -2 says that its topic is, -1 nothing (KIP-570)."""
        if topic_id == NO_TOPIC_ID or leader_epoch == -1:
            return
        key = (topic_id, partition)
        up_to = FOR_GOOD if leader_epoch < 0 else leader_epoch
        self._up_to[key] = max(up_to, self._up_to.pop(key, up_to))
        if len(self._up_to) > REMEMBERED_MAX:
            self._up_to.popitem(last=False)

    def is_gone(self, topic_id: TopicId, partition: int, leader_epoch: int) -> bool:
        """Whether a role in ``leader_epoch`` is older than the deletion. A replica that is added again later
        is so in a later epoch: every change of the assignment begins one."""
        return leader_epoch <= self._up_to.get((topic_id, partition), -1)
