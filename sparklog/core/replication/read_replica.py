"""Sends a consumer to the closest replica (KIP-392).

The leader decides, because only it knows the ISR and its members' log ends. With ``RackAwareReplicaSelector``
a consumer with ``client.rack`` is sent to a replica in that rack that is in the ISR and has the fetch offset.
A leader in that rack is preferred.
"""

from collections.abc import Mapping
from typing import Final

from sparklog.core.replication.follower_progress import FollowerProgress
from sparklog.core.replication.isr import committed_isr
from sparklog.core.replication.leader import Leader
from sparklog.model.ids import BrokerId

RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def closest_replica(
    leader: Leader, fetch_offset: int, client_rack: str, racks: Mapping[BrokerId, str | None]
) -> BrokerId | None:
    """The replica to read from instead of the leader, or None. ``racks``: those of the live brokers."""
    if not client_rack or racks.get(leader.broker_id) == client_rack:
        return None
    members = committed_isr(leader.isr).members
    close = [
        (progress.log_end_offset, -broker)
        for broker, progress in leader.followers.items()
        if broker in members and racks.get(broker) == client_rack and _has(progress, fetch_offset)
    ]
    return BrokerId(-max(close)[1]) if close else None


def _has(follower: FollowerProgress, offset: int) -> bool:
    """Whether the follower's last fetch shows that it can serve from ``offset`` on."""
    return follower.log_start_offset <= offset <= follower.log_end_offset
