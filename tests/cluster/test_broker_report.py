"""What brokers report of themselves, asked over the protocol."""

import logging
import math
import os
import socket
from collections.abc import Iterator

import pytest

from sparklog import __version__
from sparklog.broker.life.body import no_report
from sparklog.broker.life.reporting.own_report import OwnReport
from sparklog.client.cluster_reports import report_of_broker
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.network.clock import SystemClock
from sparklog.testing import InProcessCluster
from sparklog.wire.messages.discovery.broker_report import BrokerReportRequest, BrokerReportResponse
from tests.waiting import until

TOPIC = "reported"


@pytest.fixture(scope="module")
def cluster() -> Iterator[InProcessCluster]:
    with InProcessCluster(brokers=2) as cluster:
        cluster.create_topic(TOPIC, partitions=2)
        cluster.wait_for_isr(TOPIC, 2)
        yield cluster


def report(cluster: InProcessCluster, broker: int = 1, **asked: object) -> BrokerReportResponse:
    return report_of_broker(cluster.client, broker, BrokerReportRequest(**asked), timeout_ms=10_000)


def sampled(cluster: InProcessCluster) -> None:
    """Have each broker take a sample now."""
    for server in cluster.brokers.values():
        server.process._own_report._sampler.sample()


def test_every_answer_has_the_facts_of_process_and_disks(cluster: InProcessCluster) -> None:
    found = report(cluster, 2)
    assert (found.broker_id, found.release, found.host) == (2, __version__, socket.gethostname())
    assert (found.pid, found.cores) == (os.getpid(), len(os.sched_getaffinity(0)))
    assert 0 < found.started_ms <= found.time_ms
    assert 0 < found.open_files < found.open_files_max
    assert found.threads > 1
    assert found.memory_bytes > 10_000_000
    (directory,) = found.directories
    assert directory.path == cluster.brokers[2].process._options.log_dirs[0]
    assert (directory.is_online, directory.reason) == (True, None)
    assert directory.device == str(os.stat(directory.path).st_dev)
    assert 0 < directory.free_bytes <= directory.total_bytes
    assert directory.free_inodes <= directory.total_inodes
    assert (found.samples_ms, found.figures, found.warnings, found.partitions, found.metrics) == (
        [], [], [], [], [],
    )  # fmt: skip


def test_figures_say_what_was_written_and_read(cluster: InProcessCluster) -> None:
    sampled(cluster)
    last_ms = report(cluster, samples_max=1).samples_ms[-1]
    cluster.produce(TOPIC, [(f"{n}", "x" * 1_000) for n in range(100)])
    cluster.consume(TOPIC, at_least=100)
    sampled(cluster)
    found = [report(cluster, broker, samples_after_ms=last_ms, samples_max=720) for broker in (1, 2)]
    by_name = [{figure.name: figure.values[-1] for figure in one.figures} for one in found]
    assert all(len(one.samples_ms) == len(one.figures[0].values) >= 1 for one in found)
    for name in ("produced_bytes_per_s", "produced_records_per_s", "fetched_bytes_per_s", "requests_per_s"):
        assert sum(figures[name] for figures in by_name) > 0, name
    written = sum(figures["produced_records_per_s"] for figures in by_name)
    assert sum(figures["fetched_records_per_s"] for figures in by_name) == pytest.approx(written, rel=0.5)
    assert any(figures["produce_p99_ms"] > 0 for figures in by_name)
    assert all(figures["replica_lag_max"] == 0 for figures in by_name)
    assert all(math.isfinite(figures["memory_bytes"]) for figures in by_name)
    assert report(cluster, samples_after_ms=found[0].samples_ms[-1], samples_max=720).samples_ms == []


def test_partitions_of_a_topic_are_told_with_how_far_each_follower_is(cluster: InProcessCluster) -> None:
    partitions = until(
        lambda: (
            found
            if (found := report(cluster, topics=[TOPIC]).partitions)
            and all(follower.lag == 0 for one in found for follower in one.followers)
            else None
        )
    )
    assert [one.partition for one in partitions] == [0, 1]
    for one in partitions:
        assert [follower.broker_id for follower in one.followers] == ([2] if one.is_leader else [])
        assert 0 <= one.log_start_offset <= one.high_watermark <= one.log_end_offset
    assert report(cluster, topics=["missing"]).partitions == []


def test_warnings_are_told_to_who_asks_for_them(cluster: InProcessCluster) -> None:
    logging.getLogger("sparklog.a_test").warning("it is late")
    found = report(cluster, warnings_max=500)
    assert found.warnings[-1].words == "it is late"
    assert found.warnings[-1].number == found.last_warning
    assert report(cluster, warnings_after=found.last_warning, warnings_max=500).warnings == []
    assert report(cluster).warnings == []


def test_metrics_are_those_of_the_page_of_metrics(cluster: InProcessCluster) -> None:
    found = {metric.name: metric for metric in report(cluster, wants_metrics=True).metrics}
    assert found["sparklog_broker_partitions"].kind == "gauge"
    by_api = {series.labels[0].value: series for series in found["sparklog_broker_request_seconds"].series}
    assert by_api["Produce"].bounds[-1] == math.inf
    assert by_api["Produce"].counts[-1] >= 1
    topics = found["sparklog_broker_topic_log_bytes"].series
    assert {series.labels[0].value for series in topics} == {TOPIC}


def test_a_broker_that_is_not_alive_cannot_be_asked(cluster: InProcessCluster) -> None:
    with pytest.raises(KafkaError, match="broker 9 is not alive"):
        report(cluster, 9)


def test_a_broker_that_starts_has_no_figures_yet() -> None:
    for answer in (OwnReport(1, SystemClock()).answer, no_report):
        assert answer(BrokerReportRequest()).error_code is ErrorCode.broker_not_available


def test_a_log_directory_that_fails_is_reported_with_its_reason(tmp_path) -> None:
    with InProcessCluster(brokers=1) as alone:
        body = alone.brokers[1].body
        (directory,) = body.context.log_dirs.contents()
        body.context.log_dirs.fail(directory, "a test says so", is_suspect=False)
        sampled(alone)
        (found,) = report(alone).directories
        assert (found.path, found.is_online, found.reason) == (directory.path, False, "a test says so")
        assert (found.free_bytes, found.device) == (-1, "")
