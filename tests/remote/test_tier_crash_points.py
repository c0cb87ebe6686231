"""A broker dies at each call of its store that changes something, and at each write of a head in ZooKeeper.

Nothing is lost, nothing comes back, and the store ends with exactly what heads lead to. A log goes through
the steps of the tier, one at a time. Each is repeated with a death at its first point, its second, and so on,
until it is over before the death. After each the broker comes back, alone or beside the replica that led
meanwhile.
"""

import itertools
import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from sparklog.broker.remote_log.copying.garbage_search import names_of
from sparklog.broker.remote_log.copying.heads import head_path, read_head
from sparklog.broker.remote_log.copying.lineages import read_page
from sparklog.client.admin import PartitionDescription
from sparklog.client.changes import ClusterChanges
from sparklog.client.cluster import ClusterClient
from sparklog.core.remote_log.head import Head
from sparklog.core.remote_log.page import PageRef
from sparklog.core.remote_log.remote_segment import RemotePartition
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.settings.coordinator_settings import of_a_start
from sparklog.remote.open_store import open_store
from sparklog.remote.store import RemoteStoreError
from sparklog.testing import InProcessCluster
from sparklog.testing.cluster import SETTINGS
from sparklog.testing.records import Record
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper
from tests.remote.crash_points.short_times import shorten
from tests.remote.crash_points.victim import Point, Victim
from tests.waiting import until

pytestmark = pytest.mark.integration

SURVIVOR = 1
POINTS_MAX = 100
TIERED = {"remote.storage.enable": "true", "segment.bytes": "1000", "local.retention.bytes": "1"}
KEPT_SEGMENTS = 3


@dataclass
class Life:
    """A topic whose leader dies. With ``has_survivor`` another replica leads meanwhile."""

    cluster: InProcessCluster
    victim: Victim
    zookeeper: KazooZooKeeper
    url: str
    has_survivor: bool

    def __post_init__(self) -> None:
        self.store = open_store(self.url)
        self.topic, self.acknowledged, self.start = "t", dict[int, Record](), 0
        self.points, self.known = list[Point](), dict[str, RemotePartition]()
        self.create("t")

    def create(self, topic: str) -> None:
        replicas = [Victim.broker_id, SURVIVOR] if self.has_survivor else [Victim.broker_id]
        config = {**TIERED, "min.insync.replicas": "1"}
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers, "log_level": 0})
        new = NewTopic(topic, 1, replica_assignment=[replicas], config=config)
        for made in admin.create_topics([new]).values():
            made.result(60)
        self.wait_until_led(topic)

    def wait_until_led(self, topic: str) -> None:
        def is_led() -> bool:
            partition = self.partition(topic)
            is_whole = len(partition.isr) == len(partition.replicas)
            if is_whole and partition.leader != Victim.broker_id:
                ClusterChanges(self.cluster.client).elect_leaders([TopicPartition(topic, 0)])
            return is_whole and partition.leader == Victim.broker_id

        until(is_led, "the victim to lead")

    def partition(self, topic: str = "t") -> PartitionDescription:
        return self.cluster.partitions(topic)[0]

    # The history

    def remote(self, topic: str = "t") -> RemotePartition:
        if topic not in self.known:
            topic_id = self.cluster.admin.describe_topics([topic])[0].topic_id
            self.known[topic] = RemotePartition(topic, topic_id, 0)
        return self.known[topic]

    def head(self, topic: str = "t") -> Head | None:
        stored = read_head(self.zookeeper, self.remote(topic))
        return None if stored is None else stored.head

    def is_copied(self, topic: str = "t") -> bool:
        """All but the active segment, which has one record."""
        head, log = self.head(topic), self.partition(topic)
        return head is not None and head.end_offset == log.log_end_offset - 1 == log.local_start_offset

    def named(self) -> list[str]:
        head = self.head()
        return [] if head is None else sorted(names_of(self.store, self.remote(), head))

    def is_store_from(self, start: int) -> bool:
        """Whether the history begins there, and nothing else of it is in the store."""
        head = self.head()
        return head is not None and head.start_offset == start and self.is_clean()

    def is_clean(self) -> bool:
        try:
            return self.store.names("") == sorted([*self.named(), "sparklog-cluster-id"])
        except RemoteStoreError:  # a page that has just been replaced is gone
            return False

    def segment_bytes(self) -> int:
        """Each has one record of the same size."""
        head = self.head()
        assert head is not None
        last = head.entries[-1]
        return last.size_bytes // (last.segment_count if isinstance(last, PageRef) else 1)

    # What clients do

    def write(self, topic: str = "t") -> None:
        """A segment, whose record is remembered as it was acknowledged."""
        self.cluster.produce(topic, [os.urandom(900)])
        if topic == "t":
            self.acknowledged[len(self.acknowledged)] = self.cluster.consume("t")[-1]

    def write_copied(self, segments: int = 1) -> None:
        for _ in range(segments):
            self.write()
        until(self.is_copied, "the copy")

    def check(self) -> None:
        """Everything acknowledged is read from the start; the start never goes back."""
        found = self.cluster.consume("t")
        assert found, "nothing is there"
        assert self.start <= found[0].offset
        self.start = found[0].offset
        assert found == [self.acknowledged[one] for one in range(self.start, len(self.acknowledged))]

    def check_start(self, expected: int) -> None:
        self.check()
        assert self.start == expected

    # Deaths

    def die_at_each_point(
        self,
        prepare: Callable[[], None],
        begin: Callable[[], None],
        is_done: Callable[[], bool],
        stride: int = 1,
    ) -> None:
        """``begin`` is acknowledged while the tier is held, and is over once ``is_done``."""
        for number in itertools.count(1, stride):
            assert number < POINTS_MAX
            prepare()
            self.victim.hold()
            begin()
            self.victim.arm(number)
            until(lambda: self.victim.is_dead or is_done(), "the end of the step")
            if not self.victim.is_dead:
                self.victim.arm(0)
            if not self.victim.is_dead:
                return
            assert self.victim.point is not None
            self.points.append(self.victim.point)
            self.come_back(is_done)

    def come_back(self, is_done: Callable[[], bool]) -> None:
        self.report_death()
        if self.has_survivor:
            self.cluster.wait_for_leader("t", other_than=Victim.broker_id)
            until(is_done, "the end of the step, by the other replica")
            self.check()
        self.victim.launch()
        self.wait_until_led("t")
        until(is_done, "the end of the step, after the death")
        self.check()

    def report_death(self) -> None:
        assert self.cluster.controller is not None
        self.cluster.controller.broker_died(BrokerId(Victim.broker_id), self.victim.epoch)

    def wait_for_a_clean_store(self) -> None:
        until(self.is_clean, lambda: f"{set(self.store.names('')).difference(self.named())} to go")


