"""BrokerReport: what this broker knows of itself."""

from sparklog.broker.call import Call
from sparklog.wire.messages.discovery.broker_report import BrokerReportRequest


def handle(call: Call, request: BrokerReportRequest) -> None:
    call.reply(call.broker.own_report(request))
