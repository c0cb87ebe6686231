"""DescribeCluster: the live brokers, for admin clients (KIP-700)."""

from sparklog.broker.call import Call
from sparklog.wire.messages.discovery.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)


def handle(call: Call, request: DescribeClusterRequest) -> None:
    brokers = call.broker.metadata.snapshot.brokers
    call.reply(
        DescribeClusterResponse(
            cluster_id=call.broker.cluster_id,
            controller_id=min(brokers, default=-1),
            brokers=[
                DescribeClusterBroker(
                    broker_id=broker.id, host=broker.host, port=broker.port, rack=broker.rack
                )
                for broker in brokers.values()
            ],
        )
    )
