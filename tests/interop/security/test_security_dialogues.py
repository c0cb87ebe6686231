"""What users may do, and what they are answered, is the same as at Apache Kafka 3.9."""

from collections import defaultdict
from collections.abc import Mapping

import pytest

from sparklog.core.security.acl import ResourceType
from sparklog.core.security.rules import Pattern, PatternType
from tests.interop.differential.known import unknown
from tests.interop.differential.plain import differences, plain
from tests.interop.differential.sides import OURS, THEIRS
from tests.interop.differential.talk import Address
from tests.interop.kafka_jars import java
from tests.interop.security.copied_rules import copy_rules
from tests.interop.security.known_in_security import OF_SECURITY
from tests.interop.security.login_dialogues import LOGIN_DIALOGUES
from tests.interop.security.personas import ADMIN, COUPLES, DENY, NOBODY, PERSONAS, PREFIXED
from tests.interop.security.quota_dialogues import QUOTA_DIALOGUES
from tests.interop.security.requests_of_rights import REQUESTS, named
from tests.interop.security.rule_dialogues import MATCH, RULE_DIALOGUES, filter_, probe, rule
from tests.interop.security.secured_sides import SecuredSides, new_topic, secured_sides
from tests.interop.security.secured_talk import SecuredTalk

pytestmark = [pytest.mark.clients, pytest.mark.integration, pytest.mark.timeout(120)]


DIALOGUES = (*LOGIN_DIALOGUES, *RULE_DIALOGUES, *QUOTA_DIALOGUES)


@pytest.fixture(scope="module")
def systems(tmp_path_factory):
    java()
    with secured_sides(tmp_path_factory.mktemp("sides")) as both:
        yield both


@pytest.fixture(scope="module")
def sides(systems: SecuredSides) -> Mapping[str, Address]:
    return systems.addresses


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


@pytest.mark.parametrize(("writer", "reader"), [(OURS, THEIRS), (THEIRS, OURS)])
def test_one_obeys_rules_that_the_other_wrote(writer, reader, systems):
    """ZooKeeper's nodes of rules, and their notifications, are copied byte for byte."""
    name = f"written-by-{writer.split()[-1].lower()}"
    further = f"{name}-more"
    rules = [
        rule("write", name),
        rule("read", name, pattern=PREFIXED),
        rule("write", further, permission=DENY),
        rule("describe_configs", further, principal="User:bob", host="10.9.8.7"),
    ]
    said = {}
    for side in (writer, reader):
        with SecuredTalk(systems.addresses[side]) as talk:
            for topic in (name, further):
                new_topic(talk, topic)
            if side == writer:
                talk.create_rules(*rules)
            else:
                patterns = [Pattern(ResourceType.topic, one) for one in (name, further)]
                patterns.append(Pattern(ResourceType.topic, name, PatternType.prefixed))
                copy_rules(systems.zookeepers[writer], systems.zookeepers[reader], patterns)
            talk.bound()
            # Kafka follows prefixes by themselves: it may not know of that rule yet.
            talk.until("Metadata", is_seen, by="alice", version=4, topics=[{"name": further}])
            talk.said.clear()
            probe(talk, name, further)
            probe(talk, name, further, by="bob")
            for topic in (name, further):
                talk.ask(
                    "DescribeAcls", by=ADMIN, **filter_(resource_name_filter=topic, pattern_type_filter=MATCH)
                )
            said[side] = plain(talk.said)
    found = compared("rules_of_the_other", said)
    assert not found, shown(found)
    assert "'error_code': 0" in str(said[reader][-1])


def is_seen(answer):
    return answer["topics"][0]["error_code"] == 0
