"""Garbage in a store: of topics that are no more, and beside manifests that cannot be read."""

import itertools
import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sparklog.broker.remote_log.copying.copier import CopierPorts, CopyStatistics, RemoteCopier
from sparklog.broker.remote_log.copying.garbage_search import (
    DELETED_KEPT_MS,
    GRACE_MS,
    WHOLE_STORE_INTERVAL_MS,
)
from sparklog.broker.remote_log.copying.heads import head_path, note_topic, read_head, topics_with_logs
from sparklog.core.controller.state.znodes import BROKER_IDS, topic_path
from sparklog.core.remote_log.head import TAIL_MAX
from sparklog.core.remote_log.remote_segment import RemotePartition
from sparklog.model.ids import BrokerId
from sparklog.model.loops import Pause, go_on
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.testing.memory_zookeeper import MemoryZooKeeper
from tests.broker.partition_harness import TP, Harness
from tests.broker.remote_log.copying.copies import INTERVAL_MS, QUAKES, FaultyStore, copied
from tests.core.remote_log.manifests import segment

GONE = RemotePartition("gone", uuid.UUID(int=99), 5)
AGAIN = replace(QUAKES, topic_id=uuid.UUID(int=98))
"""An earlier topic of the same name."""


class Hand:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now_ms = 0

    def wall_ms(self) -> int:
        return self.now_ms

    monotonic_ms = wall_ms


class Copier:
    """Of broker 1, round by round."""

    def __init__(self, harness: Harness, zookeeper: MemoryZooKeeper) -> None:
        ids: Iterator[int] = itertools.count(1)
        self.clock, self.store, self.statistics = Hand(), FaultyStore(), CopyStatistics()
        ports = CopierPorts(
            zookeeper,
            lambda: self.store,
            "file:///h",
            self.clock,
            lambda: f"{next(ids):032x}",
            lambda _: None,
        )
        self.copier = RemoteCopier(
            BrokerId(1), lambda: [harness.partition], ports, INTERVAL_MS, self.statistics
        )
        self.loop = self.copier.loop()

    def round(self, *, after_ms: int = 0) -> None:
        self.clock.now_ms += after_ms
        while go_on(self.loop) != Pause(INTERVAL_MS):
            pass


@pytest.fixture
def copier(harness: Harness, zookeeper: MemoryZooKeeper) -> Copier:
    zookeeper.ensure_path(f"{BROKER_IDS}/1")
    return Copier(harness, zookeeper)


@pytest.fixture
def deleted(zookeeper: MemoryZooKeeper) -> None:
    """Topics that once had something in the store."""
    for remote in (GONE, AGAIN):
        note_topic(zookeeper, remote)


def put(copier: Copier, remote: RemotePartition) -> set[str]:
    """What an upload has left, and a page."""
    names = {*remote.object_names(segment(0, 10)), remote.page_name(0, "a" * 32)}
    copier.store.objects.update(dict.fromkeys(names, b"left"))
    return names


@pytest.mark.usefixtures("deleted")
@pytest.mark.parametrize("remote", [GONE, AGAIN], ids=["of no topic", "of an earlier topic of a name"])
def test_objects_of_topics_that_are_no_more_are_deleted_after_a_grace(
    copier: Copier, remote: RemotePartition
) -> None:
    """A leader that was replaced ended its upload after its topic, with its head, was deleted."""
    copier.round()
    whole = set(copier.store.objects)
    left = put(copier, remote)
    copier.round(after_ms=WHOLE_STORE_INTERVAL_MS)
    assert set(copier.store.objects) == whole | left
    copier.round(after_ms=GRACE_MS)
    assert set(copier.store.objects) == whole | left, "the whole store is not listed that often"
    copier.round(after_ms=WHOLE_STORE_INTERVAL_MS)
    assert set(copier.store.objects) == whole


def test_objects_of_topics_that_zookeeper_never_knew_stay(copier: Copier, zookeeper: MemoryZooKeeper) -> None:
    """The ensemble was restored from a snapshot of before they were created."""
    note_topic(zookeeper, AGAIN)
    left = put(copier, GONE)
    for _ in range(3):
        copier.round(after_ms=WHOLE_STORE_INTERVAL_MS)
    assert left <= set(copier.store.objects)


@pytest.mark.usefixtures("deleted")
def test_a_deleted_topic_is_remembered_for_a_day_after_its_last_object(
    copier: Copier, zookeeper: MemoryZooKeeper
) -> None:
    copier.round()
    rounds = DELETED_KEPT_MS // WHOLE_STORE_INTERVAL_MS
    for _ in range(rounds):
        copier.round(after_ms=WHOLE_STORE_INTERVAL_MS)
    assert {str(GONE.topic_id), str(AGAIN.topic_id)} < topics_with_logs(zookeeper)
    put(copier, GONE)
    copier.round(after_ms=WHOLE_STORE_INTERVAL_MS)
    assert topics_with_logs(zookeeper) == {str(GONE.topic_id), str(QUAKES.topic_id)}
    for _ in range(rounds + 3):
        copier.round(after_ms=WHOLE_STORE_INTERVAL_MS)
    assert topics_with_logs(zookeeper) == {str(QUAKES.topic_id)}


@pytest.mark.usefixtures("deleted")
def test_whatever_is_no_object_of_a_partition_stays(copier: Copier) -> None:
    others = {"sparklog-cluster-id": b"id", "topic=gone/README": b"text", ".probe/x": b"x"}
    copier.store.objects.update(others)
    for _ in range(3):
        copier.round(after_ms=WHOLE_STORE_INTERVAL_MS)
    assert set(others) <= set(copier.store.objects)


