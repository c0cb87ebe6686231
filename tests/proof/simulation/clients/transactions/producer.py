"""A transactional producer, one process: transaction after transaction, as Kafka's clients do.

    InitProducerId -> AddPartitionsToTxn -> batches, several in flight -> EndTxn: commit or abort -> ...
          ^                                      |                            |
          +---- a batch is given up: abort ------+         fenced: ends ------+

It repeats what has had no answer, over another connection; what was on its way over the old one may arrive
late. A process that was replaced, and does not know, goes on until it is told.
"""

from collections.abc import Generator, Iterable
from typing import Any, Final

from simulation.clients.client import RETRY_MS, Workplace
from simulation.clients.transactions.script import Ask, FencedError, GaveUpError, Script, Wait
from simulation.clients.transactions.sender import AGAIN_MS, FENCED, BatchSender
from simulation.invariants.transactions import Transaction, TransactionRules
from simulation.plans.transactions import TransactionPlan
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.data.init_producer_id import InitProducerIdRequest
from sparklog.wire.messages.discovery.find_coordinator import TRANSACTION_KEY
from sparklog.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from sparklog.wire.messages.transactions.end_txn import EndTxnRequest

MOVED: Final = frozenset(
    {
        ErrorCode.not_coordinator,
        ErrorCode.coordinator_not_available,
        ErrorCode.coordinator_load_in_progress,
    }
)


class TransactionalProducer(BatchSender):
    """``is_idle`` while it has no transaction; ``commits`` counts those that it was told of. ``is_polite``:
    whether it ends every transaction that it begins.
    """

    def __init__(
        self,
        place: Workplace,
        name: str,
        life: int,
        plan: TransactionPlan,
        rules: TransactionRules,
        partitions: Iterable[TopicPartition],
    ) -> None:
        self.plan = plan
        self.is_replaced = False
        self.is_hushed = False
        """Whether it begins no transaction any more."""
        self.is_idle = True
        self.commits = 0
        self._partitions = list(partitions)
        self._life = life
        self._number = 0
        self._last: Transaction | None = None
        super().__init__(place, name, life, plan.records_max, rules)

    # ---- life ----------------------------------------------------------------------------------------------

    def live(self) -> Script:
        yield from self._initialise(keeps_id=False)
        while True:
            yield Wait(self._draw.expovariate(1 / self.plan.interval_ms))
            if self.is_hushed:
                continue
            self.is_idle = False
            try:
                yield from self._transact()
            except FencedError:
                self.tell("is fenced")
                self._place.witness.marks.reach("a transactional producer was fenced")
                self.is_idle = True
                if self.is_replaced:
                    return
                yield from self._initialise(keeps_id=False)
            self.is_idle = True

    def _initialise(self, *, keeps_id: bool) -> Script:
        producer_id, epoch = self._producer if keeps_id else (-1, -1)
        request = InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=self.plan.timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        response = yield from self._ask_coordinator(request, lambda response: response.error_code)
        self._producer = response.producer_id, response.producer_epoch
        self._sequences.clear()
        self._sessions += 1
        self.tell(f"is producer {response.producer_id}:{response.producer_epoch}")
        self._rules.on_initialised(*self._producer)

    def _transact(self) -> Script:
        self._number += 1
        name = f"{self.process.name}/{self._number}"
        transaction = self._last = self._rules.begin(name, *self._producer)
        try:
            yield from self._write(transaction)
            wish = self._draw.random()
            if not self.is_polite and wish < self.plan.silent_share:
                self.tell(f"leaves {name} open")
                yield Wait(1.5 * self.plan.timeout_ms)
            wants_commit = self.is_polite or self._draw.random() >= self.plan.abort_share
            yield from self._end(transaction, wants_commit=wants_commit)
        except GaveUpError:
            self.tell(f"gives {name} up")
            self._place.witness.marks.reach("a transactional producer gave up what it had sent")
            self.hang_up()
            if transaction.wish != "commit":
                yield from self._end(transaction, wants_commit=False)
            yield from self._initialise(keeps_id=True)

    # ---- the coordinator -----------------------------------------------------------------------------------

    def _ask_coordinator(self, request: Any, error_in: Any) -> Generator[Ask | Wait, Any, Any]:
        """The response, once it is neither that of a wrong coordinator, nor of one that is busy with the id.

        Raises:
            FencedError: this producer is not the last one.
        """
        while True:
            if self.coordinator is None:
                self.coordinator = yield from self.find(self.name, TRANSACTION_KEY)
            response = yield from self.ask(self.coordinator, request)
            if response is None:
                self.coordinator = None
                continue
            error = error_in(response)
            if error in FENCED:
                raise FencedError
            if error in MOVED:
                self.coordinator = None
                yield Wait(RETRY_MS)
            elif error is ErrorCode.concurrent_transactions:
                yield Wait(AGAIN_MS)
            else:
                return response

    def _add(self, partitions: list[TopicPartition]) -> Script:
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for name, number in partitions:
            topics.setdefault(name, AddPartitionsToTxnTopic(name=name)).partitions.append(number)
        producer_id, epoch = self._producer
        addition = AddPartitionsToTxnTransaction(
            transactional_id=self.name,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=list(topics.values()),
        )
        request = AddPartitionsToTxnRequest(transactions=[addition])
        response = yield from self._ask_coordinator(request, _error_of_addition)
        if _error_of_addition(response) is not ErrorCode.none:
            raise GaveUpError

    def _end(self, transaction: Transaction, *, wants_commit: bool) -> Script:
        transaction.wish = "commit" if wants_commit else "abort"
        self.tell(f"wants {transaction.name} to {transaction.wish}")
        producer_id, epoch = self._producer
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=wants_commit,
        )
        response = yield from self._ask_coordinator(request, lambda response: response.error_code)
        self.tell(f"{transaction.wish} of {transaction.name}: {response.error_code.name}")
        if response.error_code is not ErrorCode.none:
            self._rules.on_end_refused(transaction, response.error_code.name)
            return
        self._rules.on_ended(transaction)
        self.commits += wants_commit

    # ---- batches -------------------------------------------------------------------------------------------

    def _write(self, transaction: Transaction) -> Script:
        there = [one for one in self._partitions if one in self._place.witness.truths] or self._partitions
        count = self._draw.randint(1, min(self.plan.partitions_max, len(there)))
        chosen = sorted(self._draw.sample(there, count))
        for partitions in (chosen[:1], chosen[1:]):
            if partitions:
                yield from self._add(partitions)
                batches = [
                    self._make(transaction, where)
                    for where in partitions
                    for _ in range(self._draw.randint(1, self.plan.batches_max))
                ]
                yield from self._send_all(transaction, batches)


def _error_of_addition(response: Any) -> ErrorCode:
    """The first error, of the request or of a partition."""
    error: ErrorCode = response.error_code
    for transaction in response.results_by_transaction:
        for topic in transaction.topic_results:
            for one in topic.results_by_partition:
                if error is ErrorCode.none:
                    error = one.partition_error_code
    return error
