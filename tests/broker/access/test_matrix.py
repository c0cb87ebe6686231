"""Each row of the table of APIs: whoever lacks one of its rights is told so, and whoever has them is not."""

import pytest

from sparklog.core.apis.api import Api
from sparklog.core.apis.api_table import ROWS
from sparklog.core.security.acl import Right
from sparklog.core.security.conditions import Condition
from sparklog.core.security.rule_book import IMPLYING
from sparklog.model.errors import ErrorCode
from sparklog.wire.access.cases import CASES
from sparklog.wire.access.mirror import ERRORS
from sparklog.wire.access.places import PLACES
from sparklog.wire.response_errors import errors_in
from tests.broker.access.conftest import CLOSED
from tests.broker.access.samples import SAMPLES

ALICE = "User:alice"

DENIALS = frozenset(ERRORS.values())

NOT_TOLD = {
    Condition.listed,
    Condition.with_operations,
    Condition.with_settings,
    Condition.of_another_owner,
}
"""Cases in which a response leaves something out, and says no error."""


TOLD_OTHERWISE = {("Fetch", Condition.of_replicas): ErrorCode.topic_authorization_failed}


def _suffices(one: Right, wanted: Right) -> bool:
    """Whether ``one`` gives ``wanted`` too."""
    return any(
        one.resource is other.resource and one.operation in IMPLYING[other.operation]
        for other in wanted.alternatives
    )


def rights_in(api: Api, case: Condition) -> list[Right]:
    """The rights of a request in which ``case`` occurs."""
    exclusive = [
        {Condition.of_consumers, Condition.of_replicas},
        {Condition.of_producers, Condition.of_verifiers},
        {Condition.with_transactional_id, Condition.without_transactional_id},
        {Condition.for_group, Condition.for_transactional_id},
        {Condition.for_topic, Condition.for_broker},
        {Condition.under_own_name, Condition.under_other_name},
        {Condition.of_clients, Condition.of_internal_topics},
    ]
    others = set().union(*(one - {case} for one in exclusive if case in one))
    return [right for right in api.rights if right.condition not in others]


LACKS = [
    pytest.param(
        api, right, version, id=f"{api.name}-{version}-{right.condition.name}-{right.operation.name}"
    )
    for api in ROWS
    for right in api.rights
    for version in sorted(
        {
            max(api.min, SAMPLES[api.name, right.condition].first),
            min(api.max, SAMPLES[api.name, right.condition].last),
        }
    )
]


def test_each_condition_of_each_row_has_a_request_and_a_case() -> None:
    conditions = {(api.name, right.condition) for api in ROWS for right in api.rights}
    assert conditions == SAMPLES.keys()
    assert CASES.keys() == set(Condition)


def test_each_right_of_each_row_has_its_place() -> None:
    assert {api.name: len(api.rights) for api in ROWS if api.rights} == {
        name: len(places) for name, places in PLACES.items()
    }


def denials_in(response) -> list[ErrorCode]:
    if response is CLOSED:
        return []
    return [error for error in errors_in(response) if error in DENIALS]


@pytest.mark.parametrize(("api", "right", "version"), LACKS)
def test_who_lacks_one_right_is_denied_and_who_has_all_is_not(servers, api, right, version) -> None:
    sample = SAMPLES[api.name, right.condition]
    topic_id = servers.topic_id()
    needed = rights_in(api, right.condition)
    others = [one for one in needed if not _suffices(one, right)]
    servers.grant(ALICE, others)
    denied = servers.ask(api, sample.make(topic_id), version, ALICE)
    if right.condition not in NOT_TOLD and api.name != "ListGroups":
        told = TOLD_OTHERWISE.get((api.name, right.condition), ERRORS[right.refusal.resource])
        assert told in denials_in(denied), denied
    for alternative in right.alternatives:
        servers.grant(ALICE, [*(one for one in needed if one is not right), alternative])
        allowed = servers.ask(api, sample.make(servers.topic_id()), version, ALICE)
        assert denials_in(allowed) == [], (alternative, allowed)
