"""Looks at everything after every step, keeps the truth, and puts it before the invariants.

Which topics and partitions there are, and where, is read from ZooKeeper, whoever asked for it. A topic that
is marked for deletion is watched no longer; one that is created under the same name is another one.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from sparklog.broker.metadata_cache import MetadataCache
from sparklog.broker.partition import Partition
from sparklog.broker.replica_manager import ReplicaManager
from sparklog.core.controller.znodes import (
    CONTROLLER_EPOCH,
    DELETE_TOPICS,
    TopicNode,
    decode_configs,
    decode_state,
    decode_topic,
    delete_topic_path,
    state_path,
    topic_config_path,
    topic_path,
)
from sparklog.core.replication.isr import pending_proposal
from sparklog.model.cluster import PartitionState
from sparklog.model.config import BrokerConfig, TopicConfig
from sparklog.model.errors import CorruptBatch
from sparklog.model.ids import BrokerId, TopicId, TopicPartition
from sparklog.testing.memory_zookeeper import ZooKeeperTree
from sparklog.testing.simulation.derived import ProducersAreAsTheLogSays
from sparklog.testing.simulation.invariants import Invariant, NoElectionLoses, Violation, all_invariants
from sparklog.testing.simulation.marks import Marks
from sparklog.testing.simulation.presence import CountsWhoIsThere, StopsOutsideTheIsr
from sparklog.testing.simulation.recorder import Recorder
from sparklog.testing.simulation.restarts import OnlyDamageIsCalledDamage, RemembersWhatIsCommitted
from sparklog.testing.simulation.story import Story
from sparklog.testing.simulation.truth import Entry, Fingerprint, PartitionTruth, ReplicaView, Rows


@dataclass(slots=True)
class SeenTopic:
    """A topic's node and settings, with the versions that were read last."""

    node: TopicNode
    version: int
    config_version: int = -1
    config: TopicConfig | None = None


