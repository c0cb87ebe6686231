"""OpenWrite and EndWrite, sent one by one: who is told of them, and what is refused."""

import itertools

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.model.write_ids import is_of_a_write, write_and_member
from sparklog.model.write_outcomes import EndOutcome, OpenOutcome
from sparklog.network.dialing.connection import Connection
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.discovery.api_versions import ApiVersionsRequest
from sparklog.wire.messages.discovery.find_coordinator import TRANSACTION_KEY, FindCoordinatorRequest
from sparklog.wire.messages.writes.end_write import EndWriteRequest
from sparklog.wire.messages.writes.open_write import OpenWriteRequest, OpenWriteTopic
from tests.waiting import until

TIMEOUT_MS = 10_000
NOT_YET = (ErrorCode.not_coordinator, ErrorCode.coordinator_load_in_progress)
numbers = itertools.count()


@pytest.fixture(scope="module")
def connection():
    with InProcessCluster(brokers=1) as cluster:
        cluster.create_topic("t", partitions=2)
        node = cluster.brokers[1].node
        with Connection.open(node.host, node.port, client_id="test", timeout_ms=TIMEOUT_MS) as connection:
            find = FindCoordinatorRequest(coordinator_keys=["any"], key_type=TRANSACTION_KEY)

            def is_there():
                found = connection.call(find, timeout_ms=TIMEOUT_MS)
                return found.coordinators[0].error_code is ErrorCode.none

            until(is_there)
            yield connection


@pytest.fixture
def ask(connection):
    """Sends a request about an app of this test's own."""
    app_id = f"app-{next(numbers)}"
    rights = {
        OpenWriteRequest: {"app_version": 1, "run": "r", "attempt": "a", "timeout_ms": 60_000},
        EndWriteRequest: {"app_version": 1, "run": "r", "is_commit": True},
    }

    def send(kind, **fields):
        request = kind(**{"app_id": app_id, **rights[kind], **fields})
        while True:
            answer = connection.call(request, timeout_ms=TIMEOUT_MS)
            if answer.error_code not in NOT_YET:
                return answer

    return send


def topics(name="t", *partitions):
    return [OpenWriteTopic(name=name, partitions=list(partitions))]


def test_only_our_own_clients_are_told_of_our_own_apis(connection):
    ours = ApiVersionsRequest(client_software_name="sparklog", client_software_version="1")
    theirs = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2")
    told = [connection.call(request, version=3, timeout_ms=TIMEOUT_MS) for request in (ours, theirs)]
    keys = (10_000, 10_001, 10_002, 10_003, 10_004, 10_005, 10_006, 10_007, 10_008, 10_009)
    assert [tuple(answer.own_apis) for answer in told] == [
        tuple(number for key in keys for number in (key, 0, 0)),
        (),
    ]
    assert all(key.api_key < 1_000 for answer in told for key in answer.api_keys)


def test_a_member_gets_a_producer_id_of_a_write_and_keeps_it(ask):
    first = ask(OpenWriteRequest, topics=topics("t", 0, 1, 1))
    again = ask(OpenWriteRequest, producer_id=first.producer_id)
    assert first == again
    assert is_of_a_write(first.producer_id)
    write, member = write_and_member(first.producer_id)
    second = ask(OpenWriteRequest, attempt="b")
    assert (write, member) == (write_and_member(second.producer_id)[0], 0)
    assert write_and_member(second.producer_id) == (write, 1)


def test_a_write_without_rows_is_opened_finished_and_committed(ask):
    producer_id = ask(OpenWriteRequest).producer_id
    assert ask(OpenWriteRequest, producer_id=producer_id, state=1).outcome == OpenOutcome.MEMBER
    assert ask(EndWriteRequest, winners=[producer_id]).outcome == EndOutcome.COMMITTED
    told = ask(OpenWriteRequest)
    assert (told.outcome, told.app_version) == (OpenOutcome.ALREADY_COMMITTED, 1)


def test_a_partition_that_is_not_there_is_refused_before_anything_is_opened(ask):
    told = ask(OpenWriteRequest, topics=topics("t", 0, 2))
    assert told.error_code is ErrorCode.unknown_topic_or_partition
    assert ask(OpenWriteRequest, topics=topics("u", 0)).error_code is ErrorCode.unknown_topic_or_partition
    assert ask(EndWriteRequest, winners=[2**62]).outcome == EndOutcome.NOT_OPEN


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"app_id": ""}, "invalid_request"),
        ({"app_id": "a" * 1_001}, "invalid_request"),
        ({"app_version": -1}, "invalid_request"),
        ({"run": ""}, "invalid_request"),
        ({"attempt": "a" * 201}, "invalid_request"),
        ({"state": 3}, "invalid_request"),
        ({"timeout_ms": 0}, "invalid_transaction_timeout"),
        ({"timeout_ms": 900_001}, "invalid_transaction_timeout"),
    ],
)
def test_an_attempt_that_makes_no_sense_is_refused(ask, fields, error):
    assert ask(OpenWriteRequest, **fields).error_code.name == error


@pytest.mark.parametrize("fields", [{"winners": [1, 1]}, {"is_commit": False, "winners": [1]}, {"run": ""}])
def test_an_end_that_makes_no_sense_is_refused(ask, fields):
    assert ask(EndWriteRequest, **fields).error_code is ErrorCode.invalid_request


@pytest.mark.parametrize("winner", [-1, 0, 2**63 - 1, 2**62])
def test_a_winner_that_never_was_a_member_is_named(ask, winner):
    ask(OpenWriteRequest)
    told = ask(EndWriteRequest, winners=[winner])
    assert (told.outcome, told.producer_id) == (EndOutcome.LOST_MEMBER, winner)
