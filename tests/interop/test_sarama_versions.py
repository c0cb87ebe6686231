"""sarama as each release of Kafka, 0.9 to 3.6: other API versions, and before 0.11 other messages."""

import pytest

from tests.interop.clients import SARAMA
from tests.waiting import until

pytestmark = [pytest.mark.clients, pytest.mark.integration]

VERSIONS = pytest.mark.parametrize("client", [client.name for client in SARAMA])


@VERSIONS
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_sarama_produces_and_reads(driver, reference, topic, codec):
    sent = [f"{n} " + "x" * 50 for n in range(20)]
    done = driver.produce(topic=topic, records=[{"key": "k", "value": value} for value in sent], codec=codec)
    assert [offset for _, offset in done] == list(range(20))
    for reader in (driver, reference):
        read = reader.read(topic=topic, partition=0, start="earliest", count=20)
        assert [record["value"] for record in read] == sent


@VERSIONS
def test_sarama_asks_for_offsets_and_topics(driver, reference, topic):
    reference.produce(topic=topic, records=[{"value": f"{n}"} for n in range(5)])
    found = driver.offsets(topic=topic, partition=0, times=[])
    assert (found["earliest"], found["latest"]) == (0, 5)
    assert driver.topics()[topic] == 1


@VERSIONS
def test_sarama_in_a_group(driver, reference, make_topic, group):
    topic = make_topic(2)
    records = [{"partition": n % 2, "value": f"{n}"} for n in range(10)]
    reference.produce(topic=topic, records=records)
    driver.join(member="m", group=group, topics=[topic], session_ms=6000)
    try:
        until(
            lambda: len(driver.state(member="m")["records"]) == 10, lambda: str(driver.state(member="m")), 30
        )
        driver.commit(member="m", offsets=[[topic, 0, 5, ""], [topic, 1, 5, ""]])
        assert driver.committed(member="m", partitions=[[topic, 0]]) == [[topic, 0, 5, ""]]
    finally:
        driver.leave(member="m")
    assert reference.group_offsets(group=group) == [[topic, 0, 5], [topic, 1, 5]]


@VERSIONS
def test_sarama_administers(driver, group):
    topic = f"{group}-topic"
    driver.create_topic(topic=topic, partitions=1)
    until(lambda: topic in driver.topics())
    assert driver.cluster()["brokers"] == [1, 2, 3]
    assert driver.configs(topic=topic)["retention.ms"] == "604800000"
    driver.delete_topic(topic=topic)
