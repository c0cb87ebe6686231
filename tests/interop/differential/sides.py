"""One broker of ours and one of Apache Kafka's, with the same settings and a topic."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fuzz.layout import Tree
from sparklog.testing import InProcessCluster
from tests.interop.differential.group import PARTITIONS, TOPIC
from tests.interop.differential.talk import Address, Talk
from tests.interop.targets import Kafka

SETTINGS: Final = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.max.size": "4",
    "group.max.session.timeout.ms": "1800000",
    "group.min.session.timeout.ms": "1",
    "log.cleaner.enable": "false",
    "min.insync.replicas": "1",
    "num.partitions": "1",
    "offset.metadata.max.bytes": "64",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
}
TOPIC_ALREADY_EXISTS: Final = 36
OURS: Final = "sparklog"
THEIRS: Final = "Apache Kafka"


@contextmanager
def both_sides(root: Path) -> Iterator[Mapping[str, Address]]:
    """The addresses of the two brokers, by the names of the systems; both have their internal topics."""
    kafka = Kafka({"zookeeper.session.timeout.ms": "18000", **SETTINGS}, brokers=1)
    kafka.start()
    try:
        kafka.wait_ready()
        with InProcessCluster(root, brokers=1, settings=SETTINGS) as cluster:
            node = cluster.brokers[1].node
            host, port = kafka.bootstrap.rsplit(":", 1)
            sides = {OURS: (node.host, node.port), THEIRS: (host, int(port))}
            for address in sides.values():
                _prepare(address)
            yield sides
    finally:
        kafka.stop()


def _is_there(answer: Tree) -> bool:
    return answer["topics"][0]["error_code"] in (0, TOPIC_ALREADY_EXISTS)


def _prepare(address: Address) -> None:
    with Talk(address) as talk:
        topic = {"name": TOPIC, "num_partitions": PARTITIONS, "replication_factor": 1}
        talk.until("CreateTopics", _is_there, topics=[topic], timeout_ms=30_000)
        talk.until("FindCoordinator", lambda answer: answer["error_code"] == 0, key="a group", version=1)
        talk.until(
            "OffsetFetch", lambda answer: answer["error_code"] == 0, group_id="a group", topics=[], version=3
        )
