"""The fuzz itself, short; and that it finds a broker's bugs that are put there on purpose."""

import pytest

from fuzz import __main__ as command
from fuzz import play
from fuzz.frames import PAIRS
from fuzz.play import Player
from fuzz.surroundings import KEPT_TOPIC
from fuzz.world import World
from sparklog.broker.call import Call
from sparklog.model.parts import read_parts
from sparklog.network.dialing.connection import Connection
from sparklog.wire.codec import encode_response
from sparklog.wire.forms.produce_form import AnswerForm, ProduceForm
from sparklog.wire.framing import FRAME_PREFIX
from sparklog.wire.messages.data.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

pytestmark = pytest.mark.integration

REQUESTS = 2_000
SEED = 1


def test_no_rule_is_broken_by_some_seconds_of_requests(capsys):
    status = command.main(["--seed", str(SEED), "--requests", str(REQUESTS)])
    told = capsys.readouterr().out
    assert status == 0, told
    assert f"in {len(PAIRS)} of {len(PAIRS)} versions" in told
    assert told.endswith(", 0 findings\n")


@pytest.fixture(scope="module")
def world():
    with World().running() as running:
        yield running


@pytest.fixture
def found(world, monkeypatch):
    """What is found by the requests of a seed, up to the first finding; none is parked for long."""
    monkeypatch.setattr(play, "PATIENCE_S", 0.3)

    def find():
        with Player(world, SEED) as player:
            for number in range(REQUESTS):
                for finding in player.play(number):
                    return finding
            return next(player.finish(), None)

    yield find
    list(world.complaints.take())


@pytest.fixture
def spoil(monkeypatch):
    """Puts ``instead`` into the place of answers to the fuzz; other clients get theirs."""

    def spoil_with(instead):
        reply = Call.reply

        def spoilt(call, response, *terms, **named_terms):
            if call.header.client_id == "fuzz":
                instead(call, response)
            else:
                reply(call, response, *terms, **named_terms)

        monkeypatch.setattr(Call, "reply", spoilt)

    return spoil_with


def test_an_answer_in_a_wrong_layout_is_found(found, spoil):
    def without_the_last_byte(call, response):
        whole = read_parts(encode_response(response, call.version, call.header.correlation_id))[4:-1]
        call.exchange.reply([memoryview(FRAME_PREFIX.pack(len(whole)) + whole)])

    spoil(without_the_last_byte)
    assert found().what.startswith("wrong answer: ")


def test_an_answer_to_another_request_is_found(found, spoil):
    def of_another(call, response):
        call.exchange.reply(encode_response(response, call.version, call.header.correlation_id + 1))

    spoil(of_another)
    assert "the answer is to request" in found().what


def test_a_request_that_is_never_answered_is_found(found, spoil):
    spoil(lambda call, response: None)
    assert "not answered within" in found().what


def test_an_exception_in_a_handler_is_found(found, spoil):
    spoil(lambda call, response: {}["a bug"])
    assert found().what.startswith(("closed instead of answered", "in the log"))


def test_a_produce_that_its_form_reads_or_answers_otherwise_is_found(found, monkeypatch):
    request, write = ProduceForm._request, AnswerForm.write
    monkeypatch.setattr(
        ProduceForm, "_request", lambda self, frame, index, records: request(self, frame, index ^ 1, records)
    )
    assert "by its form" in found().what
    monkeypatch.setattr(ProduceForm, "_request", request)
    monkeypatch.setattr(AnswerForm, "write", lambda self, *numbers: write(self, *numbers) + b"!")
    assert "by its form" in found().what


def test_kept_records_that_are_gone_are_found(world):
    assert list(world.check()) == []
    partitions = [DeleteRecordsPartition(partition_index=number, offset=1) for number in range(3)]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=KEPT_TOPIC, partitions=partitions)])
    for broker in world._public.brokers.values():  # each leads some of them
        with Connection.open(
            broker.node.host, broker.node.port, client_id="test", timeout_ms=5_000
        ) as connection:
            connection.call(request, timeout_ms=5_000)
    with pytest.MonkeyPatch.context() as quick:
        quick.setattr("sparklog.testing.topics_and_records.WAIT_SECONDS", 0.5)
        assert "kept records" in "".join(world.check())
