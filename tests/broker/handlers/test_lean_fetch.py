"""LeanFetch at a whole broker: the session is Fetch's, and what is not of it is refused."""

import pytest

from sparklog.core.replication.session_slots import LeanPosition
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.parts import read_parts
from sparklog.wire.messages.data.fetch import FetchPartition, FetchRequest, FetchTopic
from sparklog.wire.messages.data.lean_fetch import LeanFetchRequest, packed_positions, unpacked_answers
from sparklog.wire.messages.discovery.api_versions import ApiVersionsRequest
from tests.broker.server_harness import TOPIC_ID

FOLLOWER = 2


@pytest.fixture
def session(broker) -> int:
    """A follower's session with one partition, which has one record more than the follower."""
    broker.lead(isr=(1, FOLLOWER))
    broker.produce(b"a", acks=1)
    return opened(broker, FOLLOWER)


def opened(broker, replica_id) -> int:
    asked = FetchPartition(
        partition=0, current_leader_epoch=0, fetch_offset=0, log_start_offset=0, partition_max_bytes=1 << 20
    )
    topic = FetchTopic(topic="quakes", topic_id=TOPIC_ID, partitions=[asked])
    request = FetchRequest(replica_id=replica_id, session_epoch=0, max_wait_ms=0, topics=[topic])
    return broker.call(request).session_id


def lean(broker, session_id, epoch, *positions, **options):
    packed = packed_positions(LeanPosition(*position) for position in positions)
    options.setdefault("max_wait_ms", 0)
    return broker.call(
        LeanFetchRequest(session_id=session_id, session_epoch=epoch, positions=packed, **options)
    )


def answers_of(response):
    assert (response.error_code, response.asks_by_fetch) == (ErrorCode.none, False)
    return [tuple(answer) for answer in unpacked_answers(response.answers, len(read_parts(response.records)))]


def test_the_position_goes_on_and_the_answer_has_what_is_new(broker, session) -> None:
    broker.produce(b"b", acks=1)
    response = lean(broker, session, 1, (0, 0, 1, 0, 0))
    ((slot, error, high_watermark, log_start, size_bytes),) = answers_of(response)
    assert (slot, error, high_watermark, log_start) == (0, ErrorCode.none, 1, 0)
    assert size_bytes == len(read_parts(response.records)) > 0
    assert answers_of(lean(broker, session, 2, (0, 0, 2, 0, 0))) == [(0, ErrorCode.none, 2, 0, 0)]
    assert answers_of(lean(broker, session, 3)) == []


def test_an_error_of_a_partition_has_its_place_in_the_answer(broker, session) -> None:
    ((slot, error, *_),) = answers_of(lean(broker, session, 1, (0, 9, 1, 0, 0)))
    assert (slot, error) == (0, ErrorCode.unknown_leader_epoch)


def test_where_logs_part_the_follower_is_asked_to_come_by_fetch(broker, session) -> None:
    response = lean(broker, session, 1, (0, 0, 7, 0, 0))
    assert (response.asks_by_fetch, bytes(response.answers)) == (True, b"")
    request = FetchRequest(replica_id=FOLLOWER, session_id=session, session_epoch=2, max_wait_ms=0)
    ((data,),) = (topic.partitions for topic in broker.call(request).responses)
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 1)


@pytest.mark.parametrize(
    ("other_session", "epoch", "slot", "error"),
    [
        (1, 1, 0, ErrorCode.fetch_session_id_not_found),
        (0, 2, 0, ErrorCode.invalid_fetch_session_epoch),
        (0, 0, 0, ErrorCode.invalid_fetch_session_epoch),
        (0, 1, 1, ErrorCode.fetch_session_topic_id_error),
    ],
)
def test_another_session_epoch_or_slot_is_refused_and_changes_nothing(
    broker, session, other_session, epoch, slot, error
) -> None:
    assert lean(broker, session + other_session, epoch, (slot, 0, 1, 0, 0)).error_code is error
    assert answers_of(lean(broker, session, 1, (0, 0, 1, 0, 0))) == [(0, ErrorCode.none, 1, 0, 0)]


def test_a_consumers_session_is_no_followers(broker, session) -> None:
    consumers = opened(broker, -1)
    assert consumers > 0
    assert lean(broker, consumers, 1).error_code is ErrorCode.fetch_session_id_not_found


def test_positions_that_are_not_whole_are_refused_and_change_nothing(broker, session) -> None:
    request = LeanFetchRequest(session_id=session, session_epoch=1, positions=b"\0" * 33)
    assert broker.call(request).error_code is ErrorCode.invalid_request
    assert answers_of(lean(broker, session, 1, (0, 0, 1, 0, 0))) == [(0, ErrorCode.none, 1, 0, 0)]


def test_nothing_is_sent_to_a_leader_that_does_not_announce_it(broker, session, monkeypatch) -> None:
    key = LeanFetchRequest.API_KEY
    names = {
        name: broker.call(ApiVersionsRequest(client_software_name=name, client_software_version="1"))
        for name in ("sparklog", "another")
    }
    assert [key in response.own_apis for response in names.values()] == [True, False]
    monkeypatch.setattr(broker.connection, "_served", {0: (0, 9)})
    with pytest.raises(KafkaError, match="UNSUPPORTED_VERSION"):
        lean(broker, session, 1)
