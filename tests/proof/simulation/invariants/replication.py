"""The rules of Kafka's replication that apply here.

They look at logs, machines and ZooKeeper directly: a mistake is reported at the step that makes it, not when
a client happens to see its result.
"""

from simulation.invariants.histories import awaits_history
from simulation.invariants.invariant import Invariant
from simulation.truth import Entry, PartitionTruth, ReplicaView
from sparklog.broker.partition.partition import Partition
from sparklog.core.replication.isr import effective_isr
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId


def _committed(found: Entry | None) -> str:
    return "nothing is committed" if found is None else f"{found} is committed"


def _who(sent: Entry) -> str:
    return "a producer" if sent.producer_id < 0 else f"producer {sent.producer_id}"


def _which(sent: Entry) -> str:
    return f"of CRC {sent.crc:#x}" if sent.producer_id < 0 else str(sent.sequence)


class MachinesAreSane(Invariant):
    """log start <= high watermark <= log end, and whatever else the shipped machines assert of themselves."""

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        marks = partition._replica.marks
        if not marks.log_start_offset <= marks.high_watermark <= marks.log_end_offset:
            raise self.broken(truth, f"broker {view.broker_id} has {marks}")
        if marks.log_end_offset != view.end_offset and not partition.is_offline:
            raise self.broken(
                truth, f"broker {view.broker_id} ends at {view.end_offset}, its machine says {marks}"
            )
        try:
            partition._replica.check_invariants()
        except AssertionError as error:
            raise self.broken(truth, f"broker {view.broker_id}: {error}") from error


class LogsBeginWhereTheyMay(Invariant):
    """What a log has given up at its start was committed, and somebody, or retention, asked for it.

    A leader that an election has given up commits, and then removes, what nobody else counts as committed.
    """

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        if view.history_start > max(truth.start_max, truth.forgiven_end):
            if truth.may_delete and view.history_start <= truth.lost_end:
                return
            raise self.broken(
                truth,
                f"broker {view.broker_id} begins at {view.history_start}; deleted may be what is below "
                f"{truth.start_max}",
            )


class HighWatermarkIsMonotonic(Invariant):
    """Within one leader epoch a replica's high watermark does not fall, but with what an election lost, or
    where its log begins anew at the end of the history.
    """

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        now = partition.high_watermark
        if truth.lossy_epoch >= 0 and (not partition.is_leader or not view.entries):
            return
        if partition.leader_epoch == view.leader_epoch and now < view.high_watermark:
            raise self.broken(
                truth, f"broker {view.broker_id} in epoch {view.leader_epoch}: {view.high_watermark} -> {now}"
            )


class OneLeaderPerEpoch(Invariant):
    """A leader epoch has one leader: the one that ZooKeeper named."""

    def on_state(self, truth: PartitionTruth, before: PartitionState | None, state: PartitionState) -> None:
        known = truth.leaders.setdefault(state.leader_epoch, state.leader)
        if known != state.leader:
            raise self.broken(truth, f"epoch {state.leader_epoch} is led by {known} and by {state.leader}")

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        if partition.is_leader and truth.leaders.get(partition.leader_epoch) != view.member:
            named = truth.leaders.get(partition.leader_epoch)
            raise self.broken(
                truth,
                f"broker {view.broker_id} leads epoch {partition.leader_epoch}, ZooKeeper named {named}",
            )


class EpochsGrow(Invariant):
    """Leader epochs in ZooKeeper never fall, a new leader has a new one, and along a log they never fall."""

    def on_state(self, truth: PartitionTruth, before: PartitionState | None, state: PartitionState) -> None:
        if before is None:
            return
        if state.leader_epoch < before.leader_epoch:
            raise self.broken(
                truth, f"leader epoch {before.leader_epoch} was followed by {state.leader_epoch}"
            )
        if state.leader != before.leader and state.leader_epoch == before.leader_epoch:
            raise self.broken(
                truth, f"leader {before.leader} became {state.leader} within epoch {state.leader_epoch}"
            )

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        first = len(view.entries) - len(added)
        for index in range(max(1, first), len(view.entries)):
            one, other = view.entries[index - 1], view.entries[index]
            has_gap = other.base_offset > one.next_offset and not truth.is_thinned
            if other.leader_epoch < one.leader_epoch or other.base_offset < one.next_offset or has_gap:
                raise self.broken(truth, f"broker {view.broker_id} has {other} after {one}")


