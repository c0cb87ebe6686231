"""From a frame to its handler: decode, look up, call.

A request that cannot be understood has no error reply in Kafka's protocol: the connection is closed. The one
exception is ApiVersions, which answers a version nobody has with what it does have, in version 0's layout.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from sparklog.broker.call import Call
from sparklog.broker.context import BrokerContext
from sparklog.broker.handlers import (
    admin,
    api_versions,
    delete_records,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    fetch,
    find_coordinator,
    init_producer_id,
    leader_and_isr,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
    stop_replica,
    update_metadata,
)
from sparklog.model.errors import ErrorCode, WireError
from sparklog.network.exchange import Exchange
from sparklog.wire.codec import UnsupportedVersion, decode_request, encode_response
from sparklog.wire.messages.admin.alter_configs import AlterConfigsRequest
from sparklog.wire.messages.admin.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from sparklog.wire.messages.admin.create_partitions import CreatePartitionsRequest
from sparklog.wire.messages.admin.create_topics import CreateTopicsRequest
from sparklog.wire.messages.admin.delete_topics import DeleteTopicsRequest
from sparklog.wire.messages.admin.describe_configs import DescribeConfigsRequest
from sparklog.wire.messages.admin.describe_log_dirs import DescribeLogDirsRequest
from sparklog.wire.messages.admin.elect_leaders import ElectLeadersRequest
from sparklog.wire.messages.admin.incremental_alter_configs import IncrementalAlterConfigsRequest
from sparklog.wire.messages.admin.list_partition_reassignments import ListPartitionReassignmentsRequest
from sparklog.wire.messages.control.leader_and_isr import LeaderAndIsrRequest
from sparklog.wire.messages.control.stop_replica import StopReplicaRequest
from sparklog.wire.messages.control.update_metadata import UpdateMetadataRequest
from sparklog.wire.messages.data.delete_records import DeleteRecordsRequest
from sparklog.wire.messages.data.fetch import FetchRequest
from sparklog.wire.messages.data.init_producer_id import InitProducerIdRequest
from sparklog.wire.messages.data.list_offsets import ListOffsetsRequest
from sparklog.wire.messages.data.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from sparklog.wire.messages.data.produce import ProduceRequest
from sparklog.wire.messages.discovery.api_versions import ApiVersionsRequest
from sparklog.wire.messages.discovery.describe_cluster import DescribeClusterRequest
from sparklog.wire.messages.discovery.find_coordinator import FindCoordinatorRequest
from sparklog.wire.messages.discovery.metadata import MetadataRequest

logger = logging.getLogger(__name__)

Handler = Callable[[Call, Any], None]

HANDLERS: Final[Mapping[int, Handler]] = {
    ApiVersionsRequest.API_KEY: api_versions.handle,
    AlterConfigsRequest.API_KEY: admin.handle_alter_configs,
    AlterPartitionReassignmentsRequest.API_KEY: admin.handle_alter_reassignments,
    CreatePartitionsRequest.API_KEY: admin.handle_create_partitions,
    CreateTopicsRequest.API_KEY: admin.handle_create_topics,
    DeleteRecordsRequest.API_KEY: delete_records.handle,
    DeleteTopicsRequest.API_KEY: admin.handle_delete_topics,
    DescribeClusterRequest.API_KEY: describe_cluster.handle,
    DescribeConfigsRequest.API_KEY: describe_configs.handle,
    DescribeLogDirsRequest.API_KEY: describe_log_dirs.handle,
    ElectLeadersRequest.API_KEY: admin.handle_elect_leaders,
    FetchRequest.API_KEY: fetch.handle,
    FindCoordinatorRequest.API_KEY: find_coordinator.handle,
    IncrementalAlterConfigsRequest.API_KEY: admin.handle_incremental_alter_configs,
    InitProducerIdRequest.API_KEY: init_producer_id.handle,
    LeaderAndIsrRequest.API_KEY: leader_and_isr.handle,
    ListPartitionReassignmentsRequest.API_KEY: admin.handle_list_reassignments,
    ListOffsetsRequest.API_KEY: list_offsets.handle,
    MetadataRequest.API_KEY: metadata.handle,
    OffsetForLeaderEpochRequest.API_KEY: offset_for_leader_epoch.handle,
    ProduceRequest.API_KEY: produce.handle,
    StopReplicaRequest.API_KEY: stop_replica.handle,
    UpdateMetadataRequest.API_KEY: update_metadata.handle,
}

WAITING: Final = frozenset(
    {
        AlterConfigsRequest.API_KEY,
        AlterPartitionReassignmentsRequest.API_KEY,
        CreatePartitionsRequest.API_KEY,
        CreateTopicsRequest.API_KEY,
        DeleteTopicsRequest.API_KEY,
        ElectLeadersRequest.API_KEY,
        IncrementalAlterConfigsRequest.API_KEY,
        InitProducerIdRequest.API_KEY,
        ListPartitionReassignmentsRequest.API_KEY,
    }
)
"""Their handlers ask the controller and wait: while it is away, two of them would stop a broker for all."""

TELL_OF_THE_CLUSTER: Final = frozenset(
    {DescribeClusterRequest.API_KEY, DescribeConfigsRequest.API_KEY, MetadataRequest.API_KEY}
)
"""What they answer the controller must have told. Until it has, the connection is closed, and clients ask
another broker, or again. What is known here, a cluster without brokers and topics, would be believed:
librdkafka then forgets every address that it had, and never comes back.
"""


class Dispatcher:
    """What the reactor calls with every request."""

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self._is_closed = False

    def close(self) -> None:
        """Serve nobody any more: each further request ends its connection."""
        self._is_closed = True

    def __call__(self, exchange: Exchange) -> None:
        if self._is_closed:
            exchange.close()
            return
        try:
            request = decode_request(exchange.frame)
        except UnsupportedVersion as error:
            if error.header.api_key == ApiVersionsRequest.API_KEY:
                response = api_versions.response(ErrorCode.unsupported_version)
                exchange.reply(encode_response(response, 0, error.header.correlation_id))
                return
            self._refuse(exchange, error)
            return
        except WireError as error:
            self._refuse(exchange, error)
            return
        handler = HANDLERS.get(request.header.api_key)
        if handler is None:
            self._refuse(exchange, WireError(f"API key {request.header.api_key} is not served by brokers"))
            return
        if request.header.api_key in TELL_OF_THE_CLUSTER and not self._broker.metadata.is_told:
            exchange.close()
            return
        call = Call(request.header, exchange, self._broker)
        if request.header.api_key in WAITING:
            self._broker.waiting_room.submit(lambda: call.carefully(lambda: handler(call, request.body)))
        else:
            handler(call, request.body)

    @staticmethod
    def _refuse(exchange: Exchange, error: WireError) -> None:
        logger.warning("closing the connection from %s: %s", exchange.context.client_host, error)
        exchange.close()
