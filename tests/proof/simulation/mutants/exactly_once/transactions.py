"""Bugs of transactions: what readers see, who may append, and when an end is answered and complete."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, Final

from simulation.mutants.coordinators import overtaken_loads_go_on
from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.broker.coordination.shard_host import ShardHost
from sparklog.broker.coordination.transaction_markers import TransactionMarkers
from sparklog.broker.partition import reads
from sparklog.broker.partition.producer_gate import ProducerGate
from sparklog.core.coordinator.actions import Action, Reply, StateRecord, Token
from sparklog.core.coordinator.state_machine import Now
from sparklog.core.group.applied import AppliedState
from sparklog.core.group.group_machine import GroupMachine
from sparklog.core.producers.latest_connections import LatestConnections
from sparklog.core.producers.producer_state import ProducerBatch, ProducerStates
from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.core.producers.verification import VerificationGuard, Verifications
from sparklog.core.replication.visibility import Visibility
from sparklog.core.replication.watermarks import Watermarks
from sparklog.core.transaction_coordinator import transaction_machine
from sparklog.core.transaction_coordinator.messages import SendMarkers
from sparklog.core.transaction_coordinator.records import TransactionValue
from sparklog.core.transaction_coordinator.requests import EndTransaction
from sparklog.core.transaction_coordinator.responses import Answer
from sparklog.core.transaction_coordinator.transaction_machine import TransactionMachine
from sparklog.model.append_origin import AppendOrigin
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, ProducerId, TopicPartition
from sparklog.storage.segments.transaction_index import TransactionIndex


def _nothing_is_verified(switch: Switch) -> None:
    """Any batch may begin a transaction in a partition."""
    switch.instead(ProducerGate, "_unverified", lambda self, batches: None)


def _guards_hold_for_ever(switch: Switch) -> None:
    """An answer of the coordinator counts, although a marker has come since."""

    def holds(self: Verifications, guard: VerificationGuard, producer_id: ProducerId, epoch: int) -> bool:
        return True

    switch.instead(Verifications, "holds", holds)


def _followers_serve_to_the_high_watermark(switch: Switch) -> None:
    """A read-committed consumer of a follower is given open transactions."""
    is_follower: list[bool] = []

    def read_as_follower(original: Any) -> Any:
        def mutated(*args: Any, **kwargs: Any) -> Any:
            is_follower.append(True)
            try:
                return original(*args, **kwargs)
            finally:
                is_follower.pop()

        return mutated

    def readable_end(original: Any) -> Any:
        def mutated(self: Watermarks, visibility: Visibility) -> int:
            end: int = self.high_watermark if is_follower else original(self, visibility)
            return end

        return mutated

    switch.method(reads, "read_as_follower", read_as_follower)
    switch.method(Watermarks, "readable_end", readable_end)


def _the_index_is_not_cut(switch: Switch) -> None:
    """What a follower cut from its log stays in the index of aborted transactions."""

    def truncate(self: TransactionIndex, end_offset: int) -> None:
        """Everything stays."""

    switch.instead(TransactionIndex, "truncate", truncate)


def _the_index_is_not_rebuilt(switch: Switch) -> None:
    """A start after a crash begins the index of a segment that it checks, and adds nothing."""

    def note(self: TransactionIndex, entry: AbortedTransaction) -> None:
        """Nothing is added."""

    switch.instead(TransactionIndex, "note", note)


def _markers_of_older_coordinators_are_taken(switch: Switch) -> None:
    """A leader does not compare the epochs of coordinators."""

    def check(original: Any) -> Any:
        def mutated(self: ProducerStates, batch: ProducerBatch, origin: AppendOrigin) -> Any:
            if batch.end is not None:
                batch = replace(batch, end=batch.end._replace(coordinator_epoch=1 << 30))
            return original(self, batch, origin)

        return mutated

    switch.method(ProducerStates, "check", check)


def _ends_are_answered_before_they_are_committed(switch: Switch) -> None:
    """The producer is told that its transaction is decided while the decision is on its way to the log."""

    def move(original: Any) -> Any:
        def mutated(
            self: TransactionMachine, token: Token, request: Any, moved: Any, now: Now, **more: Any
        ) -> list[Action]:
            if isinstance(request, EndTransaction) and isinstance(moved, TransactionValue):
                reply = Reply(token, Answer(ErrorCode.none))
                return [reply, *self._write(request.key, moved, None, None, "moved")]
            actions: list[Action] = original(self, token, request, moved, now, **more)
            return actions

        return mutated

    switch.method(TransactionMachine, "_move", move)


def _ends_are_complete_before_the_last_marker(switch: Switch) -> None:
    """One partition is not waited for, and gets no marker."""

    def send(original: Any) -> Any:
        def mutated(self: TransactionMarkers, host: ShardHost, message: SendMarkers) -> None:
            if len(message.topics) > 1:
                message = replace(message, topics=message.topics[:-1])
            original(self, host, message)

        return mutated

    switch.method(TransactionMarkers, "send", send)


def _time_outs_do_not_bump(switch: Switch) -> None:
    """A transaction that timed out is aborted in its producer's own epoch."""

    def fenced(original: Any) -> Any:
        def mutated(value: TransactionValue, now_ms: int) -> TransactionValue:
            aborted: TransactionValue = original(value, now_ms)
            return replace(aborted, producer_epoch=value.producer_epoch)

        return mutated

    switch.method(transaction_machine, "fenced", fenced)


