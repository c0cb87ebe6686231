"""What reports leave out: whatever names topics and users that the requester may not describe."""

from typing import Final

from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.wire.access.question import Admitted, Question, Verdict
from sparklog.wire.messages.discovery.broker_report import BrokerReportResponse, ReportedSeries
from sparklog.wire.messages.discovery.cluster_report import ClusterReportResponse

HIDDEN_WAIT: Final = "partitions of topics that you may not describe"


def cluster_report(asked: Question) -> Verdict:
    """Events and waits that name topics are for those who may describe each of them, and for brokers. Who may
    not is given a wait without its words.
    """
    if asked.access.sees(AclOperation.cluster_action, ResourceType.cluster):
        return Admitted(asked.request)

    def finish(response: ClusterReportResponse) -> ClusterReportResponse:
        waits = [wait for operation in response.operations for wait in operation.waits]
        names = {name for event in response.events for name in event.topics}
        names.update(name for wait in waits for name in wait.topics)
        visible = asked.access.filter(AclOperation.describe, ResourceType.topic, names)
        response.events = [event for event in response.events if visible.issuperset(event.topics)]
        for wait in waits:
            if not visible.issuperset(wait.topics):
                wait.words, wait.topics = HIDDEN_WAIT, []
        return response

    return Admitted(asked.request, finish)


def broker_report(asked: Question) -> Verdict:
    """Partitions and series of topics are for those who may describe the topic; series that name users, for
    those who may see quotas.
    """

    def finish(response: BrokerReportResponse) -> BrokerReportResponse:
        series = [one for metric in response.metrics for one in metric.series]
        names = {one.topic for one in response.partitions} | {_label(one, "topic") for one in series}
        visible = asked.access.filter(AclOperation.describe, ResourceType.topic, names - {""}) | {""}
        sees_users = asked.access.sees(AclOperation.describe_configs, ResourceType.cluster)

        def is_shown(one: ReportedSeries) -> bool:
            return _label(one, "topic") in visible and (sees_users or not _label(one, "user"))

        response.partitions = [one for one in response.partitions if one.topic in visible]
        for metric in response.metrics:
            metric.series = [one for one in metric.series if is_shown(one)]
        response.metrics = [metric for metric in response.metrics if metric.series]
        return response

    return Admitted(asked.request, finish)


def _label(series: ReportedSeries, name: str) -> str:
    """Its value; empty without it. A series under the empty topic sums several, and names none."""
    return next((label.value for label in series.labels if label.name == name), "")
