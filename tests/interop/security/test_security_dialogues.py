"""What users may do, and what they are answered, is the same as at Apache Kafka 3.9."""

from collections import defaultdict
from collections.abc import Mapping

import pytest

from tests.interop.differential.known import unknown
from tests.interop.differential.plain import differences, plain
from tests.interop.differential.sides import OURS, THEIRS
from tests.interop.differential.talk import Address
from tests.interop.kafka_jars import java
from tests.interop.security.known_in_security import OF_SECURITY
from tests.interop.security.login_dialogues import LOGIN_DIALOGUES
from tests.interop.security.personas import ADMIN, COUPLES, NOBODY, PERSONAS
from tests.interop.security.quota_dialogues import QUOTA_DIALOGUES
from tests.interop.security.requests_of_rights import REQUESTS, named
from tests.interop.security.rule_dialogues import RULE_DIALOGUES
from tests.interop.security.secured_sides import secured_sides
from tests.interop.security.secured_talk import SecuredTalk

pytestmark = [pytest.mark.clients, pytest.mark.integration, pytest.mark.timeout(120)]


DIALOGUES = (*LOGIN_DIALOGUES, *RULE_DIALOGUES, *QUOTA_DIALOGUES)


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    java()
    with secured_sides(tmp_path_factory.mktemp("sides")) as addresses:
        yield addresses


@pytest.fixture(scope="module")
def talks(sides: Mapping[str, Address]):
    """A dialogue with each side, whose users stay logged in from test to test."""
    running = {side: SecuredTalk(address) for side, address in sides.items()}
    yield running
    for talk in running.values():
        talk.__exit__()


def compared(dialogue, said):
    requests = {side: [request for request, _ in one] for side, one in said.items()}
    assert requests[OURS] == requests[THEIRS]
    return [
        (request, *one)
        for (request, ours), (_, theirs) in zip(said[OURS], said[THEIRS], strict=True)
        for one in unknown(dialogue, request, list(differences(ours, theirs)), OF_SECURITY)
    ]


def shown(found):
    """Each difference once, with the requests that have it."""
    requests = defaultdict(list)
    for request, place, ours, theirs in found:
        user = request.rpartition(" by ")[2]
        requests[f"{place}: {ours!r}, at Kafka {theirs!r}".replace(user, "USER")].append(request)
    return "\n".join(f"{difference} in {', '.join(of)}" for difference, of in requests.items())


@pytest.mark.parametrize("what", REQUESTS)
def test_each_right_lets_a_user(what, talks):
    api, fields = REQUESTS[what]
    users = (NOBODY, *PERSONAS, *COUPLES, ADMIN)
    said = {}
    for side, talk in talks.items():
        talk.said.clear()
        for user in users:
            talk.ask(api, by=user, **named(fields, user))
        said[side] = plain(talk.said)
    found = compared(what, said)
    assert not found, shown(found)


@pytest.mark.parametrize("dialogue", DIALOGUES, ids=lambda one: one.__name__)
def test_both_say_the_same_in(dialogue, sides):
    said = {}
    for side, address in sides.items():
        with SecuredTalk(address) as talk:
            dialogue(talk, dialogue.__name__)
            said[side] = plain(talk.said)
    found = compared(dialogue.__name__, said)
    assert not found, shown(found)
