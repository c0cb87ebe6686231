"""DescribeCluster: the live brokers, for admin clients (KIP-700)."""

from sparklog.broker.call import Call
from sparklog.wire.messages.discovery.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from sparklog.wire.messages.discovery.metadata import OPERATIONS_OMITTED


def handle(call: Call, request: DescribeClusterRequest) -> None:
    nodes = call.broker.metadata.snapshot.nodes(call.context.listener)
    call.reply(
        DescribeClusterResponse(
            cluster_id=call.broker.cluster_id,
            controller_id=min(nodes, default=-1),
            brokers=[
                DescribeClusterBroker(broker_id=node.id, host=node.host, port=node.port, rack=node.rack)
                for node in nodes.values()
            ],
            cluster_authorized_operations=_operations(call, request),
        )
    )


def _operations(call: Call, request: DescribeClusterRequest) -> int:
    if not request.include_cluster_authorized_operations:
        return OPERATIONS_OMITTED
    return call.cluster_operations()
