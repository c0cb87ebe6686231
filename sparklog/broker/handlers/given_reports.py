"""ClusterReport: what the controller knows of the cluster, from this broker's copy. BrokerReport: what this
broker knows of itself.
"""

from sparklog.broker.call import Call
from sparklog.wire.messages.discovery.broker_report import BrokerReportRequest
from sparklog.wire.messages.discovery.cluster_report import ClusterReportRequest


def handle_of_cluster(call: Call, request: ClusterReportRequest) -> None:
    call.reply(call.broker.report.answer(request))


def handle_of_broker(call: Call, request: BrokerReportRequest) -> None:
    call.reply(call.broker.own_report(request))
