"""ClusterReport: what the controller knows of the cluster, from this broker's copy."""

from sparklog.broker.call import Call
from sparklog.wire.messages.discovery.cluster_report import ClusterReportRequest


def handle(call: Call, request: ClusterReportRequest) -> None:
    call.reply(call.broker.report.answer(request))
