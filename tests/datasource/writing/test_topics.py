"""The largest batch of a write: leaders may take different ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from sparklog.client.changes import ClusterChanges
from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import KafkaError
from sparklog.testing import InProcessCluster
from sparklog_datasource.writing.topics import LEADER_TIMEOUT_MS, existing_topic, message_bytes_max
from sparklog_datasource.writing.write_options import WriteOptions
from tests.waiting import until

pytestmark = pytest.mark.integration

OF_ALL: Final = 1_048_588
OF_ONE: Final = 100_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[InProcessCluster]:
    with InProcessCluster(brokers=3) as cluster:
        yield cluster


def limit(cluster: InProcessCluster, topic: str) -> int:
    options = WriteOptions.of({"bootstrap.servers": cluster.bootstrap_servers, "topic": topic})
    return message_bytes_max(cluster.client, existing_topic(cluster.client, topic, options), options)


def wait_for_limit(cluster: InProcessCluster, broker: int, expected: int) -> None:
    """A broker follows its settings a moment after the change is answered."""
    server = cluster.brokers[broker]
    until(lambda: server.body.parts.settings.now.get_int("message.max.bytes") == expected, "the setting")


def test_a_batch_is_as_large_as_the_least_of_its_leaders_takes(cluster: InProcessCluster) -> None:
    cluster.create_topic("limit-of-all", partitions=6)
    assert limit(cluster, "limit-of-all") == OF_ALL
    changes = ClusterChanges(cluster.client)
    changes.alter_broker_configs(2, {"message.max.bytes": str(OF_ONE)})
    wait_for_limit(cluster, 2, OF_ONE)
    assert limit(cluster, "limit-of-all") == OF_ONE
    changes.alter_broker_configs(2, {"message.max.bytes": None})
    wait_for_limit(cluster, 2, OF_ALL)
    assert limit(cluster, "limit-of-all") == OF_ALL


def test_a_topics_own_limit_counts_for_all_leaders(cluster: InProcessCluster) -> None:
    cluster.create_topic("limit-of-topic", partitions=3, configs={"max.message.bytes": "5000000"})
    assert limit(cluster, "limit-of-topic") == 5_000_000


def test_a_leader_that_is_gone_counts_for_nothing(cluster: InProcessCluster) -> None:
    cluster.create_topic("limit-without-leader", partitions=3, replication_factor=1)
    cluster.kill(3)
    try:
        assert limit(cluster, "limit-without-leader") == OF_ALL
    finally:
        cluster.revive(3)


def test_a_user_who_may_only_write_needs_no_right_to_see_the_limit(tmp_path: Path) -> None:
    with InProcessCluster(tmp_path, brokers=1, secure=True) as secured:
        secured.create_topic("limit-unseen", partitions=1, replication_factor=1)
        alice = secured.as_user("alice")
        secured.allow("alice", "write", topic="limit-unseen")
        options = WriteOptions.of({"bootstrap.servers": secured.bootstrap_servers, "topic": "limit-unseen"})
        topic = existing_topic(alice.client, "limit-unseen", options)
        assert message_bytes_max(alice.client, topic, options) == OF_ALL
        with pytest.raises(KafkaError, match="cannot write to topic 'other'"):
            existing_topic(alice.client, "other", options)


def test_a_leader_that_stands_still_holds_a_task_up_for_seconds_only(
    cluster: InProcessCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create_topic("limit-of-those-that-answer", partitions=3)
    call, timeouts = ClusterClient.call_broker, []

    def call_unless_it_stands_still(of: ClusterClient, broker: int, message: Any, **given: Any) -> Any:
        if broker != 2:
            return call(of, broker, message, **given)
        timeouts.append(given["timeout_ms"])
        raise TimeoutError("it has not answered in time")

    monkeypatch.setattr(ClusterClient, "call_broker", call_unless_it_stands_still)
    assert limit(cluster, "limit-of-those-that-answer") == OF_ALL
    assert timeouts == [LEADER_TIMEOUT_MS]
