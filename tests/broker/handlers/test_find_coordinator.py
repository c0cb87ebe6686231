"""FindCoordinator names the leader of a key's partition, and has the internal topic created."""

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.testing.cluster import InProcessCluster
from sparklog.wire.messages.discovery.find_coordinator import (
    GROUP_KEY,
    TRANSACTION_KEY,
    FindCoordinatorRequest,
)
from tests.broker.server_harness import Harness
from tests.waiting import until


@pytest.fixture(scope="module")
def cluster():
    settings = {
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.num.partitions": "3",
        "auto.create.topics.enable": "false",
    }
    with InProcessCluster(brokers=2, settings=settings) as cluster:
        yield cluster


@pytest.fixture
def harness(cluster):
    harness = Harness(cluster.brokers[1])
    yield harness
    harness.connection.close()


def find(harness, *keys, key_type=GROUP_KEY):
    request = FindCoordinatorRequest(coordinator_keys=list(keys), key_type=key_type)
    return harness.call(request).coordinators


def test_the_first_request_has_the_topic_created_with_the_settings_of_brokers(cluster, harness):
    until(lambda: find(harness, "g")[0].error_code is ErrorCode.none)
    described = cluster.admin.describe_topics(["__consumer_offsets"])[0]
    assert [len(partition.replicas) for partition in described.partitions] == [2] * 4
    assert described.is_internal
    configs = cluster.brokers[1].body.coordinators._metadata.topic("__consumer_offsets").configs
    assert configs["cleanup.policy"] == "compact"
    assert configs["compression.type"] == "producer"
    assert configs["segment.bytes"] == "104857600"


def test_several_keys_are_answered_with_the_leaders_of_their_partitions(cluster, harness):
    keys = [f"group-{number}" for number in range(20)]
    until(lambda: all(one.error_code is ErrorCode.none for one in find(harness, *keys)))
    found = find(harness, *keys)
    assert [one.key for one in found] == keys
    nodes = {number: broker.node for number, broker in cluster.brokers.items()}
    assert {one.node_id for one in found} == {1, 2}
    assert all((one.host, one.port) == (nodes[one.node_id].host, nodes[one.node_id].port) for one in found)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_versions_before_4_ask_about_one_key(harness, version):
    until(lambda: find(harness, "g")[0].error_code is ErrorCode.none)
    answer = harness.call(FindCoordinatorRequest(key="g"), version)
    assert answer.error_code is ErrorCode.none
    assert answer.node_id == find(harness, "g")[0].node_id
    assert answer.error_message == ("NONE" if version else None)


def test_an_unknown_type_of_key_is_refused(harness):
    (answer,) = find(harness, "k", key_type=2)
    assert answer.error_code is ErrorCode.invalid_request
    assert "unknown coordinator type 2" in answer.error_message
    assert (
        harness.call(FindCoordinatorRequest(key="k", key_type=7), 3).error_code is ErrorCode.invalid_request
    )


def test_a_transactional_id_has_the_topic_of_transactions_created(cluster, harness):
    until(lambda: find(harness, "t", key_type=TRANSACTION_KEY)[0].error_code is ErrorCode.none)
    described = cluster.admin.describe_topics(["__transaction_state"])[0]
    assert [len(partition.replicas) for partition in described.partitions] == [2] * 3
    assert described.is_internal
    configs = cluster.brokers[1].body.coordinators._metadata.topic("__transaction_state").configs
    assert configs["cleanup.policy"] == "compact"
    assert configs["min.insync.replicas"] == "1"
    assert configs["compression.type"] == "uncompressed"
    assert configs["unclean.leader.election.enable"] == "false"
