"""One broker as it runs: real ZooKeeper, real sockets, real logs; the test plays the controller."""

import gc
import os
import threading
import uuid
from types import SimpleNamespace

import pyarrow as pa
import pytest

from sparklog.broker.life import broker_life
from sparklog.broker.life.server import BrokerServer
from sparklog.broker.metadata import first_report
from sparklog.core.controller.state import znodes
from sparklog.core.producers.refused_batches import UNDER_WAY_MAX
from sparklog.model.errors import ErrorCode, LogDirectoryError, SparklogError
from sparklog.model.ids import TOPIC_NAME_LENGTH_MAX, BrokerId
from sparklog.network.dialing.connection import Connection
from sparklog.network.exchange import Exchange
from sparklog.records.arrow.arrow_payload import ArrowPayload
from sparklog.records.envelope import split
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.payload_kinds import SUPPORTED_PAYLOADS
from sparklog.wire.messages.admin.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from sparklog.wire.messages.control.leader_and_isr import (
    LeaderAndIsrRequest,
)
from sparklog.wire.messages.control.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from sparklog.wire.messages.data.fetch import FetchPartition, FetchRequest, FetchTopic
from sparklog.wire.messages.data.init_producer_id import InitProducerIdRequest
from sparklog.wire.messages.data.list_offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
)
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from sparklog.wire.messages.discovery.describe_cluster import DescribeClusterRequest
from sparklog.wire.messages.discovery.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.server_harness import TIMEOUT_MS, TOPIC_ID, Harness

pytestmark = pytest.mark.integration

BASE_TIMESTAMP = 27
"""Where it is in a batch."""


def test_a_started_broker_is_registered_with_its_address_and_epoch(broker, zookeeper) -> None:
    node = zookeeper.get(znodes.broker_path(BrokerId(1)))
    assert node.stat.czxid == broker.server.node.epoch
    assert zookeeper.get(znodes.incarnation_path(BrokerId(1))).stat.mzxid == node.stat.czxid


def test_a_record_goes_in_and_comes_out_byte_for_byte(broker) -> None:
    broker.lead()
    batch = build_records_batch([Record(key=b"k", value=b"v")], now_ms=1_000)
    assert broker.produce(batch=batch).base_offset == 0
    (part,) = broker.fetch().records
    assert bytes(part)[21:] == bytes(batch)[21:]
    assert broker.fetch().high_watermark == 1


def test_offsets_are_found_by_end_start_and_time(broker) -> None:
    broker.lead()
    broker.produce(b"a", b"b")
    assert broker.offset_at(LATEST_TIMESTAMP).offset == 2
    assert broker.offset_at(EARLIEST_TIMESTAMP).offset == 0
    found = broker.offset_at(500)
    assert (found.offset, found.timestamp) == (0, 1_000)
    assert broker.offset_at(5_000).offset == -1
    assert broker.offset_at(LATEST_TIMESTAMP, version=0).old_style_offsets == [2]


def test_a_parked_fetch_is_answered_by_the_next_produce(broker) -> None:
    broker.lead()
    answers = []
    other = Harness(broker.server)
    waiter = threading.Thread(target=lambda: answers.append(other.fetch(wait_ms=TIMEOUT_MS)))
    waiter.start()
    context = broker.server.body.context
    deadline = threading.Event()
    while not len(context.fetches):
        deadline.wait(0.005)
    broker.produce(b"a")
    waiter.join(TIMEOUT_MS / 1_000)
    assert [answer.high_watermark for answer in answers] == [1]
    other.connection.close()


@pytest.mark.scenario("S42")
def test_topics_are_known_by_id_and_a_wrong_id_is_told_apart(broker) -> None:
    broker.lead()
    assert broker.fetch(topic_id=uuid.UUID(int=5)).error_code is ErrorCode.unknown_topic_id
    assert broker.fetch(version=12).error_code is ErrorCode.none
    assert (
        broker.lead(leader_epoch=9, topic_id=uuid.UUID(int=5)).topics[0].partition_errors[0].error_code
        is ErrorCode.inconsistent_topic_id
    )


