"""Looks at everything after every step, keeps the truth, and puts it before the invariants."""

from dataclasses import dataclass, field

from sparklog.broker.partition import Partition
from sparklog.broker.replica_manager import ReplicaManager
from sparklog.core.controller.znodes import Assignment, decode_state, state_path
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.testing.memory_zookeeper import ZooKeeperTree
from sparklog.testing.simulation.invariants import Invariant, all_invariants
from sparklog.testing.simulation.story import Story
from sparklog.testing.simulation.truth import Entry, PartitionTruth, ReplicaView

Fingerprint = tuple[int, int, int, int, bool, bool]


@dataclass(slots=True)
class Witness:
    """``replicas`` are the brokers that every partition is assigned to."""

    story: Story
    tree: ZooKeeperTree
    replicas: tuple[BrokerId, ...]
    truths: dict[TopicPartition, PartitionTruth] = field(default_factory=dict)
    invariants: list[Invariant] = field(default_factory=all_invariants)
    seen: dict[tuple[BrokerId, TopicPartition], Fingerprint] = field(default_factory=dict)
    versions: dict[TopicPartition, int] = field(default_factory=dict)

    def expect(self, topic_partition: TopicPartition) -> None:
        """From now on this partition exists."""
        self.truths[topic_partition] = PartitionTruth(topic_partition)

    # ---- brokers -------------------------------------------------------------------------------------------

    def look_at(self, broker_id: BrokerId, replicas: ReplicaManager) -> None:
        """After a step of a broker: has any of its partitions changed?"""
        for topic_partition, truth in self.truths.items():
            partition = replicas.get(topic_partition)
            if partition is None:
                continue
            now = _fingerprint(partition)
            key = (broker_id, topic_partition)
            if self.seen.get(key) != now or truth.view(broker_id).log is not partition.log:
                self.seen[key] = now
                self._changed(truth, broker_id, partition)

    def _changed(self, truth: PartitionTruth, broker_id: BrokerId, partition: Partition) -> None:
        view = truth.view(broker_id)
        end_before = view.end_offset
        is_other_log = view.log is not partition.log
        added = view.refresh(partition)
        truth.compare(view)
        if self.story.is_told:
            self._tell(truth, view, partition, end_before)
        if is_other_log:
            view.leader_epoch = -1
            view.high_watermark = 0
        if partition.is_leader and partition.high_watermark > truth.committed_end:
            self._commit(truth, view, partition.high_watermark)
        for invariant in self.invariants:
            invariant.on_replica(truth, view, partition, added)
        view.high_watermark, view.leader_epoch = partition.high_watermark, partition.leader_epoch

    def _commit(self, truth: PartitionTruth, leader: ReplicaView, high_watermark: int) -> None:
        first = truth.committed_end
        added = [
            entry
            for entry in leader.entries
            if entry.base_offset >= first and entry.next_offset <= high_watermark
        ]
        if not added:
            return
        truth.committed += added
        for view in truth.views.values():
            truth.compare(view)
        for invariant in self.invariants:
            invariant.on_commit(truth, leader, added)

    def _tell(self, truth: PartitionTruth, view: ReplicaView, partition: Partition, end_before: int) -> None:
        role = "leads" if partition.is_leader else "follows" if partition._replica.follower else "has no role"
        cut = f", cut from {end_before}" if view.end_offset < end_before else ""
        self.story.tell(
            f"broker-{view.broker_id}",
            f"{truth.topic_partition} {role} in epoch {partition.leader_epoch}: "
            f"high watermark {partition.high_watermark}, end {view.end_offset}{cut}",
        )

    # ---- ZooKeeper -----------------------------------------------------------------------------------------

    def look_at_zookeeper(self) -> None:
        """After a transaction: do the partitions' states differ?"""
        for topic_partition, truth in self.truths.items():
            node = self.tree.get(state_path(topic_partition.topic, topic_partition.partition))
            if node is None or self.versions.get(topic_partition) == node.stat.version:
                continue
            self.versions[topic_partition] = node.stat.version
            state = decode_state(topic_partition.topic, topic_partition.partition, node.data).partition(
                Assignment(self.replicas), node.stat.version
            )
            before, truth.state = truth.state, state
            for broker_id, incarnation in list(truth.tainted.items()):
                if broker_id in state.isr and state.isr_incarnations[broker_id] > incarnation:
                    del truth.tainted[broker_id]
            self.story.tell(
                "zookeeper",
                f"{topic_partition} leader {state.leader} epoch {state.leader_epoch} "
                f"ISR {list(state.isr)} eligible {list(state.eligible)} version {state.partition_epoch}",
            )
            for invariant in self.invariants:
                invariant.on_state(truth, before, state)

    # ---- clients -------------------------------------------------------------------------------------------

    def on_ack(self, topic_partition: TopicPartition, sent: Entry, base_offset: int) -> None:
        for invariant in self.invariants:
            invariant.on_ack(self.truths[topic_partition], sent, base_offset)

    def on_read(self, topic_partition: TopicPartition, entry: Entry) -> None:
        for invariant in self.invariants:
            invariant.on_read(self.truths[topic_partition], entry)


def _fingerprint(partition: Partition) -> Fingerprint:
    log = partition.log
    return (
        log.generation,
        log.log_end_offset,
        partition.high_watermark,
        partition.leader_epoch,
        partition.is_leader,
        partition.is_offline,
    )