@pytest.fixture
def life(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Life]:
    shorten(monkeypatch.setattr)
    (tmp_path / "store").mkdir()
    url = f"file://{tmp_path / 'store'}"
    tiered = {
        "remote.log.storage.url": url,
        "remote.log.manager.task.interval.ms": "20",
        "log.retention.check.interval.ms": "20",
    }
    settings = tiered if request.param else {}
    with InProcessCluster(tmp_path / "cluster", brokers=1, zookeeper="real", settings=settings) as cluster:
        zookeeper = KazooZooKeeper(cluster.zookeeper)
        zookeeper.start(10_000)
        victim = Victim(tmp_path / "victim", cluster.zookeeper, of_a_start({**SETTINGS, **tiered}, 1))
        servers = f"{cluster.bootstrap_servers},{victim.address}"
        cluster._client = client = ClusterClient(servers, client_id="sparklog-testing")  # for either alone
        try:
            victim.launch()
            until(lambda: len(cluster.admin.describe_cluster().brokers) == 2, "both brokers")
            yield Life(cluster, victim, zookeeper, url, request.param)
        finally:
            victim.close()
            client.close()
            zookeeper.close()


def copy(life: Life, stride: int = 1) -> None:
    life.write()
    life.die_at_each_point(lambda: None, life.write, life.is_copied, stride)


def delete_records(life: Life, stride: int = 1) -> None:
    start = life.start

    def delete() -> None:
        nonlocal start
        start += 1
        ClusterChanges(life.cluster.client).delete_records({TopicPartition("t", 0): start})

    def is_deleted() -> bool:
        return life.is_store_from(start)

    life.write_copied(KEPT_SEGMENTS)
    life.die_at_each_point(life.write_copied, delete, is_deleted, stride)
    until(is_deleted)
    life.check_start(start)


