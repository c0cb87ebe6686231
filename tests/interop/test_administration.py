"""What admin clients ask: topics, settings, records, the cluster, groups and their offsets."""

import pytest

from tests.interop.refusals import refused
from tests.waiting import until

pytestmark = [pytest.mark.clients, pytest.mark.integration]


def test_topics_are_created_enlarged_and_deleted(driver, client, group):
    topic = f"{group}-topic"
    driver.create_topic(topic=topic, partitions=2, replicas=3, configs={"retention.ms": "123456"})
    until(lambda: driver.topics().get(topic) == 2, lambda: str(driver.topics()))
    with refused(client, "TOPIC_ALREADY_EXISTS"):
        driver.create_topic(topic=topic, partitions=2)
    driver.add_partitions(topic=topic, total=5)
    until(lambda: driver.topics().get(topic) == 5, lambda: str(driver.topics()))
    driver.delete_topic(topic=topic)
    until(lambda: topic not in driver.topics(), lambda: str(driver.topics()))


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("no such name", {"partitions": 1}, "INVALID_TOPIC_EXCEPTION"),
        ("valid", {"partitions": 0}, "INVALID_PARTITIONS"),
        ("valid", {"partitions": 1, "replicas": 9}, "INVALID_REPLICATION_FACTOR"),
        ("valid", {"partitions": 1, "configs": {"no.such.setting": "1"}}, "INVALID_CONFIG"),
    ],
    ids=["name", "partitions", "replicas", "setting"],
)
def test_topics_that_cannot_be_created(driver, client, name, options, error):
    with refused(client, error):
        driver.create_topic(topic=name, **options)


def test_settings_of_a_topic(driver, topic):
    assert driver.configs(topic=topic)["retention.ms"] == "604800000"
    driver.set_config(topic=topic, name="retention.ms", value="5000")
    until(
        lambda: driver.configs(topic=topic)["retention.ms"] == "5000",
        lambda: str(driver.configs(topic=topic)),
    )


def test_the_cluster(driver, reference):
    found = driver.cluster()
    assert found["brokers"] == [1, 2, 3]
    assert found["controller"] in (1, 2, 3)
    assert found["id"] in (None, reference.cluster()["id"])


def test_records_are_deleted(driver, reference, topic):
    reference.produce(topic=topic, records=[{"value": f"{n}"} for n in range(10)])
    assert driver.delete_records(topic=topic, partition=0, offset=4) == 4
    assert reference.offsets(topic=topic, partition=0)["earliest"] == 4


def test_a_group_is_listed_and_described(driver, reference, make_topic, group):
    topic = make_topic(2)
    reference.join(member=group, group=group, topics=[topic], client="seen by others")
    try:
        until(
            lambda: len(reference.state(member=group)["assignment"]) == 2,
            lambda: str(reference.state(member=group)),
        )
        assert group in driver.groups()
        found = driver.describe_group(group=group)
        assert found["state"] == "Stable"
        assert found["assignor"] in ("range", None)
        [member] = found["members"]
        assert member["client"] == "seen by others"
        assert "127.0.0.1" in member["host"]
        assert member["assignment"] == [[topic, 0], [topic, 1]]
    finally:
        reference.leave(member=group)


def test_a_group_is_deleted_when_it_is_empty(driver, client, reference, make_topic, group):
    topic = make_topic(1)
    reference.join(member=group, group=group, topics=[topic])
    until(lambda: reference.state(member=group)["assignment"], lambda: "no assignment")
    reference.commit(member=group, offsets=[[topic, 0, 0, ""]])
    with refused(client, "NON_EMPTY_GROUP"):
        driver.delete_group(group=group)
    reference.leave(member=group)
    driver.delete_group(group=group)
    assert group not in reference.groups()


def test_offsets_of_a_group(driver, reference, make_topic, group):
    topic = make_topic(2)
    reference.set_group_offsets(group=group, offsets=[[topic, 0, 3], [topic, 1, 4]])
    assert driver.group_offsets(group=group) == [[topic, 0, 3], [topic, 1, 4]]


def test_offsets_of_an_empty_group_are_set(driver, reference, make_topic, group):
    topic = make_topic(2)
    driver.set_group_offsets(group=group, offsets=[[topic, 0, 5], [topic, 1, 6]])
    assert reference.group_offsets(group=group) == [[topic, 0, 5], [topic, 1, 6]]
