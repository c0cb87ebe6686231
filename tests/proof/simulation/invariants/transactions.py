"""What committed logs, coordinators' answers and read-committed readers say of transactions (T1 to T9).

Every transaction is known before its producer does anything for it, and so is every batch of it. What becomes
of it the committed logs of its partitions say: a marker ends, in one partition, what is open of its producer
there. An election that may lose ends the judgement of its partition, or, of ``__transaction_state``, of all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from simulation.invariants.coordinator_logs import records_in
from simulation.invariants.invariant import Invariant, Violation
from simulation.invariants.transaction_replay import Replay
from simulation.marks import Marks
from simulation.truth import Entry, PartitionTruth, ReplicaView, TransactionPart
from sparklog.broker.partition.partition import Partition
from sparklog.model.ids import TopicId, TopicPartition
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from sparklog.model.transaction_end import TransactionEnd

Wish = Literal["open", "commit", "abort"]
Where = tuple[TopicPartition, TopicId]
BatchKey = tuple[int, int, int, int]
"""Producer id, epoch, sequence and CRC."""

FENCED: Final = "FencedProducersWriteNothing"


class Move(NamedTuple):
    """A group's position goes from ``start`` to ``end`` with a transaction."""

    group_id: str
    partition: TopicPartition
    start: int
    end: int


@dataclass(slots=True, eq=False)
class Transaction:
    """One transaction of one producer. ``wish``: the end that its producer has asked for."""

    name: str
    producer_id: int
    producer_epoch: int
    wish: Wish = "open"
    is_answered: bool = False
    """Whether the producer was told that the end, as it wished it, is decided."""
    is_commit: bool | None = None
    """What its markers say; None: there is none yet."""
    ended_in: set[Where] = field(default_factory=set)
    position: Move | None = None
    acknowledged: dict[Where, set[BatchKey]] = field(default_factory=dict)
    """Batches that its producer was told to be in the log."""

    def __str__(self) -> str:
        return f"{self.name} ({self.producer_id}:{self.producer_epoch})"

    def may_end(self, marker: Entry, *, is_commit: bool) -> bool:
        """Whether somebody who may has asked for such an end, before its first marker."""
        is_bumped = marker.producer_epoch > self.producer_epoch
        return self.wish == "commit" if is_commit else is_bumped or self.wish == "abort"

    def on_marker(self, where: Where, *, is_commit: bool) -> None:
        """Its marker in a partition is committed."""


class _Batch(NamedTuple):
    transaction: Transaction
    key: BatchKey


@dataclass(slots=True)
class _Committed:
    """The committed log of one partition."""

    replay: Replay = field(default_factory=Replay)
    batches: dict[int, list[_Batch]] = field(default_factory=dict)
    """Of each open transaction, by producer id."""
    coordinator_epochs: dict[int, int] = field(default_factory=dict)
    is_lost: bool = False
    """Whether an election may have lost some of it: nothing of it is judged any more."""


class TakenBatch(NamedTuple):
    """A batch that a read-committed reader was given. ``is_kept``: it takes its records for committed."""

    entry: Entry
    is_transactional: bool
    is_kept: bool