class IsrContainsCommitted(Invariant):
    """Every member of ZooKeeper's ISR holds all that is committed, so whoever is elected does: leader and
    candidate completeness. So does every eligible replica. Replicas that a power cut struck are excused until
    they are counted again."""

    def on_commit(self, truth: PartitionTruth, leader: ReplicaView, added: list[Entry]) -> None:
        self._check(truth, f"when broker {leader.broker_id} committed {added[-1]}")

    def on_state(self, truth: PartitionTruth, before: PartitionState | None, state: PartitionState) -> None:
        self._check(truth, f"when ZooKeeper came to hold leader {state.leader}, ISR {list(state.isr)}")

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        state = truth.state
        if state is not None and (view.broker_id in state.isr or view.broker_id in state.eligible):
            self._check_member(truth, view.broker_id, "when its log changed")

    def _check(self, truth: PartitionTruth, when: str) -> None:
        state = truth.state
        for member in (*state.isr, *state.eligible) if state is not None else ():
            self._check_member(truth, member, when)

    def _check_member(self, truth: PartitionTruth, member: BrokerId, when: str) -> None:
        view = truth.view(member)
        is_excused = member in truth.tainted or awaits_history(truth, view)
        if view.shared_end < truth.committed_end and not is_excused:
            missing = truth.committed[view.cursor]
            state = truth.state
            place = "in the ISR" if state is not None and member in state.isr else "eligible"
            raise self.broken(truth, f"broker {member}, {place}, lacks the committed {missing} {when}")
        if truth.lossy_epoch >= 0 and (kept := truth.kept_in_store(view)) < len(truth.committed):
            what = f"broker {member} begins at {view.log_start}, and the store lacks {truth.committed[kept]}"
            raise self.broken(truth, f"{what} {when}")


class CommittedIsNeverLost(Invariant):
    """A replica that holds committed batches keeps them, in the ISR or not."""

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        was = min(view.held_before, truth.committed_end)
        if view.broker_id not in truth.assignment.replicas:
            return  # it has moved away, and what is left here goes
        if was <= truth.start_max:
            return  # all that it had may be deleted, and it begins anew where its leader's log begins
        if view.log_start < view.start_before and truth.lossy_epoch >= 0:
            return  # after an election that lost records its leader's disk begins earlier
        if view.shared_end < was and view.broker_id not in truth.tainted:
            raise self.broken(truth, f"broker {view.broker_id} lost {truth.committed[view.cursor]}")


class ReplicasAgreeBelowHighWatermark(Invariant):
    """What a replica believes to be committed is committed."""

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        if partition.leader_epoch < truth.lossy_epoch or partition.is_offline:
            return  # it has not heard yet of the election that lost records, or serves nobody
        if self._believes_what_was_lost(truth, view, partition):
            return
        if partition.awaits_history:
            return  # it serves nobody before it has compared its log with the history
        if partition.high_watermark > view.shared_end and not truth.rots(view.member):
            raise self.broken(
                truth,
                f"broker {view.broker_id} has high watermark {partition.high_watermark}, "
                f"but shares the committed log up to {view.shared_end} only",
            )

    def _believes_what_was_lost(self, truth: PartitionTruth, view: ReplicaView, partition: Partition) -> bool:
        """Whether it was committed until an election lost it, and this follower has yet to cut it."""
        if truth.lossy_epoch < 0 or partition.is_leader:
            return False
        beyond = [one for one in view.entries[view.matched :] if one.next_offset <= partition.high_watermark]
        return all(truth.was_lost(entry) for entry in beyond)


class ReplicationQuorumHoldsTheIsr(Invariant):
    """The ISR by which a leader commits contains the one from which the controller would elect."""

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        leader, state = partition._replica.leader, truth.state
        if leader is None or state is None or state.leader_epoch != leader.leader_epoch:
            return
        outside = set(state.isr) - effective_isr(leader.isr)
        if outside:
            raise self.broken(
                truth, f"leader {view.broker_id} commits without {sorted(outside)} of the ISR {state.isr}"
            )