def _pending_offsets_are_shown(switch: Switch) -> None:
    """An offset in a transaction counts as soon as it is in the log."""

    def apply_pending(self: AppliedState, record: StateRecord, producer_id: int) -> None:
        self.apply(record)

    switch.instead(AppliedState, "apply_pending", apply_pending)


def _pending_offsets_are_lost_at_failover(switch: Switch) -> None:
    """A load passes over the offsets of transactions that are open."""

    def replay_pending(self: GroupMachine, record: StateRecord, producer_id: int) -> None:
        """Nothing is kept."""

    switch.instead(GroupMachine, "replay_pending", replay_pending)


def _late_requests_are_obeyed(switch: Switch) -> None:
    """An end that was sent for one transaction, and came late, ends the next one."""

    def is_late(self: LatestConnections, sender: Hashable, epoch: int, connection: int | None) -> bool:
        return False

    switch.instead(LatestConnections, "is_late", is_late)


def _deleted_topics_are_waited_for(switch: Switch) -> None:
    """A marker is to be written also where there is no partition any more."""

    def leader_of(original: Any) -> Any:
        def mutated(self: TransactionMarkers, end: Any, topic_partition: TopicPartition) -> BrokerId:
            leader: BrokerId | None = original(self, end, topic_partition)
            return BrokerId(-1) if leader is None else leader

        return mutated

    switch.method(TransactionMarkers, "_leader_of", leader_of)


