"""A transactional producer, one process: transaction after transaction, as Kafka's clients do.

    InitProducerId -> AddPartitionsToTxn -> batches, several in flight -> EndTxn: commit or abort -> ...
          ^                                      |                            |
          +---- a batch is given up: abort ------+         fenced: ends ------+

It repeats what has had no answer, over another connection; what was on its way over the old one may arrive
late. A process that was replaced, and does not know, goes on until it is told.
"""

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any, Final

from simulation.clients.client import PRODUCE_TIMEOUT_MS, RETRY_MS, Workplace
from simulation.clients.payloads import payload_of
from simulation.clients.transactions.script import (
    Ask,
    FencedError,
    GaveUpError,
    Script,
    ScriptedClient,
    Wait,
)
from simulation.invariants.transactions import Transaction, TransactionRules
from simulation.plans.transactions import TransactionPlan
from simulation.recorder import SentBatch
from simulation.schedule import US_PER_MS, dice
from simulation.truth import Entry, PartitionTruth, entry_of
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicId, TopicPartition
from sparklog.model.kafka_numbers import ACKS_ALL
from sparklog.records.envelope import TRANSACTIONAL_BIT, build_envelope, parse_header
from sparklog.wire.messages.data.init_producer_id import InitProducerIdRequest
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from sparklog.wire.messages.discovery.find_coordinator import TRANSACTION_KEY
from sparklog.wire.messages.discovery.metadata import MetadataRequest, MetadataRequestTopic
from sparklog.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from sparklog.wire.messages.transactions.end_txn import EndTxnRequest

AGAIN_MS: Final = 20
"""Pause after CONCURRENT_TRANSACTIONS, and before a batch is sent again."""

PATIENCE_MS: Final = (0, 0, 2_500)
"""How long a producer tries to have its batches taken, before it aborts. 0: until an answer fails to come."""

FENCED: Final = frozenset(
    {
        ErrorCode.producer_fenced,
        ErrorCode.invalid_producer_epoch,
        ErrorCode.invalid_producer_id_mapping,
    }
)
MOVED: Final = frozenset(
    {
        ErrorCode.not_coordinator,
        ErrorCode.coordinator_not_available,
        ErrorCode.coordinator_load_in_progress,
    }
)
SENT_AGAIN: Final = frozenset(
    {
        ErrorCode.not_leader_or_follower,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.corrupt_message,
        ErrorCode.not_enough_replicas,
        ErrorCode.not_enough_replicas_after_append,
        ErrorCode.request_timed_out,
        ErrorCode.kafka_storage_error,
        ErrorCode.out_of_order_sequence_number,
    }
)
TAKEN: Final = frozenset({ErrorCode.none, ErrorCode.duplicate_sequence_number})


@dataclass(slots=True)
class _Batch:
    where: TopicPartition
    truth: PartitionTruth | None
    """The partition that there was when it was made."""
    entry: Entry
    data: bytes
    record: SentBatch


