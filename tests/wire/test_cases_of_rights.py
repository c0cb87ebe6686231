"""Each right of the table of APIs has a request that needs it, so that a row without a case fails."""

from collections.abc import Iterator

import pytest

from sparklog.core.apis.api import Api
from sparklog.core.apis.api_table import APIS, ROWS
from sparklog.core.security.acl import ResourceType, Right
from sparklog.core.security.conditions import Condition
from sparklog.wire.codec import decode_request, encode_request
from tests.wire.cases_of_rights import (
    INSIDE,
    IS_IN,
    KEYS,
    NAMES,
    OF_THE_ANSWER,
    OUTSIDE,
    TOPIC_ID,
    UNCONDITIONAL,
    Asked,
    asked,
)

RIGHTS = [(api, right) for api in ROWS for right in api.rights]
CONDITIONS = sorted({(api.name, right.condition.name) for api, right in RIGHTS if right.condition.value})
SIZE_PREFIX_BYTES = 4


def case_of(api: Api, right: Right) -> Asked:
    """A request that needs the right."""
    if right.condition is not Condition.always:
        return INSIDE[api.name, right.condition]
    if {one.resource for one in right.alternatives} == {ResourceType.cluster}:
        return asked(api.name)
    return UNCONDITIONAL[api.name]


def others(name: str, condition: Condition) -> Iterator[Asked]:
    """Requests of the API for the condition's other cases."""
    if (name, condition) in OUTSIDE:
        yield OUTSIDE[name, condition]
    yield from (one for (api, other), one in INSIDE.items() if api == name and other is not condition)


def frame_of(one: Asked) -> bytes:
    return encode_request(one.request, one.version, 1, "client")[SIZE_PREFIX_BYTES:]


@pytest.mark.parametrize(("api", "right"), RIGHTS, ids=[f"{api.name}: {right}" for api, right in RIGHTS])
def test_each_right_has_a_request_that_names_the_resource(api: Api, right: Right) -> None:
    one = case_of(api, right)
    assert one.version in api
    frame = frame_of(one)
    assert decode_request(memoryview(bytearray(frame))).body == one.request
    for alternative in right.alternatives:
        if alternative.condition is Condition.named_by_id:
            assert TOPIC_ID.bytes in frame
        elif alternative.resource in NAMES and not (
            alternative.is_of_any or {right.condition, alternative.condition} & OF_THE_ANSWER
        ):
            assert NAMES[alternative.resource].encode() in frame


@pytest.mark.parametrize(("name", "condition"), CONDITIONS)
def test_each_condition_tells_requests_of_its_case_from_others(name: str, condition: str) -> None:
    case = Condition[condition]
    inside = INSIDE[name, case]
    if case in OF_THE_ANSWER:
        assert case not in IS_IN
        return
    assert IS_IN[case](inside.request, inside.version)
    assert any(not IS_IN[case](one.request, one.version) for one in others(name, case))


def test_no_case_is_of_a_right_that_no_row_has() -> None:
    assert {(name, condition.name) for name, condition in INSIDE} == set(CONDITIONS)
    assert OUTSIDE.keys() <= INSIDE.keys()
    rows = {api.name for api, right in RIGHTS if right.condition is Condition.always}
    assert UNCONDITIONAL.keys() <= rows


def test_each_condition_of_a_request_has_a_predicate() -> None:
    assert IS_IN.keys() | OF_THE_ANSWER == set(Condition) - {Condition.always}
    assert KEYS.keys() == {api.name for api in APIS.values()}