@dataclass(slots=True)
class TransactionRules(Invariant):
    """The rules of one run."""

    now_us: Callable[[], int]
    marks: Marks
    is_silent: bool = False
    _batches: dict[BatchKey, Transaction] = field(default_factory=dict)
    _logs: dict[Where, _Committed] = field(default_factory=dict)
    _bumps: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """By producer id: epochs, and when a producer was told of each."""
    _appended_us: dict[tuple[Where, int, BatchKey], int] = field(default_factory=dict)
    """When a leader, of that epoch, appended a batch."""
    _positions: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    """Of each group, what its committed transactions say."""
    _is_lost: bool = False
    _has_lost_offsets: bool = False
    _transactions: list[Transaction] = field(default_factory=list)

    # ---- producers -----------------------------------------------------------------------------------------

    def begin(self, name: str, producer_id: int, producer_epoch: int) -> Transaction:
        transaction = Transaction(name, producer_id, producer_epoch)
        self.adopt(transaction)
        return transaction

    def adopt(self, transaction: Transaction) -> None:
        """Nothing was done for it yet."""
        self._transactions.append(transaction)

    def on_batch(self, transaction: Transaction, entry: Entry) -> None:
        """The producer is about to send a batch."""
        self._batches[batch_key(entry)] = transaction

    def on_acknowledged(self, transaction: Transaction, truth: PartitionTruth, entry: Entry) -> None:
        transaction.acknowledged.setdefault(_where(truth), set()).add(batch_key(entry))

    def on_initialised(self, producer_id: int, producer_epoch: int) -> None:
        """A producer was told who it is: every earlier one is fenced."""
        self._bumps.setdefault(producer_id, []).append((producer_epoch, self.now_us()))

    def on_ended(self, transaction: Transaction) -> None:
        """The producer was told that the end that it wished for is decided."""
        transaction.is_answered = True
        self.marks.reach(f"a transaction was {'committed' if transaction.wish == 'commit' else 'aborted'}")
        if transaction.is_commit is not None:
            self._check_answer(transaction)

    def on_end_refused(self, transaction: Transaction, error: str) -> None:
        """The coordinator says that there is nothing to end, to the producer that has the last epoch."""
        if transaction.wish == "commit" and transaction.acknowledged and not self._is_lost:
            what = f"{transaction} was open, and nobody fenced its producer, which is told {error}"
            self._break("NobodyElseEndsIt", what)

    # ---- pipelines -----------------------------------------------------------------------------------------

    def on_move(
        self, transaction: Transaction, group_id: str, partition: TopicPartition, start: int, end: int
    ) -> None:
        """The producer is about to commit a position, whose metadata is the transaction's name."""
        transaction.position = Move(group_id, partition, start, end)

    def position_of(self, group_id: str, partition: TopicPartition) -> int:
        return self._positions.get((group_id, partition), 0)

    def on_position(
        self, group_id: str, partition: TopicPartition, offset: int, value: str | None, least: int
    ) -> None:
        """A group's coordinator told its position, which was ``least`` when it was asked."""
        if self._is_lost or self._has_lost_offsets:
            return
        known = next((one for one in self._transactions if one.name == value), None)
        if value is not None and (known is None or not known.is_commit):
            what = f"{group_id} is told the position {offset} of {known or value}, which is not committed"
            self._break("PositionsAreCommitted", what)
        if max(offset, 0) < least:
            what = f"{group_id} is told the position {offset}; it was at {least} when it asked"
            self._break("PositionsStay", what)

    # ---- logs ----------------------------------------------------------------------------------------------

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        if not partition.is_leader:
            return
        for entry in added:
            part = view.part(entry)
            if part is not None and not part.is_control:
                where = _where(truth), entry.leader_epoch, batch_key(entry)
                self._appended_us.setdefault(where, self.now_us())

    def on_commit(self, truth: PartitionTruth, leader: ReplicaView, added: list[Entry]) -> None:
        for entry in added:
            part = leader.part(entry)
            if part is not None:
                if truth.topic_partition.topic == GROUP_OFFSETS_TOPIC and not part.is_control:
                    self._know_offsets(leader, entry)
                self._take(truth, entry, part)

    def _know_offsets(self, leader: ReplicaView, entry: Entry) -> None:
        """Which transaction a batch of offsets is in, its records say."""
        assert leader.log is not None
        names = {
            record.value.metadata for record in records_in(leader.log, entry) if record.value is not None
        }
        known = next((one for one in self._transactions if one.name in names), None)
        if known is not None:
            self._batches[batch_key(entry)] = known

    def on_loss(self, truth: PartitionTruth) -> None:
        """An election may have lost records of the partition."""
        self._committed(truth).is_lost = True
        self._is_lost |= truth.topic_partition.topic == TRANSACTION_STATE_TOPIC
        self._has_lost_offsets |= truth.topic_partition.topic == GROUP_OFFSETS_TOPIC

    @property
    def has_lost_states(self) -> bool:
        """Whether an election may have lost what a coordinator knew: then nothing is judged any more."""
        return self._is_lost

    def is_open_or_aborted(self, where: Where, entry: Entry) -> bool:
        """Whether a batch is in a transaction, and no marker of its partition commits that."""
        transaction = self._batches.get(batch_key(entry))
        return transaction is not None and not (transaction.is_commit and where in transaction.ended_in)

    def is_judged(self, where: Where) -> bool:
        log = self._logs.get(where)
        return not self._is_lost and (log is None or not log.is_lost)

    def _committed(self, truth: PartitionTruth) -> _Committed:
        return self._logs.setdefault(_where(truth), _Committed())

    def _take(self, truth: PartitionTruth, entry: Entry, part: TransactionPart) -> None:
        log = self._committed(truth)
        if log.is_lost or self._is_lost:
            return
        if part.end is not None:
            self._take_marker(truth, log, entry, part.end)
        elif part.has_records and not part.is_control:
            self._take_records(truth, log, entry)
        log.replay.take(entry, part)

    def _take_records(self, truth: PartitionTruth, log: _Committed, entry: Entry) -> None:
        transaction = self._batches.get(batch_key(entry))
        if transaction is None:
            self._break("TransactionsAreKnown", f"{truth.topic_partition}: nobody sent {entry}")
            return
        if _where(truth) in transaction.ended_in:
            what = f"{truth.topic_partition}: {entry} is behind the marker of its transaction {transaction}"
            self._break("NothingComesBehindTheMarker", what)
        appended_us = self._appended_us.get((_where(truth), entry.leader_epoch, batch_key(entry)), -1)
        for epoch, told_us in self._bumps.get(entry.producer_id, ()):
            if epoch > entry.producer_epoch and appended_us > told_us:
                what = f"{entry} was appended at {appended_us} us, and its producer replaced at {told_us} us"
                self._break(FENCED, f"{truth.topic_partition}: {what}, in epoch {epoch}")
        log.batches.setdefault(entry.producer_id, []).append(_Batch(transaction, batch_key(entry)))

    def _take_marker(self, truth: PartitionTruth, log: _Committed, entry: Entry, end: TransactionEnd) -> None:
        known_epoch = log.coordinator_epochs.get(entry.producer_id, -1)
        if end.coordinator_epoch < known_epoch:
            what = f"the marker {entry} is of coordinator epoch {end.coordinator_epoch}, behind {known_epoch}"
            self._break("CoordinatorEpochsRise", f"{truth.topic_partition}: {what}")
        log.coordinator_epochs[entry.producer_id] = end.coordinator_epoch
        batches = log.batches.pop(entry.producer_id, [])
        if not batches:
            self.marks.reach("a marker ended nothing")
            return
        transaction = batches[0].transaction
        others = [one.transaction for one in batches if one.transaction is not transaction]
        if others:
            what = f"the marker {entry} ends both {transaction} and {others[0]}"
            self._break("OneTransactionAMarker", f"{truth.topic_partition}: {what}")
        self._decide(truth, transaction, entry, is_commit=end.is_commit)
        acknowledged = transaction.acknowledged.get(_where(truth), set())
        missing = acknowledged - {one.key for one in batches}
        if end.is_commit and missing:
            what = f"{transaction} is committed without its acknowledged batch {min(missing)}"
            self._break("CommittedTransactionsAreWhole", f"{truth.topic_partition}: {what}")

    def _decide(
        self, truth: PartitionTruth, transaction: Transaction, marker: Entry, *, is_commit: bool
    ) -> None:
        where = f"{truth.topic_partition}: {transaction}"
        done = "committed" if is_commit else "aborted"
        if transaction.is_commit is None:
            transaction.is_commit = is_commit
            if not transaction.may_end(marker, is_commit=is_commit):
                what = f"{where} is {done} by {marker}; its producer's wish is {transaction.wish}"
                self._break("NobodyElseEndsIt", what)
            if is_commit:
                self._move(transaction)
            if marker.producer_epoch > transaction.producer_epoch:
                self.marks.reach("a transaction was aborted in another epoch")
        elif transaction.is_commit != is_commit:
            self._break("TransactionsAreAtomic", f"{where} is {done} by {marker}, and elsewhere it is not")
        transaction.ended_in.add(_where(truth))
        transaction.on_marker(_where(truth), is_commit=is_commit)
        if transaction.is_answered:
            self._check_answer(transaction)

    def _move(self, transaction: Transaction) -> None:
        """What a pipeline takes in, its committed transactions take in once, and in order (T5)."""
        move = transaction.position
        if move is None:
            return
        self.marks.reach("a pipeline went on")
        before = self.position_of(move.group_id, move.partition)
        if move.start != before and not self._has_lost_offsets:
            what = f"{transaction} takes {move.start} to {move.end}; the last one ended at {before}"
            self._break("PipelinesAreExactlyOnce", what)
        self._positions[move.group_id, move.partition] = move.end

    def _check_answer(self, transaction: Transaction) -> None:
        if transaction.is_commit != (transaction.wish == "commit") and not self._is_lost:
            what = (
                f"the end of {transaction} as {transaction.wish} was answered, and its markers say otherwise"
            )
            self._break("AnsweredEndsHold", what)

    # ---- readers -------------------------------------------------------------------------------------------

    def on_committed_read(
        self,
        truth: PartitionTruth,
        fetch_offset: int,
        end: int,
        taken: Sequence[TakenBatch],
        aborted: Sequence[tuple[int, int]],
    ) -> None:
        """A read-committed reader was given these batches of ``[fetch_offset, end)``, beside markers, and was
        told of these ``aborted`` transactions, each by its producer and first offset.
        """
        log = self._committed(truth)
        if log.is_lost or self._is_lost or truth.lossy_epoch >= 0:
            return
        stable, where = log.replay.stable(truth.committed_end), str(truth.topic_partition)
        if end > stable:
            what = f"a reader was given all below {end}; the last stable offset is {stable}"
            self._break("ReadersStopAtTheLastStableOffset", f"{where}: {what}")
        overlapping = log.replay.aborted(fetch_offset, end)
        expected = {(one.producer_id, one.first_offset) for one in overlapping}
        # A replica that began anew at the log start does not know of transactions with deleted records only.
        deleted_end = min(fetch_offset, truth.start_max)
        needed = {one[:2] for one in overlapping if one.records_end > deleted_end}
        if not needed <= set(aborted) <= expected and not truth.is_thinned:
            what = f"a reader of {fetch_offset} to {end} was told of the aborted {sorted(aborted)}"
            self._break("AbortedListsAreExact", f"{where}: {what}; there are {sorted(expected)}")
        for entry, is_transactional, is_kept in taken:
            ended = log.replay.end_of(entry) if is_transactional else None
            is_aborted = ended is not None and not ended.is_commit
            if is_kept and is_aborted:
                self._break("NothingAbortedIsSeen", f"{where}: a reader takes {entry}, which was aborted")
            if not is_kept and not is_aborted:
                self._break("EverythingCommittedIsSeen", f"{where}: a reader passes over {entry}")

    # ---- at rest -------------------------------------------------------------------------------------------

    def check_what_is_owed(self, truths: Sequence[PartitionTruth]) -> None:
        """Every transaction has its marker in each partition that it wrote to and that is left."""
        if self._is_lost:
            return
        there = {_where(one) for one in truths if not self._committed(one).is_lost}
        for transaction in self._transactions:
            open_in = [one for one in transaction.acknowledged if one in there - transaction.ended_in]
            if open_in:
                self._break("NothingHangs", f"{transaction} has no marker in {open_in[0][0]}")

    def _break(self, rule: str, what: str) -> None:
        if not self.is_silent:
            raise Violation(rule, what)


def batch_key(entry: Entry) -> BatchKey:
    return (*entry.send, entry.crc)


def _where(truth: PartitionTruth) -> Where:
    return truth.topic_partition, truth.topic_id
