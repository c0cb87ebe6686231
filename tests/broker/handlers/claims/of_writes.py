"""Claims of members, runs and versions of an atomic write, and of producer ids without any transaction."""

import itertools

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.write_ids import MEMBER_EPOCH, producer_id_of, write_and_member
from sparklog.model.write_outcomes import EndOutcome, MemberState, OpenOutcome
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.wire.messages.data.init_producer_id import InitProducerIdRequest
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from sparklog.wire.messages.writes.end_write import EndWriteRequest
from sparklog.wire.messages.writes.open_write import OpenWriteRequest, OpenWriteTopic
from tests.broker.handlers.transactions.conftest import RETRIED, TIMEOUT_MS
from tests.waiting import until

NONE = ErrorCode.none
NEVER_GIVEN = 9_999_999
numbers = itertools.count()


def produced(wire, place, transactional_id, identity, sequence, value):
    batch = build_records_batch(
        [Record(value=value)],
        now_ms=1_000,
        producer_id=identity[0],
        producer_epoch=identity[1],
        base_sequence=sequence,
        is_transactional=transactional_id is not None,
    )
    data = [ProducePartition(index=place.partition, records=batch)]
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=TIMEOUT_MS,
        topic_data=[ProduceTopic(name=place.topic, partition_data=data)],
    )
    leader = wire.cluster.wait_for_leader(*place)
    return wire.call(leader, request).responses[0].partition_responses[0].error_code


class IdempotentProducer:
    """The owner has written one batch under its producer id."""

    def __init__(self, cluster, wire):
        self.wire, self.place = wire, TopicPartition(f"idempotent-{next(numbers)}", 0)
        cluster.create_topic(self.place.topic)
        answer = wire.call(1, InitProducerIdRequest())
        self.id = answer.producer_id
        self.epoch = 1
        assert produced(wire, self.place, None, (self.id, 1), 0, b"before") is NONE

    def claimed(self, claim):
        return {
            "an id that was never given": (NEVER_GIVEN + next(numbers), 0),
            "an epoch that was never given": (self.id, self.epoch + 1),
            "an old epoch": (self.id, self.epoch - 1),
            "the owner as a whole": (self.id, self.epoch),
        }[claim]

    def init_producer_id(self, claim):
        producer_id, producer_epoch = self.claimed(claim)
        request = InitProducerIdRequest(producer_id=producer_id, producer_epoch=producer_epoch)
        answer = self.wire.call(1, request)
        assert answer.producer_id not in (producer_id, self.id)
        assert answer.producer_epoch == 0
        return answer.error_code

    def produce(self, claim):
        sequence = 1 if claim in ("an old epoch", "the owner as a whole") else 0
        return produced(self.wire, self.place, None, self.claimed(claim), sequence, b"claimed")

    def goes_on(self):
        assert produced(self.wire, self.place, None, (self.id, self.epoch), 1, b"after") is NONE
        values = [record.value for record in self.wire.cluster.consume(self.place.topic, at_least=2)]
        assert (values[0], values[-1]) == (b"before", b"after")


class OpenWriteOfApp:
    """The owner is an attempt of version 2 of an app, and has written a row; version 1 was committed."""

    def __init__(self, cluster, wire):
        self.wire, self.app = wire, f"app-{next(numbers)}"
        self.place = TopicPartition(f"rows-of-{self.app}", 0)
        cluster.create_topic(self.place.topic)
        self.committed_id = self.open(app_version=1).producer_id
        assert self.open(app_version=1, state=MemberState.FINISHED).outcome == OpenOutcome.MEMBER
        assert self.end(app_version=1, winners=[self.committed_id]) is EndOutcome.COMMITTED
        self.id = self.open().producer_id
        self.beside_id = self.open(attempt="beside").producer_id
        self.other_id = self.open(app_id=f"{self.app}-of-another").producer_id
        assert self.write(self.id, 0, b"row") is NONE

    def ask(self, request):
        def answered():
            answer = self.wire.call(self.wire.coordinator(request.app_id), request)
            return None if answer.error_code in RETRIED else answer

        return until(answered)

    def open(self, **fields):
        topics = [OpenWriteTopic(name=self.place.topic, partitions=[0])]
        usual = {"app_id": self.app, "app_version": 2, "run": "r", "attempt": "a", "timeout_ms": 60_000}
        return self.ask(OpenWriteRequest(**{**usual, "topics": topics, **fields}))

    def end(self, **fields):
        usual = {"app_id": self.app, "app_version": 2, "run": "r", "is_commit": True}
        answer = self.ask(EndWriteRequest(**{**usual, **fields}))
        return EndOutcome(answer.outcome) if answer.error_code is NONE else answer.error_code

    def write(self, producer_id, sequence, value, epoch=MEMBER_EPOCH):
        return produced(self.wire, self.place, self.app, (producer_id, epoch), sequence, value)

    def claimed(self, claim):
        write, _ = write_and_member(self.id)
        return {
            "an id that was never given": producer_id_of(write, 999),
            "an id of another attempt": self.beside_id,
            "an id of another app": self.other_id,
            "an old id": self.committed_id,
            "the owner as a whole": self.id,
        }[claim]

    def open_write(self, claim):
        answer = self.open(producer_id=self.claimed(claim))
        return OpenOutcome(answer.outcome) if answer.error_code is NONE else answer.error_code

    def open_later_write(self, claim):
        """The claim is of a version that nobody has begun."""
        answer = self.open(app_version=3, producer_id=self.claimed(claim))
        return OpenOutcome(answer.outcome) if answer.error_code is NONE else answer.error_code

    def open_version(self, claim):
        answer = self.open(app_version={"an old version": 1}[claim], attempt="late")
        return OpenOutcome(answer.outcome) if answer.error_code is NONE else answer.error_code

    def end_write(self, claim):
        assert self.open(state=MemberState.FINISHED, attempt="beside").outcome == OpenOutcome.MEMBER
        return self.end(winners=[self.claimed(claim)])

    def end_version(self, claim):
        version = {"a version that was never given": 3, "an old version": 1}[claim]
        return self.end(app_version=version, winners=[self.id])

    def abort_run(self, claim):
        return self.end(run={"a run that was never given": "nobody"}[claim], is_commit=False)

    def produce(self, claim):
        return self.write(self.claimed(claim), 1, b"claimed")

    def produce_in_epoch(self, claim):
        epoch = MEMBER_EPOCH + {"an epoch that was never given": 1}[claim]
        return self.write(self.id, 0, b"claimed", epoch=epoch)

    def goes_on(self):
        assert self.write(self.id, 1, b"another row") is NONE
        assert self.open(producer_id=self.id, state=MemberState.FINISHED).outcome == OpenOutcome.MEMBER
        assert self.end(winners=[self.id]) is EndOutcome.COMMITTED
        values = [record.value for record in self.wire.cluster.consume(self.place.topic, at_least=2)]
        assert values == [b"row", b"another row"]