def test_a_corrupt_batch_is_refused_and_uses_up_no_offset(broker) -> None:
    broker.lead()
    batch = bytearray(build_records_batch([Record(value=b"a")], now_ms=1_000))
    batch[-1] ^= 1
    assert broker.produce(batch=bytes(batch)).error_code is ErrorCode.corrupt_message
    two = build_records_batch([Record(value=b"a")], now_ms=1_000) * 2
    assert broker.produce(batch=bytes(two)).error_code is ErrorCode.invalid_record
    assert broker.produce(b"b").base_offset == 0


def numbered(sequence, *, producer_id=9):
    """A batch of one record of an idempotent producer."""
    value = b"%d" % sequence
    return build_records_batch(
        [Record(value=value)],
        now_ms=1_000,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )


@pytest.mark.bug(
    "B64",
    "records",
    "After a refused batch that was not remembered, a producer's next batch is accepted as its first.",
)
def test_batches_after_one_that_preceded_the_replica_wait_for_it(broker) -> None:
    """A client may hear who leads before the leader does, and has five requests under way."""
    early = broker.produce(batch=numbered(0))
    assert early.error_code is ErrorCode.not_leader_or_follower
    broker.lead()
    behind = broker.produce(batch=numbered(1))
    assert behind.error_code is ErrorCode.not_enough_replicas
    for sequence in (0, 1):
        assert broker.produce(batch=numbered(sequence)).error_code is ErrorCode.none


@pytest.mark.bug("B64")
@pytest.mark.parametrize("at", [-1, 22, 43, 50, 52, 53, 56], ids=lambda at: f"byte {at}")
@pytest.mark.parametrize("is_known", [True, False], ids=["known to the log", "new"])
def test_what_comes_behind_a_batch_of_which_a_bit_flipped_waits_for_that_one(broker, is_known, at) -> None:
    """Also where the bit was of its producer's id (byte 43), epoch (51) or sequence (53): it says nothing."""
    broker.lead()
    first = 1 if is_known else 0
    if is_known:
        assert broker.produce(batch=numbered(0)).error_code is ErrorCode.none
    flipped = bytearray(numbered(first))
    flipped[at] ^= 1
    assert broker.produce(batch=bytes(flipped)).error_code is ErrorCode.corrupt_message
    behind = broker.produce(batch=numbered(first + 1))
    assert behind.error_code is ErrorCode.not_enough_replicas
    for sequence in (first, first + 1):
        assert broker.produce(batch=numbered(sequence)).error_code is ErrorCode.none


def refuse_a_batch(broker) -> None:
    """A bit of it flipped on its way."""
    flipped = bytearray(numbered(0))
    flipped[-1] ^= 1
    assert broker.produce(batch=bytes(flipped)).error_code is ErrorCode.corrupt_message


def test_what_is_held_up_is_no_refusal_that_holds_up_others(broker) -> None:
    broker.lead()
    refuse_a_batch(broker)
    for _ in range(UNDER_WAY_MAX):
        assert broker.produce(batch=numbered(5)).error_code is ErrorCode.not_enough_replicas
    assert broker.produce(batch=numbered(5)).error_code is ErrorCode.none


def test_on_another_connection_nobody_is_held_up(broker) -> None:
    broker.lead()
    refuse_a_batch(broker)
    another = Harness(broker.server)
    assert another.produce(batch=numbered(7)).error_code is ErrorCode.none
    another.connection.close()


@pytest.mark.bug("B64")
def test_what_waits_behind_a_request_that_waits_for_long_is_still_behind_what_was_refused(broker) -> None:
    """It is here when that one is answered, however long that takes: requests are counted, not time."""
    broker.lead()
    refuse_a_batch(broker)
    later = SimpleNamespace(monotonic_ms=lambda: 10**9, wall_ms=lambda: 1_000)
    object.__setattr__(broker.server.body.context, "clock", later)
    assert broker.produce(batch=numbered(1)).error_code is ErrorCode.not_enough_replicas