class NoDuplicateSequence(Invariant):
    """An idempotent producer's batches are committed once each and in the order in which they were sent."""

    def on_commit(self, truth: PartitionTruth, leader: ReplicaView, added: list[Entry]) -> None:
        for entry in added:
            if entry.producer_id < 0:
                continue
            producer = (entry.producer_id, entry.producer_epoch)
            last = truth.last_sequences.get(producer, -1)
            if entry.sequence < 0:  # coordinators number nothing
                truth.last_sequences[producer] = last
                continue
            if entry.sequence <= last:
                raise self.broken(truth, f"{entry} was committed after sequence {last} of the same producer")
            truth.last_sequences[producer] = entry.sequence


class EarlierEpochsAreFenced(Invariant):
    """Once anything of a producer's epoch is committed, nothing of an earlier one comes behind it."""

    def on_commit(self, truth: PartitionTruth, leader: ReplicaView, added: list[Entry]) -> None:
        for entry in added:
            later = [
                epoch
                for producer_id, epoch in truth.last_sequences
                if producer_id == entry.producer_id and epoch > entry.producer_epoch
            ]
            if entry.producer_id >= 0 and later:
                raise self.broken(truth, f"{entry} was committed behind epoch {max(later)} of that producer")


class AcknowledgedIsCommitted(Invariant):
    """A send with acks=all is acknowledged only when it is committed, at the offset that is named."""

    def on_ack(self, truth: PartitionTruth, sent: Entry, base_offset: int) -> None:
        found = truth.committed_at(base_offset)
        if found is not None and found[3:] == sent[3:]:
            return
        if not any(one[3:] == sent[3:] for one in truth.lost.get(base_offset, ())):
            raise self.broken(
                truth,
                f"{_who(sent)} was told that its batch {_which(sent)} is at "
                f"offset {base_offset}, where {_committed(found)}",
            )


class NothingReadableAboveHighWatermark(Invariant):
    """A consumer gets committed batches only, and the same ones as everybody else."""

    def on_read(self, truth: PartitionTruth, entry: Entry) -> None:
        found = truth.committed_at(entry.base_offset)
        if found == entry or truth.was_lost(entry):
            return
        if found is None or found[:6] != entry[:6]:
            raise self.broken(truth, f"a consumer was given {entry}, where {_committed(found)}")
        if not truth.is_thinned:
            raise self.broken(truth, f"a consumer was given {entry}, and not as it was sent")


class NothingSpoiltIsTakenOver(Invariant):
    """Whatever is appended to a log has the CRC that it says: what rotted elsewhere is not copied."""

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        if view.spoilt:
            raise self.broken(
                truth,
                f"broker {view.broker_id} took over a batch at {view.spoilt[0]} whose CRC does not hold",
            )


class ClientsHearOfEpochs(Invariant):
    """Who leads has been told, for clients, of the epoch in which it does: it fences those who name another,
    and they ask for the right one wherever they can."""

    def on_leader(self, truth: PartitionTruth, view: ReplicaView, told: PartitionState | None) -> None:
        assert view.partition is not None
        leads_in = view.partition.leader_epoch
        if told is None or told.leader_epoch < leads_in:
            known = "nothing" if told is None else f"epoch {told.leader_epoch}"
            raise self.broken(
                truth, f"broker {view.broker_id} leads in epoch {leads_in}, and tells clients of {known}"
            )


def rules_of_replication() -> list[Invariant]:
    """Fresh instances of every rule but ``NoElectionLoses``, which is asked before the others."""
    return [
        MachinesAreSane(),
        LogsBeginWhereTheyMay(),
        HighWatermarkIsMonotonic(),
        OneLeaderPerEpoch(),
        EpochsGrow(),
        IsrContainsCommitted(),
        CommittedIsNeverLost(),
        ReplicasAgreeBelowHighWatermark(),
        ReplicationQuorumHoldsTheIsr(),
        EarlierEpochsAreFenced(),
        NoDuplicateSequence(),
        AcknowledgedIsCommitted(),
        NothingReadableAboveHighWatermark(),
        NothingSpoiltIsTakenOver(),
        ClientsHearOfEpochs(),
    ]
