"""Idempotent producers, each to one partition.

A producer keeps several batches in flight. It repeats them in order until each has a definite answer, as real
clients do.
"""

import math
import random
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from simulation.clients.client import PRODUCE_TIMEOUT_MS, RETRY_MS, Client, Workplace
from simulation.clients.payloads import (
    TAKES_ARROW,
    TAKES_RECORDS,
    payload_of,
    payload_of_rows,
)
from simulation.clients.producer_identity import ProducerIdentity
from simulation.invariants.invariant import Violation
from simulation.machines.network import Connection
from simulation.recorder import SentBatch
from simulation.schedule import US_PER_MS, dice
from simulation.truth import Entry, PartitionTruth, Rows, entry_of
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, TopicId, TopicPartition
from sparklog.records.envelope import (
    ARROW_BIT,
    build_envelope,
    parse_header,
)
from sparklog.wire.messages.data.produce import (
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)

KEYS: Final = 6
TOMBSTONES: Final = 0.15
"""Share of the records of a compacted topic that delete their key."""

LOST_SEQUENCE_RETRIES: Final = 5
"""Answers about a gap in sequences after which a producer starts over that may have lost batches."""

IMPATIENT: Final = 0.3
"""Share of the producers that give up what has had no answer for too long, as with ``delivery.timeout.ms``,
and start over, while some of it may still be on its way."""

PATIENCE_MS: Final = (700.0, 2_500.0)

GAPS: Final = (
    ErrorCode.out_of_order_sequence_number,
    ErrorCode.unknown_producer_id,
    ErrorCode.invalid_producer_epoch,
)


@dataclass(slots=True)
class Send:
    """One batch on its way to a definite answer."""

    entry: Entry
    batch: bytes
    record: SentBatch
    life: int
    """Which of the producers that replaced one another sends it."""
    number: int
    """How many batches its producer had begun before."""
    in_flight: bool = False
    truth: PartitionTruth | None = None
    """The partition that there was when it was sent last."""
    led_in: int = -1
    """The epoch in which that broker led to which it was sent last, -1: it did not lead."""


