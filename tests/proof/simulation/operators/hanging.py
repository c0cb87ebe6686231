"""Transactions that hang after a loss that an election reported, and the operator's answer: abort them.

A committed marker is lost with the log that had it, where an election may lose records. Its coordinator was
answered, has forgotten the partition and never writes that marker again. The transaction is then open in that
partition for ever, as in Kafka. ``sparklog transactions find-hanging`` shows it, and a person aborts it
(docs/transactions.md). The operator here does the same, by the same request, and for such a loss only: of the
marker, or of anything in the coordinators' own topic. A transaction that hangs for another reason keeps
hanging, and the cluster does not come to rest.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from simulation.cluster import Cluster
from simulation.schedule import US_PER_MS
from simulation.truth import PartitionTruth
from sparklog.broker.partition.partition import Partition
from sparklog.core.coordinator.shard import Phase
from sparklog.core.producers.producer_state import ProducerState
from sparklog.core.transaction_coordinator.requests import ListTransactions
from sparklog.core.write_coordinator.transaction_state_machine import TransactionStateMachine
from sparklog.model.ids import Offset, ProducerId, TopicPartition
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC

PATIENCE_MS: Final = 5_000
"""How long a transaction must have hung: longer than any time-out, and than its coordinator's next try."""

NO_SEQUENCE: Final = -1
"""What a marker has for its sequence; every other batch of a transaction has one."""


class Hanging(NamedTuple):
    """A transaction that is open in a partition, by its producer and its first offset there."""

    topic_partition: TopicPartition
    producer_id: ProducerId
    open_since: Offset


@dataclass(slots=True)
class HangingTransactions:
    """Looks for them in a run, and aborts each after ``PATIENCE_MS``."""

    cluster: Cluster
    _since_us: dict[Hanging, int] = field(default_factory=dict)

    def look(self) -> None:
        """Abort what has hung for long enough."""
        now_us = self.cluster.schedule.now_us
        found = {one: (truth, state) for one, truth, state in self._found()}
        self._since_us = {one: self._since_us.get(one, now_us) for one in found}
        for one, (truth, state) in found.items():
            if now_us - self._since_us[one] >= PATIENCE_MS * US_PER_MS:
                self._since_us[one] = now_us
                self.cluster.story.tell("OPERATOR", f"aborts what hangs: {one}")
                self.cluster.administrator.abort_hanging(
                    truth, one.producer_id, state.epoch, state.coordinator_epoch
                )

    def _found(self) -> Iterator[tuple[Hanging, PartitionTruth, ProducerState]]:
        truths = self.cluster.witness.truths
        has_lost_states = lost_states(truths.values())
        for truth in truths.values():
            leader = self._leader(truth) if truth.lost or has_lost_states else None
            if leader is None:
                continue
            for producer_id, state in leader.log.producers.producers.items():
                if (
                    state.in_transaction
                    and (has_lost_states or has_lost_its_marker(truth, producer_id, state.open_since))
                    and not self._may_be_coordinated(truth.topic_partition, producer_id)
                ):
                    yield Hanging(truth.topic_partition, producer_id, state.open_since), truth, state

    def _leader(self, truth: PartitionTruth) -> Partition | None:
        for host, broker in self.cluster.brokers.items():
            is_leader = truth.state is not None and broker.machine.broker_id == truth.state.leader
            if is_leader and self.cluster.is_up(host) and broker.replicas is not None:
                partition = broker.replicas.get(truth.topic_partition)
                return partition if partition is not None and partition.is_leader else None
        return None

    def _may_be_coordinated(self, topic_partition: TopicPartition, producer_id: ProducerId) -> bool:
        """Whether a coordinator has that producer's transaction there, or one is not there to tell."""
        hosts = [
            host
            for name, broker in self.cluster.brokers.items()
            if self.cluster.is_up(name) and broker.coordinators is not None
            for host in broker.coordinators.hosts()
            if host.shard.phase is Phase.active and host.topic_partition.topic == TRANSACTION_STATE_TOPIC
        ]
        everywhere = {one for one in self.cluster.witness.truths if one.topic == TRANSACTION_STATE_TOPIC}
        if everywhere - {host.topic_partition for host in hosts}:
            return True
        request = ListTransactions(producer_ids=frozenset({producer_id}))
        for host in hosts:
            machine = host.shard.machine
            assert isinstance(machine, TransactionStateMachine)
            for _, value in machine._listed(request).transactions:
                if any(
                    topic.name == topic_partition.topic and topic_partition.partition in topic.partitions
                    for topic in value.topics
                ):
                    return True
        return False


def has_lost_its_marker(truth: PartitionTruth, producer_id: ProducerId, open_since: Offset) -> bool:
    """Whether an election lost a committed marker of that producer behind ``open_since``."""
    return any(
        entry.producer_id == producer_id and entry.sequence == NO_SEQUENCE and entry.base_offset > open_since
        for entries in truth.lost.values()
        for entry in entries
    )


def lost_states(truths: Iterable[PartitionTruth]) -> bool:
    """Whether an election lost something that a coordinator of transactions had written."""
    return any(one.lost for one in truths if one.topic_partition.topic == TRANSACTION_STATE_TOPIC)
