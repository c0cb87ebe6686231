"""Producers without idempotence: each batch is sent once.

Some seeds have some of them (``plans/client_mix.py``).
"""

from typing import Final

from simulation.clients.client import PRODUCE_TIMEOUT_MS, Client, Workplace
from simulation.recorder import SentBatch
from simulation.truth import PartitionTruth, entry_of
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import ACKS_ALL
from sparklog.records.envelope import build_envelope, parse_header
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.kafka.kafka_payload import records_of
from sparklog.wire.messages.data.produce import (
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)

REFUSED_BEFORE: Final = (ErrorCode.not_leader_or_follower, ErrorCode.unknown_topic_or_partition)
"""With acks=1 these say that nothing was appended. With acks=all they may come while an append waits."""

NEVER_TAKEN: Final = (
    ErrorCode.not_enough_replicas,
    ErrorCode.corrupt_message,
    ErrorCode.invalid_record,
)
"""Whatever the acks, these say that nothing was appended; the last two because a bit flipped on the way."""


class PlainProducer(Client):
    """Sends each batch once, whatever becomes of it, and does not wait for one before it sends the next."""

    def __init__(
        self, place: Workplace, name: str, topic_partition: TopicPartition, *, acks: int, interval_ms: float
    ) -> None:
        super().__init__(place, name, topic_partition)
        self.acks = acks
        self.is_stopping = False
        self.waiting = 0
        self._interval_ms = interval_ms
        self._sent = 0

    def start(self) -> None:
        super().start()
        self._send_later()

    def go_on(self) -> None:
        """It sends by the clock alone."""
        if self._leader is None:
            self.find_leader()

    def _send_later(self) -> None:
        self.later(self._draw.expovariate(1 / self._interval_ms), self._send)

    def _send(self) -> None:
        if self.is_stopping:
            return
        if self._leader is None:
            self.find_leader()
        else:
            self._produce(self._leader)
        self._send_later()

    def _produce(self, leader: str) -> None:
        batch = self._batch()
        record = SentBatch(
            self.name,
            self.name,
            self.topic_partition,
            self.acks,
            False,
            self._sent,
            1,
            entry_of(parse_header(batch)),
        )
        self._sent += 1
        record.invoked_us = self._place.schedule.now_us
        self._place.recorder.begin(record)
        data = ProducePartition(index=self.topic_partition.partition, records=batch)
        request = ProduceRequest(
            acks=self.acks,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[ProduceTopic(name=self.topic_partition.topic, partition_data=[data])],
        )
        if self.acks == 0:
            self._place.network.tell(self.process, self.name, leader, request)
            self._place.recorder.end(record, "ok")
            if self._sent % 8 == 0:
                self._leader = None  # nobody would tell it of another
            return
        self.waiting += 1
        truth = self._place.witness.truths.get(self.topic_partition)

        def answered(response: ProduceResponse) -> None:
            self._answered(record, response)
            self._show(record, truth)

        self.call(
            leader,
            request,
            answered,
            lambda error: self._given_up(record, str(error)),
        )

    def _batch(self) -> bytes:
        """Its records tell it from every other, as it has no sequence."""
        now_ms = self.process.wall_ms()
        value = b"%s/%d" % (self.name.encode(), self._sent)
        rows = build_records_batch([Record(value=value, timestamp_ms=now_ms)], now_ms=now_ms)
        return build_envelope(
            records_of(rows, parse_header(rows)),
            attributes=0,
            record_count=1,
            last_offset_delta=0,
            base_timestamp_ms=now_ms,
            max_timestamp_ms=now_ms,
        )

    def _answered(self, record: SentBatch, response: ProduceResponse) -> None:
        self.waiting -= 1
        answer = response.responses[0].partition_responses[0]
        error = answer.error_code
        if error is ErrorCode.none:
            self._place.acknowledged(record, answer.base_offset)
            return
        is_refused = error in NEVER_TAKEN or (self.acks == 1 and error in REFUSED_BEFORE)
        if is_refused:
            self._place.witness.marks.reach("a send was refused for good")
        self._place.recorder.end(record, "fail" if is_refused else "info", error=error.name)
        self._leader = None

    def _show(self, record: SentBatch, sent_to: PartitionTruth | None) -> None:
        """To the witness, if it was acknowledged, and its topic was not deleted meanwhile."""
        truth = self._place.witness.truths.get(self.topic_partition)
        if record.outcome == "ok" and self.acks == ACKS_ALL and truth is not None and truth is sent_to:
            self._place.witness.on_ack(truth, record.entry, record.offset)

    def _given_up(self, record: SentBatch, error: str) -> None:
        self.waiting -= 1
        self._place.recorder.end(record, "info", error=error)
        self._leader = None