RACKS: Final = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
ONE_COORDINATOR: Final = {
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
"""That waits for no replica."""
LASTING: Final = {"timeout_ms": 3_000, "churn_ms": 20_000.0}
"""Producers that live long and have seconds for a transaction: an epoch has many transactions."""
ONE_STATE_LOG: Final = {"transaction.state.log.num.partitions": "1", "offsets.load.buffer.size": "1"}

TRANSACTIONS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "nothing-is-verified",
        "KAFKA-14402",
        "a late batch opens a transaction that nobody ends",
        60,
        _nothing_is_verified,
        Hunt(plot=83, settings=ONE_COORDINATOR, transactions=1.0),
        brings_back=("K30",),
    ),
    Mutant(
        "guards-hold-for-ever",
        "KAFKA-14402, verification without a guard",
        "a late batch opens a transaction that nobody ends",
        60,
        _guards_hold_for_ever,
        Hunt(plot=84, settings=ONE_COORDINATOR, transactions=1.0, producers=LASTING),
        brings_back=("K30",),
    ),
    Mutant(
        "followers-serve-to-the-high-watermark",
        "KIP-392 without read-committed consumers",
        "a consumer reads open transactions",
        60,
        _followers_serve_to_the_high_watermark,
        Hunt(kinds=("kill broker",), settings=RACKS, transactions=1.0),
    ),
    Mutant(
        "the-index-is-not-cut",
        "an index that is not cut with its log",
        "a consumer passes over records that were committed",
        150,
        _the_index_is_not_cut,
        Hunt(
            kinds=("isolate broker", "pause broker"), settings={"min.insync.replicas": "1"}, transactions=1.0
        ),
    ),
    Mutant(
        "the-index-is-not-rebuilt",
        "an index that is lost with a crash",
        "a consumer reads what was aborted",
        20,
        _the_index_is_not_rebuilt,
        Hunt(kinds=("kill broker",), transactions=1.0),
    ),
    Mutant(
        "markers-of-older-coordinators-are-taken",
        "markers without a fence",
        "a coordinator that was replaced ends a transaction",
        80,
        _markers_of_older_coordinators_are_taken,
        Hunt(plot=85, settings={"transaction.state.log.num.partitions": "1"}, transactions=1.0),
    ),
    Mutant(
        "ends-are-answered-before-they-are-committed",
        "an answer without a wait",
        "a transaction that was committed is aborted",
        120,
        _ends_are_answered_before_they_are_committed,
        Hunt(kinds=("isolate broker", "kill broker", "pause broker"), transactions=1.0),
    ),
    Mutant(
        "ends-are-complete-before-the-last-marker",
        "an end that does not wait for all markers",
        "a transaction hangs in a partition",
        20,
        _ends_are_complete_before_the_last_marker,
        Hunt(kinds=("kill broker",), transactions=1.0),
    ),
    Mutant(
        "time-outs-do-not-bump",
        "KIP-360 without its fence",
        "a producer that stood still writes on in a transaction that was aborted",
        20,
        _time_outs_do_not_bump,
        Hunt(kinds=("kill broker", "pause broker"), transactions=1.0),
    ),
    Mutant(
        "pending-offsets-are-shown",
        "KIP-98 without pending offsets",
        "a pipeline goes on behind what was aborted",
        20,
        _pending_offsets_are_shown,
        Hunt(kinds=("kill broker",), transactions=1.0),
        is_quick=True,
    ),
    Mutant(
        "pending-offsets-are-lost-at-failover",
        "KIP-98 without pending offsets at a load",
        "a pipeline does again what was committed",
        20,
        _pending_offsets_are_lost_at_failover,
        Hunt(kinds=("kill broker",), operations=("elect preferred",), transactions=1.0),
    ),
    Mutant(
        "late-requests-are-obeyed",
        "KAFKA-17754; Jepsen's Bufstream 0.1.0",
        "an end of one transaction ends the next one, and tears it",
        60,
        _late_requests_are_obeyed,
        Hunt(plot=86, settings=ONE_COORDINATOR, transactions=1.0, producers=LASTING),
    ),
    Mutant(
        "deleted-topics-are-waited-for",
        "KAFKA-12671",
        "a transaction never ends, and its producer waits for ever",
        60,
        _deleted_topics_are_waited_for,
        Hunt(
            operations=("create topic", "delete topic", "create topic again"),
            transactions=1.0,
            producers={"silent_share": 0.7, "churn_ms": 20_000.0},
        ),
    ),
    Mutant(
        "overtaken-loads-of-transactions-go-on",
        "KAFKA-9307",
        "a coordinator lacks what another one wrote while it loaded",
        60,
        overtaken_loads_go_on,
        Hunt(plot=87, operations=("elect preferred",), settings=ONE_STATE_LOG, transactions=1.0),
    ),
)
