"""Topics that come by a write: with the replicas that the settings say, or not at all, with the reason."""

from types import SimpleNamespace

import pytest

from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.testing import InProcessCluster
from sparklog_datasource.writing.topics import existing_topic

pytestmark = pytest.mark.integration

OPTIONS = SimpleNamespace(topic_wait_ms=10_000)


def test_a_topic_is_created_on_three_brokers_and_refused_with_the_reason_on_two(tmp_path) -> None:
    settings = {"default.replication.factor": "3", "auto.create.topics.enable": "true"}
    with (
        InProcessCluster(tmp_path, settings=settings) as cluster,
        ClusterClient(cluster.bootstrap_servers, auto_create_topics=True) as client,
    ):
        made = existing_topic(client, "made", OPTIONS)
        assert [len(partition.replicas) for partition in made.partitions.values()] == [3]
        cluster.kill(3)
        with pytest.raises(KafkaError) as refused:
            existing_topic(client, "new", OPTIONS)
    assert refused.value.code is ErrorCode.invalid_replication_factor
    assert refused.value.message.endswith(
        ": fewer brokers live than default.replication.factor says; start the missing ones, or create it "
        "with fewer replicas"
    )
    assert "auto.create" not in refused.value.message
