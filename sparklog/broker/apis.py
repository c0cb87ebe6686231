"""The table of the APIs that a broker serves, one row an API.

Listeners, rights and quotas are in ``sparklog.core.security.api_rules``, with a row for every API of the
protocol. The controller serves what ``sparklog.wire.commands.command_apis`` lists.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from sparklog.broker.call import Call
from sparklog.broker.forwarding import forward
from sparklog.broker.handlers import (
    api_versions,
    delete_records,
    describe_cluster,
    describe_log_dirs,
    fetch,
    find_coordinator,
    init_producer_id,
    leader_and_isr,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
    sasl,
    stop_replica,
    update_metadata,
)
from sparklog.broker.handlers.configs import (
    alter_client_quotas,
    describe_configs,
    incremental_alter_configs,
)
from sparklog.broker.handlers.groups import (
    delete_groups,
    describe_groups,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from sparklog.broker.handlers.security import acls, delegation_tokens, scram_users
from sparklog.broker.handlers.transactions import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_producers,
    describe_transactions,
    end_txn,
    list_transactions,
    txn_offset_commit,
    write_txn_markers,
)
from sparklog.broker.handlers.writes import agree, describe_visibility, end_write, open_write
from sparklog.wire.messages.admin.alter_client_quotas import AlterClientQuotasRequest
from sparklog.wire.messages.admin.alter_configs import AlterConfigsRequest
from sparklog.wire.messages.admin.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from sparklog.wire.messages.admin.create_partitions import CreatePartitionsRequest
from sparklog.wire.messages.admin.create_topics import CreateTopicsRequest
from sparklog.wire.messages.admin.delete_topics import DeleteTopicsRequest
from sparklog.wire.messages.admin.describe_client_quotas import DescribeClientQuotasRequest
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
from sparklog.wire.messages.groups.delete_groups import DeleteGroupsRequest
from sparklog.wire.messages.groups.describe_groups import DescribeGroupsRequest
from sparklog.wire.messages.groups.heartbeat import HeartbeatRequest
from sparklog.wire.messages.groups.join_group import JoinGroupRequest
from sparklog.wire.messages.groups.leave_group import LeaveGroupRequest
from sparklog.wire.messages.groups.list_groups import ListGroupsRequest
from sparklog.wire.messages.groups.offset_commit import OffsetCommitRequest
from sparklog.wire.messages.groups.offset_delete import OffsetDeleteRequest
from sparklog.wire.messages.groups.offset_fetch import OffsetFetchRequest
from sparklog.wire.messages.groups.sync_group import SyncGroupRequest
from sparklog.wire.messages.security.create_acls import CreateAclsRequest
from sparklog.wire.messages.security.create_delegation_token import CreateDelegationTokenRequest
from sparklog.wire.messages.security.delete_acls import DeleteAclsRequest
from sparklog.wire.messages.security.describe_acls import DescribeAclsRequest
from sparklog.wire.messages.security.describe_delegation_token import DescribeDelegationTokenRequest
from sparklog.wire.messages.security.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from sparklog.wire.messages.security.expire_delegation_token import ExpireDelegationTokenRequest
from sparklog.wire.messages.security.renew_delegation_token import RenewDelegationTokenRequest
from sparklog.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from sparklog.wire.messages.security.sasl_handshake import SaslHandshakeRequest
from sparklog.wire.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from sparklog.wire.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest
from sparklog.wire.messages.transactions.describe_producers import DescribeProducersRequest
from sparklog.wire.messages.transactions.describe_transactions import DescribeTransactionsRequest
from sparklog.wire.messages.transactions.end_txn import EndTxnRequest
from sparklog.wire.messages.transactions.list_transactions import ListTransactionsRequest
from sparklog.wire.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from sparklog.wire.messages.transactions.write_txn_markers import WriteTxnMarkersRequest
from sparklog.wire.messages.writes.agree import AgreeRequest
from sparklog.wire.messages.writes.describe_visibility import DescribeVisibilityRequest
from sparklog.wire.messages.writes.end_write import EndWriteRequest
from sparklog.wire.messages.writes.open_write import OpenWriteRequest

Handler = Callable[[Call, Any], None]


@dataclass(frozen=True, slots=True)
class Api:
    """How a broker serves one API.

    ``waits_for_controller``: the handler asks the controller, and blocks until it answers. Request handlers
    are few: while the controller is away, two such requests would stop the broker for all clients, so other
    threads take them.

    ``needs_metadata``: the answer is what the controller reported of the cluster, and waits for its first
    report (``metadata/first_report``).
    """

    handler: Handler
    waits_for_controller: bool = False
    needs_metadata: bool = False


_FORWARDED: Final = Api(forward, waits_for_controller=True)

APIS: Final[Mapping[int, Api]] = MappingProxyType(
    {
        ProduceRequest.API_KEY: Api(produce.handle),
        FetchRequest.API_KEY: Api(fetch.handle),
        ListOffsetsRequest.API_KEY: Api(list_offsets.handle),
        OffsetForLeaderEpochRequest.API_KEY: Api(offset_for_leader_epoch.handle),
        DeleteRecordsRequest.API_KEY: Api(delete_records.handle),
        InitProducerIdRequest.API_KEY: Api(init_producer_id.handle, waits_for_controller=True),
        ApiVersionsRequest.API_KEY: Api(api_versions.handle),
        MetadataRequest.API_KEY: Api(metadata.handle, needs_metadata=True),
        DescribeClusterRequest.API_KEY: Api(describe_cluster.handle, needs_metadata=True),
        SaslHandshakeRequest.API_KEY: Api(sasl.handle_handshake),
        SaslAuthenticateRequest.API_KEY: Api(sasl.handle_authenticate),
        DescribeAclsRequest.API_KEY: Api(acls.handle_describe),
        CreateAclsRequest.API_KEY: Api(acls.handle_create),
        DeleteAclsRequest.API_KEY: Api(acls.handle_delete),
        CreateDelegationTokenRequest.API_KEY: Api(delegation_tokens.handle_create),
        RenewDelegationTokenRequest.API_KEY: Api(delegation_tokens.handle_renew),
        ExpireDelegationTokenRequest.API_KEY: Api(delegation_tokens.handle_expire),
        DescribeDelegationTokenRequest.API_KEY: Api(delegation_tokens.handle_describe),
        DescribeUserScramCredentialsRequest.API_KEY: Api(scram_users.handle),
        FindCoordinatorRequest.API_KEY: Api(find_coordinator.handle),
        JoinGroupRequest.API_KEY: Api(join_group.handle),
        SyncGroupRequest.API_KEY: Api(sync_group.handle),
        HeartbeatRequest.API_KEY: Api(heartbeat.handle),
        LeaveGroupRequest.API_KEY: Api(leave_group.handle),
        OffsetCommitRequest.API_KEY: Api(offset_commit.handle, needs_metadata=True),
        OffsetFetchRequest.API_KEY: Api(offset_fetch.handle),
        DescribeGroupsRequest.API_KEY: Api(describe_groups.handle),
        ListGroupsRequest.API_KEY: Api(list_groups.handle),
        DeleteGroupsRequest.API_KEY: Api(delete_groups.handle),
        DescribeProducersRequest.API_KEY: Api(describe_producers.handle),
        OffsetDeleteRequest.API_KEY: Api(offset_delete.handle, needs_metadata=True),
        AddPartitionsToTxnRequest.API_KEY: Api(add_partitions_to_txn.handle, needs_metadata=True),
        AddOffsetsToTxnRequest.API_KEY: Api(add_offsets_to_txn.handle),
        EndTxnRequest.API_KEY: Api(end_txn.handle),
        WriteTxnMarkersRequest.API_KEY: Api(write_txn_markers.handle),
        TxnOffsetCommitRequest.API_KEY: Api(txn_offset_commit.handle, needs_metadata=True),
        DescribeTransactionsRequest.API_KEY: Api(describe_transactions.handle),
        ListTransactionsRequest.API_KEY: Api(list_transactions.handle),
        OpenWriteRequest.API_KEY: Api(open_write.handle, needs_metadata=True),
        EndWriteRequest.API_KEY: Api(end_write.handle),
        AgreeRequest.API_KEY: Api(agree.handle),
        DescribeVisibilityRequest.API_KEY: Api(describe_visibility.handle),
        CreateTopicsRequest.API_KEY: _FORWARDED,
        DeleteTopicsRequest.API_KEY: _FORWARDED,
        CreatePartitionsRequest.API_KEY: _FORWARDED,
        DescribeConfigsRequest.API_KEY: Api(describe_configs.handle, needs_metadata=True),
        AlterConfigsRequest.API_KEY: _FORWARDED,
        IncrementalAlterConfigsRequest.API_KEY: Api(
            incremental_alter_configs.handle, waits_for_controller=True
        ),
        DescribeClientQuotasRequest.API_KEY: _FORWARDED,
        AlterClientQuotasRequest.API_KEY: Api(alter_client_quotas.handle, waits_for_controller=True),
        ElectLeadersRequest.API_KEY: _FORWARDED,
        AlterPartitionReassignmentsRequest.API_KEY: _FORWARDED,
        ListPartitionReassignmentsRequest.API_KEY: _FORWARDED,
        DescribeLogDirsRequest.API_KEY: Api(describe_log_dirs.handle),
        LeaderAndIsrRequest.API_KEY: Api(leader_and_isr.handle),
        StopReplicaRequest.API_KEY: Api(stop_replica.handle),
        UpdateMetadataRequest.API_KEY: Api(update_metadata.handle),
    }
)
