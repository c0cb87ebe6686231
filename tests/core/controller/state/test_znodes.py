"""The JSON in ZooKeeper: what is written is read back, what is not ours is refused by name."""

import json
import uuid
from dataclasses import replace

import pytest

from sparklog.core.controller.state import znodes
from sparklog.core.controller.state.incarnation import (
    SPARED_MAX,
    DirectoryIdentity,
    StoredIncarnation,
    mark_suspect,
    next_incarnation,
)
from sparklog.core.controller.state.write_size import WRITE_BYTES_MAX
from sparklog.model.cluster_facts import Broker, Endpoint, PartitionState, SecurityProtocol, plaintext
from sparklog.model.errors import SparklogError
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch


def test_a_broker_comes_back_with_the_epoch_of_its_node():
    broker = Broker(BrokerId(3), plaintext("host", 9092), rack="app-1")
    read = znodes.decode_broker(BrokerId(3), znodes.encode_broker(broker), BrokerEpoch(77))
    assert read == Broker(BrokerId(3), plaintext("host", 9092), BrokerEpoch(77), "app-1")
    assert json.loads(znodes.encode_broker(broker))["endpoints"] == ["PLAINTEXT://host:9092"]


TWO_LISTENERS = {
    "INTERNAL": Endpoint("10.0.0.3", 9092),
    "EXTERNAL": Endpoint("::1", 9093, SecurityProtocol.SSL),
}


def test_a_broker_registers_its_endpoints_as_kafka_writes_them():
    broker = Broker(BrokerId(3), TWO_LISTENERS)
    data = znodes.encode_broker(broker)
    document = json.loads(data)
    assert document["endpoints"] == ["INTERNAL://10.0.0.3:9092", "EXTERNAL://[::1]:9093"]
    assert document["listener_security_protocol_map"] == {"INTERNAL": "PLAINTEXT", "EXTERNAL": "SSL"}
    assert (document["host"], document["port"]) == ("10.0.0.3", 9092)
    read = znodes.decode_broker(BrokerId(3), data, broker.epoch)
    assert (read, list(read.endpoints)) == (broker, ["INTERNAL", "EXTERNAL"])


@pytest.mark.parametrize(
    "document",
    [
        {"version": 1, "host": "h", "port": 9092},
        {"version": 2, "host": "h", "port": 9092, "endpoints": ["PLAINTEXT://h:9092"]},
        {
            "version": 5, "host": "h", "port": 9092, "endpoints": ["PLAINTEXT://h:9092"],
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"}, "rack": None, "timestamp": "0",
        },
    ],
)  # fmt: skip
def test_a_registration_of_an_earlier_release_is_read(document):
    read = znodes.decode_broker(BrokerId(3), json.dumps(document).encode(), BrokerEpoch(77))
    assert read == Broker(BrokerId(3), plaintext("h", 9092), BrokerEpoch(77))


@pytest.mark.parametrize(
    "endpoint", ["PLAINTEXT:h:9092", "PLAINTEXT://h", "PLAINTEXT://h:x", "OTHER://h:9092", 9092]
)
def test_a_registration_with_an_endpoint_that_is_none_stops_its_reader(endpoint):
    data = json.dumps({"version": 5, "endpoints": [endpoint]}).encode()
    with pytest.raises(SparklogError, match="ZooKeeper node /brokers/ids/3 cannot be understood"):
        znodes.decode_broker(BrokerId(3), data, BrokerEpoch(77))


def test_an_incarnations_epoch_is_the_transaction_that_wrote_it_until_it_is_rewritten():
    record = next_incarnation(None, [DirectoryIdentity("a")], host_id="h", boot_id="b")
    stored = znodes.decode_incarnation(BrokerId(1), znodes.encode_incarnation(record), 0, 77)
    assert stored == StoredIncarnation(record, 0, BrokerEpoch(77))
    marked = mark_suspect(stored, "a")
    again = znodes.decode_incarnation(BrokerId(1), znodes.encode_incarnation(marked), 1, 99)
    assert (again.broker_epoch, again.number, again.record.suspect) == (77, 1, ("a",))


def test_the_logs_that_an_incarnation_keeps_are_read_back():
    record = replace(
        next_incarnation(None, [DirectoryIdentity("a")], host_id="h", boot_id="b"),
        kept_since=7,
        kept={(uuid.UUID(int=1), 0): 3, (uuid.UUID(int=1), 2): 4, (uuid.UUID(int=2), 0): 3},
    )
    data = znodes.encode_incarnation(record)
    assert znodes.decode_incarnation(BrokerId(1), data, 0, 77).record == record


