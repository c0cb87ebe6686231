"""The handler of each API that a broker serves. What else an API is stands in ``core/apis/api_table``."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from sparklog.broker.call import Call
from sparklog.broker.forwarding import forward
from sparklog.broker.handlers import (
    api_versions,
    delete_records,
    describe_cluster,
    describe_log_dirs,
    describe_schema,
    fetch,
    find_coordinator,
    given_reports,
    init_producer_id,
    leader_and_isr,
    lean_fetch,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
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
from sparklog.broker.handlers.producing import produce
from sparklog.broker.handlers.security import acls, delegation_tokens
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
from sparklog.core.apis.api import Code
from sparklog.core.apis.api_table import ROWS, by_key

Handler = Callable[[Call, Any], None]

_HANDLERS: Final[Mapping[str, Handler]] = {
    "Produce": produce.handle,
    "Fetch": fetch.handle,
    "ListOffsets": list_offsets.handle,
    "Metadata": metadata.handle,
    "LeaderAndIsr": leader_and_isr.handle,
    "StopReplica": stop_replica.handle,
    "UpdateMetadata": update_metadata.handle,
    "OffsetCommit": offset_commit.handle,
    "OffsetFetch": offset_fetch.handle,
    "FindCoordinator": find_coordinator.handle,
    "JoinGroup": join_group.handle,
    "Heartbeat": heartbeat.handle,
    "LeaveGroup": leave_group.handle,
    "SyncGroup": sync_group.handle,
    "DescribeGroups": describe_groups.handle,
    "ListGroups": list_groups.handle,
    "SaslHandshake": sasl.handle_handshake,
    "ApiVersions": api_versions.handle,
    "DeleteRecords": delete_records.handle,
    "InitProducerId": init_producer_id.handle,
    "OffsetForLeaderEpoch": offset_for_leader_epoch.handle,
    "AddPartitionsToTxn": add_partitions_to_txn.handle,
    "AddOffsetsToTxn": add_offsets_to_txn.handle,
    "EndTxn": end_txn.handle,
    "WriteTxnMarkers": write_txn_markers.handle,
    "TxnOffsetCommit": txn_offset_commit.handle,
    "DescribeAcls": acls.handle_describe,
    "CreateAcls": acls.handle_create,
    "DeleteAcls": acls.handle_delete,
    "DescribeConfigs": describe_configs.handle,
    "ClusterReport": given_reports.handle_of_cluster,
    "BrokerReport": given_reports.handle_of_broker,
    "DescribeSchema": describe_schema.handle,
    "DescribeLogDirs": describe_log_dirs.handle,
    "SaslAuthenticate": sasl.handle_authenticate,
    "CreateDelegationToken": delegation_tokens.handle_create,
    "RenewDelegationToken": delegation_tokens.handle_renew,
    "ExpireDelegationToken": delegation_tokens.handle_expire,
    "DescribeDelegationToken": delegation_tokens.handle_describe,
    "DeleteGroups": delete_groups.handle,
    "IncrementalAlterConfigs": incremental_alter_configs.handle,
    "OffsetDelete": offset_delete.handle,
    "AlterClientQuotas": alter_client_quotas.handle,
    "DescribeCluster": describe_cluster.handle,
    "DescribeProducers": describe_producers.handle,
    "DescribeTransactions": describe_transactions.handle,
    "ListTransactions": list_transactions.handle,
    "OpenWrite": open_write.handle,
    "EndWrite": end_write.handle,
    "Agree": agree.handle,
    "DescribeVisibility": describe_visibility.handle,
    "LeanFetch": lean_fetch.handle,
}

HANDLERS: Final[Mapping[int, Handler]] = by_key(
    {**_HANDLERS, **{api.name: forward for api in ROWS if Code.forward in api.code}}
)
"""By the API's key. An API that the controller alone serves has none."""
