"""One partition of ``__transaction_state``: Kafka's transactions, atomic writes, and agreements.

The three share the log, with keys of their own; transactions and writes share the markers, too. An app, a
transactional id and an agreement of the same name are different things, but their requests wait for each
other's records. Producer ids distinguish the markers and verifications of writes from those of transactions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from sparklog.core.coordinator.actions import Action, Reply, StateRecord, Token, WriteId, WriteOutcome
from sparklog.core.coordinator.state_machine import Now
from sparklog.core.transaction_coordinator.records import TransactionKey
from sparklog.core.transaction_coordinator.requests import (
    DescribeTransaction,
    ListTransactions,
    MarkersWritten,
    TransactionRequest,
    VerifyPartitions,
)
from sparklog.core.transaction_coordinator.responses import DescribedTransaction, ListedTransactions
from sparklog.core.transaction_coordinator.settings import TransactionSettings
from sparklog.core.transaction_coordinator.transaction_machine import TransactionMachine
from sparklog.core.write_coordinator import as_transactions
from sparklog.core.write_coordinator.agreements import FIRST_AGREEMENT_WRITE_ID, Agreements
from sparklog.core.write_coordinator.records import AgreementKey
from sparklog.core.write_coordinator.requests import Agree, EndWrite, OpenWrite
from sparklog.core.write_coordinator.settings import WriteSettings
from sparklog.core.write_coordinator.write_machine import FIRST_WRITE_ID, WriteMachine
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import LeaderEpoch, NamedTopic
from sparklog.model.settings.config import TypedSettings
from sparklog.model.time import MonotonicMs
from sparklog.model.write_ids import is_of_a_write


@dataclass(slots=True)
class TransactionStateMachine:
    """The state machine that a shard of ``__transaction_state`` drives."""

    transactions: TransactionMachine
    writes: WriteMachine
    agreements: Agreements = field(default_factory=Agreements)

    @classmethod
    def of(cls, config: TypedSettings, leader_epoch: LeaderEpoch) -> Self:
        """With the settings of a broker's configuration."""
        writes = WriteMachine(WriteSettings.of(config), leader_epoch)
        return cls(TransactionMachine(TransactionSettings.of(config)), writes)

    def replay(self, record: StateRecord) -> None:
        if isinstance(record.key, TransactionKey):
            self.transactions.replay(record)
        elif isinstance(record.key, AgreementKey):
            self.agreements.replay(record)
        else:
            self.writes.replay(record)

    def replay_pending(self, record: StateRecord, producer_id: int) -> None:
        """Nothing: no transaction writes to ``__transaction_state``."""

    def replay_end(self, producer_id: int, is_commit: bool) -> None:
        """As ``replay_pending``."""

    def replay_loss(self) -> None:
        self.transactions.replay_loss()

    def on_end(self, producer_id: int, is_commit: bool, now: Now) -> list[Action]:
        """As ``replay_pending``."""
        return []

    def on_loaded(self, now: Now) -> list[Action]:
        return [
            *self.transactions.on_loaded(now),
            *self.writes.on_loaded(now),
            *self.agreements.on_loaded(now),
        ]

    def on_request(
        self, token: Token, request: TransactionRequest | OpenWrite | EndWrite | Agree, now: Now
    ) -> list[Action]:
        match request:
            case OpenWrite() | EndWrite():
                return self.writes.on_request(token, request, now)
            case VerifyPartitions() | MarkersWritten() if is_of_a_write(request.producer_id):
                return self.writes.on_request(token, request, now)
            case Agree():
                return self.agreements.on_request(token, request, now)
            case ListTransactions():
                return [Reply(token, self._listed(request))]
            case DescribeTransaction() if request.key not in self.transactions.values:
                return [Reply(token, self._described(request))]
            case _:
                return self.transactions.on_request(token, request, now)

    def _listed(self, request: ListTransactions) -> ListedTransactions:
        mine = self.transactions.listed(request)
        return ListedTransactions(
            transactions=(*mine.transactions, *as_transactions.listed(self.writes.apps.values(), request))
        )

    def _described(self, request: DescribeTransaction) -> DescribedTransaction:
        value = as_transactions.described(self.writes.apps.get(request.key))
        if value is None:
            return request.refused(ErrorCode.transactional_id_not_found)
        return DescribedTransaction(ErrorCode.none, request.transactional_id, value)

    def on_written(self, write_id: WriteId, outcome: WriteOutcome, now: Now) -> list[Action]:
        # The ranges of write ids show which of the three machines wrote.
        if write_id > FIRST_AGREEMENT_WRITE_ID:
            return self.agreements.on_written(write_id, outcome, now)
        machine = self.writes if write_id > FIRST_WRITE_ID else self.transactions
        return machine.on_written(write_id, outcome, now)

    def on_time(self, now: Now) -> list[Action]:
        return [
            *self.transactions.on_time(now),
            *self.writes.on_time(now),
            *self.agreements.on_time(now),
        ]

    def next_deadline_ms(self) -> MonotonicMs | None:
        deadlines = (
            self.transactions.next_deadline_ms(),
            self.writes.next_deadline_ms(),
            self.agreements.next_deadline_ms(),
        )
        return min((deadline_ms for deadline_ms in deadlines if deadline_ms is not None), default=None)

    def on_topics_deleted(self, topics: Iterable[NamedTopic], now: Now) -> list[Action]:
        gone = frozenset(topics)
        return [
            *self.transactions.on_topics_deleted(gone, now),
            *self.writes.on_topics_deleted(gone, now),
        ]

    def topics(self) -> frozenset[NamedTopic]:
        return self.transactions.topics() | self.writes.topics()

    def on_resigned(self) -> list[Reply]:
        return [
            *self.transactions.on_resigned(),
            *self.writes.on_resigned(),
            *self.agreements.on_resigned(),
        ]

    def counts(self) -> Mapping[str, int]:
        of_writes = {f"writes_{what}": count for what, count in self.writes.counts().items()}
        of_agreements = {f"agreements_{what}": count for what, count in self.agreements.counts().items()}
        return {**self.transactions.counts(), **of_writes, **of_agreements}

    def check_invariants(self) -> None:
        self.transactions.check_invariants()
        self.writes.check_invariants()
        self.agreements.check_invariants()
