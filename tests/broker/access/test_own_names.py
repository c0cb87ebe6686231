"""Atomic writes under names that jobs draw, by principals that share a cluster."""

from sparklog.core.apis.api_table import APIS
from sparklog.core.security.acl import AclOperation, ResourceType, Right
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.writes.agree import AgreeRequest
from sparklog.wire.messages.writes.end_write import EndWriteRequest
from sparklog.wire.messages.writes.open_write import OpenWriteRequest, OpenWriteTopic
from tests.broker.access.samples import TOPIC
from tests.waiting import until

ALICE, BOB = "User:alice", "User:bob"
WRITE_TOPICS = Right(AclOperation.write, ResourceType.topic)
RETRIED = {
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
}


def asked(servers, key, request, principal):
    def answer():
        found = servers.ask(APIS[key], request, 0, principal)
        return None if found.error_code in RETRIED else found

    return until(answer, "a coordinator")


def opened(servers, principal, app="query-own-names", attempt="a") -> ErrorCode:
    topics = [OpenWriteTopic(name=TOPIC, partitions=[0])]
    request = OpenWriteRequest(
        app_id=app, app_version=0, run="run", attempt=attempt, timeout_ms=10_000, topics=topics
    )
    return asked(servers, 10_000, request, principal).error_code


def test_a_write_needs_no_right_but_that_on_its_topics_and_its_name_is_closed_to_others(servers) -> None:
    servers.topic_id()
    servers.grant_each({ALICE: [WRITE_TOPICS], BOB: [WRITE_TOPICS]})
    assert opened(servers, ALICE) is ErrorCode.none
    assert opened(servers, BOB, attempt="b") is ErrorCode.transactional_id_authorization_failed
    end = EndWriteRequest(app_id="query-own-names", app_version=0, run="run", is_commit=False)
    denied = asked(servers, 10_001, end, BOB)
    assert denied.error_code is ErrorCode.transactional_id_authorization_failed
    assert asked(servers, 10_001, end, ALICE).error_code is ErrorCode.none


def test_without_a_right_on_the_topics_nothing_is_opened_and_the_name_stays_free(servers) -> None:
    servers.topic_id()
    servers.grant_each({ALICE: [WRITE_TOPICS]})
    free = "query-still-free"
    assert opened(servers, BOB, free) is ErrorCode.topic_authorization_failed
    assert opened(servers, ALICE, free) is ErrorCode.none


def test_a_team_cannot_decide_what_another_teams_batch_read_sees(servers) -> None:
    servers.grant_each({})

    def agreed(principal, value):
        return asked(servers, 10_002, AgreeRequest(name="cut-own-names", value=value), principal).value

    assert agreed(BOB, b"guessed") == b"guessed"
    assert agreed(ALICE, b"hers") == b"hers"
    assert agreed(BOB, None) == b"guessed"
