"""One scrape of the whole cluster, at the page."""

import re
import threading
import time
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from sparklog.client.group.committed_offsets import commit_offsets
from sparklog.client.group.group_admin import GroupAdmin
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster
from sparklog.web.page_app import build_app
from sparklog.web.page_settings import PageSettings
from sparklog.web.page_viewers import OneViewer
from sparklog.web.viewer import Viewer
from sparklog.wire.messages.discovery.broker_report import ReportedMetric, ReportedSeries
from sparklog.wire.reported_metrics import metrics_of
from tests.waiting import until
from tests.web.conftest import page_of

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster() -> Iterator[InProcessCluster]:
    with InProcessCluster(brokers=3) as cluster:
        cluster.create_topic("orders", partitions=3)
        cluster.produce("orders", [("k", "v")])
        yield cluster


def scraped(browser: TestClient) -> dict[str, float]:
    answer = browser.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = [line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines}


def test_a_scrape_has_all_brokers_by_label_and_the_controller(browser: TestClient) -> None:
    found = until(lambda: one if "sparklog_controller_active" in (one := scraped(browser)) else None)
    assert [found[f'sparklog_broker_up{{broker="{one}"}}'] for one in (1, 2, 3)] == [1, 1, 1]
    assert found["sparklog_controller_active"] == 1
    assert found['sparklog_controller_events_total{kind="topic"}'] >= 1
    assert [found[f'sparklog_broker_partitions{{broker="{one}"}}'] for one in (1, 2, 3)] == [3, 3, 3]
    counted = [
        found.get(f'sparklog_broker_request_seconds_bucket{{api="Produce",broker="{one}",le="+Inf"}}', 0)
        for one in (1, 2, 3)
    ]
    assert sum(counted) >= 1


def test_a_scrape_has_lag_by_group_and_topic_once_the_page_has_looked(cluster: InProcessCluster) -> None:
    coordinator = GroupAdmin(cluster.client).coordinator("bills")
    until(lambda: commit_offsets(coordinator, {TopicPartition("orders", 0): 0}) == {})
    viewer = Viewer(cluster.client, options="--root /data")
    browser = TestClient(build_app(OneViewer(viewer), PageSettings()), base_url="http://localhost")
    assert not [name for name in scraped(browser) if name.startswith("sparklog_group_lag")]
    viewer.lags()
    name = 'sparklog_group_lag_records{group="bills",topic="orders"}'
    until(lambda: name in scraped(browser))


def test_the_text_has_each_name_once(browser: TestClient) -> None:
    heads = re.findall(r"^# TYPE (\S+)", browser.get("/metrics").text, re.MULTILINE)
    assert len(heads) == len(set(heads)) > 50


def test_a_hundred_scrapes_at_once_cost_as_much_as_one(cluster: InProcessCluster) -> None:
    browser, before = page_of(cluster), reports(cluster)
    threads = [threading.Thread(target=browser.get, args=("/metrics",)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reports(cluster) - before <= 2


def reports(cluster: InProcessCluster) -> int:
    """How many reports the first broker has given."""
    statistics = cluster.brokers[1].process._statistics.snapshot()
    return statistics[10_005].requests if 10_005 in statistics else 0


def test_a_broker_that_hangs_costs_two_seconds_at_most(
    browser: TestClient, cluster: InProcessCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its handlers are held up, as those of a process that was stopped."""
    go_on = threading.Event()
    report = cluster.brokers[2].process._own_report
    monkeypatch.setattr(report, "_read_metrics", lambda: (go_on.wait(20), ())[1])
    try:
        began = time.monotonic()
        found = scraped(browser)
        assert time.monotonic() - began < 2.0
    finally:
        go_on.set()
    assert [found[f'sparklog_broker_up{{broker="{one}"}}'] for one in (1, 2, 3)] == [1, 0, 1]
    assert 'sparklog_broker_partitions{broker="2"}' not in found


def test_another_site_gets_no_metrics(browser: TestClient) -> None:
    assert browser.get("/metrics", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert browser.get("/metrics", headers={"Host": "evil.example"}).status_code == 421


def test_a_kind_that_this_release_does_not_know_is_left_out() -> None:
    families = [
        ReportedMetric(name=kind, kind=kind, doc="", series=[ReportedSeries()])
        for kind in ("gauge", "summary")
    ]
    assert [one.name for one in metrics_of(families, broker="1")] == ["gauge"]


def test_a_broker_that_died_is_down_and_the_scrape_goes_on(
    browser: TestClient, cluster: InProcessCluster
) -> None:
    cluster.kill(3)
    until(lambda: scraped(page_of(cluster))['sparklog_broker_up{broker="3"}'] == 0)
    cluster.revive(3)
    until(lambda: scraped(page_of(cluster))['sparklog_broker_up{broker="3"}'] == 1)
