"""What a broker's report leaves out for those who may see less."""

import dataclasses

import pytest

from sparklog.core.apis.api_table import APIS
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.wire.access.question import Admitted, Question
from sparklog.wire.access.seen_reports import broker_report
from sparklog.wire.messages.discovery.broker_report import (
    BrokerReportRequest,
    BrokerReportResponse,
    ReportedLabel,
    ReportedMetric,
    ReportedPartition,
    ReportedSeries,
)


@dataclasses.dataclass
class Seer:
    """An ``Access`` by what it sees."""

    topics: frozenset[str] = frozenset()
    sees_quotas: bool = False

    def sees(self, operation: AclOperation, resource: ResourceType) -> bool:
        assert (operation, resource) == (AclOperation.describe_configs, ResourceType.cluster)
        return self.sees_quotas

    def filter(self, operation, resource, names) -> frozenset[str]:
        assert (operation, resource) == (AclOperation.describe, ResourceType.topic)
        return self.topics & frozenset(names)


def metric(name: str, *series: dict[str, str]) -> ReportedMetric:
    return ReportedMetric(
        name=name,
        kind="gauge",
        doc="",
        series=[
            ReportedSeries(labels=[ReportedLabel(name=label, value=value) for label, value in labels.items()])
            for labels in series
        ],
    )


def shown(seer: Seer) -> BrokerReportResponse:
    verdict = broker_report(Question(APIS[10_005], BrokerReportRequest(), 0, seer, lambda _: None))
    assert isinstance(verdict, Admitted)
    assert verdict.finish is not None
    return verdict.finish(
        BrokerReportResponse(
            partitions=[ReportedPartition(topic=topic, partition=0) for topic in ("mine", "theirs")],
            metrics=[
                metric("threads", {}),
                metric("by_topic", {"topic": "mine"}, {"topic": "theirs"}, {"topic": ""}),
                metric("quota", {"quota": "producer_byte_rate", "user": "bob", "client_id": "b"}),
            ],
        )
    )


def labels(report: BrokerReportResponse) -> dict[str, list[list[str]]]:
    return {
        one.name: [[label.value for label in series.labels] for series in one.series]
        for one in report.metrics
    }


def test_topics_that_may_not_be_described_are_left_out() -> None:
    report = shown(Seer(topics=frozenset({"mine"})))
    assert [one.topic for one in report.partitions] == ["mine"]
    assert labels(report) == {"threads": [[]], "by_topic": [["mine"], [""]]}


@pytest.mark.parametrize("sees_quotas", [True, False])
def test_series_of_users_are_for_those_who_may_see_quotas(sees_quotas: bool) -> None:
    report = shown(Seer(topics=frozenset({"mine", "theirs"}), sees_quotas=sees_quotas))
    assert ("quota" in labels(report)) == sees_quotas
    assert labels(report)["by_topic"] == [["mine"], ["theirs"], [""]]