@dataclass(slots=True)
class Witness:
    """``topics`` are the names to look for; ``config`` has the brokers' defaults."""

    story: Story
    tree: ZooKeeperTree
    config: BrokerConfig
    topics: tuple[str, ...]
    clocks_jump: bool = False
    drift_max: float = 0.0
    marks: Marks = field(default_factory=Marks)
    truths: dict[TopicPartition, PartitionTruth] = field(default_factory=dict)
    seen_topics: dict[str, SeenTopic] = field(default_factory=dict)
    gone: dict[TopicId, str] = field(default_factory=dict)
    """Deleted topics."""
    on_partition: Callable[[TopicPartition], None] = lambda partition: None
    """Told of every partition that there was not before."""
    rots: Callable[[BrokerId, TopicPartition], bool] = lambda broker, partition: False
    """Whether this replica holds a batch that rotted."""
    invariants: list[Invariant] = field(
        default_factory=lambda: [*all_invariants(), ProducersAreAsTheLogSays()]
    )
    sent: dict[tuple[int, int, int], Rows] = field(default_factory=dict)
    """Keys and values of batches to compacted topics, by producer and sequence."""
    struck: dict[BrokerId, int] = field(default_factory=dict)
    """The last incarnation of each broker whose logs may have lost records."""
    has_damage: bool = False
    """Whether a disk lost what it had synced."""
    recorder: Recorder = field(init=False)
    """Is told of topics and leaders, too; what clients see they tell it themselves."""
    is_silent: bool = False
    """Whether it looks at everything and accuses nobody."""
    _of_replicas: list[Invariant] = field(init=False)
    _of_commits: list[Invariant] = field(init=False)
    _of_states: list[Invariant] = field(init=False)
    _of_leaders: list[Invariant] = field(init=False)
    remembers: RemembersWhatIsCommitted = field(default_factory=RemembersWhatIsCommitted)
    presence: CountsWhoIsThere = field(default_factory=CountsWhoIsThere)
    _stops: StopsOutsideTheIsr = field(default_factory=StopsOutsideTheIsr)
    _damage: OnlyDamageIsCalledDamage = field(default_factory=OnlyDamageIsCalledDamage)
    _no_loss: Invariant = field(default_factory=NoElectionLoses)
    _controller_epoch: int = -1

    def __post_init__(self) -> None:
        self.recorder = Recorder(self.story.schedule)
        self._of_replicas = [
            one for one in self.invariants if type(one).on_replica is not Invariant.on_replica
        ]
        self._of_commits = [one for one in self.invariants if type(one).on_commit is not Invariant.on_commit]
        self._of_states = [one for one in self.invariants if type(one).on_state is not Invariant.on_state]
        self._of_leaders = [one for one in self.invariants if type(one).on_leader is not Invariant.on_leader]

    def be_silent(self) -> None:
        """Leave it to clients to notice what is wrong."""
        self.is_silent, self._no_loss = True, Invariant()
        self.remembers.checkpoints_rot = self.presence.is_blind = True
        for rules in (self._of_replicas, self._of_commits, self._of_states, self._of_leaders):
            rules.clear()
        self.invariants.clear()

    @property
    def now_ms(self) -> int:
        return self.story.schedule.now_ms

    # ---- brokers -------------------------------------------------------------------------------------------

    def look_at(
        self, broker_id: BrokerId, replicas: ReplicaManager, metadata: MetadataCache | None = None
    ) -> None:
        """After a step of a broker: has any partition changed? ``metadata`` is what it tells clients."""
        for topic_partition, truth in self.truths.items():
            partition = replicas.get(topic_partition)
            view = truth.views.get(broker_id)
            if partition is None or not truth.is_of(partition):
                if partition is None and replicas.offline_directories():
                    continue  # it may be in there
                if view is not None and view.log is not None:
                    self._gone(truth, view)
                continue
            now = _fingerprint(partition)
            if view is None or view.fingerprint != now or view.log is not partition.log:
                view = truth.view(broker_id)
                view.fingerprint, epoch_before = now, view.leader_epoch
                self._changed(truth, broker_id, partition)
                if metadata and partition.is_leader and partition.leader_epoch != epoch_before:
                    for invariant in self._of_leaders:
                        invariant.on_leader(truth, view, metadata.partition(topic_partition))

    def cleaned(self, broker_id: BrokerId, partition: Partition | None) -> None:
        """The cleaner of a broker has done something to this log."""
        truth = None if partition is None else self.truths.get(partition.topic_partition)
        if partition is None or truth is None or partition.topic_id != truth.topic_id:
            return
        view = truth.view(broker_id)
        if view.log is partition.log and view.segments != partition.log.segments:
            self._changed(truth, broker_id, partition, is_cleaned=True)

    def _gone(self, truth: PartitionTruth, view: ReplicaView) -> None:
        """A replica is no longer on its disk."""
        if view.synced:
            self._check_synced(truth, ReplicaView(view.broker_id, synced=view.synced))
        self.story.tell(f"broker-{view.broker_id}", f"{truth.topic_partition} is here no more")
        if view.broker_id not in truth.assignment.replicas:
            self.marks.reach("a removed replica's log was deleted")
        view.forget()
        truth.compare(view, self.now_ms)
        if truth.state is not None:
            for invariant in self._of_states:
                invariant.on_state(truth, truth.state, truth.state)

    def _changed(
        self, truth: PartitionTruth, broker_id: BrokerId, partition: Partition, *, is_cleaned: bool = False
    ) -> None:
        view = truth.view(broker_id)
        end_before, start_before = view.end_offset, view.log_start
        is_other_log = view.log is not partition.log
        left_with_end = (partition.log if view.log is None else view.log).log_end_offset
        if partition.is_offline and not is_other_log:
            return  # its disk failed in the middle of a change: what it has is what its next start will find
        try:
            added = view.refresh(partition, is_thinned=truth.is_thinned, is_cleaned=is_cleaned)
        except CorruptBatch as error:
            what = f"{truth.topic_partition}: broker {broker_id} does not know of its damage: {error}"
            raise Violation("LogsCanBeRead", what) from error
        truth.compare(view, self.now_ms)
        if self.story.is_told:
            self._tell(truth, view, partition, end_before)
        if not is_other_log and truth.state is not None and _cuts_unaware(truth, view, partition):
            self._lose(truth, truth.state)
        self._mark(truth, view, end_before, start_before, is_other_log)
        if view.synced:
            self._check_synced(truth, view)
        if is_other_log:
            view.leader_epoch = -1
            view.high_watermark = 0
            was_struck = broker_id in self.struck
            self.remembers.on_start(
                truth, broker_id, partition, end_before=left_with_end, was_struck=was_struck
            )
            may_be_damaged = broker_id in self.struck or self.remembers.checkpoints_rot or self.has_damage
            self._damage.on_start(truth, broker_id, partition, may_be_damaged=may_be_damaged)
        if partition.is_leader:
            truth.note_appended(added)
            self._commit_up_to(truth, view, partition)
        for invariant in self._of_replicas:
            invariant.on_replica(truth, view, partition, added)
        view.high_watermark, view.leader_epoch = partition.high_watermark, partition.leader_epoch

    def _commit_up_to(self, truth: PartitionTruth, view: ReplicaView, partition: Partition) -> None:
        if partition.leader_epoch < truth.lossy_epoch:
            # It leads in a world that an election gave up; whoever talks to it is told what will be lost.
            for entry in view.entries[view.matched :]:
                if entry.next_offset <= partition.high_watermark and not truth.was_lost(entry):
                    truth.lost.setdefault(entry.base_offset, []).append(entry)
        elif partition.high_watermark > truth.committed_end:
            self._commit(truth, view, partition.high_watermark)

    def _commit(self, truth: PartitionTruth, leader: ReplicaView, high_watermark: int) -> None:
        first, start = truth.committed_end, leader.log_start
        added = [
            entry
            for entry in leader.entries
            if entry.base_offset >= first and entry.next_offset <= high_watermark
            if entry.next_offset > start or not truth.was_lost(entry)
        ]
        if not added:
            return
        truth.committed += added
        if truth.is_thinned:
            for entry in added:
                truth.note_records(entry, self.sent[entry.send], self.now_ms)
        for view in truth.views.values():
            truth.compare(view, self.now_ms)
        for invariant in self._of_commits:
            invariant.on_commit(truth, leader, added)

    def _tell(self, truth: PartitionTruth, view: ReplicaView, partition: Partition, end_before: int) -> None:
        role = "leads" if partition.is_leader else "follows" if partition._replica.follower else "has no role"
        cut = f", cut from {end_before}" if view.end_offset < end_before else ""
        begins = f", from {view.log_start}" if view.log_start else ""
        self.story.tell(
            f"broker-{view.broker_id}",
            f"{truth.topic_partition} {role} in epoch {partition.leader_epoch}: "
            f"high watermark {partition.high_watermark}, end {view.end_offset}{cut}{begins}",
        )

    def _mark(
        self,
        truth: PartitionTruth,
        view: ReplicaView,
        end_before: int,
        start_before: int,
        is_other_log: bool,
    ) -> None:
        if is_other_log:
            return
        if view.end_offset < end_before:
            self.marks.reach("a follower cut its log")
        if view.log_start > start_before:
            self.marks.reach("a log's start was raised")
            if view.log_start > end_before:
                self.marks.reach("a follower began anew where the leader's log begins")
            elif truth.deleted_end < view.log_start:
                self.marks.reach("retention removed committed records")

    # ---- ZooKeeper -----------------------------------------------------------------------------------------

    def look_at_zookeeper(self) -> None:
        """After a transaction: do topics, settings or the partitions' states differ?"""
        for name in self.topics:
            self._look_at_topic(name)
        self.presence.look_at_zookeeper(self.tree, self.now_ms)
        for truth in self.truths.values():
            self._look_at_state(truth)
        node = self.tree.get(CONTROLLER_EPOCH)
        if node is not None and node.stat.version != self._controller_epoch:
            self._controller_epoch = node.stat.version
            self._mark_controller()

    def _look_at_topic(self, name: str) -> None:
        node, seen = self.tree.get(topic_path(name)), self.seen_topics.get(name)
        if seen is not None and (node is None or self.tree.exists(delete_topic_path(name)) is not None):
            self._topic_goes(name, seen)
            return
        if node is None or self.tree.exists(delete_topic_path(name)) is not None:
            return
        if seen is None or seen.version != node.stat.version:
            decoded = decode_topic(name, node.data)
            if seen is None:
                if name in self.gone.values():
                    self.marks.reach("a topic was created again under its name")
                seen = self.seen_topics[name] = SeenTopic(decoded, node.stat.version)
                self.recorder.topic(name, is_created=True)
            seen.node, seen.version = decoded, node.stat.version
            self._look_at_settings(name, seen)
            self._look_at_assignments(name, seen)
        else:
            self._look_at_settings(name, seen)

    def _topic_goes(self, name: str, seen: SeenTopic) -> None:
        self.marks.reach("a topic was deleted")
        self.recorder.topic(name, is_created=False)
        self.gone[seen.node.id] = name
        del self.seen_topics[name]
        for number in range(len(seen.node.assignments)):
            del self.truths[TopicPartition(name, number)]

    def _look_at_settings(self, name: str, seen: SeenTopic) -> None:
        node = self.tree.get(topic_config_path(name))
        if node is None or node.stat.version == seen.config_version:
            return
        seen.config_version = node.stat.version
        seen.config = self.config.topic(decode_configs(topic_config_path(name), node.data))
        for truth in self.truths.values():
            if truth.topic_partition.topic == name:
                self._settle_rules(truth, seen.config)

    def _settle_rules(self, truth: PartitionTruth, config: TopicConfig) -> None:
        policy = config.get_list("cleanup.policy")
        if "compact" in policy and not truth.is_thinned:
            truth.is_thinned = True
            self.recorder.topic(truth.topic_partition.topic, is_created=True, is_compacted=True)
        deletes = "delete" in policy
        truth.may_delete |= deletes and (
            config.get_int("retention.bytes") >= 0 or 0 <= config.get_int("retention.ms") < 600_000
        )
        truth.delete_retention_ms = 0 if self.clocks_jump else config.get_int("delete.retention.ms")
        truth.drift_max = self.drift_max
        truth.may_lose |= config.get_bool("unclean.leader.election.enable")

    def _look_at_assignments(self, name: str, seen: SeenTopic) -> None:
        for number, assignment in enumerate(seen.node.assignments):
            topic_partition = TopicPartition(name, number)
            truth = self.truths.get(topic_partition)
            if truth is None:
                truth = self.truths[topic_partition] = PartitionTruth(topic_partition, seen.node.id)
                if seen.config is not None:
                    self._settle_rules(truth, seen.config)
                if number and seen.version:
                    self.marks.reach("a partition was added")
                self.on_partition(topic_partition)
            truth.assignment = assignment
            for excused in (truth.tainted, truth.distrusted):
                for broker_id in excused.keys() - set(assignment.replicas):
                    del excused[broker_id]

    def _look_at_state(self, truth: PartitionTruth) -> None:
        topic, number = truth.topic_partition
        node = self.tree.get(state_path(topic, number))
        if node is None or truth.state_version == node.stat.version:
            return
        truth.state_version = node.stat.version
        state = decode_state(topic, number, node.data).partition(truth.assignment, node.stat.version)
        before, truth.state = truth.state, state
        if before is None or state.leader_epoch > before.leader_epoch:
            is_unclean = before is not None and state.lost_in_epoch > before.lost_in_epoch
            self.recorder.leader(
                truth.topic_partition, state.leader, state.leader_epoch, is_unclean=is_unclean
            )
        if before is None:
            self._taint_new(truth, state)
        if self.story.is_told:
            self._tell_state(truth, state)
        self._mark_state(truth, before, state)
        if before is not None and state.lost_in_epoch > before.lost_in_epoch:
            self._no_loss.on_state(truth, before, state)
            self._lose(truth, state)
        self._excuse_no_longer(truth, before, state)
        if before is not None:
            self.presence.on_change(truth, before, state, self.now_ms)
        for invariant in self._of_states:
            invariant.on_state(truth, before, state)

    def _excuse_no_longer(
        self, truth: PartitionTruth, before: PartitionState | None, state: PartitionState
    ) -> None:
        """A later incarnation is counted. With a rotten batch it proves nothing: a start after a clean stop
        reads no batches, so the one after it may be the first to find the rot, and to end the log there. Nor
        does it where an fsync failed, and who was counted stayed so: that directory may have been offline at
        its start, and its failure told of only then."""
        for broker_id, incarnation in list(truth.tainted.items()):
            counted = state.isr_incarnations[broker_id] if broker_id in state.isr else -1
            if counted > incarnation and self.rots(broker_id, truth.topic_partition):
                truth.tainted[broker_id] = counted
            elif counted > incarnation:
                del truth.tainted[broker_id]
        stayed = () if before is None or state.lost_in_epoch > before.lost_in_epoch else before.isr
        for broker_id, incarnation in list(truth.distrusted.items()):
            is_counted = broker_id in state.isr and state.isr_incarnations[broker_id] > incarnation
            if is_counted and broker_id not in stayed:
                del truth.distrusted[broker_id]

    def taint(
        self, broker_id: BrokerId, incarnation: int, where: Collection[TopicPartition] | None = None
    ) -> None:
        """What this broker's replicas (of these partitions) held in that incarnation may be gone: each is
        excused until it is counted again, in a later one, and without rot."""
        self.struck[broker_id] = incarnation
        for topic_partition in self.truths if where is None else where:
            truth = self.truths[topic_partition]
            if broker_id in truth.assignment.replicas:
                truth.tainted[broker_id] = incarnation

    def distrust(self, broker_id: BrokerId, where: Collection[TopicPartition], incarnation: int) -> None:
        """An fsync failed in the directory that these replicas are in: whoever elects one as the last may say
        that it is at a loss, until it is counted again, in a later incarnation. Nothing else is excused."""
        for topic_partition in where:
            truth = self.truths[topic_partition]
            if broker_id in truth.assignment.replicas:
                truth.distrusted[broker_id] = incarnation

    def expect_what_was_synced(self, broker_id: BrokerId) -> None:
        """The power of this broker's machine goes: what it had synced must be there when it is back."""
        for truth in self.truths.values():
            view = truth.views.get(broker_id)
            if view is not None and view.log is not None and not truth.is_thinned:
                point = view.log.recovery_point
                view.synced = tuple(entry for entry in view.entries if entry.next_offset <= point)

    def rename(self, broker_id: BrokerId, number: int) -> BrokerId:
        """Another process takes this broker's place, with nothing yet: this one is watched by a number."""
        for truth in self.truths.values():
            view = truth.views.pop(broker_id, None)
            if view is not None:
                view.broker_id = BrokerId(number)
                truth.views[view.broker_id] = view
        return BrokerId(number)

    def expect_nothing(self, broker_id: BrokerId) -> None:
        """What was synced on this broker's disk is damaged, too."""
        self.has_damage = True
        for truth in self.truths.values():
            truth.view(broker_id).synced = ()

    def _check_synced(self, truth: PartitionTruth, view: ReplicaView) -> None:
        synced, view.synced = view.synced, ()
        expected = [entry for entry in synced if entry.base_offset >= view.log_start]
        missing = set(expected).difference(view.entries)
        if missing:
            raise Violation(
                "SyncedSurvives",
                f"{truth.topic_partition}: broker {view.broker_id} lost {min(missing)}, which it had synced, "
                "in a power cut",
            )

    def _taint_new(self, truth: PartitionTruth, state: PartitionState) -> None:
        """A new partition counts whoever is registered, also a broker whose power was cut while its session
        lives on. It had nothing to lose there, but no restart can prove that."""
        for member in state.isr:
            struck = self.struck.get(member, -1)
            if state.isr_incarnations[member] <= struck:
                truth.tainted[member] = struck

    def _lose(self, truth: PartitionTruth, state: PartitionState) -> None:
        """An election made some log the truth."""
        lost = truth.lose(truth.view(state.leader), state.leader_epoch)
        for entry in lost:
            self.story.tell("LOST", f"{truth.topic_partition} {entry}")
        must_survive = self._must_survive(truth)
        if must_survive:
            self.marks.reach("nobody proven was left, and every record had been synced")
        if lost and must_survive:
            raise Violation(
                "SyncedIsNeverLost",
                f"{truth.topic_partition}: every record was on disk before it was acknowledged, no disk was "
                f"damaged, and the election of broker {state.leader} lost {lost[0]}",
            )
        if not truth.may_lose:
            self.marks.reach("nobody proven was left, and the greatest log led")
        elif lost:
            self.marks.reach("an election lost committed records where the topic allows it")
        for view in truth.views.values():
            truth.compare(view, self.now_ms)

    def _must_survive(self, truth: PartitionTruth) -> bool:
        """With ``log.flush.acks=fsync`` nothing committed goes in power cuts of whomever and how many."""
        is_synced = self.config.get_str("log.flush.acks") == "fsync"
        return is_synced and not (self.is_silent or self.has_damage or truth.may_lose or truth.is_thinned)

    def _tell_state(self, truth: PartitionTruth, state: PartitionState) -> None:
        moving = f" adding {list(state.adding)} removing {list(state.removing)}"
        self.story.tell(
            "zookeeper",
            f"{truth.topic_partition} leader {state.leader} epoch {state.leader_epoch} "
            f"ISR {list(state.isr)} eligible {list(state.eligible)} version {state.partition_epoch}"
            f"{moving if state.adding or state.removing else ''}",
        )

    def _mark_state(
        self, truth: PartitionTruth, before: PartitionState | None, state: PartitionState
    ) -> None:
        reach = self.marks.reach
        if not state.has_leader:
            reach("a partition had no leader")
        if len(state.isr) == 1:
            reach("an ISR of one")
        if len(state.isr) < state.min_insync_replicas:
            reach("an ISR below the minimum")
        if before is None:
            return
        preferred = truth.assignment.replicas[:1]
        if before.has_leader and before.leader != state.leader and preferred == (state.leader,):
            is_same = before.isr == state.isr and before.replicas == state.replicas
            if is_same and before.leader in state.isr:
                reach("a preferred election moved a leader")
        if before.leader != state.leader and _has_pending_change(truth.views.get(before.leader)):
            reach("a leader changed while a change of its ISR was pending")
        if state.has_leader and state.leader in before.eligible and state.leader not in before.isr:
            reach("an eligible replica was elected")
        if state.min_insync_replicas != before.min_insync_replicas:
            raised = state.min_insync_replicas > before.min_insync_replicas
            reach("a minimum was raised" if raised else "a minimum was lowered")
        self._mark_move(before, state)

    def _mark_move(self, before: PartitionState, state: PartitionState) -> None:
        reach = self.marks.reach
        was, now = (before.adding, before.removing), (state.adding, state.removing)
        if was == now:
            return
        if was == ((), ()):
            reach("a move began")
        elif now != ((), ()):
            reach("a move was given another target")
        elif set(state.replicas) == set(before.replicas) - set(before.adding):
            reach("a move was cancelled")
        else:
            reach("a move was finished")
        if before.leader != state.leader:
            reach("a move changed the leader")

    def _mark_controller(self) -> None:
        if self._controller_epoch < 1:
            return
        self.marks.reach("a controller took over")
        if any(one.assignment.adding or one.assignment.removing for one in self.truths.values()):
            self.marks.reach("a controller took over with a move under way")
        if self.tree.exists(DELETE_TOPICS) is not None and self.tree.children(DELETE_TOPICS):
            self.marks.reach("a controller took over with a topic being deleted")

    def stopped_cleanly(self, broker_id: BrokerId, released_by: int) -> None:
        """A broker has stopped; that it may was said under ``released_by`` of the controller's epoch."""
        if released_by == self._controller_epoch and not self.is_silent:
            for truth in self.truths.values():
                self._stops.on_clean_stop(truth, broker_id)

    # ---- clients -------------------------------------------------------------------------------------------

    def on_ack(self, truth: PartitionTruth, sent: Entry, base_offset: int) -> None:
        for invariant in self.invariants:
            invariant.on_ack(truth, sent, base_offset)

    def on_read(self, topic_partition: TopicPartition, topic_id: TopicId, entry: Entry) -> None:
        truth = self.truths.get(topic_partition)
        if truth is not None and truth.topic_id == topic_id:
            for invariant in self.invariants:
                invariant.on_read(truth, entry)


def _fingerprint(partition: Partition) -> Fingerprint:
    log, marks = partition.log, partition._replica.marks
    return (
        log.generation,
        log.log_end_offset,
        log.log_start_offset,
        marks.high_watermark,
        partition._replica.leader_epoch,
        partition._replica.leader is not None,
        partition._offline,
    )


def _cuts_unaware(truth: PartitionTruth, view: ReplicaView, partition: Partition) -> bool:
    """Whether this replica leads by an unclean election, has not heard of it, and did what the leader before
    told it: cut its log, or began anew. Nothing was committed since, and what is gone was lost by the same
    election, a moment later."""
    is_elected = truth.may_lose and truth.leaders.get(truth.lossy_epoch) == view.broker_id
    is_unaware = truth.is_led_by(view.broker_id) and partition.leader_epoch < truth.lossy_epoch
    return is_elected and is_unaware and view.shared_end < truth.committed_end


def _has_pending_change(view: ReplicaView | None) -> bool:
    leader = None if view is None or view.partition is None else view.partition._replica.leader
    return leader is not None and pending_proposal(leader.isr) is not None
