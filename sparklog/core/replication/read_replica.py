"""From which replica a consumer should read (KIP-392): the one that is closest to it.

The leader decides, because it alone knows who is in sync and how far. With ``RackAwareReplicaSelector`` a
consumer that says in which rack it is (``client.rack``) is sent to a replica there, if there is one in the
ISR that has the offset already; the leader itself, where it is in that rack, comes first.
"""

from collections.abc import Mapping
from typing import Final

from sparklog.core.replication.isr import committed_isr
from sparklog.core.replication.leader import Leader
from sparklog.core.replication.progress import FollowerProgress
from sparklog.model.ids import BrokerId

RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def closest_replica(
    leader: Leader, fetch_offset: int, client_rack: str, racks: Mapping[BrokerId, str | None]
) -> BrokerId | None:
    """Whom to read from instead of the leader; None to stay. ``racks`` are those of the live brokers."""
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
    """Whether the follower can serve from ``offset`` on, as far as we know."""
    return follower.log_start_offset <= offset <= follower.log_end_offset
