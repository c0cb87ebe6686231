"""The workload: idempotent producers, each to one partition, and consumers that read from the beginning.

They speak Kafka's protocol to whichever broker they believe to lead, ask any broker for metadata when that
turns out wrong, and try again until they get a definite answer, as real clients do. A producer keeps several
batches in flight and repeats them in order.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.parts import read_parts
from sparklog.records.envelope import build_envelope, parse_header, split
from sparklog.records.kafka import records_of
from sparklog.records.kafka_encode import Record, build_records_batch
from sparklog.testing.simulation.network import Network
from sparklog.testing.simulation.schedule import US_PER_MS, Process, Schedule, dice
from sparklog.testing.simulation.story import Story
from sparklog.testing.simulation.truth import Entry, entry_of
from sparklog.testing.simulation.witness import Witness
from sparklog.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from sparklog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from sparklog.wire.messages.produce import (
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)

RETRY_MS: Final = 40
CALL_TIMEOUT_MS: Final = 1_500
PRODUCE_TIMEOUT_MS: Final = 1_000
FETCH_WAIT_MS: Final = 150
LOST_SEQUENCE_RETRIES: Final = 5
"""Answers about a sequence gap after which a producer with acks=1 starts over: its batches may be gone."""

GAPS: Final = (
    ErrorCode.out_of_order_sequence_number,
    ErrorCode.unknown_producer_id,
    ErrorCode.invalid_producer_epoch,
)


@dataclass(slots=True)
class Workplace:
    """What all clients share. ``topic_ids`` and ``hosts`` are what bootstrapping tells a real client."""

    schedule: Schedule
    network: Network
    witness: Witness
    story: Story
    hosts: tuple[str, ...]
    topic_id: Any
    seed: int


class Client:
    """Finds the leader of its partition."""

    def __init__(self, place: Workplace, name: str, topic_partition: TopicPartition) -> None:
        self.name = name
        self.topic_partition = topic_partition
        self.process = Process(place.schedule, name)
        self._place = place
        self._draw = dice(place.seed, name)
        self._leader: str | None = None
        self._leader_epoch = -1
        self._is_asking = False

    def start(self) -> None:
        self.process.soon(self.go_on)

    def go_on(self) -> None:
        raise NotImplementedError

    def later(self, delay_ms: float, action: Callable[[], None]) -> None:
        self._place.schedule.after(int(delay_ms * US_PER_MS), self.process, action)

    def call(
        self,
        host: str,
        message: Any,
        on_response: Callable[[Any], None],
        on_failure: Callable[[OSError], None],
    ) -> None:
        self._place.network.call(
            self.process,
            self.name,
            host,
            message,
            timeout_ms=CALL_TIMEOUT_MS,
            on_response=on_response,
            on_failure=on_failure,
        )

    def find_leader(self) -> None:
        """Ask some broker; ``go_on`` follows."""
        if self._is_asking:
            return
        self._is_asking = True
        self._leader = None
        topic = MetadataRequestTopic(name=self.topic_partition.topic)
        request = MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
        self.call(self._draw.choice(self._place.hosts), request, self._found, lambda error: self._not_found())

    def _found(self, response: MetadataResponse) -> None:
        hosts = {broker.node_id: broker.host for broker in response.brokers}
        for topic in response.topics:
            for partition in topic.partitions:
                if partition.partition_index == self.topic_partition.partition:
                    self._leader = hosts.get(partition.leader_id)
                    self._leader_epoch = partition.leader_epoch
        if self._leader is None:
            self._not_found()
            return
        self._is_asking = False
        self.go_on()

    def _not_found(self) -> None:
        self._is_asking = False
        self.later(RETRY_MS, self.find_leader)


@dataclass(slots=True)
class Send:
    """One batch on its way to a definite answer."""

    entry: Entry
    batch: bytes
    in_flight: bool = False


class Producer(Client):
    """Sends until it is told to stop; ``waiting`` are the batches without a definite answer."""

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
    ) -> None:
        super().__init__(place, f"producer-{number}", topic_partition)
        self.acks = acks
        self.acknowledged = 0
        self.given_up = 0
        self.is_stopping = False
        self.waiting: deque[Send] = deque()
        self._number = number
        self._identities = 0
        self._sequence = 0
        self._in_flight_max = in_flight_max
        self._interval_ms = interval_ms
        self._records_max = records_max
        self._in_flight = 0
        self._must_repeat = False
        self._gaps = 0

    @property
    def producer_id(self) -> int:
        return 1_000 * self._number + self._identities

    def start(self) -> None:
        super().start()
        self._make_later()

    def _make_later(self) -> None:
        self.later(self._draw.expovariate(1 / self._interval_ms), self._make)

    def _make(self) -> None:
        """A new batch, unless too many wait already."""
        if self.is_stopping:
            return
        if len(self.waiting) < self._in_flight_max:
            count = self._draw.randint(1, self._records_max)
            now_ms = self.process.wall_ms()
            batch = build_envelope(
                payload_of(count),
                attributes=0,
                record_count=count,
                last_offset_delta=count - 1,
                base_timestamp_ms=now_ms,
                max_timestamp_ms=now_ms,
                producer_id=self.producer_id,
                producer_epoch=0,
                base_sequence=self._sequence,
            )
            self._sequence += count
            self.waiting.append(Send(entry_of(parse_header(batch)), batch))
            self.go_on()
        self._make_later()

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
        self._in_flight += 1
        data = ProducePartition(index=self.topic_partition.partition, records=send.batch)
        request = ProduceRequest(
            acks=self.acks,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[ProduceTopic(name=self.topic_partition.topic, partition_data=[data])],
        )
        assert self._leader is not None
        self.call(
            self._leader,
            request,
            lambda response: self._answered(send, response),
            lambda error: self._repeat(),
        )

    def _answered(self, send: Send, response: ProduceResponse) -> None:
        answer = response.responses[0].partition_responses[0]
        if answer.error_code not in (ErrorCode.none, ErrorCode.duplicate_sequence_number):
            self._refused(answer.error_code)
            return
        self._in_flight -= 1
        self._gaps = 0
        if send in self.waiting:
            self.waiting.remove(send)
            self.acknowledged += 1
            self._place.story.tell(
                self.name, f"was told that {send.entry.sequence} is at {answer.base_offset}"
            )
            if self.acks == -1 and answer.error_code is ErrorCode.none:
                self._place.witness.on_ack(self.topic_partition, send.entry, answer.base_offset)
        self.go_on()

    def _refused(self, error: ErrorCode) -> None:
        if error in GAPS:
            self._gaps += 1
            if self.acks == 1 and self._gaps > LOST_SEQUENCE_RETRIES:
                self._start_over()
        self._repeat()

    def _start_over(self) -> None:
        """With acks=1 a change of leader may have cost batches: go on under a new identity."""
        self.given_up += len(self.waiting)
        self.waiting.clear()
        self._identities += 1
        self._sequence = 0
        self._gaps = 0

    def _repeat(self) -> None:
        """Something went wrong: when nothing is in flight any more, send all again, in order."""
        self._in_flight -= 1
        self._must_repeat = True
        self._leader = None
        if self._in_flight == 0:
            self.later(RETRY_MS, self.go_on)


class Consumer(Client):
    """Reads everything, from the beginning, over and over to the end."""

    def __init__(self, place: Workplace, number: int, topic_partition: TopicPartition) -> None:
        super().__init__(place, f"consumer-{number}", topic_partition)
        self.offset = 0
        self._last_epoch = -1

    def start_again(self) -> None:
        """Read once more from the beginning."""
        self.offset, self._last_epoch = 0, -1

    def go_on(self) -> None:
        if self._leader is None:
            self.find_leader()
            return
        asked = FetchPartition(
            partition=self.topic_partition.partition,
            current_leader_epoch=self._leader_epoch,
            fetch_offset=self.offset,
            last_fetched_epoch=self._last_epoch,
            partition_max_bytes=1 << 20,
        )
        request = FetchRequest(
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=1,
            topics=[FetchTopic(topic_id=self._place.topic_id, partitions=[asked])],
        )
        offset = self.offset
        self.call(
            self._leader,
            request,
            lambda response: self._answered(offset, response),
            lambda error: self.find_leader(),
        )

    def _answered(self, offset: int, response: FetchResponse) -> None:
        data = response.responses[0].partitions[0] if response.responses else None
        failed = data is None or data.error_code is not ErrorCode.none
        if data is None or failed or (data.diverging_epoch is not None and data.diverging_epoch.epoch >= 0):
            self._leader = None
            self.later(RETRY_MS, self.find_leader)
            return
        if offset == self.offset:
            self._take(read_parts(data.records))
        self.later(self._draw.uniform(1, 10), self.go_on)

    def _take(self, records: bytes) -> None:
        for _, header in split(records):
            if header.next_offset <= self.offset:
                continue
            entry = entry_of(header)
            self._place.story.tell(self.name, f"read {entry}")
            self._place.witness.on_read(self.topic_partition, entry)
            self.offset, self._last_epoch = entry.next_offset, entry.leader_epoch


_PAYLOADS: Final[dict[int, bytes]] = {}


def payload_of(count: int) -> bytes:
    """The records of a batch; which batch it is stands in its envelope."""
    if count not in _PAYLOADS:
        records = [Record(value=b"value", timestamp_ms=0) for _ in range(count)]
        batch = build_records_batch(records, now_ms=0)
        _PAYLOADS[count] = records_of(batch, parse_header(batch))
    return _PAYLOADS[count]
