"""Replicas that were deleted from this broker, so that a late message does not create them again.

A LeaderAndIsr may arrive after the StopReplica that followed it: it was sent again over another connection,
or an earlier controller sent it. Its role would create a replica with an empty log, unknown to the
controller, and a later election could count it.

Only deletions of this incarnation matter: messages to an earlier incarnation have its broker epoch, and are
refused.
"""

from collections import OrderedDict
from typing import Final

from sparklog.model.ids import NO_TOPIC_ID, TopicId

REMEMBERED_MAX: Final = 100_000
"""Deletions, the oldest forgotten first: messages are late by seconds, not by so many deletions."""

FOR_GOOD: Final = 2**31 - 1
"""Greater than every leader epoch: the topic itself is deleted, and its id is never used again."""


class GoneReplicas:
    """By topic id and partition, the leader epoch up to which (inclusive) the replica is gone."""

    def __init__(self) -> None:
        self._up_to: OrderedDict[tuple[TopicId, int], int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._up_to)

    def note(self, topic_id: TopicId, partition: int, leader_epoch: int) -> None:
        """The replica was deleted in ``leader_epoch``; -2: its topic was deleted; -1: unknown (KIP-570)."""
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
