"""A controller on a real ZooKeeper, with brokers that only answer."""

import threading

import pytest

from sparklog.controller import candidate as candidates
from sparklog.core.controller.state import znodes
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId
from sparklog.wire.codec import decode_response, encode_request
from sparklog.wire.messages.admin.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from sparklog.wire.messages.admin.delete_topics import DeleteTopicsRequest, DeleteTopicState
from sparklog.wire.messages.control.allocate_producer_ids import AllocateProducerIdsRequest
from sparklog.wire.messages.control.alter_partition import (
    AlterPartitionPartition,
    AlterPartitionRequest,
    AlterPartitionTopic,
    BrokerState,
)
from sparklog.wire.messages.control.controlled_shutdown import ControlledShutdownRequest
from sparklog.wire.messages.control.envelope import EnvelopeRequest
from sparklog.wire.messages.control.leader_and_isr import LeaderAndIsrRequest
from sparklog.wire.messages.control.stop_replica import StopReplicaRequest
from sparklog.wire.messages.control.update_metadata import UpdateMetadataRequest
from sparklog.wire.messages.discovery.metadata import MetadataRequest
from tests.waiting import until

pytestmark = pytest.mark.integration


def creation(name="t", replicas=((1, 2, 3),), **configs):
    assignments = [
        CreatableReplicaAssignment(partition_index=number, broker_ids=list(one))
        for number, one in enumerate(replicas)
    ]
    settings = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
    ]
    topic = CreatableTopic(name=name, assignments=assignments, configs=settings)
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


def create(bench, controller, name="t", replicas=((1, 2, 3),), **configs):
    (result,) = bench.call(controller, creation(name, replicas, **configs)).topics
    assert result.error_code is ErrorCode.none, result
    return result


def proposal(bench, leader, *isr, topic_id, leader_epoch=0, partition_epoch=0):
    members = [BrokerState(broker_id=one, broker_epoch=bench.epoch(one)) for one in isr]
    partition = AlterPartitionPartition(
        partition_index=0,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        new_isr_with_epochs=members,
    )
    topics = [AlterPartitionTopic(topic_id=topic_id, partitions=[partition])]
    return AlterPartitionRequest(broker_id=leader, broker_epoch=bench.epoch(leader), topics=topics)


def cluster(bench, brokers=3, **settings):
    for broker in range(1, brokers + 1):
        bench.broker(broker)
    return bench.controller(**settings)


def test_the_first_candidate_is_elected_and_says_where_it_listens(bench):
    controller = bench.controller()
    assert controller.is_active
    node = controller.active_controller()
    assert (node.host, node.port, node.application) == ("127.0.0.1", controller.port, "test-0")
    assert znodes.decode_controller_epoch(bench.zookeeper.get(znodes.CONTROLLER_EPOCH).data) == 1
    assert bench.zookeeper.get(znodes.CLUSTER_ID) is not None


def test_a_created_topic_is_led_when_the_reply_comes(bench):
    controller = cluster(bench)
    result = create(bench, controller, replicas=((2, 3, 1),), min_insync_replicas="2")
    assert (result.num_partitions, result.replication_factor) == (1, 3)
    assert {one.name: (one.value, one.config_source) for one in result.configs}["min.insync.replicas"] == (
        "2",
        1,
    )
    told = bench.brokers[2].wait_to_lead("t")
    (topic,) = told.topic_states
    assert (topic.topic_id, topic.configs) == (result.topic_id, {"min.insync.replicas": "2"})
    assert topic.partition_states[0].is_new
    assert told.broker_epoch == bench.epoch(2)
    metadata = bench.brokers[1].told(UpdateMetadataRequest)[-1]
    assert {one.id_: one.epoch for one in metadata.live_brokers} == {n: bench.epoch(n) for n in (1, 2, 3)}
    assert bench.state("t").isr_incarnations == {1: 0, 2: 0, 3: 0}