class TransactionalProducer(ScriptedClient):
    """``is_idle`` while it has no transaction; ``commits`` counts those that it was told of."""

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
        self.is_polite = False
        """Whether it ends every transaction that it begins."""
        self.is_idle = True
        self.commits = 0
        self._rules = rules
        self._partitions = list(partitions)
        self._life = life
        self._number = 0
        self._last: Transaction | None = None
        self._made = 0
        self._patience_ms = dice(place.seed, f"{name} life {life} loses patience").choice(PATIENCE_MS)
        self._producer = (-1, -1)
        self._sequences: dict[tuple[TopicPartition, TopicId | None], int] = {}
        self._leaders: dict[TopicPartition, str] = {}
        super().__init__(place, name, life)

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

    def _make(self, transaction: Transaction, where: TopicPartition) -> _Batch:
        truth = self._place.witness.truths.get(where)
        count, now_ms = self._draw.randint(1, self.plan.records_max), self.process.wall_ms()
        numbered = where, None if truth is None else truth.topic_id
        sequence = self._sequences.get(numbered, 0)
        self._sequences[numbered] = sequence + count
        producer_id, epoch = self._producer
        self._made += 1  # batches for two partitions must not be the same to the byte
        data = build_envelope(
            payload_of(count),
            attributes=TRANSACTIONAL_BIT,
            record_count=count,
            last_offset_delta=count - 1,
            base_timestamp_ms=now_ms - self._made % 1_000,
            max_timestamp_ms=now_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        entry = entry_of(parse_header(data))
        self._rules.on_batch(transaction, entry)
        session = f"{producer_id}:{epoch}/{numbered[1]}"
        record = SentBatch(self.process.name, session, where, ACKS_ALL, True, entry.sequence, count, entry)
        return _Batch(where, truth, entry, data, self._place.recorder.begin(record))

    def _send_all(self, transaction: Transaction, batches: list[_Batch]) -> Script:
        """All at once, in order; those that were not taken again, and in order, until none is left.

        Raises:
            GaveUpError: it took too long, or one was refused for good.
        """
        deadline_us = self._place.schedule.now_us + self._patience_ms * US_PER_MS
        while batches:
            if any(one.where not in self._leaders for one in batches):
                yield from self._find_leaders({one.where for one in batches})
            sent = [one for one in batches if one.where in self._leaders]
            if sent:
                for one in sent:
                    if one.record.invoked_us < 0:
                        one.record.invoked_us = self._place.schedule.now_us
                responses = yield Ask(tuple((self._leaders[one.where], self._request(one)) for one in sent))
                answers = zip(sent, responses, strict=True)
                taken = {id(one) for one, response in answers if self._is_taken(transaction, one, response)}
                batches = [one for one in batches if id(one) not in taken]
            if batches:
                if not self.is_polite and self._place.schedule.now_us > deadline_us:
                    self._give_up(batches)
                    raise GaveUpError
                yield Wait(AGAIN_MS)

    def _request(self, batch: _Batch) -> ProduceRequest:
        data = ProducePartition(index=batch.where.partition, records=batch.data)
        return ProduceRequest(
            transactional_id=self.name,
            acks=ACKS_ALL,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[ProduceTopic(name=batch.where.topic, partition_data=[data])],
        )

    def _is_taken(self, transaction: Transaction, batch: _Batch, response: Any) -> bool:
        """Raises GaveUpError or FencedError if it never will be."""
        if response is None:
            self._leaders.pop(batch.where, None)
            return False
        answer = response.responses[0].partition_responses[0]
        error = answer.error_code
        if error in TAKEN:
            self._place.acknowledged(batch.record, answer.base_offset)
            self.tell(f"was told that {batch.entry.sequence} is at {answer.base_offset} of {batch.where}")
            self._note_taken(transaction, batch, answer.base_offset, is_new=error is ErrorCode.none)
            return True
        self.tell(f"is told {error.name} of {batch.entry.sequence} for {batch.where}")
        if error in SENT_AGAIN:
            self._leaders.pop(batch.where, None)
            return False
        self._give_up([batch])
        if error in FENCED:
            raise FencedError
        raise GaveUpError

    def _note_taken(self, transaction: Transaction, batch: _Batch, base_offset: int, *, is_new: bool) -> None:
        truth = self._place.witness.truths.get(batch.where)
        if truth is None or truth is not batch.truth:
            return
        self._rules.on_acknowledged(transaction, truth, batch.entry)
        if is_new:
            self._place.witness.on_ack(truth, batch.entry, base_offset)

    def _give_up(self, batches: list[_Batch]) -> None:
        for one in batches:
            self._place.recorder.end(one.record, "info", error="given up")

    def _find_leaders(self, partitions: set[TopicPartition]) -> Script:
        names = sorted({one.topic for one in partitions})
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
        )
        response = yield from self.ask(self._draw.choice(self._place.hosts), request)
        if response is None:
            return
        hosts = {broker.node_id: broker.host for broker in response.brokers}
        for topic in response.topics:
            for one in topic.partitions:
                where = TopicPartition(topic.name or "", one.partition_index)
                if where in partitions and one.leader_id in hosts:
                    self._leaders[where] = hosts[one.leader_id]


def _error_of_addition(response: Any) -> ErrorCode:
    """The first error, of the request or of a partition."""
    error: ErrorCode = response.error_code
    for transaction in response.results_by_transaction:
        for topic in transaction.topic_results:
            for one in topic.results_by_partition:
                if error is ErrorCode.none:
                    error = one.partition_error_code
    return error