def retain(life: Life, stride: int = 1) -> None:
    changes, start = ClusterChanges(life.cluster.client), life.start

    def limit(size: int) -> None:
        changes.alter_topic_configs("t", {"retention.bytes": str(size)})

    def is_raised() -> bool:
        return life.is_store_from(start)

    def prepare() -> None:
        limit(-1)
        life.write_copied()

    def retain_fewer() -> None:
        nonlocal start
        log = life.partition()
        start = log.log_start_offset + 1
        limit((log.log_end_offset - start) * life.segment_bytes())

    life.write_copied(KEPT_SEGMENTS)
    life.die_at_each_point(prepare, retain_fewer, is_raised, stride)
    until(is_raised)
    limit(-1)
    life.check_start(start)


def find_garbage(life: Life, stride: int = 1) -> None:
    life.write_copied(KEPT_SEGMENTS)
    junk = ""

    def leave() -> None:
        nonlocal junk
        head = life.head()
        assert head is not None
        last = head.entries[-1]
        segment = read_page(life.store, life.remote(), last)[-1] if isinstance(last, PageRef) else last
        junk = life.remote().object_name(replace(segment, segment_id=uuid.uuid4().hex), "rest")
        life.store.put(junk, [b"junk"])

    def is_gone() -> bool:
        return junk not in life.store.names("")

    life.die_at_each_point(lambda: None, leave, is_gone, stride)


def delete_topics(life: Life, stride: int = 1) -> None:
    topic, remote = "", life.remote()
    life.write_copied(KEPT_SEGMENTS)

    def prepare() -> None:
        nonlocal topic, remote
        topic = f"deleted-{uuid.uuid4().hex}"
        life.create(topic)
        remote = life.remote(topic)
        for _ in range(2):
            life.write(topic)
        until(lambda: life.is_copied(topic), "the copy")

    def is_gone() -> bool:
        return not life.store.names(remote.folder) and life.zookeeper.get(head_path(remote)) is None

    life.die_at_each_point(prepare, lambda: life.cluster.admin.delete_topics([topic]), is_gone, stride)


def cut(life: Life, stride: int = 1) -> None:
    """The other replica writes and copies what is given up with the store's history of it."""
    topic_partition, changes, end = TopicPartition("t", 0), ClusterChanges(life.cluster.client), 0

    def is_cut() -> bool:
        head = life.head()
        return head is not None and (head.end_offset or 0) <= end

    life.write_copied(KEPT_SEGMENTS)
    for number in itertools.count(1, stride):
        assert number < POINTS_MAX
        life.write_copied()
        end = life.partition().log_end_offset
        life.victim.kill()
        life.report_death()
        life.cluster.wait_for_leader("t", other_than=Victim.broker_id)
        for _ in range(4):  # so that the cut is through a page
            life.cluster.produce("t", [b"lost" * 225])
        until(life.is_copied, "the copy of what is lost")
        life.cluster.shut_down(SURVIVOR)
        life.victim.launch()
        life.victim.hold()
        until(
            lambda: changes.elect_leaders([topic_partition], unclean=True, without_store=True)[0],
            "an election",
        )
        life.victim.arm(number)
        until(lambda: life.victim.is_dead or is_cut(), "the cut")
        life.victim.arm(0)
        is_over = not life.victim.is_dead
        if not is_over:
            assert life.victim.point is not None
            life.points.append(life.victim.point)
            life.report_death()
            life.victim.launch()
            until(lambda: life.partition().leader == Victim.broker_id, "the victim to lead")
        until(is_cut, "the cut")
        life.check()
        life.cluster.revive(SURVIVOR)
        life.wait_until_led("t")
        if is_over:
            return


ALONE, LED_MEANWHILE = False, True
CASES = [
    *((ALONE, step) for step in (copy, delete_records, retain, find_garbage, delete_topics)),
    *((LED_MEANWHILE, step) for step in (copy, delete_records, cut)),
]


def case_id(value: bool | Callable[..., None]) -> str:
    return "led meanwhile" if value is True else "alone" if value is False else value.__name__


@pytest.mark.parametrize("life", [ALONE], indirect=True, ids=case_id)
def test_a_sample_of_deaths_loses_nothing_and_leaves_nothing(life: Life) -> None:
    copy(life, stride=6)
    life.wait_for_a_clean_store()
    assert {one.call for one in life.points} >= {"put"}


@pytest.mark.remote
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("life", "step"), CASES, indirect=["life"], ids=case_id)
def test_a_death_at_each_point_loses_nothing_and_leaves_nothing(
    life: Life, step: Callable[[Life], None]
) -> None:
    step(life)
    life.wait_for_a_clean_store()
    assert life.points
    print(step.__name__, len(life.points), sorted({(one.call, one.moment) for one in life.points}))