def test_a_topic_without_a_placement_is_spread_over_the_brokers(bench):
    controller = cluster(bench)
    topic = CreatableTopic(name="spread", num_partitions=6, replication_factor=2)
    (result,) = bench.call(controller, CreateTopicsRequest(topics=[topic], timeout_ms=10_000)).topics
    assert result.error_code is ErrorCode.none
    node = znodes.decode_topic("spread", bench.zookeeper.get(znodes.topic_path("spread")).data)
    leaders = [one.replicas[0] for one in node.assignments]
    assert sorted(leaders) == [1, 1, 2, 2, 3, 3]


def test_requests_of_clients_arrive_in_envelopes_and_their_answers_go_back_the_same_way(bench):
    controller = cluster(bench)
    inner = encode_request(creation(), 7, 42, "a client")[4:]
    envelope = EnvelopeRequest(
        request_data=inner, request_principal=b"User:ANONYMOUS", client_host_address=b"127.0.0.1"
    )
    answer = bench.call(controller, envelope)
    assert answer.error_code is ErrorCode.none
    correlation_id, response = decode_response(CreateTopicsResponse, 7, answer.response_data)
    assert (correlation_id, response.topics[0].error_code) == (42, ErrorCode.none)


def test_an_envelope_with_nonsense_inside_is_refused(bench):
    controller = bench.controller()
    strange = encode_request(MetadataRequest(topics=None), 12, 1, None)[4:]
    for inner, error in ((b"nonsense", ErrorCode.invalid_request), (strange, ErrorCode.invalid_request)):
        envelope = EnvelopeRequest(
            request_data=inner, request_principal=b"User:ANONYMOUS", client_host_address=b"127.0.0.1"
        )
        assert bench.call(controller, envelope).error_code is error


def test_a_request_that_no_controller_serves_closes_the_connection(bench):
    controller = bench.controller()
    with pytest.raises(ConnectionError):
        bench.connect(controller).call(MetadataRequest(topics=None), version=12, timeout_ms=5_000)


def test_the_death_of_a_broker_in_zookeeper_moves_its_leaders(bench):
    controller = cluster(bench)
    create(bench, controller)
    bench.brokers[1].expire()
    bench.brokers[2].wait_to_lead("t", leader_epoch=1)
    assert (bench.state("t").leader, bench.state("t").isr) == (2, (2, 3))


def test_a_reported_death_moves_leaders_while_zookeeper_still_believes_in_the_broker(bench):
    controller = cluster(bench)
    create(bench, controller)
    controller.broker_died(BrokerId(1), bench.epoch(1))
    bench.brokers[2].wait_to_lead("t", leader_epoch=1)
    assert bench.zookeeper.exists(znodes.broker_path(BrokerId(1))) is None
    assert (bench.state("t").leader, bench.state("t").isr) == (2, (2, 3))


def test_a_death_reported_to_a_candidate_without_the_office_reaches_the_controller(bench):
    controller = cluster(bench)
    standby = bench.controller()
    assert not standby.is_active
    create(bench, controller)
    standby.broker_died(BrokerId(1), bench.epoch(1))
    bench.brokers[2].wait_to_lead("t", leader_epoch=1)


def test_a_late_report_spares_the_successor(bench):
    controller = cluster(bench)
    standby = bench.controller()
    old = bench.epoch(1)
    bench.brokers[1].register()
    for candidate in (controller, standby):
        candidate.broker_died(BrokerId(1), old)
        candidate.run_events()
    assert bench.epoch(1) > old


def test_a_broker_that_bounces_faster_than_anybody_looks_is_failed_and_started(bench):
    controller = cluster(bench)
    create(bench, controller)
    bench.brokers[1].register()
    bench.brokers[2].wait_to_lead("t", leader_epoch=1)
    epoch = bench.epoch(1)
    roles = bench.brokers[1].wait_for(
        LeaderAndIsrRequest, lambda request: request.broker_epoch == epoch and request.type_ == 1
    )
    assert roles.topic_states[0].partition_states[0].leader == 2
    kinds = [type(one) for one in bench.brokers[1].requests if one.broker_epoch == epoch]
    assert kinds[:2] == [UpdateMetadataRequest, LeaderAndIsrRequest]


