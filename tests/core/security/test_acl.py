"""The words of access rules have Kafka's numbers; a right names what suffices without it."""

import confluent_kafka.admin as librdkafka
import pytest

from sparklog.core.security.acl import AclOperation, ResourceType, Right
from sparklog.core.security.conditions import Condition

CREATE_TOPIC = Right(AclOperation.create, ResourceType.topic)
ON_CLUSTER = Right(
    AclOperation.create, ResourceType.cluster, Condition.created_automatically, or_else=CREATE_TOPIC
)
UNKNOWN_OR_FILTER = {"unknown", "any"}
"""Words of questions about rules; no rule has them."""


def test_operations_have_the_numbers_of_kafka() -> None:
    of_kafka = {one.name.lower(): one.value for one in librdkafka.AclOperation}
    ours = {one.name: one.value for one in AclOperation}
    assert {name: ours[name] for name in of_kafka.keys() - UNKNOWN_OR_FILTER} == {
        name: number for name, number in of_kafka.items() if name not in UNKNOWN_OR_FILTER
    }
    assert ours.keys() - of_kafka.keys() == {"create_tokens", "describe_tokens"}
    assert (AclOperation.create_tokens, AclOperation.describe_tokens) == (13, 14)


def test_resources_have_the_numbers_of_kafka() -> None:
    numbers = {"topic": 2, "group": 3, "cluster": 4, "transactional_id": 5, "delegation_token": 6, "user": 7}
    assert {one.name: one.value for one in ResourceType} == numbers


@pytest.mark.parametrize(
    ("right", "text"),
    [
        (CREATE_TOPIC, "CREATE on TOPIC"),
        (ON_CLUSTER, "CREATE on CLUSTER (that is created automatically), or else CREATE on TOPIC"),
        (Right(AclOperation.write, ResourceType.topic, is_of_any=True), "WRITE on any TOPIC"),
    ],
)
def test_a_right_is_written_with_its_case_and_what_suffices_without_it(right: Right, text: str) -> None:
    assert str(right) == text


def test_what_suffices_comes_after_the_right_itself() -> None:
    assert ON_CLUSTER.alternatives == (ON_CLUSTER, CREATE_TOPIC)
    assert CREATE_TOPIC.alternatives == (CREATE_TOPIC,)
