"""Looks at everything after every step, keeps the truth, and shows it to the invariants.

It reads topics, partitions and their replicas from ZooKeeper. A topic that is marked for deletion is no
longer watched. A topic that is created under the same name is another topic.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from simulation.invariants.atomic_writes.writes import WriteRules
from simulation.invariants.coordinator_logs import rows_in
from simulation.invariants.derived import EpochsAreAsTheLogSays, ProducersAreAsTheLogSays
from simulation.invariants.durable import AcknowledgedIsSynced
from simulation.invariants.elections import NoElectionLoses
from simulation.invariants.excuses import Excuses
from simulation.invariants.groups import GroupRules
from simulation.invariants.histories import kept_by_history, revived_by_history
from simulation.invariants.invariant import Invariant, Violation
from simulation.invariants.leadership import LeadershipIsAnnounced
from simulation.invariants.minimum import EnoughAreInSync
from simulation.invariants.operations.operation_rules import OperationRules
from simulation.invariants.presence import CountsWhoIsThere, StopsOutsideTheIsr
from simulation.invariants.replication import rules_of_replication
from simulation.invariants.restarts import OnlyDamageIsCalledDamage, RemembersWhatIsCommitted
from simulation.invariants.states import ControllersAreSane, StatesAreSound, check_write
from simulation.invariants.tiers import TierRules
from simulation.invariants.transaction_replay import LastStableIsAsTheLogSays
from simulation.invariants.transactions import TransactionRules, Where
from simulation.machines.controller import SimulatedController
from simulation.machines.producer_id_blocks import ProducerIdsAreUnique
from simulation.marks import Marks
from simulation.recorder import Recorder
from simulation.schedule import Tripwire
from simulation.state_marks import mark_log, mark_state, mark_take_over
from simulation.story import Story
from simulation.truth import Entry, Fingerprint, PartitionTruth, ReplicaView, Rows
from sparklog.broker.disks.log_dirs import LogDirs
from sparklog.broker.metadata.metadata_cache import MetadataCache, MetadataSnapshot
from sparklog.broker.partition.partition import Partition
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.core.controller.state.znodes import (
    CONTROLLER_EPOCH,
    TopicNode,
    broker_path,
    decode_configs,
    decode_state,
    decode_topic,
    delete_topic_path,
    state_path,
    topic_config_path,
    topic_path,
)
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import CorruptBatch
from sparklog.model.ids import BrokerId, TopicId, TopicPartition
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC, INTERNAL_TOPICS, TRANSACTION_STATE_TOPIC
from sparklog.model.settings.config import BrokerConfig, TopicConfig
from sparklog.model.zookeeper import Operation
from sparklog.testing.memory_zookeeper import ZooKeeperTree


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
    identities: ProducerIdsAreUnique = field(default_factory=ProducerIdsAreUnique)
    leadership: LeadershipIsAnnounced = field(default_factory=LeadershipIsAnnounced)
    groups: GroupRules = field(default_factory=GroupRules)
    clocks_jump: bool = False
    drift_max: float = 0.0
    marks: Marks = field(default_factory=Marks)
    truths: dict[TopicPartition, PartitionTruth] = field(default_factory=dict)
    seen_topics: dict[str, SeenTopic] = field(default_factory=dict)
    gone: dict[TopicId, str] = field(default_factory=dict)
    """Deleted topics."""
    on_partition: Callable[[TopicPartition], None] = lambda partition: None
    """Told of every partition that there was not before."""
    invariants: list[Invariant] = field(
        default_factory=lambda: [
            StatesAreSound(),
            *rules_of_replication(),
            EpochsAreAsTheLogSays(),
            ProducersAreAsTheLogSays(),
        ]
    )
    sent: dict[tuple[int, int, int], Rows] = field(default_factory=dict)
    """Keys and values of batches to compacted topics, by producer and sequence."""
    excuses: Excuses = field(init=False)
    tiers: TierRules | None = None
    """Of topics with a remote store, where there is one."""
    transactions: TransactionRules = field(init=False)
    writes: WriteRules = field(init=False)
    recorder: Recorder = field(init=False)
    """Is told of topics and leaders, too; what clients see they tell it themselves."""
    is_silent: bool = False
    """Whether it looks at everything and accuses nobody."""
    _of_replicas: list[Invariant] = field(init=False)
    _of_commits: list[Invariant] = field(init=False)
    _of_states: list[Invariant] = field(init=False)
    _of_leaders: list[Invariant] = field(init=False)
    _led_since: dict[tuple[BrokerId, TopicPartition], MetadataSnapshot] = field(default_factory=dict)
    """What brokers told clients when a replica began to lead, until the next update."""
    remembers: RemembersWhatIsCommitted = field(default_factory=RemembersWhatIsCommitted)
    presence: CountsWhoIsThere = field(default_factory=CountsWhoIsThere)
    operations: OperationRules = field(init=False)
    _stops: StopsOutsideTheIsr = field(default_factory=StopsOutsideTheIsr)
    _damage: OnlyDamageIsCalledDamage = field(default_factory=OnlyDamageIsCalledDamage)
    _no_loss: Invariant = field(init=False)
    _controllers: ControllersAreSane = field(default_factory=ControllersAreSane)
    _controller_epoch: int = -1

    def __post_init__(self) -> None:
        self.recorder = Recorder(self.story.schedule)
        self.identities.reach = self.marks.reach
        self.excuses = Excuses(self.truths)
        self._no_loss = NoElectionLoses(
            self.excuses.lost_disks,
            lambda broker_id: self.tree.exists(broker_path(broker_id)) is not None,
            lambda: self.now_ms,
        )
        self.operations = OperationRules(self.tree, self.truths, self.presence, self.marks)
        self.invariants.append(self.leadership)
        self.transactions = TransactionRules(lambda: self.story.schedule.now_us, self.marks)
        self.writes = WriteRules(
            self.transactions, lambda: self.story.schedule.now_us, self.marks, self._is_there
        )
        if TRANSACTION_STATE_TOPIC in self.topics:
            self.invariants += (LastStableIsAsTheLogSays(), self.transactions, self.writes)
        if self.tiers is not None:
            self.invariants.append(self.tiers)
        if GROUP_OFFSETS_TOPIC in self.topics:
            self.invariants.append(self.groups)
            self.groups.on_lost = self.recorder.group_lost
        self.invariants.append(EnoughAreInSync(self.recorder.asked_all))
        self.invariants += [AcknowledgedIsSynced()] * self.needs_fsync
        self._of_replicas = [
            one for one in self.invariants if type(one).on_replica is not Invariant.on_replica
        ]
        self._of_commits = [one for one in self.invariants if type(one).on_commit is not Invariant.on_commit]
        self._of_states = [one for one in self.invariants if type(one).on_state is not Invariant.on_state]
        self._of_leaders = [one for one in self.invariants if type(one).on_leader is not Invariant.on_leader]

    def add_rule(self, rule: Invariant) -> None:
        """A rule of one kind of topic, which is told of all replicas and commits."""
        self._of_replicas.append(rule)
        self._of_commits.append(rule)

    def _is_there(self, where: Where) -> bool:
        """Whether the partition is no other than then, and not deleted."""
        truth = self.truths.get(where[0])
        return truth is not None and truth.topic_id == where[1]

    def be_silent(self) -> None:
        """Leave it to clients to notice what is wrong."""
        self.is_silent, self._no_loss = True, Invariant()
        self.remembers.checkpoints_rot = self.presence.is_blind = True
        self.identities.is_silent = self.leadership.is_silent = self.groups.is_silent = True
        self.transactions.is_silent = self.writes.is_silent = self.operations.is_silent = True
        if self.tiers is not None:
            self.tiers.is_silent = True
            self.tiers = None
        for rules in (self._of_replicas, self._of_commits, self._of_states, self._of_leaders):
            rules.clear()
        self.invariants.clear()

    @property
    def needs_fsync(self) -> bool:
        """Whether a record counts only once it is on disk."""
        return self.config.get_str("log.flush.acks") == "fsync"

    @property
    def now_ms(self) -> int:
        return self.story.schedule.now_ms

    # ---- brokers -------------------------------------------------------------------------------------------

    def look_at(
        self,
        broker_id: BrokerId,
        replicas: PartitionTable,
        log_dirs: LogDirs,
        metadata: MetadataCache | None = None,
    ) -> None:
        """After a step of a broker: has any partition changed? ``metadata`` is what it tells clients."""
        for topic_partition, truth in self.truths.items():
            partition = replicas.get(topic_partition)
            view = truth.views.get(broker_id)
            if partition is None or not truth.is_of(partition):
                if view is None or view.log is None:
                    continue
                view.partition = None
                log_dir = view.log.directory.rpartition("/")[0]
                if partition is None and log_dir in log_dirs.offline:
                    continue  # it is in there
                self._gone(truth, view)
                continue
            now = _fingerprint(partition)
            if view is None or view.fingerprint != now or view.log is not partition.log:
                view = truth.view(broker_id)
                view.fingerprint, epoch_before = now, view.leader_epoch
                self._changed(truth, broker_id, partition)
                if metadata and partition.is_leader and partition.leader_epoch != epoch_before:
                    self._led_since[broker_id, topic_partition] = metadata.snapshot
            if metadata:
                self._look_at_leader(truth, view, topic_partition, metadata)

    def _look_at_leader(
        self,
        truth: PartitionTruth,
        view: ReplicaView,
        topic_partition: TopicPartition,
        metadata: MetadataCache,
    ) -> None:
        """Ask the rules of a leader once its broker has the update that follows the role, or has none."""
        where = view.broker_id, topic_partition
        at_role = self._led_since.get(where)
        if at_role is None or (metadata.is_received and metadata.snapshot is at_role):
            return
        del self._led_since[where]
        if view.partition is not None and view.partition.is_leader:
            for invariant in self._of_leaders:
                invariant.on_leader(truth, view, metadata.partition(topic_partition))

    def look_beside(self, broker_id: BrokerId, replicas: PartitionTable) -> None:
        """In the middle of a step: the replicas that are not being changed, and whose broker has said already
        whatever it says to a new leader.
        """
        for topic_partition, truth in self.truths.items():
            partition, view = replicas.get(topic_partition), truth.views.get(broker_id)
            if partition is None or view is None or not truth.is_of(partition):
                continue
            lock = partition.log_guard.lock
            is_known = partition.log is view.log and partition.leader_epoch == view.leader_epoch
            if is_known and isinstance(lock, Tripwire) and not lock.is_held:
                now = _fingerprint(partition)
                if view.fingerprint != now:
                    view.fingerprint = now
                    self._changed(truth, broker_id, partition)

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
            self.excuses.check_synced(truth, ReplicaView(view.broker_id, synced=view.synced))
        self.story.tell(f"broker-{view.broker_id}", f"{truth.topic_partition} is here no more")
        if view.broker_id not in truth.assignment.replicas:
            self.marks.reach("a removed replica's log was deleted")
        view.forget()
        self.excuses.excuse_no_longer_who_left(truth)
        truth.compare(view, self.now_ms)
        if truth.state is not None:
            for invariant in self._of_states:
                invariant.on_state(truth, truth.state, truth.state)

    def _changed(
        self, truth: PartitionTruth, broker_id: BrokerId, partition: Partition, *, is_cleaned: bool = False
    ) -> None:
        view = truth.view(broker_id)
        end_before, starts_before = view.end_offset, (view.history_start, view.log_start)
        is_other_log = view.log is not partition.log
        left_with_end = (partition.log if view.log is None else view.log).log_end_offset
        if partition.is_offline and not is_other_log:
            # Its disk failed in the middle of a change: what it has is what its next start will find.
            if truth.state is not None and truth.state.leader == broker_id:
                self._commit_up_to(truth, view, partition)  # followers may have been answered with it
            return
        try:
            added = view.refresh(partition, is_thinned=truth.is_thinned, is_cleaned=is_cleaned)
        except CorruptBatch as error:
            what = f"{truth.topic_partition}: broker {broker_id} does not know of its damage: {error}"
            raise Violation("LogsCanBeRead", what) from error
        truth.compare(view, self.now_ms)
        if self.story.is_told:
            self._tell(truth, view, partition, end_before)
        heard_of = view.leader_epoch if is_other_log else partition.leader_epoch
        if truth.state is not None and _cuts_unaware(truth, truth.state, view, heard_of):
            self._lose(truth, truth.state)
        if not is_other_log:
            mark_log(self.marks, truth, view, end_before=end_before, starts_before=starts_before)
        if view.synced:
            self.excuses.check_synced(truth, view)
        if is_other_log:
            view.leader_epoch = -1
            view.high_watermark = 0
            was_struck = broker_id in self.excuses.struck
            self.remembers.on_start(
                truth, broker_id, partition, end_before=left_with_end, was_struck=was_struck
            )
            may_be_damaged = was_struck or self.remembers.checkpoints_rot or self.excuses.has_damage
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
        elif partition.high_watermark > truth.committed_end and not partition.awaits_history:
            self._commit(truth, view, partition.high_watermark)

    def _commit(self, truth: PartitionTruth, leader: ReplicaView, high_watermark: int) -> None:
        first, start = truth.committed_end, leader.log_start
        added = [
            entry
            for entry in leader.entries[bisect_left(leader.entries, first, key=_base_offset) :]
            if entry.next_offset <= high_watermark
            if entry.next_offset > start or not truth.was_lost(entry)
        ]
        if not added:
            return
        truth.committed += added
        if truth.is_thinned:
            for entry in added:
                part = leader.part(entry)
                rows = () if part is not None and part.is_control else self._rows_of(truth, leader, entry)
                truth.note_records(entry, rows, self.now_ms, part)
        for view in truth.views.values():
            truth.compare(view, self.now_ms)
        for invariant in self._of_commits:
            invariant.on_commit(truth, leader, added)

    def _rows_of(self, truth: PartitionTruth, leader: ReplicaView, entry: Entry) -> Rows:
        """What coordinators write is known from the log alone."""
        if truth.topic_partition.topic not in INTERNAL_TOPICS:
            return self.sent[entry.send]
        assert leader.log is not None
        return rows_in(leader.log, entry)

    def _tell(self, truth: PartitionTruth, view: ReplicaView, partition: Partition, end_before: int) -> None:
        role = "leads" if partition.is_leader else "follows" if partition._replica.follower else "has no role"
        cut = f", cut from {end_before}" if view.end_offset < end_before else ""
        begins = f", from {view.log_start}" if view.log_start else ""
        if view.history_start < view.log_start:
            begins += f", history from {view.history_start}"
        self.story.tell(
            f"broker-{view.broker_id}",
            f"{truth.topic_partition} {role} in epoch {partition.leader_epoch}: "
            f"high watermark {partition.high_watermark}, end {view.end_offset}{cut}{begins}",
        )

    # ---- ZooKeeper -----------------------------------------------------------------------------------------

    def look_at_zookeeper(self) -> None:
        """After a transaction: do topics, settings or the partitions' states differ?"""
        for name in self.topics:
            self._look_at_topic(name)
        self.presence.look_at_zookeeper(self.tree, self.now_ms)
        self.operations.look_at_zookeeper()
        for truth in self.truths.values():
            self._look_at_state(truth)
        if self.tiers is not None:
            self.tiers.look_at_zookeeper(self.tree, self.truths.values())
        node = self.tree.get(CONTROLLER_EPOCH)
        if node is not None and node.stat.version != self._controller_epoch:
            self._controller_epoch = node.stat.version
            if self._controller_epoch >= 1:
                mark_take_over(self.marks, self.truths.values(), self.tree)
        self.identities.look_at_zookeeper(self.tree, self._controller_epoch)

    def look_at_write(self, operations: Sequence[Operation]) -> None:
        """Before it is applied."""
        if not self.is_silent:
            check_write(operations)
        self.operations.look_at_write(operations)

    def look_at_controller(self, controller: SimulatedController) -> None:
        """After a step of it."""
        if not self.is_silent:
            self._controllers.look_at(controller.host, controller.candidate)
            self.operations.look_at_controller(controller.candidate)

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
            truth = self.truths.pop(TopicPartition(name, number))
            if self.tiers is not None:
                self.tiers.forget(truth)

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
        truth.is_raw = config.get_str("remote.log.layout") == "raw"
        deletes = "delete" in policy
        truth.may_delete |= deletes and (
            config.get_int("retention.bytes") >= 0 or 0 <= config.get_int("retention.ms") < 600_000
        )
        truth.delete_retention_ms = 0 if self.clocks_jump else config.get_int("delete.retention.ms")
        truth.drift_max = self.drift_max
        # Controllers write settings, and only they elect: the one that may elect by earlier settings is none.
        truth.allows_unclean = config.get_bool("unclean.leader.election.enable")

    def _look_at_assignments(self, name: str, seen: SeenTopic) -> None:
        for number, assignment in enumerate(seen.node.assignments):
            topic_partition = TopicPartition(name, number)
            truth = self.truths.get(topic_partition)
            if truth is None:
                rots = self.excuses.who_rots(topic_partition)
                truth = PartitionTruth(topic_partition, seen.node.id, rots=rots)
                self.truths[topic_partition] = truth
                if seen.config is not None:
                    self._settle_rules(truth, seen.config)
                if number and seen.version:
                    self.marks.reach("a partition was added")
                self.on_partition(topic_partition)
            if truth.assignment != assignment:
                truth.assignment, truth.state_version = assignment, -1  # the state must be another, too
            self.excuses.excuse_no_longer_who_left(truth)

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
            self.excuses.taint_new(truth, state)
        if self.story.is_told:
            self._tell_state(truth, state)
        mark_state(self.marks, truth, before, state)
        is_at_a_loss = before is not None and state.lost_in_epoch > before.lost_in_epoch
        if is_at_a_loss:
            truth.was_allowed = truth.may_lose(self.now_ms)
        self._no_loss.on_state(truth, before, state)
        if is_at_a_loss:
            self._lose(truth, state)
        self.excuses.excuse_no_longer(truth, before, state)
        if before is not None:
            self.presence.on_change(truth, before, state, self.now_ms)
        for invariant in self._of_states:
            invariant.on_state(truth, before, state)

    def rename(self, broker_id: BrokerId, number: int) -> BrokerId:
        """Another process takes this broker's place, with nothing yet: this one is watched by a number."""
        for truth in self.truths.values():
            view = truth.views.pop(broker_id, None)
            if view is not None:
                view.broker_id = BrokerId(number)
                truth.views[view.broker_id] = view
        return BrokerId(number)

    def _lose(self, truth: PartitionTruth, state: PartitionState) -> None:
        """An election made some log the truth."""
        elected = truth.view(state.leader)
        kept, revived = kept_by_history(truth, elected), revived_by_history(truth, elected)
        lost = truth.lose(elected, state.leader_epoch, kept_min=kept, revived=revived)
        name = truth.topic_partition.topic
        self.groups.on_loss(truth, len(self.seen_topics[name].node.assignments))
        self.transactions.on_loss(truth)
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
        if not truth.was_allowed:
            self.marks.reach("nobody proven was left, and the greatest log led")
        elif lost:
            self.marks.reach("an election lost committed records where the topic allows it")
        for view in truth.views.values():
            truth.compare(view, self.now_ms)

    def _must_survive(self, truth: PartitionTruth) -> bool:
        """With ``log.flush.acks=fsync`` nothing committed goes in power cuts of whomever and how many."""
        may_go = self.excuses.has_damage or truth.was_allowed or truth.is_thinned
        return self.needs_fsync and not (self.is_silent or may_go)

    def _tell_state(self, truth: PartitionTruth, state: PartitionState) -> None:
        moving = f" adding {list(state.adding)} removing {list(state.removing)}"
        self.story.tell(
            "zookeeper",
            f"{truth.topic_partition} leader {state.leader} epoch {state.leader_epoch} "
            f"ISR {list(state.isr)} eligible {list(state.eligible)} version {state.partition_epoch}"
            f"{moving if state.adding or state.removing else ''}",
        )

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


def _base_offset(entry: Entry) -> int:
    return entry.base_offset


def _fingerprint(partition: Partition) -> Fingerprint:
    log, marks = partition.log, partition._replica.marks
    return (
        log.generation,
        log.log_end_offset,
        log.log_start_offset,
        log.local_start_offset,
        marks.high_watermark,
        partition._replica.leader_epoch,
        partition._replica.leader is not None,
        partition.is_offline,
    )


def _cuts_unaware(truth: PartitionTruth, state: PartitionState, view: ReplicaView, heard_of: int) -> bool:
    """Whether this replica was elected to lead by an unclean election, has not heard of it, and did what the
    leader before told it: cut its log, or began anew. Nothing was committed since, and what is gone was lost
    by the same election, a moment later. It may have died in the middle of it: then ``heard_of`` is the last
    epoch that it knew, and its next start finds what is left.
    """
    is_elected = truth.was_allowed and truth.leaders.get(truth.lossy_epoch) == view.broker_id
    is_alone = state.isr == (view.broker_id,)
    return is_elected and is_alone and heard_of < truth.lossy_epoch and view.shared_end < truth.committed_end