@pytest.mark.scenario("S63")
def test_leaders_change_their_isr_and_a_repeated_proposal_succeeds(bench):
    controller = cluster(bench)
    topic_id = create(bench, controller).topic_id
    for _ in range(2):
        answer = bench.call(controller, proposal(bench, 1, 1, 2, topic_id=topic_id))
        (partition,) = answer.topics[0].partitions
        assert (partition.error_code, partition.isr, partition.partition_epoch) == (ErrorCode.none, [1, 2], 1)
    assert bench.state("t").isr == (1, 2)


def test_a_broker_that_shuts_down_hands_its_leaderships_over(bench):
    controller = cluster(bench)
    create(bench, controller)
    request = ControlledShutdownRequest(broker_id=1, broker_epoch=bench.epoch(1))
    answer = bench.call(controller, request)
    assert (answer.error_code, answer.remaining_partitions) == (ErrorCode.none, [])
    assert (bench.state("t").leader, bench.state("t").isr) == (2, (2, 3))
    stop = bench.brokers[1].wait_for(StopReplicaRequest)
    assert not stop.topic_states[0].partition_states[0].delete_partition


def test_producer_ids_come_in_blocks_that_outlive_a_controller(bench):
    controller = cluster(bench, 1)
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=bench.epoch(1))
    first = bench.call(controller, request)
    assert (first.error_code, first.producer_id_start, first.producer_id_len) == (ErrorCode.none, 0, 1_000)
    controller.stop()
    successor = bench.controller()
    assert bench.call(successor, request).producer_id_start == 1_000


def test_a_deleted_topic_is_gone_from_brokers_and_zookeeper(bench):
    controller = cluster(bench)
    create(bench, controller)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=10_000)
    (result,) = bench.call(controller, request).responses
    assert (result.name, result.error_code) == ("t", ErrorCode.none)
    for broker in bench.brokers.values():
        stop = broker.wait_for(StopReplicaRequest)
        assert stop.topic_states[0].partition_states[0].delete_partition
    until(lambda: bench.zookeeper.exists(znodes.topic_path("t")) is None)
    assert bench.zookeeper.children(znodes.DELETE_TOPICS) == []


def test_a_topic_is_deleted_on_a_broker_that_was_away(bench):
    controller = cluster(bench)
    create(bench, controller)
    bench.brokers[3].expire()
    bench.brokers[1].wait_to_lead("t", leader_epoch=1)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=10_000)
    assert bench.call(controller, request).responses[0].error_code is ErrorCode.none
    assert bench.zookeeper.exists(znodes.topic_path("t")) is not None
    bench.brokers[3].register()
    bench.brokers[3].wait_for(StopReplicaRequest)
    until(lambda: bench.zookeeper.exists(znodes.topic_path("t")) is None)


def test_a_broker_that_hangs_delays_nobody_elses_news(bench):
    controller = cluster(bench)
    bench.brokers[3].is_mute = True
    create(bench, controller, replicas=((1, 2),))
    controller.broker_died(BrokerId(1), bench.epoch(1))
    bench.brokers[2].wait_to_lead("t", leader_epoch=1)
    bench.brokers[3].speak()


def test_a_stopped_controller_resigns_at_once_and_the_next_updates_every_broker(bench):
    first = cluster(bench)
    second = bench.controller()
    create(bench, first)
    first.stop()
    until(lambda: second.is_active)
    for broker in bench.brokers.values():
        told = broker.wait_for(LeaderAndIsrRequest, lambda one: one.controller_epoch == 2)
        assert told.type_ == 1
    assert second.active_controller().port == second.port


def test_a_standby_says_that_it_is_not_the_controller(bench):
    cluster(bench)
    standby = bench.controller()
    assert bench.call(standby, creation()).topics[0].error_code is ErrorCode.not_controller
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=bench.epoch(1))
    assert bench.call(standby, request).error_code is ErrorCode.not_controller


