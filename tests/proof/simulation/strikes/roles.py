"""Finds the program that a fault names by its role, such as the leader of a partition."""

from simulation.cluster import Cluster
from simulation.plans.faults import (
    CONTROLLER,
    COORDINATOR,
    FIRST_FOLLOWER,
    LAST_FOLLOWER,
    LEADER,
    THAT_COORDINATOR,
    THAT_LEADER,
    TRANSACTION_COORDINATOR,
)
from sparklog.core.controller.state import znodes
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC


class Roles:
    """Looks at ZooKeeper when a fault strikes."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._that_leader: str | None = None
        self._that_coordinator: str | None = None

    def find(self, target: str) -> str | None:
        """The name of the place; ``target`` itself if it is one, None if nobody has that role now."""
        if target == LEADER:
            self._that_leader = self._of_replica(target)
            return self._that_leader
        if target == THAT_LEADER:
            return self._that_leader
        if target == COORDINATOR:
            self._that_coordinator = self._coordinator(GROUP_OFFSETS_TOPIC)
            return self._that_coordinator
        if target == TRANSACTION_COORDINATOR:
            self._that_coordinator = self._coordinator(TRANSACTION_STATE_TOPIC)
            return self._that_coordinator
        if target == THAT_COORDINATOR:
            return self._that_coordinator
        if target == CONTROLLER:
            return self._controller()
        return self._of_replica(target) if target in (FIRST_FOLLOWER, LAST_FOLLOWER) else target

    def _of_replica(self, role: str) -> str | None:
        """Of the first partition."""
        truth = next(iter(self._cluster.witness.truths.values()), None)
        if truth is None or truth.state is None or not truth.state.has_leader:
            return None
        leader = truth.state.leader
        followers = [one for one in truth.state.replicas if one != leader]
        if role == LEADER or not followers:
            return self._host(leader) if role == LEADER else None
        return self._host(followers[0 if role == FIRST_FOLLOWER else -1])

    def _coordinator(self, topic: str) -> str | None:
        truth = self._cluster.witness.truths.get(TopicPartition(topic, 0))
        if truth is None or truth.state is None or not truth.state.has_leader:
            return None
        return self._host(truth.state.leader)

    def _host(self, broker_id: BrokerId) -> str:
        return next(host for host, one in self._cluster.machines.items() if one.broker_id == broker_id)

    def _controller(self) -> str | None:
        node = self._cluster.world.ensemble.tree.get(znodes.CONTROLLER)
        return None if node is None else znodes.decode_controller(node.data).host