def test_a_record_from_before_disks_were_noted_keeps_what_it_proves():
    data = b'{"directories":["a"],"host":"h","boot":"b","intact_since":3,"clean":true,"suspect":[]}'
    record = znodes.decode_incarnation(BrokerId(1), data, 0, 77).record
    assert (record.keeps(2), record.keeps(3)) == (False, True)


def test_the_spared_logs_of_an_incarnation_fit_into_a_node():
    spared = {(uuid.uuid4(), 1000 + number): 1_000_000 for number in range(SPARED_MAX)}
    spared |= {(uuid.UUID(int=1), 0): 3, (uuid.UUID(int=1), 2): 3, (uuid.UUID(int=1), 1): 4}
    record = replace(
        next_incarnation(None, [DirectoryIdentity("a")], host_id="h", boot_id="b"),
        spared=spared,
        unseen={"b": 3},
        absent={"b": BrokerEpoch(70)},
    )
    data = znodes.encode_incarnation(record)
    assert znodes.decode_incarnation(BrokerId(1), data, 0, 77).record == record
    assert len(data) < WRITE_BYTES_MAX


def test_a_topic_comes_back_whole():
    one = znodes.Assignment((BrokerId(1), BrokerId(2)))
    two = znodes.Assignment((BrokerId(2), BrokerId(3)), adding=(BrokerId(3),), removing=(BrokerId(1),))
    node = znodes.TopicNode(uuid.uuid4(), (one, two))
    assert znodes.decode_topic("t", znodes.encode_topic(node)) == node


def test_a_partition_state_comes_back_whole():
    assignment = znodes.Assignment((BrokerId(1), BrokerId(2), BrokerId(3)))
    state = PartitionState(
        leader=BrokerId(1),
        leader_epoch=5,
        isr=(BrokerId(1), BrokerId(2)),
        replicas=assignment.replicas,
        partition_epoch=9,
        eligible=(BrokerId(3),),
        isr_incarnations={BrokerId(1): 4, BrokerId(2): 0, BrokerId(3): 2},
    )
    data = znodes.encode_state(state, ControllerEpoch(2))
    assert znodes.decode_state("t", 0, data).partition(assignment, 9) == state


def test_the_small_nodes_come_back_as_they_went():
    node = znodes.ControllerNode("host", 1234, 42, "app", 1_700_000_000_000)
    assert znodes.decode_controller(znodes.encode_controller(node)) == node
    telling = replace(node, topic_defaults={"min.insync.replicas": "2"})
    assert znodes.decode_controller(znodes.encode_controller(telling)) == telling
    block = znodes.ProducerIdBlock(BrokerId(1), 1_000, 1_999)
    assert znodes.decode_producer_id_block(znodes.encode_producer_id_block(block)) == block
    configs = {"retention.ms": "1"}
    assert znodes.decode_configs("/config/topics/t", znodes.encode_configs(configs)) == configs
    assert znodes.decode_controller_epoch(znodes.encode_controller_epoch(ControllerEpoch(7))) == 7
    assert znodes.decode_cluster_id(znodes.encode_cluster_id("abc")) == "abc"


@pytest.mark.parametrize("data", [b"", b"\xff", b"[1]", b"{}", b'{"version":1}', b'{"id":1,"partitions":[]}'])
@pytest.mark.parametrize(
    ("decode", "path"),
    [
        (lambda data: znodes.decode_broker(BrokerId(1), data, BrokerEpoch(1)), "/brokers/ids/1"),
        (lambda data: znodes.decode_incarnation(BrokerId(1), data, 0, 1), "/brokers/incarnations/1"),
        (lambda data: znodes.decode_topic("t", data), "/brokers/topics/t"),
        (lambda data: znodes.decode_state("t", 0, data), "/brokers/topics/t/partitions/0/state"),
        (lambda data: znodes.decode_configs("/config/topics/t", data), "/config/topics/t"),
        (znodes.decode_controller, "/controller"),
        (znodes.decode_producer_id_block, "/latest_producer_id_block"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_its_path(decode, path, data):
    with pytest.raises(SparklogError, match=path):
        decode(data)


def test_a_controller_epoch_that_is_no_number_is_refused():
    with pytest.raises(SparklogError, match="/controller_epoch"):
        znodes.decode_controller_epoch(b"one")
