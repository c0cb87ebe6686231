"""The controller's report of the cluster and its operations, through any broker, or at the controller; and
what one broker reports of itself.
"""

from typing import Final

from sparklog.client.calls.bootstrap import Endpoint
from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.network.dialing.connector import Connector
from sparklog.wire.messages.admin.operate_brokers import OperateBrokersRequest, OperateBrokersResponse
from sparklog.wire.messages.discovery.broker_report import BrokerReportRequest, BrokerReportResponse
from sparklog.wire.messages.discovery.cluster_report import ClusterReportRequest, ClusterReportResponse

CONTROLLER_TIMEOUT_MS: Final = 3_000


def report_of_brokers(
    cluster: ClusterClient, request: ClusterReportRequest, *, timeout_ms: int
) -> ClusterReportResponse:
    """The first broker's that has one. KafkaError if none has, or if brokers or controller are of a release
    that gives no reports; ClusterUnavailable if no broker answers in time.
    """
    response: ClusterReportResponse = cluster.call_any(
        request, lambda answer: answer.error_code, timeout_ms=timeout_ms
    )
    return _checked(response)


def report_of_controller(
    connector: Connector, endpoint: Endpoint, request: ClusterReportRequest, *, client_id: str
) -> ClusterReportResponse:
    """The controller's own, at its listener. OSError if it does not answer, KafkaError if it is not in
    office, or of a release that gives no reports.
    """
    with connector.open(
        endpoint.host, endpoint.port, client_id=client_id, timeout_ms=CONTROLLER_TIMEOUT_MS
    ) as connection:
        return _checked(connection.call(request, timeout_ms=CONTROLLER_TIMEOUT_MS))


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


def operate_brokers(
    cluster: ClusterClient, request: OperateBrokersRequest, *, timeout_ms: int
) -> OperateBrokersResponse:
    """Have the controller begin or cancel an operation. KafkaError if it is refused; ClusterUnavailable if no
    broker, or no controller, answers in time.
    """
    response: OperateBrokersResponse = cluster.call_controller(
        request, lambda answer: _retried(answer.error_code), timeout_ms=timeout_ms
    )
    return _not_refused(response)


def operate_brokers_at(
    connector: Connector, endpoint: Endpoint, request: OperateBrokersRequest, *, client_id: str
) -> OperateBrokersResponse:
    """Likewise at the controller's own listener. OSError if it does not answer."""
    with connector.open(
        endpoint.host, endpoint.port, client_id=client_id, timeout_ms=CONTROLLER_TIMEOUT_MS
    ) as connection:
        return _not_refused(connection.call(request, timeout_ms=CONTROLLER_TIMEOUT_MS))


def _retried(code: ErrorCode) -> ErrorCode:
    return code if code in (ErrorCode.not_controller, ErrorCode.network_exception) else ErrorCode.none


def _not_refused(response: OperateBrokersResponse) -> OperateBrokersResponse:
    if response.error_code is not ErrorCode.none:
        raise KafkaError(response.error_code, response.error_message or response.error_code.name)
    return response


def _checked(response: ClusterReportResponse) -> ClusterReportResponse:
    if response.error_code is not ErrorCode.none:
        raise KafkaError(response.error_code, response.error_message or "no report of the cluster")
    return response
