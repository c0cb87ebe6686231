"""Sends the batches of a transaction: each to the leader of its partition, in order, until it is taken.

What was refused for good, or was not taken for too long, is given up: its transaction must be aborted.
"""

from dataclasses import dataclass
from typing import Any, Final

from simulation.clients.client import PRODUCE_TIMEOUT_MS, Workplace
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
from simulation.recorder import SentBatch
from simulation.schedule import US_PER_MS, dice
from simulation.truth import Entry, PartitionTruth, entry_of
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicId, TopicPartition
from sparklog.model.kafka_numbers import ACKS_ALL
from sparklog.records.envelope import TRANSACTIONAL_BIT, build_envelope, parse_header
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from sparklog.wire.messages.discovery.metadata import MetadataRequest, MetadataRequestTopic

AGAIN_MS: Final = 20
"""Pause before something is asked again that may be taken soon."""

PATIENCE_MS: Final = (0, 0, 2_500)
"""How long a producer tries to have its batches taken, before it aborts. 0: until an answer fails to come."""

FENCED: Final = frozenset(
    {
        ErrorCode.producer_fenced,
        ErrorCode.invalid_producer_epoch,
        ErrorCode.invalid_producer_id_mapping,
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
class Batch:
    where: TopicPartition
    truth: PartitionTruth | None
    """The partition that there was when it was made."""
    entry: Entry
    data: bytes
    record: SentBatch


class BatchSender(ScriptedClient):
    """``records_max`` of a batch. ``is_polite``: whether it tries for as long as there is the topic."""

    payload_kinds: tuple[int, ...] = ()
    """What it announces."""

    def __init__(
        self, place: Workplace, name: str, life: int | str, records_max: int, rules: TransactionRules
    ) -> None:
        self.is_polite = False
        self._rules = rules
        self._records_max = records_max
        self._made = 0
        self._patience_ms = dice(place.seed, f"{name} life {life} loses patience").choice(PATIENCE_MS)
        self._producer = (-1, -1)
        self._sessions = 0
        """How often it was told an identity. Once a coordinator has lost its log it may grant one twice, to
        one process or to two: a session is named after its process and this.
        """
        self._sequences: dict[tuple[TopicPartition, TopicId | None], int] = {}
        self._leaders: dict[TopicPartition, str] = {}
        super().__init__(place, name, life)

    def _make(self, transaction: Transaction, where: TopicPartition) -> Batch:
        truth = self._place.witness.truths.get(where)
        count, now_ms = self._draw.randint(1, self._records_max), self.process.wall_ms()
        numbered = where, None if truth is None else truth.topic_id
        sequence = self._sequences.get(numbered, 0)
        self._sequences[numbered] = sequence + count
        producer_id, epoch = self._producer
        self._made += 1  # batches for two partitions must not be the same to the byte
        data = self._built(count, sequence, now_ms)
        entry = entry_of(parse_header(data))
        self._rules.on_batch(transaction, entry)
        session = f"{producer_id}:{epoch} {self.process.name} {self._sessions}/{numbered[1]}"
        record = SentBatch(self.process.name, session, where, ACKS_ALL, True, entry.sequence, count, entry)
        return Batch(where, truth, entry, data, self._place.recorder.begin(record))

    def _built(self, count: int, sequence: int, now_ms: int) -> bytes:
        """A batch of so many records, with this producer's fields."""
        producer_id, epoch = self._producer
        return build_envelope(
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

    def _send_all(self, transaction: Transaction, batches: list[Batch]) -> Script:
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
                is_hopeless = any(one.where not in self._place.witness.truths for one in batches)
                may_give_up = not self.is_polite or is_hopeless
                if may_give_up and self._place.schedule.now_us > deadline_us:
                    self._give_up(batches)
                    raise GaveUpError
                yield from self._before_sending_again()

    def _before_sending_again(self) -> Script:
        yield Wait(AGAIN_MS)

    def _request(self, batch: Batch) -> ProduceRequest:
        data = ProducePartition(index=batch.where.partition, records=batch.data)
        return ProduceRequest(
            transactional_id=self.name,
            acks=ACKS_ALL,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[ProduceTopic(name=batch.where.topic, partition_data=[data])],
            payload_kinds=self.payload_kinds,
        )

    def _is_taken(self, transaction: Transaction, batch: Batch, response: Any) -> bool:
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

    def _note_taken(self, transaction: Transaction, batch: Batch, base_offset: int, *, is_new: bool) -> None:
        truth = self._place.witness.truths.get(batch.where)
        if truth is not None and truth is not batch.truth:
            # Made for the topic before, or for none: what took it is another one, and counts on from there.
            made_for = None if batch.truth is None else batch.truth.topic_id
            self._sequences[batch.where, truth.topic_id] = self._sequences[batch.where, made_for]
        if truth is None or truth is not batch.truth:
            return
        self._rules.on_acknowledged(transaction, truth, batch.entry)
        if is_new:
            self._place.witness.on_ack(truth, batch.entry, base_offset)

    def _give_up(self, batches: list[Batch]) -> None:
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
