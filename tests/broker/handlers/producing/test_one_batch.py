"""A produce of one batch: answered by the short way as by the long one, in its time, and in its order.

Each test runs twice: as requests come, so that the last of a few alike ones is read and answered by its form,
and with neither forms nor lone waits.
"""

import pytest

from sparklog.broker.handlers.producing import produce as handler
from sparklog.model.errors import ErrorCode
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.wire.codec import decode_request
from sparklog.wire.forms.connection_forms import REPEATS_MIN, ConnectionForms
from sparklog.wire.forms.produce_form import AnswerForm
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from tests.broker.server_harness import Harness
from tests.waiting import until

WAIT_MS = 5_000
FOLLOWER = 2


@pytest.fixture(params=["short", "long"])
def way(request, monkeypatch):
    """Counts the answers that were written by their form."""
    written = []
    if request.param == "long":
        monkeypatch.setattr(handler, "_lone_batch", lambda _: None)
        monkeypatch.setattr(ConnectionForms, "decode", lambda _, frame: (decode_request(frame), None))
    else:
        write = AnswerForm.write

        def counted(self, *numbers):
            written.append(numbers)
            return write(self, *numbers)

        monkeypatch.setattr(AnswerForm, "write", counted)
    return request.param, written


@pytest.fixture
def leading(way, broker):
    broker.lead()
    return broker


def batch(value=b"a", **options):
    return build_records_batch([Record(value=value)], now_ms=1_000, **options)


def request_of(records, *, topic="quakes", partition=0, acks=-1, timeout_ms=WAIT_MS):
    data = [ProducePartition(index=partition, records=records)]
    return ProduceRequest(
        acks=acks, timeout_ms=timeout_ms, topic_data=[ProduceTopic(name=topic, partition_data=data)]
    )


def answer_to(broker, request, version=None):
    (topic,) = broker.call(request, version).responses
    (partition,) = topic.partition_responses
    return topic.name, partition.index, partition.error_code, partition.base_offset


def tell_apart(way, count):
    """Whether answers were written by their form, where they should be."""
    name, written = way
    assert len(written) == (count if name == "short" else 0)


@pytest.mark.parametrize("version", [0, 3, 5, 7, 9])
def test_batches_have_their_offsets_in_every_version(way, leading, version):
    for offset in range(REPEATS_MIN + 2):
        assert answer_to(leading, request_of(batch()), version) == ("quakes", 0, ErrorCode.none, offset)
    tell_apart(way, 2 if version >= 5 else 0)


def test_batches_of_any_length_are_read_alike(way, leading):
    for offset, length in enumerate((1, 1, 1, 50, 60, 70, 20_000, 100)):
        assert answer_to(leading, request_of(batch(b"x" * length)))[2:] == (ErrorCode.none, offset)
    tell_apart(way, 5)
    assert leading.offset_at(-1).offset == 8


def test_what_is_refused_is_refused_alike(way, leading):
    for _ in range(REPEATS_MIN + 1):
        answer_to(leading, request_of(batch()))
    damaged = bytearray(batch())
    damaged[-1] ^= 1
    refusals = [
        (request_of(batch(), partition=7), ErrorCode.not_leader_or_follower),
        (request_of(bytes(damaged)), ErrorCode.corrupt_message),
        (request_of(b""), ErrorCode.invalid_record),
        (request_of(batch(), acks=7), ErrorCode.invalid_required_acks),
        (request_of(batch(), topic="__consumer_offsets"), ErrorCode.invalid_topic_exception),
    ]
    for request, error in refusals:
        (data,) = request.topic_data[0].partition_data
        wanted = (request.topic_data[0].name, data.index, error, -1)
        assert [answer_to(leading, request) for _ in range(2)] == [wanted] * 2
    assert answer_to(leading, request_of(batch()))[2:] == (ErrorCode.none, REPEATS_MIN + 1)
    tell_apart(way, 2)


def test_a_repeated_batch_of_an_idempotent_producer_has_its_first_offset(way, leading):
    for sequence in range(REPEATS_MIN + 2):
        records = batch(producer_id=9, producer_epoch=0, base_sequence=sequence)
        assert answer_to(leading, request_of(records))[2:] == (ErrorCode.none, sequence)
    assert answer_to(leading, request_of(records))[2:] == (ErrorCode.none, REPEATS_MIN + 1)
    gap = batch(producer_id=9, producer_epoch=0, base_sequence=40)
    assert answer_to(leading, request_of(gap))[2] is ErrorCode.out_of_order_sequence_number


def test_without_acks_there_is_no_answer_and_a_refusal_closes_the_connection(leading):
    for _ in range(REPEATS_MIN + 1):
        leading.connection.send_one_way(request_of(batch(), acks=0))
    assert leading.offset_at(-1).offset == REPEATS_MIN + 1
    leading.connection.send_one_way(request_of(batch(), acks=0, partition=7))
    with pytest.raises(ConnectionError):
        leading.offset_at(-1)


def test_a_batch_that_its_follower_does_not_fetch_is_answered_when_its_time_is_up(leading):
    leading.lead(leader_epoch=1, isr=[1, FOLLOWER])
    asked = [leading.connection.send(request_of(batch(), timeout_ms=50)) for _ in range(REPEATS_MIN + 2)]
    answers = [one.result(WAIT_MS).responses[0].partition_responses[0] for one in asked]
    assert {answer.error_code for answer in answers} == {ErrorCode.request_timed_out}
    assert len(leading.server.body.context.appends) == 0


def test_produces_under_way_together_are_appended_and_answered_in_their_order(way, leading):
    leading.lead(leader_epoch=1, isr=[1, FOLLOWER])
    values = [b"%d" % number for number in range(8)]
    asked = [leading.connection.send(request_of(batch(value))) for value in values]
    (partition,) = leading.server.body.replicas.partitions()
    until(lambda: partition.log_end_offset == len(values), "the appends")
    controller = Harness(leading.server)
    controller.lead(leader_epoch=2, isr=[1])  # no follower is waited for any more
    controller.connection.close()
    answers = [one.result(WAIT_MS).responses[0].partition_responses[0] for one in asked]
    assert [(answer.error_code, answer.base_offset) for answer in answers] == [
        (ErrorCode.none, offset) for offset in range(len(values))
    ]
    tell_apart(way, len(values) - REPEATS_MIN)
