"""Real brokers copy sealed segments to a store: the manifest leads to the leaders' log, byte for byte."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparklog.broker.remote_log.copying.heads import head_path, read_head
from sparklog.client.changes import ClusterChanges
from sparklog.client.offsets import RemoteShare
from sparklog.core.remote_log.head import Head
from sparklog.core.remote_log.page import PageRef, parse_page
from sparklog.core.remote_log.remote_segment import RemotePartition, RemoteSegment
from sparklog.core.remote_log.state_object import SegmentState, parse_state
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.model.zookeeper import ZooKeeper
from sparklog.records.remote_segment.rest_object import open_rest_object, rebuild
from sparklog.remote.open_store import open_store
from sparklog.remote.store import RemoteStore
from sparklog.storage.log import Log
from sparklog.testing import InProcessCluster
from tests.appended_transactions import AppendedTransactions
from tests.tiers import copying_at_once

pytestmark = pytest.mark.integration

DEADLINE_SECONDS = 60
TIERED = {"remote.storage.enable": "true", "segment.bytes": "1000", "retention.ms": "-1"}


@pytest.fixture
def url(tmp_path: Path) -> str:
    (tmp_path / "store").mkdir()
    return f"file://{tmp_path / 'store'}"


@pytest.fixture
def cluster(tmp_path: Path, url: str) -> Iterator[InProcessCluster]:
    settings = copying_at_once(url)
    with InProcessCluster(tmp_path / "cluster", settings=settings) as running:
        yield running


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def remote_of(cluster: InProcessCluster, topic: str) -> RemotePartition:
    return RemotePartition(topic, cluster.admin.describe_topics([topic])[0].topic_id, 0)


@pytest.fixture
def zookeeper(cluster: InProcessCluster) -> Iterator[ZooKeeper]:
    session = cluster._new_zookeeper(cluster._connect_string, 6_000)
    session.start(6_000)
    yield session
    session.close()


def head_of(zookeeper: ZooKeeper, remote: RemotePartition) -> Head | None:
    stored = read_head(zookeeper, remote)
    return None if stored is None else stored.head


def segments_of(store: RemoteStore, remote: RemotePartition, head: Head) -> list[RemoteSegment]:
    found: list[RemoteSegment] = []
    for place in head.entries:
        if isinstance(place, PageRef):
            name = remote.page_name(place.base_offset, place.page_id)
            found += parse_page(remote, place, store.read(name, 0, place.object_bytes))
        else:
            found.append(place)
    return found


def batches_of(store: RemoteStore, remote: RemotePartition, segment: RemoteSegment) -> bytes:
    def of(suffix: str) -> Callable[[int, int], bytes]:
        name = remote.object_name(segment, suffix)  # type: ignore[arg-type]
        return lambda start, length: store.read(name, start, length)

    _, entries = open_rest_object(of("rest"), segment.rest_bytes)
    return b"".join(rebuild(entry, of("rest"), of("arrow")) for entry in entries)


def state_of(store: RemoteStore, remote: RemotePartition, segment: RemoteSegment) -> SegmentState:
    return parse_state(segment, store.read(remote.object_name(segment, "state"), 0, segment.state_bytes))


def log_of(cluster: InProcessCluster, broker: int, topic: str) -> bytes:
    folder = cluster.root / f"broker-{broker}" / "0" / f"{topic}-0"
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def values_of(cluster: InProcessCluster, count: int) -> list[str]:
    return [(record.value or b"").decode() for record in cluster.consume("t", at_least=count)]


def is_copied(zookeeper: ZooKeeper, remote: RemotePartition, end: int) -> bool:
    head = head_of(zookeeper, remote)
    return head is not None and (head.end_offset or 0) >= end


def sealed_end(cluster: InProcessCluster, broker: int, topic: str) -> int:
    folder = cluster.root / f"broker-{broker}" / "0" / f"{topic}-0"
    return max(int(path.stem) for path in folder.glob("*.log"))


def test_sealed_segments_appear_in_the_store_and_a_new_leader_copies_on(
    cluster: InProcessCluster, zookeeper: ZooKeeper, url: str
) -> None:
    cluster.create_topic("t", configs={**TIERED, "min.insync.replicas": "2"})
    for number in range(80):
        cluster.produce("t", [f"{number} {'x' * 90}"] * 4)
    leader = cluster.wait_for_leader("t")
    remote = remote_of(cluster, "t")
    first_end = sealed_end(cluster, leader, "t")
    until(lambda: is_copied(zookeeper, remote, first_end))
    cluster.kill(leader)
    second = cluster.wait_for_leader("t", other_than=leader)
    for number in range(20):
        cluster.produce("t", [f"{number} {'y' * 90}"] * 4)
    second_end = sealed_end(cluster, second, "t")
    assert second_end > first_end
    until(lambda: is_copied(zookeeper, remote, second_end))
    head, store = head_of(zookeeper, remote), open_store(url)
    assert head is not None
    segments = segments_of(store, remote, head)
    assert head.pages, "so many segments do not fit into the head"
    assert [one.base_offset for one in segments] == [0, *(one.end_offset for one in segments[:-1])]
    assert len({one.leader_epoch for one in segments}) == 2
    copied = b"".join(batches_of(store, remote, one) for one in segments)
    assert log_of(cluster, second, "t").startswith(copied)
    assert len(copied) == sum(one.size_bytes for one in segments)
    assert [epoch for epoch, _ in state_of(store, remote, segments[-1]).epochs] == [
        *sorted({one.leader_epoch for one in segments})
    ]
    assert sum(broker.body.copies.copier.statistics.segments for broker in cluster.brokers.values()) >= len(
        segments
    )


def test_open_transactions_wait_and_aborted_rows_are_not_for_readers(
    cluster: InProcessCluster, zookeeper: ZooKeeper, url: str
) -> None:
    transactions = AppendedTransactions(cluster, "t")
    ClusterChanges(cluster.client).alter_topic_configs("t", {**TIERED})
    transactions.write(1, b"a" * 900)
    transactions.write(2, b"b" * 900)
    transactions.end(2, commits=False)
    transactions.write(3, b"c" * 900)
    remote, store = remote_of(cluster, "t"), open_store(url)
    copies = [broker.body.copies.copier.statistics for broker in cluster.brokers.values()]
    until(lambda: sum(one.lag_bytes for one in copies) > 0)
    until(lambda: share_of(cluster).lag_segments == 3)
    share = share_of(cluster)
    assert (share.start_offset, share.end_offset, share.size_bytes) == (-1, -1, 0)
    assert share.lag_bytes > 2 * 900
    assert head_of(zookeeper, remote) is None, "the transaction of producer 1 is open"
    transactions.end(1, commits=True)
    transactions.end(3, commits=True)
    cluster.produce("t", ["d" * 900] * 3)
    until(lambda: is_copied(zookeeper, remote, 4))
    head = head_of(zookeeper, remote)
    assert head is not None
    aborted = [one for segment in head.tail for one in state_of(store, remote, segment).aborted]
    assert {one.first_offset for one in aborted} == {1}


def test_what_leaves_the_log_leaves_the_store_and_with_the_topic_all(
    cluster: InProcessCluster, zookeeper: ZooKeeper, url: str
) -> None:
    cluster.create_topic("t", configs=TIERED)
    for number in range(10):
        cluster.produce("t", [f"{number} {'x' * 900}"])
    remote, store = remote_of(cluster, "t"), open_store(url)
    until(lambda: is_copied(zookeeper, remote, 8))
    ClusterChanges(cluster.client).delete_records({TopicPartition("t", 0): 5})
    until(lambda: (head := head_of(zookeeper, remote)) is not None and head.start_offset == 5)
    until(lambda: not any(f"-{4:020d}-" in name for name in store.names(remote.folder)))
    assert any(f"-{5:020d}-" in name for name in store.names(remote.folder))
    cluster.admin.delete_topics(["t"])
    until(lambda: store.names(remote.folder) == [])
    until(lambda: zookeeper.get(head_path(remote)) is None)


def test_copying_stops_where_it_is_disabled_and_the_feature_stays_on(
    cluster: InProcessCluster, zookeeper: ZooKeeper
) -> None:
    cluster.create_topic("t", configs={**TIERED, "remote.log.copy.disable": "true"})
    for _ in range(3):
        cluster.produce("t", ["x" * 900])
    refusal = r"set remote\.log\.copy\.disable=true to copy no more, or remote\.log\.delete\.on\.disable=true"
    with pytest.raises(SparklogError, match=refusal):
        ClusterChanges(cluster.client).alter_topic_configs("t", {"remote.storage.enable": "false"})
    remote = remote_of(cluster, "t")
    assert head_of(zookeeper, remote) is None
    ClusterChanges(cluster.client).alter_topic_configs("t", {"remote.log.copy.disable": "false"})
    until(lambda: is_copied(zookeeper, remote, 2))


def test_a_raw_topic_keeps_its_segments_as_they_are_and_its_layout_may_change(
    cluster: InProcessCluster, zookeeper: ZooKeeper, url: str
) -> None:
    """Readers get both kinds from the store alone."""
    cluster.create_topic("t", configs={**TIERED, "remote.log.layout": "raw"})
    remote, store = remote_of(cluster, "t"), open_store(url)
    values = [f"{number}" * 900 for number in range(6)]
    for value in values[:3]:
        cluster.produce("t", [value])
    until(lambda: is_copied(zookeeper, remote, 2))
    log = (cluster.root / "broker-1/0/t-0/00000000000000000000.log").read_bytes()
    ClusterChanges(cluster.client).alter_topic_configs("t", {"remote.log.layout": "arrow"})
    until(lambda: not any(one.config.remote_raw for one in logs_of(cluster)))
    for value in values[3:]:
        cluster.produce("t", [value])
    until(lambda: is_copied(zookeeper, remote, 5))
    head = head_of(zookeeper, remote)
    assert head is not None
    assert [one.arrow_bytes > 0 for one in head.tail] == [False, False, True, True, True]
    raw = head.tail[0]
    rest = store.read(remote.object_name(raw, "rest"), 0, raw.rest_bytes)
    assert log in rest, "byte for byte"
    arrow = [name for name in store.names(remote.folder) if name.endswith(".arrow")]
    assert len(arrow) == 3
    ClusterChanges(cluster.client).alter_topic_configs("t", {"local.retention.bytes": "1"})
    until(lambda: all(one.local_start_offset == 5 for one in logs_of(cluster)))
    assert [record.value.decode() for record in cluster.consume("t", at_least=6)] == values


def logs_of(cluster: InProcessCluster, topic: str = "t") -> list[Log]:
    place = TopicPartition(topic, 0)
    found = [broker.body.replicas.get(place) for broker in cluster.brokers.values()]
    return [one.log for one in found if one is not None]


def share_of(cluster: InProcessCluster, topic: str = "t") -> RemoteShare:
    return cluster.admin.describe_topics([topic])[0].partitions[0].remote or RemoteShare()


def test_a_topic_leaves_the_store_where_its_history_may_be_deleted_and_may_come_back(
    cluster: InProcessCluster, zookeeper: ZooKeeper, url: str
) -> None:
    cluster.create_topic("t", configs={**TIERED, "local.retention.bytes": "1"})
    for number in range(5):
        cluster.produce("t", [f"{number}" * 900])
    remote, store = remote_of(cluster, "t"), open_store(url)
    folders = list(cluster.root.glob("broker-*/0/t-0"))
    until(lambda: all(min(int(path.stem) for path in one.glob("*.log")) == 4 for one in folders))
    (partition,) = cluster.admin.describe_topics(["t"])[0].partitions
    assert (partition.log_start_offset, partition.local_start_offset) == (0, 4)
    until(lambda: share_of(cluster).end_offset == 4)
    share = share_of(cluster)
    assert (share.start_offset, share.lag_segments, share.lag_bytes, share.trouble) == (0, 0, 0, "")
    assert share.size_bytes > 4 * 900
    changes = ClusterChanges(cluster.client)
    both = {"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"}
    changes.alter_topic_configs("t", both)
    until(lambda: store.names(remote.folder) == [])
    head = head_of(zookeeper, remote)
    assert head is not None
    assert (head.start_offset, head.entries) == (4, ())
    cluster.produce("t", ["a" * 900])
    assert values_of(cluster, 2) == ["4" * 900, "a" * 900]
    changes.alter_topic_configs("t", {"remote.storage.enable": "true"})
    cluster.produce("t", ["b" * 900])
    until(lambda: is_copied(zookeeper, remote, 6))
    assert values_of(cluster, 3) == ["4" * 900, "a" * 900, "b" * 900]


def test_the_rate_of_copying_changes_while_brokers_run_and_no_stop_waits_for_it(
    cluster: InProcessCluster, zookeeper: ZooKeeper
) -> None:
    name = "remote.log.manager.copy.max.bytes.per.second"
    ClusterChanges(cluster.client).alter_broker_configs(None, {name: "1"})
    brokers = cluster.brokers.values()
    until(lambda: all(one.body.parts.settings.now.get_int(name) == 1 for one in brokers))
    cluster.create_topic("t", configs=TIERED)
    cluster.produce("t", ["x" * 900])
    cluster.produce("t", ["x" * 900])
    until(lambda: any(one.body.copies.copier.statistics.bytes for one in brokers))
    assert head_of(zookeeper, remote_of(cluster, "t")) is None
    began = time.monotonic()
    for broker in brokers:
        broker.stop()
    assert time.monotonic() - began < DEADLINE_SECONDS
