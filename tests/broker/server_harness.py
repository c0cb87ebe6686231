"""A running broker, a client of it, and the part of its controller."""

import uuid

from sparklog.broker.life.server import BrokerServer
from sparklog.network.dialing.connection import Connection
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.wire.messages.control.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from sparklog.wire.messages.control.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from sparklog.wire.messages.data.fetch import FetchPartition, FetchRequest, FetchTopic
from sparklog.wire.messages.data.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic

TOPIC_ID = uuid.UUID(int=77)
TIMEOUT_MS = 5_000


class Harness:
    """A running broker, a client's connection to it, and the controller's part."""

    def __init__(self, server: BrokerServer) -> None:
        self.server = server
        endpoint = server.node
        self.connection = Connection.open(
            endpoint.host, endpoint.port, client_id="test", timeout_ms=TIMEOUT_MS
        )

    def call(self, message, version=None):
        return self.connection.call(message, version=version, timeout_ms=TIMEOUT_MS)

    def lead(self, leader_epoch=0, controller_epoch=1, leader=1, topic_id=TOPIC_ID, isr=(1,), **fences):
        state = LeaderAndIsrPartitionState(
            partition_index=0, controller_epoch=controller_epoch, leader=leader, leader_epoch=leader_epoch,
            isr=list(isr), partition_epoch=0, replicas=list(isr),
        )  # fmt: skip
        topic = LeaderAndIsrTopicState(topic_name="quakes", topic_id=topic_id, partition_states=[state])
        fences.setdefault("broker_epoch", self.server.node.epoch)
        return self.call(
            LeaderAndIsrRequest(
                controller_id=-1, controller_epoch=controller_epoch, type_=2, topic_states=[topic], **fences
            )
        )

    def publish(self):
        endpoint = self.server.node
        partition = UpdateMetadataPartitionState(
            partition_index=0,
            controller_epoch=1,
            leader=1,
            leader_epoch=0,
            isr=[1],
            zk_version=0,
            replicas=[1],
        )
        topic = UpdateMetadataTopicState(
            topic_name="quakes",
            topic_id=TOPIC_ID,
            partition_states=[partition],
            configs={"segment.bytes": "9999"},
        )
        address = UpdateMetadataEndpoint(port=endpoint.port, host=endpoint.host)
        broker = UpdateMetadataBroker(id_=1, endpoints=[address], epoch=endpoint.epoch)
        return self.call(
            UpdateMetadataRequest(
                controller_id=-1, controller_epoch=1, broker_epoch=endpoint.epoch, topic_states=[topic],
                live_brokers=[broker],
            )
        )  # fmt: skip

    def produce(self, *values: bytes, acks=-1, batch=None):
        records = batch or build_records_batch([Record(value=value) for value in values], now_ms=1_000)
        topic = ProduceTopic(name="quakes", partition_data=[ProducePartition(index=0, records=records)])
        response = self.call(ProduceRequest(acks=acks, topic_data=[topic]))
        return response.responses[0].partition_responses[0]

    def fetch(self, offset=0, *, topic_id=TOPIC_ID, version=None, wait_ms=0, **options):
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, **options)
        topic = FetchTopic(topic="quakes", topic_id=topic_id, partitions=[partition])
        response = self.call(FetchRequest(max_wait_ms=wait_ms, topics=[topic]), version)
        return response.responses[0].partitions[0]

    def offset_at(self, timestamp, version=None):
        asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        topic = ListOffsetsTopic(name="quakes", partitions=[asked])
        return self.call(ListOffsetsRequest(topics=[topic]), version).topics[0].partitions[0]
