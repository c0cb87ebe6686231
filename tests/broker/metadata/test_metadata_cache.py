"""What a broker tells clients of the cluster never goes back to what a controller said before."""

import threading

import pytest

from sparklog.broker.metadata.metadata_cache import MetadataCache
from sparklog.model.cluster_facts import DEFAULT_LISTENER, Node
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicPartition
from sparklog.model.settings.config import BrokerConfig
from sparklog.wire.messages.control.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

QUAKES = TopicPartition("quakes", 0)


def says(push, leader, leader_epoch, *, controller_epoch=1, live=(1, 2)):
    state = UpdateMetadataPartitionState(
        partition_index=0,
        controller_epoch=controller_epoch,
        leader=leader,
        leader_epoch=leader_epoch,
        zk_version=leader_epoch,
    )
    endpoint = UpdateMetadataEndpoint(host="host", port=9092)
    return UpdateMetadataRequest(
        controller_id=-1,
        controller_epoch=controller_epoch,
        push=push,
        live_brokers=[UpdateMetadataBroker(id_=one, endpoints=[endpoint]) for one in live],
        topic_states=[UpdateMetadataTopicState(topic_name="quakes", partition_states=[state])],
    )


@pytest.fixture
def cache():
    return MetadataCache(threading.Lock())


@pytest.mark.bug("B19", "words", "A late update of metadata makes a broker send clients an outdated leader.")
def test_an_update_that_comes_again_late_takes_nothing_back(cache):
    cache.update(says(1, leader=1, leader_epoch=4, live=(1,)))
    cache.update(says(2, leader=2, leader_epoch=5, live=(1, 2)))
    assert cache.update(says(1, leader=1, leader_epoch=4, live=(1,))) is None
    told = cache.partition(QUAKES)
    assert (told.leader, told.leader_epoch) == (2, 5)
    assert set(cache.snapshot.brokers) == {1, 2}


@pytest.mark.bug("B19")
def test_an_update_that_comes_twice_is_taken_over_once(cache):
    assert cache.update(says(1, leader=1, leader_epoch=4)) is ErrorCode.none
    assert cache.update(says(1, leader=1, leader_epoch=4)) is None


def test_the_next_controller_counts_anew(cache):
    cache.update(says(7, leader=1, leader_epoch=4))
    assert cache.update(says(1, leader=2, leader_epoch=5, controller_epoch=2)) is ErrorCode.none
    assert cache.partition(QUAKES).leader == 2


def test_an_update_of_the_controller_before_is_refused(cache):
    cache.update(says(1, leader=2, leader_epoch=5, controller_epoch=2))
    stale = cache.update(says(9, leader=1, leader_epoch=4))
    assert stale is ErrorCode.stale_controller_epoch


def test_updates_without_numbers_are_all_taken_over(cache):
    cache.update(says(-1, leader=1, leader_epoch=4))
    assert cache.update(says(-1, leader=2, leader_epoch=5)) is ErrorCode.none
    assert cache.partition(QUAKES).leader_epoch == 5


def test_a_broker_has_a_node_for_each_listener_whose_protocol_is_known(cache):
    endpoints = [
        UpdateMetadataEndpoint(host="inside", port=9092, listener="INTERNAL"),
        UpdateMetadataEndpoint(host="outside", port=9093, listener="EXTERNAL", security_protocol=3),
        UpdateMetadataEndpoint(host="later", port=9094, listener="LATER", security_protocol=9),
    ]
    request = says(1, leader=1, leader_epoch=4, live=())
    request.live_brokers = [UpdateMetadataBroker(id_=1, endpoints=endpoints, epoch=71, rack="a")]
    cache.update(request)
    assert cache.node(BrokerId(1), "INTERNAL") == Node(BrokerId(1), "inside", 9092, BrokerEpoch(71), "a")
    assert cache.node(BrokerId(1), "LATER") is None
    assert cache.snapshot.nodes("EXTERNAL").keys() == {1}
    assert cache.snapshot.nodes("LATER") == {}


def test_the_one_endpoint_of_an_earlier_release_is_that_of_the_default_listener(cache):
    cache.update(says(1, leader=1, leader_epoch=4, live=(1,)))
    assert cache.node(BrokerId(1), DEFAULT_LISTENER) == Node(BrokerId(1), "host", 9092)


def test_the_settings_of_a_topic_are_those_of_its_last_update_and_of_the_broker_now(cache):
    broker, changed = BrokerConfig.parse({}), BrokerConfig.parse({"message.max.bytes": "7000"})
    update = says(1, leader=1, leader_epoch=4)
    update.topic_states[0].configs = {"retention.ms": "5"}
    cache.update(update)
    config = cache.topic("quakes").config(broker)
    assert cache.topic("quakes").config(broker) is config
    assert (config.get_int("retention.ms"), config.get_int("max.message.bytes")) == (5, 1_048_588)
    assert cache.topic("quakes").config(changed).get_int("max.message.bytes") == 7_000
    update = says(2, leader=1, leader_epoch=4)
    update.topic_states[0].configs = {"retention.ms": "6"}
    cache.update(update)
    assert cache.topic("quakes").config(broker).get_int("retention.ms") == 6