def test_a_batch_that_is_wrong_in_itself_is_not_awaited_again(broker) -> None:
    broker.lead()
    two = numbered(0) * 2
    assert broker.produce(batch=two).error_code is ErrorCode.invalid_record
    assert not broker.server.body.parts.refusals._refusing.connections


def test_a_name_that_no_topic_can_have_takes_no_memory(broker) -> None:
    data = ProducePartition(index=0, records=numbered(0))
    topic = ProduceTopic(name="q" * (TOPIC_NAME_LENGTH_MAX + 1), partition_data=[data])
    broker.call(ProduceRequest(acks=-1, topic_data=[topic]))
    assert not broker.server.body.parts.refusals._refusing.connections


def test_a_rotten_arrow_batch_is_not_given_to_a_kafka_client_as_sound_records(broker) -> None:
    broker.lead()
    columns = pa.table({"value": pa.array([b"a", b"b"], pa.binary())})
    batch = ArrowPayload().from_columns(columns, now_ms=1_000)
    records = ProducePartition(index=0, records=batch)
    topic = ProduceTopic(name="quakes", partition_data=[records])
    request = ProduceRequest(acks=-1, topic_data=[topic], payload_kinds=SUPPORTED_PAYLOADS)
    assert broker.call(request).responses[0].partition_responses[0].error_code is ErrorCode.none
    assert broker.fetch().error_code is ErrorCode.none
    (partition,) = broker.server.body.replicas.partitions()
    with open(partition.log.segments[0].file.path, "r+b") as file:
        file.seek(BASE_TIMESTAMP)
        file.write(bytes(8))
    assert broker.fetch().error_code is ErrorCode.corrupt_message


def test_a_failed_produce_with_acks_zero_closes_the_connection(broker) -> None:
    """There is no answer that could tell it."""
    records = build_records_batch([Record(value=b"a")], now_ms=1_000)
    topic = ProduceTopic(name="quakes", partition_data=[ProducePartition(index=0, records=records)])
    broker.connection.send_one_way(ProduceRequest(acks=0, topic_data=[topic]))
    with pytest.raises(ConnectionError):
        broker.call(MetadataRequest())


def test_a_replaced_controller_and_one_that_means_an_earlier_incarnation_are_fenced(broker) -> None:
    broker.lead(controller_epoch=5)
    assert broker.lead(leader_epoch=1, controller_epoch=4).error_code is ErrorCode.stale_controller_epoch
    stale = broker.lead(leader_epoch=1, controller_epoch=5, broker_epoch=broker.server.node.epoch - 1)
    assert stale.error_code is ErrorCode.stale_broker_epoch


@pytest.mark.kafka_bug(
    "K17", "KAFKA-7235, KIP-380", "A broker bounced unseen, and obeyed requests to its earlier incarnation."
)
def test_kafka_7235_a_stop_that_was_meant_for_an_earlier_life_of_the_broker_stops_nothing(broker) -> None:
    broker.lead()
    state = StopReplicaPartitionState(partition_index=0, leader_epoch=-2, delete_partition=True)
    topic = StopReplicaTopicState(topic_name="quakes", partition_states=[state])
    late = StopReplicaRequest(
        controller_id=-1,
        controller_epoch=1,
        broker_epoch=broker.server.node.epoch - 1,
        topic_states=[topic],
    )
    assert broker.call(late).error_code is ErrorCode.stale_broker_epoch
    assert broker.produce(b"a").error_code is ErrorCode.none


def test_metadata_and_settings_are_what_the_controller_published(broker) -> None:
    broker.lead()
    broker.publish()
    response = broker.call(MetadataRequest(topics=[MetadataRequestTopic(name="quakes")]))
    assert [(b.node_id, b.port) for b in response.brokers] == [(1, broker.server.node.port)]
    assert response.controller_id == 1
    assert response.topics[0].topic_id == TOPIC_ID
    assert response.topics[0].partitions[0].leader_id == 1
    described = broker.call(
        DescribeConfigsRequest(resources=[DescribeConfigsResource(resource_type=2, resource_name="quakes")])
    )
    values = {config.name: (config.value, config.config_source) for config in described.results[0].configs}
    assert values["segment.bytes"] == ("9999", 1)
    assert values["min.insync.replicas"] == ("1", 5)


