"""A broker whose queued requests are bounded far below what its producers send."""

import confluent_kafka
import pytest

from sparklog.testing import InProcessCluster

pytestmark = pytest.mark.integration


def test_followers_keep_up_and_nothing_is_lost_while_requests_exceed_their_bound():
    with InProcessCluster(brokers=3, settings={"queued.max.request.bytes": "10000"}) as cluster:
        cluster.create_topic("t", partitions=3, configs={"min.insync.replicas": "3"})
        cluster.wait_for_isr("t", 3)
        failed = []
        producers = [
            confluent_kafka.Producer(
                {
                    "bootstrap.servers": cluster.bootstrap_servers,
                    "acks": "all",
                    "linger.ms": 20,
                    "batch.size": 100_000,
                }
            )
            for _ in range(4)
        ]
        for number in range(1_200):
            producers[number % 4].produce(
                "t",
                b"%d" % number + bytes(2_000),
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )
        for producer in producers:
            assert producer.flush(60) == 0
        assert failed == []
        records = cluster.consume("t", at_least=1_200)
        assert {record.value.rstrip(b"\0") for record in records} == {b"%d" % n for n in range(1_200)}
        cluster.wait_for_isr("t", 3)
