"""What the page keeps of brokers' figures, and the sums over brokers."""

import math

import pytest

from sparklog.web import broker_figures
from sparklog.web.broker_figures import BrokerFigures
from sparklog.wire.messages.discovery.broker_report import BrokerReportResponse, ReportedFigure

WRITTEN = "produced_bytes_per_s"
P99 = "produce_p99_ms"


class Brokers:
    """The figures that each broker would report: times and values of samples."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.samples: dict[int, list[tuple[int, float, float]]] = {}
        self.names = [WRITTEN, P99]
        self.asked: list[int] = []
        monkeypatch.setattr(broker_figures, "report_of_broker", self.report)
        self.page = BrokerFigures(None)

    def report(self, _cluster, broker_id, request, *, timeout_ms) -> BrokerReportResponse:
        self.asked.append(request.samples_after_ms)
        new = [one for one in self.samples[broker_id] if one[0] > request.samples_after_ms]
        columns = list(zip(*(values for _, *values in new), strict=True)) if new else []
        return BrokerReportResponse(
            samples_ms=[time_ms for time_ms, *_ in new],
            figures=[
                ReportedFigure(name=name, values=list(column))
                for name, column in zip(self.names, columns, strict=bool(new))
            ],
        )

    def follow(self) -> None:
        for broker in self.samples:
            self.page.follow(broker)


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    return Brokers(monkeypatch)


def test_only_what_is_new_is_asked_for_and_all_of_it_is_kept(brokers: Brokers) -> None:
    brokers.samples[1] = [(5_000, 10.0, 1.0), (10_000, 20.0, math.nan)]
    brokers.follow()
    brokers.samples[1].append((15_000, 30.0, 2.0))
    brokers.follow()
    assert brokers.asked == [-1, 10_000]
    assert brokers.page.of_broker(1, -1) == {
        "times_ms": [5_000, 10_000, 15_000], WRITTEN: [10.0, 20.0, 30.0], P99: [1.0, None, 2.0],
    }  # fmt: skip
    assert brokers.page.of_broker(1, 10_000)["times_ms"] == [15_000]
    assert brokers.page.of_broker(2, -1) == {"times_ms": []}


def test_the_cluster_is_the_sum_of_its_brokers_and_the_worst_of_their_p99(brokers: Brokers) -> None:
    brokers.samples = {
        1: [(1_000, 10.0, 5.0), (6_000, 30.0, 9.0), (11_000, 1.0, 1.0), (21_000, 1.0, 1.0)],
        2: [(3_000, 100.0, math.nan), (13_000, 7.0, math.nan), (22_000, 1.0, 1.0)],
    }
    brokers.follow()
    found = brokers.page.of_cluster([1, 2])
    assert found["times_ms"] == [10_000, 20_000]
    assert found[WRITTEN] == [120.0, 8.0], "20 in the mean of the first broker, and 100"
    assert found[P99] == [9.0, 1.0]
    assert found["fetched_bytes_per_s"] == [None, None], "no broker has such a figure"


def test_a_broker_that_is_silent_holds_up_nobody(brokers: Brokers) -> None:
    brokers.samples = {1: [(5_000, 1.0, 1.0)], 2: [(5_000, 2.0, 1.0), (45_000, 2.0, 1.0), (55_000, 4.0, 1.0)]}
    brokers.follow()
    found = brokers.page.of_cluster([1, 2])
    assert (found["times_ms"], found[WRITTEN]) == ([10_000, 50_000], [3.0, 2.0])


def test_a_broker_that_comes_back_with_other_figures_begins_anew(brokers: Brokers) -> None:
    brokers.samples[1] = [(5_000, 1.0, 1.0)]
    brokers.follow()
    brokers.names = [WRITTEN, "another"]
    brokers.samples[1].append((10_000, 2.0, 3.0))
    brokers.follow()
    assert brokers.page.of_broker(1, -1) == {"times_ms": [10_000], WRITTEN: [2.0], "another": [3.0]}


def test_without_samples_there_is_nothing_to_plot(brokers: Brokers) -> None:
    brokers.samples[1] = []
    brokers.follow()
    assert brokers.page.of_cluster([1])["times_ms"] == []
    assert brokers.page.of_cluster([])["times_ms"] == []