@pytest.mark.usefixtures("deleted")
def test_one_broker_alone_looks_through_the_whole_store(
    copier: Copier,
    zookeeper: MemoryZooKeeper,
) -> None:
    zookeeper.ensure_path(f"{BROKER_IDS}/0")
    left = put(copier, GONE)
    for _ in range(3):
        copier.round(after_ms=WHOLE_STORE_INTERVAL_MS)
    assert left <= set(copier.store.objects)


def page_is_gone(copier: Copier, zookeeper: MemoryZooKeeper) -> str:
    name = next(name for name in copier.store.objects if name.endswith(".page"))
    del copier.store.objects[name]
    return f"{name} is not there"


def page_is_rotten(copier: Copier, zookeeper: MemoryZooKeeper) -> str:
    name = next(name for name in copier.store.objects if name.endswith(".page"))
    copier.store.objects[name] = copier.store.objects[name][:-1] + b"?"
    return f"{name} has "


def head_is_unreadable(copier: Copier, zookeeper: MemoryZooKeeper) -> str:
    zookeeper.set(head_path(QUAKES), b"{]")
    return f"ZooKeeper node {head_path(QUAKES)} is no manifest"


@pytest.mark.usefixtures("deleted")
@pytest.mark.parametrize("damage", [page_is_gone, page_is_rotten, head_is_unreadable])
def test_a_manifest_that_cannot_be_read_holds_back_its_own_partition_only(
    copier: Copier,
    harness: Harness,
    zookeeper: MemoryZooKeeper,
    caplog: pytest.LogCaptureFixture,
    damage,
) -> None:
    """Nothing of it is deleted; what topics have left that are no more is, and each round goes to its end."""
    copier.round()
    objects, node = dict(copier.store.objects), zookeeper.get(head_path(QUAKES))
    assert node is not None
    named, own, gone = damage(copier, zookeeper), put(copier, QUAKES), put(copier, GONE)
    for _ in range(3):
        copier.round(after_ms=WHOLE_STORE_INTERVAL_MS)
    assert own <= set(copier.store.objects)
    assert not gone & set(copier.store.objects)
    assert copier.statistics.unreadable == 1
    told = [one.message for one in caplog.records if "nothing of its history" in one.message]
    assert 1 <= len(told) <= 2, "once, by the copies and by the search"
    assert all(one.startswith(f"{TP}: ") and named in one for one in told)
    assert "from a backup, or delete the topic" in told[0]
    copier.store.objects.update(objects)
    zookeeper.set(head_path(QUAKES), node.data)
    for _ in range(2):
        copier.round(after_ms=WHOLE_STORE_INTERVAL_MS)
    assert not own & set(copier.store.objects)
    assert copier.statistics.unreadable == 0


def test_a_deleted_topic_is_removed_whatever_its_manifest_says(
    copier: Copier,
    zookeeper: MemoryZooKeeper,
) -> None:
    copier.round()
    zookeeper.set(head_path(QUAKES), b"{]")
    zookeeper.delete(f"{topic_path(TP.topic)}/partitions/0/state")
    zookeeper.delete(f"{topic_path(TP.topic)}/partitions/0")
    zookeeper.delete(f"{topic_path(TP.topic)}/partitions")
    zookeeper.delete(topic_path(TP.topic))
    copier.round()
    assert copier.store.objects == {}
    assert read_head(zookeeper, QUAKES) is None


def test_a_trouble_of_what_is_led_elsewhere_now_is_none_here(
    copier: Copier,
    harness: Harness,
    zookeeper: MemoryZooKeeper,
) -> None:
    copier.round()
    head_is_unreadable(copier, zookeeper)
    copier.round()
    assert copier.statistics.unreadable == 1
    harness.told(2, 5, isr=(2,), replicas=(1, 2))
    copier.round()
    assert copier.statistics.unreadable == 0


def test_the_lag_rises_while_the_store_is_away(copier: Copier, harness: Harness) -> None:
    copier.round()
    assert copier.statistics.lag_bytes == 0
    copier.store.fails_at = copier.store.calls + 1
    for number in range(3):
        harness.produce(bytearray(build_records_batch([Record(value=b"%d" % number)], now_ms=9_000)))
    copier.round()
    assert copier.statistics.failures == 1
    away_bytes = copier.statistics.lag_bytes
    copier.round()
    assert away_bytes > copier.statistics.lag_bytes == 0


def test_a_segment_counts_when_it_is_in_the_log(copier: Copier, zookeeper: MemoryZooKeeper) -> None:
    """The head of the second one is refused: another leads."""
    original, writes = zookeeper.multi, itertools.count()

    def multi(operations, **options):
        if len(operations) == 2 and next(writes) == 1:
            zookeeper.delete(f"{topic_path(TP.topic)}/partitions/0/state")
        return original(operations, **options)

    zookeeper.multi = multi
    copier.round()
    assert copier.statistics.segments == len(copied(zookeeper, copier.store)) == 1
    assert len(copier.store.objects) == 3


def test_records_can_be_given_up_though_their_page_is_gone(
    copier: Copier, harness: Harness, zookeeper: MemoryZooKeeper
) -> None:
    """What is not deleted at once, as nobody knows of it, is garbage."""
    copier.round()
    page_is_gone(copier, zookeeper)
    harness.partition.log_guard.rearrange(lambda log: log.raise_log_start(TAIL_MAX))
    copier.round()
    stored = read_head(zookeeper, QUAKES)
    assert stored is not None
    assert (stored.head.start_offset, len(copied(zookeeper, copier.store))) == (TAIL_MAX, 1)
    for _ in range(2):
        copier.round(after_ms=WHOLE_STORE_INTERVAL_MS)
    assert set(copier.store.objects) == set(QUAKES.object_names(stored.head.tail[0]))
