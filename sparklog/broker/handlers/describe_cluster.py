"""DescribeCluster: the live brokers, for admin clients (KIP-700)."""

from sparklog.broker.call import Call
from sparklog.wire.messages.discovery.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)


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
        )
    )
