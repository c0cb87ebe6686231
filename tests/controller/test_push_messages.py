"""The machine's words on the wire: through the codec and back."""

import uuid
from dataclasses import replace

import pytest

from sparklog.controller import push_messages
from sparklog.core.controller.actions import (
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    TopicUpdate,
)
from sparklog.core.controller.state.log_ends import LogEnd
from sparklog.model.cluster_facts import DEFAULT_LISTENER, Broker, PartitionState, plaintext
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_LEADER, BrokerEpoch, BrokerId, TopicPartition
from sparklog.model.parts import read_parts
from sparklog.wire.codec import decode_request, decode_response, encode_request, encode_response
from sparklog.wire.messages.control.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from sparklog.wire.messages.control.stop_replica import StopReplicaPartitionError, StopReplicaResponse
from sparklog.wire.messages.control.update_metadata import UpdateMetadataResponse
from sparklog.wire.versions import KNOWN_VERSIONS

TOPIC = uuid.uuid5(uuid.NAMESPACE_OID, "t")
ONE, TWO = (
    Broker(BrokerId(1), plaintext("one", 9001), BrokerEpoch(71), "app"),
    Broker(BrokerId(2), plaintext("two", 9002), BrokerEpoch(72)),
)
STATE = PartitionState(leader=BrokerId(1), leader_epoch=4, isr=(1,), replicas=(1, 2, 3), partition_epoch=6)
UPDATE = TopicUpdate("t", TOPIC, {"retention.ms": "1"}, ((5, STATE),))
PARTITION = TopicPartition("t", 5)


def over_the_wire(message):
    version = KNOWN_VERSIONS[message.API_KEY].max
    return decode_request(encode_request(message, version, 1, "c")[4:]).body


def answered(message, version=None):
    version = KNOWN_VERSIONS[message.API_KEY].max if version is None else version
    return decode_response(type(message), version, read_parts(encode_response(message, version, 1))[4:])[1]


def test_metadata_names_live_brokers_with_epochs_and_dead_replicas_as_offline():
    send = SendUpdateMetadata(1, ONE.id, ONE.epoch, (ONE, TWO), (UPDATE,), {}, {})
    request = over_the_wire(push_messages.push_request(send, 9, DEFAULT_LISTENER))
    assert (request.controller_epoch, request.broker_epoch) == (9, 71)
    assert [(one.id_, one.epoch, one.rack, one.endpoints[0].port) for one in request.live_brokers] == [
        (1, 71, "app", 9001),
        (2, 72, None, 9002),
    ]
    (topic,) = request.topic_states
    assert (topic.topic_name, topic.topic_id, topic.configs) == ("t", TOPIC, {"retention.ms": "1"})
    (state,) = topic.partition_states
    assert (state.partition_index, state.leader, state.leader_epoch, state.zk_version) == (5, 1, 4, 6)
    assert (state.isr, state.replicas, state.offline_replicas) == ([1], [1, 2, 3], [3])


@pytest.mark.bug("B19")
def test_updates_of_metadata_are_numbered_so_that_one_that_comes_again_late_is_known():
    send = SendUpdateMetadata(17, ONE.id, ONE.epoch, (ONE, TWO), (UPDATE,), {}, {})
    assert over_the_wire(push_messages.push_request(send, 9, DEFAULT_LISTENER)).push == 17


@pytest.mark.bug("B12")
def test_roles_say_in_which_epoch_an_election_may_have_lost_records():
    lossy = replace(UPDATE, partitions=((5, replace(STATE, lost_in_epoch=3)),))
    send = SendLeaderAndIsr(1, ONE.id, ONE.epoch, True, (lossy,), frozenset(), (ONE,))
    (state,) = (
        over_the_wire(push_messages.push_request(send, 9, DEFAULT_LISTENER)).topic_states[0].partition_states
    )
    assert state.lost_in_epoch == 3


def test_roles_carry_the_partition_epoch_and_say_what_is_new():
    send = SendLeaderAndIsr(1, ONE.id, ONE.epoch, True, (UPDATE,), frozenset({PARTITION}), (ONE,))
    request = over_the_wire(push_messages.push_request(send, 9, DEFAULT_LISTENER))
    assert (request.type_, request.controller_epoch, request.broker_epoch) == (1, 9, 71)
    (state,) = request.topic_states[0].partition_states
    assert (state.leader, state.leader_epoch, state.partition_epoch, state.is_new) == (1, 4, 6, True)
    assert [(one.broker_id, one.host_name, one.port) for one in request.live_leaders] == [(1, "one", 9001)]


def test_the_errors_of_a_push_are_named_by_partition():
    roles = SendLeaderAndIsr(1, ONE.id, ONE.epoch, False, (UPDATE,), frozenset(), ())
    error = LeaderAndIsrPartitionError(partition_index=5, error_code=ErrorCode.kafka_storage_error)
    fine = LeaderAndIsrPartitionError(partition_index=6)
    topics = [LeaderAndIsrTopicError(topic_id=TOPIC, partition_errors=[error, fine])]
    assert push_messages.push_errors(roles, LeaderAndIsrResponse(topics=topics)) == {
        PARTITION: ErrorCode.kafka_storage_error,
        TopicPartition("t", 6): ErrorCode.none,
    }
    stop = SendStopReplica(1, ONE.id, ONE.epoch, ((PARTITION, -2),), delete=True)
    failed = StopReplicaPartitionError(
        topic_name="t", partition_index=5, error_code=ErrorCode.kafka_storage_error
    )
    assert push_messages.push_errors(stop, StopReplicaResponse(partition_errors=[failed])) == {
        PARTITION: ErrorCode.kafka_storage_error
    }
    refused = StopReplicaResponse(error_code=ErrorCode.stale_controller_epoch)
    assert push_messages.push_errors(stop, refused) == {PARTITION: ErrorCode.stale_controller_epoch}
    metadata = SendUpdateMetadata(1, ONE.id, ONE.epoch, (), (), {}, {})
    assert push_messages.push_errors(metadata, UpdateMetadataResponse()) == {}


def test_the_ends_of_logs_that_nobody_leads_travel_with_the_answer():
    leaderless = replace(STATE, leader=NO_LEADER)
    states = ((5, leaderless), (6, STATE), (7, leaderless))
    update = TopicUpdate("t", TOPIC, {}, states)
    send = SendLeaderAndIsr(8, ONE.id, ONE.epoch, False, (update,), frozenset(), ())
    told = [
        LeaderAndIsrPartitionError(partition_index=5, last_epoch=3, log_end_offset=17),
        LeaderAndIsrPartitionError(partition_index=6, last_epoch=3, log_end_offset=18),
        LeaderAndIsrPartitionError(partition_index=7),
    ]
    topics = [LeaderAndIsrTopicError(topic_id=TOPIC, partition_errors=told)]
    answer = push_messages.push_answer(send, answered(LeaderAndIsrResponse(topics=topics)))
    assert (answer.push, answer.broker, answer.broker_epoch) == (8, ONE.id, ONE.epoch)
    assert answer.log_ends == {PARTITION: LogEnd(4, 3, 17)}


def test_stopping_replicas_says_whether_their_logs_go_too():
    send = SendStopReplica(1, ONE.id, ONE.epoch, ((PARTITION, -2),), delete=True)
    (state,) = (
        over_the_wire(push_messages.push_request(send, 9, DEFAULT_LISTENER)).topic_states[0].partition_states
    )
    assert (state.partition_index, state.leader_epoch, state.delete_partition) == (5, -2, True)
