"""A leader with more sealed segments than the head of a manifest takes, and its ZooKeeper."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparklog.core.controller.state.znodes import (
    Assignment,
    TopicNode,
    encode_state,
    encode_topic,
    state_path,
    topic_path,
)
from sparklog.core.remote_log.head import TAIL_MAX
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId, ControllerEpoch, LeaderEpoch
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.storage.log_config import LogConfig
from sparklog.testing.memory_zookeeper import MemoryZooKeeper, MemoryZooKeeperServer
from tests.broker.partition_harness import TOPIC_ID, TP, Harness


@pytest.fixture
def zookeeper() -> Iterator[MemoryZooKeeper]:
    session = MemoryZooKeeper(MemoryZooKeeperServer(), operation_timeout_ms=6_000)
    session.start(6_000)
    session.ensure_path(state_path(*TP))
    only = (BrokerId(1),)
    session.set(topic_path(TP.topic), encode_topic(TopicNode(TOPIC_ID, (Assignment(only, (), ()),))))
    led_by_us(session, 4)
    yield session
    session.close()


def led_by_us(zookeeper: MemoryZooKeeper, epoch: int) -> None:
    """Broker 1 leads in this epoch, as ZooKeeper says."""
    only = (BrokerId(1),)
    state = PartitionState(BrokerId(1), LeaderEpoch(epoch), only, only)
    zookeeper.set(state_path(*TP), encode_state(state, ControllerEpoch(1)))


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    """A leader with a segment for each batch, one more than the head's tail takes."""
    made = Harness(tmp_path)
    made.told(1, 4, isr=(1,), replicas=(1,))
    made.partition.log_guard.configure(LogConfig(segment_bytes=100, remote_storage=True))
    for number in range(TAIL_MAX + 2):
        made.produce(bytearray(build_records_batch([Record(value=b"%d" % number)], now_ms=1_000 + number)))
    return made