def test_metadata_of_a_topic_that_is_asked_for_many_times_have_it_once(broker) -> None:
    broker.lead()
    broker.publish()
    topics = broker.call(MetadataRequest(topics=[MetadataRequestTopic(name="quakes")] * 100)).topics
    assert [topic.name for topic in topics] == ["quakes"]


@pytest.mark.parametrize("version", [10, 11, 12])
@pytest.mark.parametrize("name", ["", "quakes", "another"])
def test_metadata_by_topic_id_is_that_topic_s_whatever_name_stands_beside_it(broker, version, name) -> None:
    broker.lead()
    broker.publish()
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=name, topic_id=TOPIC_ID)])
    (topic,) = broker.call(asked, version).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (ErrorCode.none, "quakes", TOPIC_ID)
    unknown = uuid.UUID(int=12345)
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=name, topic_id=unknown)])
    (topic,) = broker.call(asked, version).topics
    assert (topic.error_code, topic.topic_id) == (ErrorCode.unknown_topic_id, unknown)
    assert not topic.name


@pytest.mark.bug("B60", "away", "Clients never recover when all brokers return at once.")
@pytest.mark.parametrize(
    "request_",
    [
        MetadataRequest(topics=None),
        MetadataRequest(topics=[MetadataRequestTopic(name="quakes")]),
        DescribeClusterRequest(),
        DescribeConfigsRequest(resources=[DescribeConfigsResource(resource_type=2, resource_name="quakes")]),
    ],
    ids=["metadata of all", "metadata of one", "cluster", "settings"],
)
def test_who_was_told_nothing_yet_tells_no_client_of_a_cluster_without_brokers(
    broker, request_, monkeypatch
) -> None:
    monkeypatch.setattr(first_report, "WAIT_MAX_MS", 20)
    with pytest.raises(OSError, match="closed"):
        broker.call(request_)
    again = Harness(broker.server)
    again.publish()
    again.call(request_)
    again.connection.close()


@pytest.mark.bug("B60")
def test_who_was_told_nothing_yet_denies_no_partition(broker) -> None:
    assert broker.produce(b"a").error_code is ErrorCode.not_leader_or_follower
    assert broker.offset_at(-1).error_code is ErrorCode.not_leader_or_follower
    assert broker.fetch(version=12).error_code is ErrorCode.not_leader_or_follower


def test_a_deleted_replica_is_gone_from_disk(broker, options) -> None:
    broker.lead()
    broker.produce(b"a")
    state = StopReplicaPartitionState(partition_index=0, leader_epoch=-2, delete_partition=True)
    topic = StopReplicaTopicState(topic_name="quakes", partition_states=[state])
    response = broker.call(
        StopReplicaRequest(
            controller_id=-1,
            controller_epoch=1,
            broker_epoch=broker.server.node.epoch,
            topic_states=[topic],
        )
    )
    assert [error.error_code for error in response.partition_errors] == [ErrorCode.none]
    assert not any("quakes" in name for name in os.listdir(options.log_dirs[0]))


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_restarted_broker_has_its_records_and_a_newer_epoch(options, is_clean) -> None:
    first = BrokerServer(options)
    first.start()
    harness = Harness(first)
    harness.lead()
    harness.produce(b"a", b"b")
    harness.connection.close()
    first.stop(clean=is_clean)
    second = BrokerServer(options)
    second.start()
    again = Harness(second)
    again.lead(leader_epoch=1)
    (part,) = again.fetch().records
    assert [header.record_count for _, header in split(part)] == [2]
    assert second.node.epoch > first.node.epoch
    again.connection.close()
    second.stop(clean=False)


def test_a_log_directory_in_use_is_refused_with_its_holder(broker, options) -> None:
    with pytest.raises(LogDirectoryError, match=r"lock|use"):
        BrokerServer(options).start()


