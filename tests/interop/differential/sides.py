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
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
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


def new_topic(address: Address, name: str, *, may_be_there: bool = True) -> bytes:
    """A topic whose leaders are there; its id. Kafka still has one that is being deleted."""
    with Talk(address) as talk:
        wanted = {"name": name, "num_partitions": PARTITIONS, "replication_factor": 1}
        is_made = _is_there if may_be_there else _is_new
        answer = talk.until("CreateTopics", is_made, topics=[wanted], timeout_ms=30_000)
        parts = [{"partition_index": number, "timestamp": -1} for number in range(PARTITIONS)]
        talk.until("ListOffsets", _is_led, topics=[{"name": name, "partitions": parts}])
        topic_id = answer["topics"][0]["topic_id"]
        assert isinstance(topic_id, bytes)
        return topic_id


@contextmanager
def own_topic(address: Address, name: str) -> Iterator[bytes]:
    """A topic for one dialogue, by its id. It is deleted, so that hundreds of them do not hold files open."""
    yield new_topic(address, name)
    with Talk(address) as talk:
        talk.ask("DeleteTopics", version=5, topic_names=[name], timeout_ms=30_000)


def _is_new(answer: Tree) -> bool:
    return bool(answer["topics"][0]["error_code"] == 0)


def _is_led(answer: Tree) -> bool:
    return all(part["error_code"] == 0 for topic in answer["topics"] for part in topic["partitions"])


def _prepare(address: Address) -> None:
    new_topic(address, TOPIC)
    with Talk(address) as talk:
        for key, kind in (("a group", 0), ("a producer", 1)):
            wanted = {"key": key, "key_type": kind, "version": 1}
            talk.until("FindCoordinator", lambda answer: answer["error_code"] == 0, **wanted)
        for name in map(str, range(9)):  # some for each coordinator
            producer = {"transactional_id": name, "transaction_timeout_ms": 60_000, "version": 1}
            talk.until("InitProducerId", lambda answer: answer["error_code"] == 0, **producer)
        talk.until(
            "OffsetFetch", lambda answer: answer["error_code"] == 0, group_id="a group", topics=[], version=3
        )
