"""Clients with quotas get their rate, and wait as they are asked to; others go on."""

import json
import time

import confluent_kafka
import pytest

from sparklog.model.ids import TopicPartition
from sparklog.model.parts import parts_length
from sparklog.network.dialing.connection import Connection
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.data.fetch import FetchPartition, FetchRequest, FetchTopic
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from sparklog.wire.messages.discovery.describe_cluster import DescribeClusterRequest
from tests.cluster.test_quotas import set_quota
from tests.waiting import until

pytestmark = pytest.mark.integration

RATE = 20_000
SIZE = 50_000
"""Bytes of a batch: two seconds of the rate at once, and half a second of delay."""


@pytest.fixture(scope="module")
def cluster():
    windows = {"quota.window.num": "3", "quota.window.size.seconds": "1"}
    with InProcessCluster(brokers=2, settings=windows) as cluster:
        yield cluster


def limit(cluster, entity, **values):
    """Set a quota, and wait until every broker knows it."""
    assert set_quota(cluster, entity, **values).error_code == 0
    ((kind, name),) = entity.items()
    user, client = (name, "") if kind == "user" else ("ANONYMOUS", name)
    for broker in cluster.brokers.values():
        tables = broker.body.context.quotas.book.of_clients
        for key, value in values.items():
            until(lambda: getattr(tables[key].find(user, client), "bound", None) == value)  # noqa: B023


class Client:
    """One connection, as no throttled client would use it: it asks at once again."""

    def __init__(self, cluster, client_id, topic):
        self.topic = topic
        leader = cluster.brokers[cluster.wait_for_leader(topic)].node
        self.connection = Connection.open(leader.host, leader.port, client_id=client_id, timeout_ms=30_000)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def timed(self, request):
        """The answer, and the seconds that it took."""
        began = time.monotonic()
        answer = self.connection.call(request, timeout_ms=30_000)
        return answer, time.monotonic() - began

    def produce(self, size=SIZE, acks=-1):
        records = build_records_batch([Record(value=b"x" * size)], now_ms=int(time.time() * 1_000))
        data = ProducePartition(index=0, records=records)
        topics = [ProduceTopic(name=self.topic, partition_data=[data])]
        request = ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=topics)
        if acks == 0:
            self.connection.send_one_way(request)
            return None
        return self.timed(request)

    def fetch(self, *, session=(0, 0), offset=0, max_bytes=1_000_000, topics=True):
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1_000_000)
        asked = [FetchTopic(topic=self.topic, partitions=[partition])]
        request = FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=max_bytes,
            session_id=session[0],
            session_epoch=session[1],
            topics=asked if topics else [],
        )
        return self.connection.call(request, version=12, timeout_ms=30_000)


def fill(cluster, topic, batches):
    """Each batch has ten thousand bytes."""
    for _ in range(batches):
        cluster.produce(topic, ["x" * 10_000])


def records_in(answer):
    return sum(parts_length(part.records or ()) for topic in answer.responses for part in topic.partitions)


def test_a_produce_is_answered_at_once_and_the_next_request_of_its_connection_waits(cluster):
    cluster.create_topic("throttled-produce")
    limit(cluster, {"client-id": "produces"}, producer_byte_rate=RATE)
    with Client(cluster, "produces", "throttled-produce") as client:
        answer, took_s = client.produce()
        assert 400 <= answer.throttle_time_ms <= 700
        assert took_s < answer.throttle_time_ms / 1_000
        _, took_s = client.timed(DescribeClusterRequest())
        assert took_s > 0.3
        with Client(cluster, "another", "throttled-produce") as other:
            answer, _ = other.produce()
            assert answer.throttle_time_ms == 0


def test_a_client_that_asks_for_no_acknowledgements_is_muted_too(cluster):
    cluster.create_topic("throttled-unheard")
    limit(cluster, {"client-id": "unheard"}, producer_byte_rate=RATE)
    with Client(cluster, "unheard", "throttled-unheard") as client:
        client.timed(DescribeClusterRequest())
        client.produce(acks=0)
        _, took_s = client.timed(DescribeClusterRequest())
        assert took_s > 0.3


