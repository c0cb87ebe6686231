"""``conf/monitoring`` in a Prometheus of the distribution: it loads, alerts fire, each panel has data."""

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import confluent_kafka
import confluent_kafka.admin
import pytest

from sparklog.client.group.group_consumer import GroupConsumer
from sparklog.client.group.settings import MemberSettings
from sparklog.testing import InProcessCluster
from tests.page.prometheus_process import MONITORING, PrometheusProcess, program, prometheus
from tests.waiting import until

pytestmark = pytest.mark.page

UNIT_TESTS: Final = Path(__file__).parent / "alerts_test.yml"
FOR_SECONDS: Final = re.compile(r"for: \w+")
WAIT_S: Final = 90.0


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@pytest.fixture
def cluster() -> Iterator[InProcessCluster]:
    with InProcessCluster(brokers=3, settings={"metrics.port": "0"}) as cluster:
        cluster.create_topic("orders", partitions=3, configs={"min.insync.replicas": "3"})
        cluster.create_topic("alone", partitions=3, replication_factor=1)
        yield cluster


@pytest.fixture
def scraped(cluster: InProcessCluster, tmp_path: Path) -> Iterator[PrometheusProcess]:
    """Alerts need hold for one second only."""
    servers = [*cluster.brokers.values(), cluster.controller]
    page = f"127.0.0.1:{free_port()}"
    targets = [page, *(f"127.0.0.1:{server.metrics_port}" for server in servers if server is not None)]
    alerts = FOR_SECONDS.sub("for: 1s", (MONITORING / "alerts.yml").read_text())
    with (
        page_process(cluster.bootstrap_servers, page, tmp_path / "page.log"),
        prometheus(tmp_path, targets, alerts, free_port()) as served,
    ):
        until(lambda: len(served.query('up{job="sparklog"} == 1')) == len(targets), "no scrape", WAIT_S)
        yield served


@contextmanager
def page_process(servers: str, address: str, log: Path) -> Iterator[None]:
    """``sparklog page``, whose metrics have lag."""
    port = address.rpartition(":")[2]
    command = [sys.executable, "-m", "sparklog", "page", "--bootstrap-server", servers, "--port", port]
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)


def run(*command: str) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_settings_and_rules_are_understood() -> None:
    run(program("promtool"), "check", "config", str(MONITORING / "prometheus.yml"))


def test_each_alert_fires_when_it_should(tmp_path: Path) -> None:
    for file in (MONITORING / "alerts.yml", UNIT_TESTS):
        shutil.copy(file, tmp_path)
    run(program("promtool"), "test", "rules", str(tmp_path / UNIT_TESTS.name))


def test_alerts_fire_when_a_cluster_breaks(cluster: InProcessCluster, scraped: PrometheusProcess) -> None:
    until(lambda: scraped.query("sparklog_controller_active == 1"), "no controller", WAIT_S)
    until(lambda: scraped.firing() - {"SparklogDiskFillsUp"} == set(), scraped.firing, WAIT_S)
    cluster.kill(2)
    expected = {
        "SparklogServerDown",
        "SparklogPartitionsWithoutLeader",
        "SparklogWritesRefused",
        "SparklogUnderReplicated",
    }
    until(lambda: expected <= scraped.firing(), scraped.firing, WAIT_S)
    cluster.revive(2)
    healed = {"SparklogPartitionsWithoutLeader", "SparklogWritesRefused"}
    until(lambda: not healed & scraped.firing(), scraped.firing, WAIT_S)


def expressions() -> dict[str, list[str]]:
    panels: list[Any] = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    return {panel["title"]: [target["expr"] for target in panel["targets"]] for panel in panels}


def use(cluster: InProcessCluster) -> None:
    """Something of everything that a panel shows: records, a group, a transaction, and a refused request."""
    cluster.produce("orders", [f"record {number}" for number in range(100)])
    cluster.consume("orders", at_least=100)
    with GroupConsumer(cluster.client, MemberSettings(group_id="g", topics=frozenset({"orders"}))) as member:
        until(lambda: member.poll(50) or member.assignment)
        member.commit()
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "t", "log_level": 0}
    )
    producer.init_transactions(30)
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    (refused,) = admin.create_topics([confluent_kafka.admin.NewTopic("orders", 1, 1)]).values()
    assert isinstance(refused.exception(), confluent_kafka.KafkaException)


def test_each_panel_of_the_dashboard_has_data(cluster: InProcessCluster, scraped: PrometheusProcess) -> None:
    use(cluster)
    wanted = {
        text.replace("$__rate_interval", "1m"): title
        for title, texts in expressions().items()
        for text in texts
    }

    def without_data() -> dict[str, str]:
        use(cluster)
        return {title: text for text, title in wanted.items() if not scraped.query(text)}

    assert len(wanted) > 20
    until(lambda: not without_data(), without_data, WAIT_S)
