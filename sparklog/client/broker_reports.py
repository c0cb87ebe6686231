"""What one broker reports of itself: its figures, disks, partitions, warnings and metrics."""

from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.wire.messages.discovery.broker_report import BrokerReportRequest, BrokerReportResponse


def report_of_broker(
    cluster: ClusterClient, broker_id: int, request: BrokerReportRequest, *, timeout_ms: int
) -> BrokerReportResponse:
    """Asked once. OSError if the broker is not reached in time; KafkaError if it is not alive, is starting,
    is of a release that gives no such reports, or if the user lacks DESCRIBE on the cluster, or for warnings
    ALTER.
    """
    response: BrokerReportResponse = cluster.call_broker(broker_id, request, timeout_ms=timeout_ms)
    if response.error_code is not ErrorCode.none:
        raise KafkaError(response.error_code, response.error_message or response.error_code.name)
    return response
