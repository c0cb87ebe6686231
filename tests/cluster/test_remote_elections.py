"""Unclean elections of a topic whose disks hold the last segments only. The store counts as a replica; where
an operator gives it up, what nobody has any more is passed over, and what anybody has is read.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from confluent_kafka import Consumer, TopicPartition

from sparklog.broker.remote_log.copying.history_questions import HistoryQuestions
from sparklog.client.changes import ClusterChanges
from sparklog.model import ids
from sparklog.remote.store import Failure, RemoteStoreError
from sparklog.storage.log import Log
from sparklog.testing import InProcessCluster
from tests.tiers import copying_at_once, in_the_store_only
from tests.waiting import until

pytestmark = pytest.mark.integration

TP = ids.TopicPartition("t", 0)
DEADLINE_SECONDS = 60
TIERED = {**in_the_store_only(1_000), "unclean.leader.election.enable": "true"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[InProcessCluster]:
    (tmp_path / "store").mkdir()
    settings = copying_at_once(f"file://{tmp_path / 'store'}")
    with InProcessCluster(tmp_path / "cluster", brokers=2, settings=settings) as running:
        yield running


def log_of(cluster: InProcessCluster, broker: int) -> Log:
    partition = cluster.brokers[broker].body.replicas.get(TP)
    assert partition is not None
    return partition.log


def fill(cluster: InProcessCluster, count: int, text: str) -> list[str]:
    values = [f"{number} {text * 300}" for number in range(count)]
    for value in values:
        cluster.produce("t", [value])
    return values


def wait_until_moved(log: Log, offset: int) -> int:
    """The start of this disk, at ``offset`` or later, once sealed segments are in the store only."""
    until(lambda: offset <= log.local_start_offset == log.active_segment_base)
    return log.local_start_offset


def read_all(cluster: InProcessCluster, start: int, end: int) -> list[tuple[int, str]]:
    """By librdkafka: offsets and values."""
    settings = {"group.id": "readers", "enable.auto.commit": False, "auto.offset.reset": "error"}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, **settings})
    found: list[tuple[int, str]] = []
    try:
        consumer.assign([TopicPartition("t", 0, start)])
        while not found or found[-1][0] < end - 1:
            message = consumer.poll(DEADLINE_SECONDS)
            assert message is not None, f"nothing behind {found[-1:]}"
            assert message.error() is None, message.error()
            found.append((message.offset() or 0, message.value().decode()))
    finally:
        consumer.close()
    return found


def elect_uncleanly(cluster: InProcessCluster, broker: int, dead: int) -> None:
    cluster.kill(dead)
    cluster.revive(broker)
    assert cluster.wait_for_leader("t", other_than=dead) == broker


def elect_without_store(cluster: InProcessCluster, broker: int, dead: int) -> None:
    """The store does not answer until an operator has given it up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HistoryQuestions, "_store", refuse)
        elect_uncleanly(cluster, broker, dead)
        until(lambda: waits_for_store(cluster, broker))
        demanded = ClusterChanges(cluster.client).elect_leaders([TP], unclean=True, without_store=True)
        assert demanded == ([TP], {})
        until(lambda: not waits_for_store(cluster, broker))


def refuse(*_: object) -> NoReturn:
    raise RemoteStoreError(Failure.AWAY, "the store is away")


def waits_for_store(cluster: InProcessCluster, broker: int) -> bool:
    partition = cluster.brokers[broker].body.replicas.get(TP)
    return partition is not None and partition.awaits_history


@pytest.mark.bug("B85")
def test_an_unclean_election_loses_nothing_of_what_the_store_has(cluster: InProcessCluster) -> None:
    """The new leader's log begins anew where the history ends; its own short log is given up."""
    cluster.create_topic("t", configs=TIERED)
    values = fill(cluster, 12, "a")
    late = cluster.wait_for_leader("t")
    early = 3 - late
    cluster.wait_for_isr("t", 2)
    cluster.kill(early)
    values += fill(cluster, 28, "b")
    copied = wait_until_moved(log_of(cluster, late), 30)
    elect_uncleanly(cluster, early, dead=late)
    more = fill(cluster, 20, "c")
    expected = [*values[:copied], *more]
    assert read_all(cluster, 0, len(expected)) == list(enumerate(expected))
    cluster.revive(late)
    cluster.wait_for_isr("t", 2)
    cluster.shut_down(early)
    assert cluster.wait_for_leader("t", other_than=early) == late
    assert read_all(cluster, 0, len(expected)) == list(enumerate(expected))


@pytest.mark.bug(
    "B77",
    "records",
    "After two unclean elections a history is copied no more, and its readers are given errors.",
)
def test_what_two_unclean_elections_lost_is_passed_over_and_the_history_before_it_stays(
    cluster: InProcessCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The second leader gave up on its disk what the first one has cut in the store."""
    cluster.create_topic("t", configs=TIERED)
    values = fill(cluster, 12, "a")
    late = cluster.wait_for_leader("t")
    early = 3 - late
    cluster.wait_for_isr("t", 2)
    cluster.kill(early)
    values += fill(cluster, 28, "b")
    hole_end = wait_until_moved(log_of(cluster, late), 30)
    elect_without_store(cluster, early, dead=late)
    until(lambda: log_of(cluster, early).log_end_offset == 12)
    fill(cluster, 28, "lost again ")
    wait_until_moved(log_of(cluster, early), 30)
    elect_without_store(cluster, late, dead=early)
    expected = list(enumerate(values))
    expected = expected[:12] + expected[hole_end:]
    assert read_all(cluster, 0, 40) == expected
    assert read_all(cluster, 20, 40) == expected[12:], "readers begin in the hole, too"
    assert f"unclean elections lost offsets 12 to {hole_end}, which no disk" in caplog.text
    expected += list(enumerate(fill(cluster, 20, "c"), start=40))
    wait_until_moved(log_of(cluster, late), 50)
    assert read_all(cluster, 0, 60) == expected
    cluster.revive(early)
    cluster.wait_for_isr("t", 2)
    cluster.shut_down(late)
    assert cluster.wait_for_leader("t", other_than=late) == early
    assert read_all(cluster, 0, 60) == expected
    assert [record.value.decode() for record in cluster.consume("t", at_least=len(expected))] == [
        value for _, value in expected
    ]


def test_a_log_that_shares_nothing_with_the_store_begins_with_its_disk(cluster: InProcessCluster) -> None:
    cluster.create_topic("t", configs=TIERED)
    late = cluster.wait_for_leader("t")
    early = 3 - late
    cluster.wait_for_isr("t", 2)
    cluster.kill(early)
    values = fill(cluster, 30, "b")
    start = wait_until_moved(log_of(cluster, late), 20)
    elect_without_store(cluster, early, dead=late)
    fill(cluster, 30, "lost again ")
    wait_until_moved(log_of(cluster, early), 20)
    elect_without_store(cluster, late, dead=early)
    until(lambda: log_of(cluster, late).log_start_offset == start)
    assert read_all(cluster, start, 30) == list(enumerate(values))[start:]
    values += fill(cluster, 20, "c")
    wait_until_moved(log_of(cluster, late), 40)
    cluster.revive(early)
    cluster.wait_for_isr("t", 2)
    assert log_of(cluster, early).log_start_offset == start
    assert read_all(cluster, start, 50) == list(enumerate(values))[start:]
