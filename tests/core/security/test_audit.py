"""Lines of the audit: what they say, and that no name breaks out of them."""

import json

import pytest

from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.audit import NAME_CHARACTERS_MAX, SUBJECTS_MAX, Act, Audit
from sparklog.core.security.requester import Requester
from sparklog.model.errors import ErrorCode

BOB = Requester("User:bob", "10.0.0.9")


class _Clock:
    def wall_ms(self):
        return 17

    def monotonic_ms(self):
        return 0


@pytest.fixture
def lines():
    return []


@pytest.fixture
def audit(lines):
    return Audit("broker-1", _Clock(), lines.append)


def test_a_denial_names_principal_request_and_resource(audit, lines) -> None:
    audit.denied(BOB, "Produce", AclOperation.write, ResourceType.topic, "sales")
    assert [json.loads(line) for line in lines] == [
        {
            "time_ms": 17, "server": "broker-1", "event": "denial", "principal": "User:bob",
            "client_host": "10.0.0.9", "api": "Produce", "operation": "WRITE", "resource_type": "TOPIC",
            "resource_name": "sales",
        }
    ]  # fmt: skip


def test_an_act_names_what_it_changes_and_the_errors_of_its_answer(audit, lines) -> None:
    errors = [ErrorCode.topic_already_exists, ErrorCode.topic_already_exists]
    audit.acted(BOB, "a-client", "CreateTopics", Act.on(["a", "b"]), errors)
    assert [json.loads(line) for line in lines] == [
        {
            "time_ms": 17, "server": "broker-1", "event": "act", "principal": "User:bob",
            "client_host": "10.0.0.9", "client_id": "a-client", "api": "CreateTopics",
            "subjects": ["a", "b"], "more_subjects": 0, "errors": ["TOPIC_ALREADY_EXISTS"],
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name", ['a\n{"event": "act"}', "\x1b[2J", "\u202eevil", "\u2028", "\ud800", "é", "\x00", '"', "\\"]
)
def test_no_name_leaves_its_line_or_moves_a_cursor(audit, lines, name) -> None:
    audit.denied(Requester(f"User:{name}", "h"), "Produce", AclOperation.write, ResourceType.topic, name)
    audit.acted(BOB, name, "CreateTopics", Act.on([name]), [])
    for line in lines:
        assert line.isascii()
        assert line.isprintable()
    assert json.loads(lines[0])["resource_name"] == name
    assert json.loads(lines[0])["principal"] == f"User:{name}"
    assert json.loads(lines[1])["subjects"] == [name]


def test_long_names_are_cut_and_many_subjects_counted(audit, lines) -> None:
    act = Act.on("x" * 10_000 for _ in range(SUBJECTS_MAX + 7))
    audit.acted(BOB, "c" * 10_000, "CreateTopics", act, [])
    found = json.loads(lines[0])
    assert (len(found["subjects"]), found["more_subjects"]) == (SUBJECTS_MAX, 7)
    assert {len(one) for one in found["subjects"]} == {NAME_CHARACTERS_MAX + 1}
    assert len(lines[0]) < (SUBJECTS_MAX + 2) * (NAME_CHARACTERS_MAX + 20)