def test_a_throttled_fetch_is_empty_and_its_session_goes_on(cluster):
    cluster.create_topic("throttled-fetch")
    fill(cluster, "throttled-fetch", batches=10)
    limit(cluster, {"client-id": "fetches"}, consumer_byte_rate=RATE)
    with Client(cluster, "fetches", "throttled-fetch") as client:
        answer = client.fetch(max_bytes=35_000)
        assert (answer.throttle_time_ms, records_in(answer) > 0) == (0, True)
        session, epoch, throttled = answer.session_id, 1, 0
        assert session
        while throttled == 0:
            answer = client.fetch(session=(session, epoch), offset=3, max_bytes=35_000)
            epoch += 1
            throttled = answer.throttle_time_ms
        assert (answer.error_code, answer.session_id, answer.responses) == (0, session, [])
        while not records_in(answer := client.fetch(session=(session, epoch), topics=False)):
            assert answer.error_code == 0
            epoch += 1
        assert answer.session_id == session


def test_a_fetch_larger_than_the_quota_s_window_is_cut(cluster):
    cluster.create_topic("throttled-large-fetch")
    fill(cluster, "throttled-large-fetch", batches=8)
    limit(cluster, {"client-id": "fetches-much"}, consumer_byte_rate=RATE)
    with Client(cluster, "fetches-much", "throttled-large-fetch") as client:
        answer = client.fetch()
        assert 0 < records_in(answer) <= 2 * RATE


def test_a_lowered_quota_holds_under_load_and_its_removal_ends_it(cluster):
    cluster.create_topic("throttled-lowered")
    limit(cluster, {"client-id": "lowered"}, producer_byte_rate=10**9)
    with Client(cluster, "lowered", "throttled-lowered") as client:
        assert client.produce()[0].throttle_time_ms == 0
        limit(cluster, {"client-id": "lowered"}, producer_byte_rate=RATE)
        assert client.produce(1_000)[0].throttle_time_ms > 0
        assert set_quota(cluster, {"client-id": "lowered"}, producer_byte_rate=None).error_code == 0
        until(lambda: client.produce(1_000)[0].throttle_time_ms == 0)


def test_replicas_stay_in_sync_while_every_client_is_throttled(cluster):
    cluster.create_topic("throttled-everybody", replication_factor=2)
    limit(
        cluster, {"user": "ANONYMOUS"}, producer_byte_rate=RATE, consumer_byte_rate=1, request_percentage=50
    )
    try:
        with Client(cluster, "any", "throttled-everybody") as client:
            for _ in range(2):
                answer, _ = client.produce()
                (partition,) = answer.responses[0].partition_responses
                assert partition.error_code == 0
        cluster.wait_for_isr("throttled-everybody", 2)
    finally:
        removed = {"producer_byte_rate": None, "consumer_byte_rate": None, "request_percentage": None}
        assert set_quota(cluster, {"user": "ANONYMOUS"}, **removed).error_code == 0
    partition = cluster.brokers[1].body.replicas.get(TopicPartition("throttled-everybody", 0))
    assert partition is not None


@pytest.mark.scenario("S16", "Clients with quotas get about their rate, and say how long they wait (KIP-13).")
def test_librdkafka_reports_its_throttle_time_and_delivers(cluster):
    cluster.create_topic("throttled-librdkafka")
    limit(cluster, {"client-id": "rdkafka"}, producer_byte_rate=RATE, consumer_byte_rate=RATE)
    throttles = []
    common = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "client.id": "rdkafka",
        "statistics.interval.ms": 50,
        "stats_cb": lambda text: throttles.append(
            max(broker["throttle"]["max"] for broker in json.loads(text)["brokers"].values())
        ),
    }
    producer = confluent_kafka.Producer({**common, "batch.size": 20_000})
    for _ in range(80):
        producer.produce("throttled-librdkafka", b"x" * 1_000)
    assert producer.flush(30) == 0
    until(lambda: producer.poll(0.05) is not None and max(throttles, default=0) > 0)
    throttles.clear()
    consumer = confluent_kafka.Consumer({**common, "group.id": "throttled-readers"})
    consumer.assign([confluent_kafka.TopicPartition("throttled-librdkafka", 0, 0)])
    received = []
    until(lambda: received.extend(consumer.consume(100, 0.1)) or len(received) == 80)
    assert all(message.error() is None for message in received)
    until(lambda: consumer.poll(0.05) is None and max(throttles, default=0) > 0)
    consumer.close()