@pytest.mark.kafka_bug(
    "K16",
    "KAFKA-2729",
    "A leader lost its ZooKeeper session, missed its successor's election, and led on with an old version.",
)
def test_kafka_2729_a_broker_whose_session_expired_stops_by_itself(broker, expire_session) -> None:
    expire_session(broker.server.zookeeper)
    assert broker.server.wait_stopped(20)
    assert "expired" in broker.server.failure


def test_a_broker_whose_registration_was_taken_away_stops_although_its_session_lives(
    broker, zookeeper
) -> None:
    """A supervisor that lost touch reported it dead; nobody would tell it anything any more."""
    zookeeper.delete(znodes.broker_path(BrokerId(1)))
    assert broker.server.wait_stopped(20)
    assert "registration" in broker.server.failure


def test_a_push_before_the_broker_knows_its_epoch_is_left_for_a_second_try(options, monkeypatch) -> None:
    """Any answer would be final, and nobody would say again who leads here."""
    register, told = broker_life.register, []

    def register_slowly(zookeeper, broker, log_dirs, **host):
        epoch = register(zookeeper, broker, log_dirs, **host)
        endpoint = broker.endpoints["PLAINTEXT"]
        connection = Connection.open(endpoint.host, endpoint.port, client_id="test", timeout_ms=TIMEOUT_MS)
        request = LeaderAndIsrRequest(controller_id=-1, controller_epoch=1, broker_epoch=epoch)
        try:
            told.append(connection.call(request, timeout_ms=TIMEOUT_MS))
        except ConnectionError as error:
            told.append(error)
        connection.close()
        return epoch

    monkeypatch.setattr(broker_life, "register", register_slowly)
    server = BrokerServer(options)
    server.start()
    assert [type(answer) for answer in told] == [ConnectionError]
    harness = Harness(server)
    assert harness.lead().error_code is ErrorCode.none
    harness.connection.close()
    server.stop(clean=False)


def test_requests_that_wait_for_a_controller_keep_no_other_from_being_served(broker) -> None:
    broker.lead()
    askers = [Harness(broker.server).connection for _ in range(3)]
    for asker in askers:
        asker.send(InitProducerIdRequest(transaction_timeout_ms=1_000))
    asker = Harness(broker.server).connection
    topics = [MetadataRequestTopic(name="unknown")]
    asker.send(MetadataRequest(topics=topics, allow_auto_topic_creation=True))
    assert broker.produce(b"a").base_offset == 0
    for connection in (*askers, asker):
        connection.close()


@pytest.mark.parametrize("version", [7, 12, 15])
def test_a_fetch_session_hears_only_of_what_is_new(broker, version) -> None:
    broker.lead()

    def fetch(*offsets, **session):
        partitions = [FetchPartition(partition=0, fetch_offset=at, partition_max_bytes=100) for at in offsets]
        topics = [FetchTopic(topic="quakes", topic_id=TOPIC_ID, partitions=partitions)] if offsets else []
        return broker.call(FetchRequest(max_wait_ms=0, topics=topics, **session), version)

    first = fetch(0, session_epoch=0)
    assert [len(topic.partitions) for topic in first.responses] == [1]
    assert fetch(session_id=first.session_id, session_epoch=1).responses == []
    broker.produce(b"a")
    answer = fetch(session_id=first.session_id, session_epoch=2).responses[0].partitions[0]
    assert (answer.high_watermark, bool(answer.records)) == (1, True)
    assert fetch(1, session_id=first.session_id, session_epoch=3).responses == []
    late = fetch(session_id=first.session_id, session_epoch=3)
    assert late.error_code is ErrorCode.invalid_fetch_session_epoch


@pytest.mark.kafka_bug(
    "K11",
    "KAFKA-9338",
    "Fetch sessions forgot the leader epoch: only a stale follower's first fetch was fenced.",
)
@pytest.mark.parametrize("version", [12, 15])
def test_kafka_9338_an_incremental_fetch_is_fenced_by_its_sessions_epoch(broker, version) -> None:
    broker.lead(leader_epoch=3)
    asked = FetchPartition(partition=0, fetch_offset=0, current_leader_epoch=3, partition_max_bytes=100)
    topics = [FetchTopic(topic="quakes", topic_id=TOPIC_ID, partitions=[asked])]
    first = broker.call(FetchRequest(max_wait_ms=0, session_epoch=0, topics=topics), version)
    assert first.responses[0].partitions[0].error_code is ErrorCode.none
    broker.lead(leader_epoch=4)
    again = FetchRequest(max_wait_ms=0, session_id=first.session_id, session_epoch=1)
    (topic,) = broker.call(again, version).responses
    assert topic.partitions[0].error_code is ErrorCode.fenced_leader_epoch


