"""A leader hands over while a request waits before it: which producers keep their records in order.

librdkafka with ``max.in.flight.requests.per.connection=1`` has one request under way at each *broker*. Once
it knows the new leader it sends later records there, while the old leader has not refused the earlier ones.
With ``--against-kafka`` the same happens at Apache Kafka.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from sparklog.client.admin import Admin
from sparklog.client.changes import ClusterChanges
from sparklog.client.cluster import ClusterClient
from sparklog.model.ids import BrokerId, TopicPartition
from tests.interop.differential.talk import Talk
from tests.interop.holding_proxy import WAIT_SECONDS, HoldingProxy
from tests.interop.targets import Target

pytestmark = [pytest.mark.clients, pytest.mark.integration]

NOT_LEADER_OR_FOLLOWER = 6
LATEST = -1
PARTITIONS = 3
ANSWER_S = 0.5
"""How long an answer is waited for that may not come."""


class Sender:
    """Producer of librdkafka, and which of its records were acknowledged."""

    def __init__(self, servers: str, topic: str, **settings: Any) -> None:
        self.acknowledged: list[str] = []
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "log_level": 0,
                "linger.ms": 0,
                "max.in.flight.requests.per.connection": 1,
                **settings,
            }
        )

    def send(self, value: str, partition: int = 0) -> None:
        self._producer.produce(
            self._topic, value.encode(), partition=partition, on_delivery=self._on_delivery
        )

    def flush(self, seconds: float = WAIT_SECONDS) -> bool:
        """Whether all that was sent is acknowledged."""
        return int(self._producer.flush(seconds)) == 0

    def wait_acknowledged(self, value: str, seconds: float = WAIT_SECONDS) -> None:
        self._until(lambda: value in self.acknowledged, seconds, f"{value} is acknowledged")

    def wait_knows_leader(self, leader: int) -> None:
        def knows() -> bool:
            try:
                topics = self._producer.list_topics(self._topic, timeout=ANSWER_S).topics
            except KafkaException:  # it has asked the old leader, at which that waits for the produce
                return False
            return int(topics[self._topic].partitions[0].leader) == leader

        self._until(knows, WAIT_SECONDS, f"broker {leader} is known to lead")

    def _until(self, is_so: Callable[[], bool], seconds: float, what: str) -> None:
        deadline = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > deadline:
                raise TimeoutError(f"after {seconds:.0f} s still not: {what}")
            self._producer.poll(0.01)

    def _on_delivery(self, error: Any, message: Any) -> None:
        assert error is None, error
        self.acknowledged.append(message.value().decode())


def move_leader(target: Target, topic: str, old: int, new: int) -> None:
    """Returns when the old leader refuses, and the new one answers."""
    with ClusterClient(target.bootstrap_servers) as client:
        elected, refused = ClusterChanges(client).elect_leaders([TopicPartition(topic, 0)])
        assert (elected, refused) == ([TopicPartition(topic, 0)], {})
    parts = [{"partition_index": 0, "timestamp": LATEST}]
    for broker, error in ((old, NOT_LEADER_OR_FOLLOWER), (new, 0)):
        with Talk(target.addresses()[broker]) as talk:
            talk.until(
                "ListOffsets",
                lambda answer, error=error: answer["topics"][0]["partitions"][0]["error_code"] == error,
                version=5,
                topics=[{"name": topic, "partitions": parts}],
            )


def prefer_another_leader(target: Target, topic: str, leader: int) -> int:
    with ClusterClient(target.bootstrap_servers) as client:
        replicas = Admin(client).describe_topics([topic])[0].partitions[0].replicas
        order = [BrokerId(one) for one in replicas if one != leader] + [BrokerId(leader)]
        assert ClusterChanges(client).reassign({TopicPartition(topic, 0): order}) == {}
        return order[0]


@contextmanager
def handed_over(
    target: Target, topic: str, settings: dict[str, Any]
) -> Iterator[tuple[Sender, Callable[[], None]]]:
    """Producer that knows the new leader while its record ``first`` waits before the old one; what ends
    that wait.
    """
    old = target.leader(topic, 0)
    new = prefer_another_leader(target, topic, old)
    with HoldingProxy(target.addresses()) as proxy:
        sender = Sender(proxy.bootstrap_servers, topic, **settings)
        for partition in range(PARTITIONS):  # it is connected to each broker
            sender.send("warm", partition)
        assert sender.flush()
        proxy.hold_the_next_produce(old)
        sender.send("first")
        proxy.wait_until_held()
        move_leader(target, topic, old, new)
        sender.wait_knows_leader(new)
        yield sender, proxy.release
        assert sender.flush()


@pytest.fixture
def led_by_each(make_topic, target):
    """A topic of which each broker leads one partition."""
    topic = make_topic(PARTITIONS)
    target.wait_in_sync(topic)
    return topic


def values_of(reference, topic: str) -> list[str]:
    records = reference.read(topic=topic, partition=0, start="earliest", count=3)
    return [record["value"] for record in records]


@pytest.mark.parametrize("acks", [1, "all"], ids="acks={}".format)
def test_librdkafka_without_idempotence_loses_its_order_as_with_kafka(target, reference, led_by_each, acks):
    settings = {"enable.idempotence": False, "acks": acks}
    with handed_over(target, led_by_each, settings) as (sender, release):
        sender.send("second")
        sender.wait_acknowledged("second")
        assert "first" not in sender.acknowledged
        release()
    assert values_of(reference, led_by_each) == ["warm", "second", "first"]


def test_librdkafka_with_idempotence_keeps_its_order(target, reference, led_by_each):
    with handed_over(target, led_by_each, {"enable.idempotence": True}) as (sender, release):
        sender.send("second")
        assert not sender.flush(ANSWER_S)
        assert sender.acknowledged[PARTITIONS:] == []
        release()
    assert values_of(reference, led_by_each) == ["warm", "first", "second"]
