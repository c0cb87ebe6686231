"""Where a broker refuses connections for good, what a client does ends at once, with the broker's words."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from sparklog.client import offsets
from sparklog.client.cluster import ClusterClient
from sparklog.client.consumer import Consumer
from sparklog.client.coordinator import Coordinator
from sparklog.client.errors import SecurityRefused
from sparklog.client.isolation import IsolationLevel
from sparklog.client.producer import BatchProducer
from sparklog.client.reader import read_range
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.wire.messages.data.init_producer_id import InitProducerIdRequest
from sparklog.wire.messages.discovery.find_coordinator import GROUP_KEY
from sparklog.wire.messages.discovery.metadata import MetadataRequest
from sparklog.wire.messages.groups.heartbeat import HeartbeatRequest

Start = Callable[..., Any]
Connect = Callable[..., ClusterClient]
BatchOf = Callable[..., bytes]
TP = TopicPartition("t", 0)
REFUSED = r"does not trust this client"

pytestmark = pytest.mark.timeout(30)  # a client that tried again would do so for ten minutes


@pytest.fixture
def fake(start_fake: Start) -> Any:
    """Two brokers, of which the second leads t-0."""
    cluster = start_fake(2)
    cluster.create_topic("t")
    cluster.lead("t", 0, 2)
    return cluster


@pytest.fixture
def client(fake: Any, gate: Any, client_of: Connect) -> ClusterClient:
    """Knows the brokers and the leader; from now on the second broker refuses it."""
    client = client_of(fake, connector=gate, retry_timeout_ms=600_000)
    client.metadata(["t"])
    gate.refusing.add(fake.port(2))
    return client


def test_each_broker_is_tried_once_if_all_refuse(fake: Any, gate: Any, client_of: Connect) -> None:
    gate.refusing |= {fake.port(1), fake.port(2)}
    client = client_of(fake, connector=gate, retry_timeout_ms=600_000)
    with pytest.raises(SecurityRefused, match=rf"127\.0\.0\.1:{fake.port(1)} {REFUSED}"):
        client.metadata()
    assert dict(gate.dialled) == {fake.port(1): 1, fake.port(2): 1}


def test_a_broker_that_refuses_beside_one_that_is_gone_ends_the_call(
    fake: Any, gate: Any, client: ClusterClient
) -> None:
    fake.stop_broker(1)
    with pytest.raises(SecurityRefused, match=REFUSED):
        client.metadata(max_age_ms=0)


def test_any_other_broker_that_answers_will_do(fake: Any, gate: Any, client_of: Connect) -> None:
    gate.refusing.add(fake.port(1))
    client = client_of(fake, connector=gate)
    assert sorted(client.metadata().brokers) == [1, 2]
    client.require(MetadataRequest.API_KEY)


def test_questions_to_a_leader_end(client: ClusterClient) -> None:
    with pytest.raises(SecurityRefused, match=REFUSED):
        offsets.latest(client, [TP], IsolationLevel.READ_UNCOMMITTED)


def test_a_read_ends(fake: Any, client: ClusterClient, batch_of: BatchOf) -> None:
    fake.log("t").append(batch_of("a"))
    with pytest.raises(SecurityRefused, match=REFUSED):
        list(read_range(client, TP, 0, 1))


def test_a_consumers_poll_ends(client: ClusterClient) -> None:
    consumer = Consumer(client, {TP: 0})
    with pytest.raises(SecurityRefused, match=REFUSED):
        consumer.poll(600_000)


def test_a_producers_flush_ends(client: ClusterClient, batch_of: BatchOf) -> None:
    with closing(BatchProducer(client, timeout_ms=600_000)) as producer:
        producer.send(TP, batch_of("a"))
        with pytest.raises(SecurityRefused, match=REFUSED):
            producer.flush()
        with pytest.raises(SecurityRefused, match=REFUSED):
            producer.send(TP, batch_of("b"))


def test_a_producers_search_for_a_leader_ends(
    fake: Any, gate: Any, client: ClusterClient, batch_of: BatchOf
) -> None:
    gate.refusing.discard(fake.port(2))
    with closing(BatchProducer(client, timeout_ms=600_000)) as producer:
        producer.send(TP, batch_of("a"))
        producer.flush()
        gate.refusing |= {fake.port(1), fake.port(2)}
        fake.cut_before["Produce"] = 1  # its connection is gone, and with it the leader
        producer.send(TP, batch_of("b"))
        with pytest.raises(SecurityRefused, match=REFUSED):
            producer.flush()


def test_a_call_to_a_coordinator_ends(fake: Any, client: ClusterClient) -> None:
    client.coordinators.found(GROUP_KEY, "g", Node(BrokerId(2), "127.0.0.1", fake.port(2)))
    coordinator = Coordinator(client, "g")
    with pytest.raises(SecurityRefused, match=REFUSED):
        coordinator.call(
            HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), lambda answer: answer.error_code
        )


def test_a_last_refusal_of_a_broker_is_not_put_before_it(client: ClusterClient, fake: Any, gate: Any) -> None:
    """Brokers that answered with an obstacle, and then refuse: the refusal is what to act on."""

    def refused(_answer: object) -> ErrorCode:
        gate.refusing |= {fake.port(1), fake.port(2)}
        client._pool.close()
        client._pool._is_closed = False
        return ErrorCode.coordinator_not_available

    with pytest.raises(SecurityRefused, match=REFUSED):
        client.call_any(InitProducerIdRequest(), refused)