class Producer(Client):
    """Sends until it is told to stop; ``waiting`` are the batches without a definite answer."""

    kind = "producer"
    payload_kinds: Collection[int] | None = None
    """What it announces; None: as it writes Arrow or not."""

    def __init__(
        self,
        place: Workplace,
        number: int,
        topic_partition: TopicPartition,
        *,
        acks: int,
        in_flight_max: int,
        interval_ms: float,
        records_max: int,
        has_keys: bool = False,
        crash_every_ms: float = 0.0,
        arrow_share: float = 0.0,
    ) -> None:
        super().__init__(place, f"{self.kind}-{number}", topic_partition)
        self.acks = acks
        self.acknowledged = 0
        self.given_up = 0
        self.is_stopping = False
        self.waiting: deque[Send] = deque()
        self.identity = ProducerIdentity(place, self, self.go_on)
        self._sequence = 0
        self._begun = 0
        self._in_flight_max = in_flight_max
        self._interval_ms = interval_ms
        self._records_max = records_max
        self._has_keys = has_keys
        self._arrow_share = arrow_share
        self._arrow_dice = dice(place.seed, f"{self.name} writes arrow")
        self._in_flight = 0
        self._connections: set[Connection] = set()
        """Over which those in flight were sent; several if one broke and nobody has told us yet."""
        self._topics: list[PartitionTruth | None] = []
        """To which partitions, of topics of one name, this identity has sent; None: there was none."""
        self._must_repeat = False
        self._gaps = 0
        self._patience_us = _draw_patience_us(dice(place.seed, f"{self.name} loses patience"))
        self._crash_every_ms = crash_every_ms
        self._life = 0

    @property
    def process_name(self) -> str:
        """Another one after each crash."""
        return f"{self.name}~{self._life}" if self._life else self.name

    def start(self) -> None:
        super().start()
        self.process.soon(self.identity.ask)
        self._make_later()
        if self._crash_every_ms:
            self._crash_later()

    def _crash_later(self) -> None:
        self.later(self._draw.expovariate(1 / self._crash_every_ms), self._crash)

    def _crash(self) -> None:
        """Another one takes its place, and knows nothing of it. What is under way may still arrive."""
        if self.is_stopping:
            return
        self._place.story.tell(
            self.name, f"crashes, and is replaced; {len(self.waiting)} batches had no answer"
        )
        self._place.witness.marks.reach("a producer crashed and was replaced")
        for send in self.waiting:
            if send.in_flight:
                self._place.witness.marks.reach("a producer crashed before it was answered")
        self._life += 1
        self._in_flight, self._must_repeat, self._leader = 0, False, None
        self._forget()
        self.identity.ask()
        self._crash_later()

    def _make_later(self) -> None:
        self.later(self._draw.expovariate(1 / self._interval_ms), self._make)

    def _make(self) -> None:
        """A new batch, unless the first without an answer is too many before it: brokers remember five of a
        producer, so that whichever is sent again is known. Later ones that were answered count, too. And
        unless it does not know yet who it is.
        """
        if self.is_stopping:
            return
        if self._has_lost_patience():
            self._place.story.tell(
                self.name, f"has waited too long, and gives up {len(self.waiting)} batches"
            )
            self._place.witness.marks.reach("a producer gave up what had had no answer for long")
            self._hang_up()
            self._start_over()
        has_room = not self.waiting or self._begun - self.waiting[0].number < self._in_flight_max
        if has_room and self.identity.is_known:
            self.send_a_batch()
        self._make_later()

    def _hang_up(self) -> None:
        """What is on its way over these connections may still arrive, behind what comes over others."""
        for connection in sorted(self._connections, key=lambda one: one.number):
            connection.fail("its client has waited too long")

    def _has_lost_patience(self) -> bool:
        if not self.waiting or self.waiting[0].record.invoked_us < 0:
            return False
        return self._place.schedule.now_us - self.waiting[0].record.invoked_us > self._patience_us

    def send_a_batch(self) -> None:
        count = self._draw.randint(1, self._records_max)
        now_ms = self.process.wall_ms()
        rows = self._rows(count) if self._has_keys else ()
        batch = self._built(count, rows, now_ms)
        self._sequence += count
        send = self._sent(batch, count, rows)
        if rows:
            self._place.witness.sent[send.entry.send] = rows
        header = parse_header(batch)
        if header.is_arrow and self.payload_kinds is None:
            self._place.recorder.arrow[send.entry.send] = header
        self.waiting.append(send)
        self.go_on()

    def _built(self, count: int, rows: Rows, now_ms: int) -> bytes:
        """The next batch, of ``count`` records; ``rows`` are those of a compacted topic."""
        is_arrow = self._arrow_dice.random() < self._arrow_share
        if self._has_keys:
            payload = payload_of_rows(rows, now_ms, is_arrow=is_arrow)
        else:
            payload = payload_of(count, is_arrow=is_arrow)
        return build_envelope(
            payload,
            attributes=ARROW_BIT if is_arrow else 0,
            record_count=count,
            last_offset_delta=count - 1,
            base_timestamp_ms=now_ms,
            max_timestamp_ms=now_ms,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            base_sequence=self._sequence,
        )

    def _sent(self, batch: bytes, count: int, rows: Rows) -> Send:
        entry = entry_of(parse_header(batch))
        record = SentBatch(
            self.process_name,
            str(self.identity),
            self.topic_partition,
            self.acks,
            True,
            entry.sequence,
            count,
            entry,
            rows,
        )
        self._begun += 1
        return Send(entry, batch, self._place.recorder.begin(record), self._life, self._begun - 1)

    def _rows(self, count: int) -> Rows:
        """Few keys, values that are all different, and some tombstones."""
        return tuple(
            (
                b"key %d" % self._draw.randrange(KEYS),
                None
                if self._draw.random() < TOMBSTONES
                else b"%s/%d" % (str(self.identity).encode(), self._sequence + nth),
            )
            for nth in range(count)
        )

    def go_on(self) -> None:
        if self._must_repeat and self._in_flight == 0:
            self._must_repeat = False
            for send in self.waiting:
                send.in_flight = False
        if self._must_repeat or not self.waiting:
            return
        if self._leader is None:
            self.find_leader()
            return
        for send in self.waiting:
            if not send.in_flight:
                self._send(send)

    def _send(self, send: Send) -> None:
        send.in_flight = True
        if send.record.invoked_us < 0:
            send.record.invoked_us = self._place.schedule.now_us
        send.truth = self._place.witness.truths.get(self.topic_partition)
        if not any(send.truth is known for known in self._topics):
            self._topics.append(send.truth)
        if self._in_flight == 0:
            self._connections.clear()
        self._in_flight += 1
        assert self._leader is not None
        send.led_in = self._place.leads_in(self._leader, self.topic_partition)
        data = ProducePartition(index=self.topic_partition.partition, records=send.batch)
        request = ProduceRequest(
            acks=self.acks,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[ProduceTopic(name=self.topic_partition.topic, partition_data=[data])],
            payload_kinds=self._announced,
        )
        call = self.call(
            self._leader,
            request,
            lambda response: self._answered(send, response),
            lambda error: self._repeat(send.life),
        )
        if call is not None:
            self._connections.add(call.connection)

    @property
    def _announced(self) -> tuple[int, ...]:
        if self.payload_kinds is not None:
            return tuple(self.payload_kinds)
        return TAKES_ARROW if self._arrow_share else TAKES_RECORDS

    def _answered(self, send: Send, response: ProduceResponse) -> None:
        if send.life != self._life:
            return
        answer = response.responses[0].partition_responses[0]
        if answer.error_code not in (ErrorCode.none, ErrorCode.duplicate_sequence_number):
            self._refused(send, answer.error_code)
            return
        self._in_flight -= 1
        self._gaps = 0
        if send in self.waiting:
            self.waiting.remove(send)
            self.acknowledged += 1
            self._place.acknowledged(send.record, answer.base_offset)
            self._place.story.tell(
                self.name, f"was told that {send.entry.sequence} is at {answer.base_offset}"
            )
            truth = self._place.witness.truths.get(self.topic_partition)
            is_same = truth is not None and truth is send.truth  # its topic was not deleted meanwhile
            if self.acks == -1 and answer.error_code is ErrorCode.none and truth is not None and is_same:
                self._place.witness.on_ack(truth, send.entry, answer.base_offset)
        self.go_on()

    def _refused(self, send: Send, error: ErrorCode) -> None:
        if error in GAPS:
            self._gaps += 1
            truth = self._place.witness.truths.get(self.topic_partition)
            has_lost = truth is not None and truth.lossy_epoch >= 0
            may_start_over = self.acks == 1 or has_lost
            if error is ErrorCode.out_of_order_sequence_number and not may_start_over:
                self._look_at_gap(send, truth)
            if may_start_over and self._gaps > LOST_SEQUENCE_RETRIES:
                if self.acks == 1:
                    self._place.witness.marks.reach("an acks=1 producer lost batches with a leader")
                self._start_over()
        self._repeat(self._life)

    def _look_at_gap(self, send: Send, truth: PartitionTruth | None) -> None:
        """Batches were sent in order over one connection, and nothing that was acknowledged is lost: those in
        front are in the log, or were refused, and then this one should have been refused alike. librdkafka
        takes another epoch at such an answer, in all partitions, and sends again what may be in their logs.

        A leader that was replaced, and has not heard of it, knows no better, also if it is elected again.
        """
        if send not in self.waiting or truth is None or len(self._connections) != 1:
            return
        leads = truth.state is not None and send.led_in == truth.state.leader_epoch
        if leads and all(topic is truth for topic in self._topics):
            what = f"{self.topic_partition}: {self.name} skipped nothing, and is told that it did"
            raise Violation("GapsAreReal", what)

    def means_another(self, topic_id: TopicId) -> bool:
        """Whether it knows of an earlier topic of this name only. It would find out by its next refusal, and
        give up what was refused."""
        return self._topic_id not in (NO_TOPIC_ID, topic_id)

    def topic_was_made_anew(self) -> None:
        self._start_over()

    def _start_over(self) -> None:
        """Batches are gone, by a change of leader or with their topic, or refused for good: go on under a new
        id, or in another epoch.
        """
        for send in self.waiting:
            self._place.recorder.end(send.record, "info", error="given up")
        self._forget()
        self.identity.start_over()

    def _forget(self) -> None:
        self.given_up += len(self.waiting)
        self.waiting.clear()
        self._topics.clear()
        self._sequence = 0
        self._gaps = 0

    def _repeat(self, life: int) -> None:
        """Something went wrong: when nothing is in flight any more, send all again, in order."""
        if life != self._life:
            return
        self._in_flight -= 1
        self._must_repeat = True
        self._leader = None
        if self._in_flight == 0:
            self.later(RETRY_MS, self.go_on)


def _draw_patience_us(draw: random.Random) -> float:
    return draw.uniform(*PATIENCE_MS) * US_PER_MS if draw.random() < IMPATIENT else math.inf
