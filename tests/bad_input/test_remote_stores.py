"""A remote store that somebody has touched: what is still there is read, and the log says what is not."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from sparklog.model.settings.config import BrokerConfig
from sparklog.testing import InProcessCluster
from tests.waiting import until

pytestmark = pytest.mark.integration

Case = Callable[..., str]
CONFIGS = {
    "remote.storage.enable": "true",
    "segment.bytes": "1000",
    "retention.ms": "-1",
    "local.retention.bytes": "1",
}
VALUES = [str(number) * 900 for number in range(5)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("history")


@pytest.fixture(scope="module")
def tiered(tmp_path_factory: pytest.TempPathFactory, store: Path) -> Iterator[InProcessCluster]:
    with InProcessCluster(tmp_path_factory.mktemp("tiered"), settings=settings_of(store)) as running:
        yield running


def settings_of(store: Path) -> dict[str, str]:
    return {
        "remote.log.storage.url": f"file://{store}",
        "remote.log.manager.task.interval.ms": "50",
        "log.retention.check.interval.ms": "100",
        "remote.log.reader.cache.bytes": "0",
    }


def history(cluster: InProcessCluster, store: Path, topic: str) -> dict[int, Path]:
    """A new topic of five records, the first four of which the store alone has; by offset, what has them."""
    cluster.create_topic(topic, configs=CONFIGS)
    for value in VALUES:
        cluster.produce(topic, [value])

    def has_left() -> bool:
        folders = list(cluster.root.glob(f"broker-*/0/{topic}-0"))
        return all(min(int(path.stem) for path in one.glob("*.log")) == 4 for one in folders)

    until(has_left, "the segments leave the disks", timeout_s=60)
    return {int(one.name.split("-")[1]): one for one in store.rglob(f"topic={topic}/*/*.rest")}


def read(cluster: InProcessCluster, topic: str, start: int, count: int) -> list[str]:
    """As far as it goes in five seconds."""
    found: list[str] = []
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "readers"})
    try:
        consumer.assign([TopicPartition(topic, 0, start)])
        for _ in range(50):
            message: Any = consumer.poll(0.1)
            if message is not None and message.error() is None:
                found.append(message.value().decode())
            if len(found) == count:
                break
    finally:
        consumer.close()
    return found


def gone(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50])


def rotten(path: Path) -> None:
    path.write_bytes(b"?" * path.stat().st_size)


@pytest.mark.parametrize("damage", [gone, cut, rotten])
def test_an_object_is_damaged_and_all_others_are_read(
    tiered: InProcessCluster, store: Path, case: Case, logged: Callable[[str], str], damage: Any
) -> None:
    topic = f"object-{damage.__name__}"
    objects = history(tiered, store, topic)
    damage(objects[1])
    assert read(tiered, topic, 0, 5) == VALUES[:1]
    assert read(tiered, topic, 2, 3) == VALUES[2:]
    case(
        f"an object of a remote store is {damage.__name__}",
        "broker's log",
        logged(f"{topic}-0: offset 1 cannot be read from the remote store"),
        "put it back; only its offsets are missing ([metric](metrics.md))",
        {objects[1].name: "20240131-…-1.rest", str(store): "/history"},
    )


def test_a_store_is_wiped_and_what_disks_have_is_read(
    tiered: InProcessCluster, store: Path, case: Case, logged: Callable[[str], str]
) -> None:
    objects = history(tiered, store, "wiped")
    for path in store.rglob("topic=wiped/*/*"):
        path.unlink()
    assert read(tiered, "wiped", 0, 1) == []
    assert read(tiered, "wiped", 4, 1) == VALUES[4:]
    case(
        "a topic's objects are removed from a remote store by hand",
        "broker's log",
        logged("wiped-0: offset 0 cannot be read from the remote store"),
        "put them back, or DeleteRecords up to the local start (`sparklog topics describe`)",
        {str(store): "/history", **{one.stem: f"20240131-…-{at}" for at, one in objects.items()}},
    )
    until(lambda: trouble(tiered, "wiped") != "", "the loss is noticed", timeout_s=60)
    case(
        "a topic's objects are removed from a remote store by hand",
        "command line",
        f"wiped-0: {trouble(tiered, 'wiped')}",
        "as the broker's log says; `sparklog topics describe` shows it 5 s after a failed read, "
        "else within 15 minutes",
        {str(store): "/history", **{one.stem: f"20240131-…-{at}" for at, one in objects.items()}},
    )


def trouble(cluster: InProcessCluster, topic: str) -> str:
    share = cluster.admin.describe_topics([topic])[0].partitions[0].remote
    return "" if share is None else share.trouble


def test_a_topic_that_is_made_again_under_its_name_has_nothing_of_the_earlier_one(
    tiered: InProcessCluster, store: Path, case: Case
) -> None:
    backup = {path: path.read_bytes() for path in history(tiered, store, "again").values()}
    tiered.admin.delete_topics(["again"])
    tiered.create_topic("again", configs=CONFIGS)
    tiered.produce("again", ["new"])
    until(lambda: not list(store.rglob("topic=again/*/*.rest")), "the objects are deleted", timeout_s=60)
    for path, data in backup.items():
        path.write_bytes(data)
    (seen,) = read(tiered, "again", 0, 1)
    case(
        "a topic is made again under its name, and objects of the earlier one are put back from a backup",
        "Kafka client",
        f"{seen} at offset 0",
        "nothing: names have the topic's id",
    )


def test_another_url_is_set_with_history_behind_the_first_one(tmp_path: Path, case: Case) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    with InProcessCluster(tmp_path / "moved", brokers=1, settings=settings_of(first)) as moved:
        history(moved, first, "moved")
        moved.config = BrokerConfig({**moved.config.given, "remote.log.storage.url": f"file://{second}"})
        moved.kill(1)
        moved.revive(1)
        moved.wait_for_leader("moved")
        until(lambda: trouble(moved, "moved") != "", "the copier has looked", timeout_s=60)
        assert read(moved, "moved", 0, 1) == []
        assert read(moved, "moved", 4, 1) == VALUES[4:]
        case(
            "`remote.log.storage.url` is changed while there are segments behind the old one",
            "command line",
            f"moved-0: {trouble(moved, 'moved')}",
            "until retention has deleted what is there",
            {str(first): "/first", str(second): "/second"},
        )