def test_a_fenced_broker_serves_nobody_although_its_stop_takes_long(broker, monkeypatch) -> None:
    broker.lead()
    waiting = Harness(broker.server)
    parked = waiting.connection.send(
        FetchRequest(
            max_wait_ms=TIMEOUT_MS,
            topics=[
                FetchTopic(
                    topic="quakes",
                    topic_id=TOPIC_ID,
                    partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)],
                )
            ],
        )
    )
    context = broker.server.body.context
    pause, may_stop = threading.Event(), threading.Event()
    while not len(context.fetches):
        pause.wait(0.005)
    stop_chores = broker.server.process.stop_chores
    monkeypatch.setattr(broker.server.process, "stop_chores", lambda: (may_stop.wait(20), stop_chores()))
    broker.server.life.fail("its session expired")
    with pytest.raises(ConnectionError):
        broker.produce(b"a")
    answer = parked.result(TIMEOUT_MS).responses[0].partitions[0]
    assert answer.error_code is ErrorCode.not_leader_or_follower
    assert not broker.server.wait_stopped(0)
    may_stop.set()
    assert broker.server.wait_stopped(20)
    waiting.connection.close()


@pytest.mark.parametrize("how", ["fail", "stop"])
@pytest.mark.parametrize("step", ["open_directories", "register"])
def test_a_broker_that_is_stopped_while_it_starts_leaves_nothing_running(
    options, zookeeper, monkeypatch, step, how
) -> None:
    before, original = set(threading.enumerate()), getattr(broker_life, step)
    server = BrokerServer(options)

    def ends_meanwhile(*arguments, **more):
        outcome = original(*arguments, **more)
        if how == "fail":
            server.life.fail("its session expired")
        else:
            server.life.stop(clean=True)
        return outcome

    monkeypatch.setattr(broker_life, step, ends_meanwhile)
    with pytest.raises(SparklogError, match="was stopped while it started"):
        server.start()
    assert server.wait_stopped(0)
    left = {thread.name for thread in set(threading.enumerate()) - before if thread.is_alive()}
    assert not {name for name in left if name.startswith("broker-1") or name == "housekeeping"}
    assert zookeeper.exists(znodes.broker_path(BrokerId(1))) is None
    again = BrokerServer(options)
    monkeypatch.setattr(broker_life, step, original)
    again.start()
    again.stop(clean=False)


def test_a_broker_that_was_never_started_stops_at_once(options) -> None:
    server = BrokerServer(options)
    server.stop()
    assert server.wait_stopped(0)


def test_a_produce_that_waits_for_followers_does_not_keep_its_bytes(broker) -> None:
    broker.lead(isr=[1, 2])
    records = build_records_batch([Record(value=UNIQUE)], now_ms=1_000)
    topic = ProduceTopic(name="quakes", partition_data=[ProducePartition(index=0, records=records)])
    other = Harness(broker.server)
    other.connection.send(ProduceRequest(acks=-1, timeout_ms=10 * TIMEOUT_MS, topic_data=[topic]))
    context = broker.server.body.context
    pause = threading.Event()
    while not len(context.appends) or any(map(holds_bytes, gc.get_objects())):
        pause.wait(0.01)
    assert len(context.appends) == 1, "answered before its bytes were let go"
    other.connection.close()


UNIQUE = b"the bytes of a produce that waits"


def holds_bytes(one: object) -> bool:
    """Whether it is that produce: other brokers may live in this process, with requests of their own."""
    return isinstance(one, Exchange) and UNIQUE in bytes(one.frame)