def test_a_controller_whose_session_expires_runs_again_and_wins_with_a_new_epoch(bench, expire_session):
    session = bench.session()
    for broker in (1, 2):
        bench.broker(broker)
    controller = bench.controller(session)
    create(bench, controller, replicas=((1, 2),))
    expire_session(session)
    bench.brokers[1].wait_for(LeaderAndIsrRequest, lambda one: one.controller_epoch == 2)
    until(lambda: controller.is_active)
    create(bench, controller, "u", replicas=((1, 2),))


@pytest.mark.kafka_bug(
    "K18", "KAFKA-6082", "A paused controller woke up and overwrote an ISR of its successor."
)
@pytest.mark.scenario(
    "S61", "Another controller takes over: the former one's writes are refused (KAFKA-6082)."
)
def test_kafka_6082_a_controller_that_was_paused_meets_its_successors_epoch_and_resigns(bench):
    """Its command is written after the pause: the check of the epoch fails, nothing is changed."""
    first = cluster(bench)
    topic_id = create(bench, first).topic_id
    second = bench.controller()
    resume, paused = threading.Event(), threading.Event()

    def pause():
        paused.set()
        resume.wait(20)

    first._loop.submit(pause)
    paused.wait(5)
    connection = bench.connect(first)
    pending = connection.send(proposal(bench, 1, 1, 2, topic_id=topic_id))
    until(lambda: first._loop.waiting)
    bench.zookeeper.delete(znodes.CONTROLLER)
    until(lambda: second.is_active)
    resume.set()
    answer = pending.result(10_000)
    assert answer.error_code is ErrorCode.not_controller
    first.run_events()
    assert not first.is_active
    assert bench.state("t").isr == (1, 2, 3)
    assert second.is_active
    assert bench.zookeeper.get(znodes.CONTROLLER_EPOCH).data == b"2"


def test_a_controller_whose_office_is_taken_from_it_by_hand_runs_again(bench):
    controller = bench.controller()
    bench.zookeeper.delete(znodes.CONTROLLER)
    until(lambda: bench.zookeeper.exists(znodes.CONTROLLER) is not None)
    until(lambda: controller.is_active)


def test_state_that_cannot_be_read_is_told_once_and_tried_again_after_growing_pauses(
    bench, caplog, monkeypatch
):
    monkeypatch.setattr(candidates, "FAILURE_PAUSE_MS", 200)
    controller = cluster(bench)
    create(bench, controller)
    path = znodes.state_path("t", 0)
    good = bench.zookeeper.get(path).data
    controller.stop()
    bench.zookeeper.set(path, b"nonsense")
    controller = bench.controller()
    epoch = int(bench.zookeeper.get(znodes.CONTROLLER_EPOCH).data)
    until(lambda: int(bench.zookeeper.get(znodes.CONTROLLER_EPOCH).data) >= epoch + 2)
    assert path in controller.failure
    assert not controller.is_active
    told = [one for one in caplog.records if one.levelname == "ERROR" and path in one.getMessage()]
    assert len(told) == 1, told
    bench.zookeeper.set(path, good)
    until(lambda: controller.is_active and controller.failure is None)
    assert bench.state("t").isr == (1, 2, 3)


def test_a_candidate_that_pauses_after_a_failure_leaves_the_office_to_a_standby(bench, monkeypatch):
    monkeypatch.setattr(candidates, "FAILURE_PAUSE_MS", 60_000)
    first, second = cluster(bench), bench.controller()
    first._loop.submit(lambda: 1 / 0)
    until(lambda: second.is_active)
    assert "division by zero" in first.failure
    assert not first.is_active


def test_after_a_kill_of_the_whole_isr_the_first_proven_member_leads(bench):
    controller = cluster(bench)
    create(bench, controller)
    for broker in (3, 2, 1):
        bench.brokers[broker].expire()
    until(lambda: bench.state("t").leader == -1)
    before = bench.state("t")
    last = before.isr[-1]
    bench.brokers[last].register()
    bench.brokers[last].wait_to_lead("t", leader_epoch=before.leader_epoch + 1)
