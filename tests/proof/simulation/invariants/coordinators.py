"""A coordinator's state is what a replay of its log says, after every step.

The replay here is the simplest there is: each record of the leader's log, one after the other, up to where
the coordinator may have applied it. That is the high watermark, or, while appends are not settled, the
beginning of the first of these.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from simulation.invariants.coordinator_logs import records_in
from simulation.invariants.invariant import Violation
from simulation.marks import Marks
from simulation.truth import Entry, TransactionPart, entry_of, part_of
from sparklog.broker.coordination.shard_host import ShardHost
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.coordinator.shard import Phase
from sparklog.core.group.applied import AppliedState
from sparklog.core.group.group_machine import GroupMachine
from sparklog.core.transaction_coordinator.records import TransactionKey
from sparklog.core.write_coordinator.records import HeadKey, MemberKey
from sparklog.core.write_coordinator.states import AppState
from sparklog.core.write_coordinator.transaction_state_machine import TransactionStateMachine
from sparklog.core.write_coordinator.write_machine import WriteMachine
from sparklog.model.ids import TopicPartition
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC
from sparklog.model.parts import read_parts
from sparklog.records.envelope import split
from sparklog.storage.log import Log

ALL_BYTES = 1 << 40

MARKERS_MAX: Final = 8
"""How many batches are looked at for the one that is in flight."""


@dataclass(slots=True)
class _States:
    """The last record of each key, where no record depends on another."""

    records: dict[Any, Any] = field(default_factory=dict)

    def apply(self, record: StateRecord) -> None:
        if record.value is None:
            self.records.pop(record.key, None)
        else:
            self.records[record.key] = record.value

    def as_records(self) -> dict[Any, Any]:
        """Without members of writes that are over, which nobody asks for any more."""
        return {key: value for key, value in self.records.items() if not self._is_over(key)}

    def _is_over(self, key: Any) -> bool:
        if not isinstance(key, MemberKey):
            return False
        head = self.records.get(HeadKey(key.app))
        return head is None or head.state is AppState.IDLE or head.write_number != key.write_number


@dataclass(slots=True)
class _Replay:
    """One log, replayed up to ``position``."""

    topic: str
    log: Log
    generation: int
    position: int
    state: AppliedState | _States

    def go_to(self, end: int) -> None:
        for entry, part in _entries(self.log, self.position, end):
            if part is None:
                for record in records_in(self.log, entry, self.topic):
                    self.state.apply(record)
            elif isinstance(self.state, AppliedState):
                self._go_on(self.state, entry, part)
        self.position = end

    def _go_on(self, state: AppliedState, entry: Entry, part: TransactionPart) -> None:
        """Offsets in a transaction count with its marker."""
        if part.end is not None:
            state.end(entry.producer_id, part.end.is_commit)
        elif not part.is_control:
            for record in records_in(self.log, entry, self.topic):
                state.apply_pending(record, entry.producer_id)


@dataclass(slots=True)
class CoordinatorsAreAReplay:
    """Of every active coordinator, after each step of its broker."""

    marks: Marks
    _replays: dict[TopicPartition, _Replay] = field(default_factory=dict)
    _phases: dict[ShardHost, Phase] = field(default_factory=dict)
    _seen: dict[ShardHost, Any] = field(default_factory=dict)

    def look_at(self, replicas: PartitionTable, hosts: Iterable[ShardHost]) -> None:
        for host in hosts:
            shard = host.shard
            if self._phases.get(host) is not shard.phase:
                before, self._phases[host] = self._phases.get(host), shard.phase
                if before is Phase.loading and shard.phase is Phase.active:
                    self.marks.reach("a coordinator loaded")
            if shard.phase is Phase.active:
                self._check(replicas, host)

    def _check(self, replicas: PartitionTable, host: ShardHost) -> None:
        shard, where = host.shard, host.topic_partition
        partition = replicas.get(where)
        leader = None if partition is None else partition._replica.leader
        if partition is None or leader is None or partition.is_offline:
            return
        if leader.leader_epoch != host.leader_epoch or partition.log.corruption is not None:
            return
        if shard._in_doubt:
            self.marks.reach("an append of a coordinator was in doubt")
        log, high_watermark = partition.log, leader.marks.high_watermark
        applied = _applied(shard.machine)
        now = (log.log_end_offset, high_watermark, len(shard._in_doubt), shard._in_flight, applied)
        if self._seen.get(host) == now:
            return
        self._seen[host] = now
        ends = _ends(shard._in_doubt, shard._in_flight, log, high_watermark)
        if ends is None:
            return
        expected: list[Any] = []
        for end in ends:
            replayed = self._replay(where, log, end)
            state = replayed.as_records()
            if applied == state or _may_end_later(shard.machine, replayed):
                self._check_shard(host)
                return
            expected.append(state)
        raise Violation(
            type(self).__name__,
            f"{where}: the coordinator of leader epoch {host.leader_epoch} has {applied}; its log says "
            f"{' or '.join(map(str, expected))}, up to {ends}",
        )

    def _check_shard(self, host: ShardHost) -> None:
        try:
            host.shard.check_invariants()
        except AssertionError as error:
            raise Violation("CoordinatorsAreSane", f"{host.topic_partition}: {error}") from error

    def _replay(self, where: TopicPartition, log: Log, end: int) -> AppliedState | _States:
        known = self._replays.get(where)
        is_same = known is not None and known.log is log and known.generation == log.generation
        if known is None or not is_same or known.position > end:
            known = self._replays[where] = _Replay(
                where.topic,
                log,
                log.generation,
                log.log_start_offset,
                AppliedState() if where.topic == GROUP_OFFSETS_TOPIC else _States(),
            )
        known.go_to(end)
        return known.state


def _may_end_later(machine: Any, replayed: AppliedState | _States) -> bool:
    """Whether offsets of transactions are open, here or there: a coordinator is told of a marker when its
    writer is answered, which may be later."""
    is_open = isinstance(machine, GroupMachine) and bool(machine.state.applied.pending)
    return is_open or (isinstance(replayed, AppliedState) and bool(replayed.pending))


def _applied(machine: Any) -> dict[Any, Any]:
    """The last record of each key that the machine has applied."""
    if isinstance(machine, TransactionStateMachine):
        return {
            **{TransactionKey(one): value for one, value in machine.transactions.values.items()},
            **_applied_writes(machine.writes),
            **{key: kept.agreement for key, kept in machine.agreements.kept.items()},
        }
    applied: dict[Any, Any] = machine.applied_state()
    return applied


def _applied_writes(machine: WriteMachine) -> dict[Any, Any]:
    applied: dict[Any, Any] = {}
    for app in machine.apps.values():
        applied[HeadKey(app.name)] = app.head
        for number, member in app.members.items():
            applied[MemberKey(app.name, app.head.write_number, number)] = member
    return applied


def _ends(in_doubt: Any, in_flight: Any, log: Log, high_watermark: int) -> list[int] | None:
    """Up to where the log may have been applied; None if nobody can tell."""
    if in_doubt:
        doubt_end = in_doubt[0].end_offset
        return None if doubt_end is None else [_base_of(log, doubt_end)]
    if in_flight is None:
        return [high_watermark]
    ends = [log.log_end_offset, *_last_bases(log)]
    return [end for end in (ends[1], ends[0], *ends[2:]) if end <= high_watermark]


def _last_bases(log: Log) -> list[int]:
    """Where the last batches begin, from the last one on. Markers, which others write, may be behind that of
    an append that is in flight.
    """
    bases = [_base_of(log, log.log_end_offset)]
    while len(bases) < MARKERS_MAX and bases[-1] > log.log_start_offset:
        bases.append(_base_of(log, bases[-1]))
    return bases


def _base_of(log: Log, end: int) -> int:
    """Where the batch begins that ends at ``end``; the log's start if there is none."""
    at = max(end - 1, log.log_start_offset)
    read = log.read(at, 1, end, at_least_one_batch=True) if at < end else None
    batches = split(read_parts(read.parts)) if read is not None else []
    return batches[-1][1].base_offset if batches else log.log_start_offset


def _entries(log: Log, start: int, end: int) -> list[tuple[Entry, TransactionPart | None]]:
    if start >= end:
        return []
    read = log.read(start, ALL_BYTES, end, at_least_one_batch=True)
    data = b"" if read is None else read_parts(read.parts)
    return [
        (entry_of(header), part_of(data, position, header) if header.is_transactional else None)
        for position, header in split(data)
    ]
