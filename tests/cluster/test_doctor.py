"""``sparklog doctor`` at a cluster that is broken, one thing after another."""

import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sparklog.cli.cluster.doctor import gathering
from sparklog.cli.main import main
from sparklog.client.changes import ClusterChanges
from sparklog.client.cluster import ClusterClient
from sparklog.client.group.committed_offsets import commit_offsets
from sparklog.client.group.group_admin import GroupAdmin
from sparklog.client.records_producer import Producer
from sparklog.model.ids import TopicPartition
from sparklog.testing import InProcessCluster
from tests.appended_transactions import AppendedTransactions
from tests.certificates import Authority
from tests.waiting import until

Findings = list[dict[str, Any]]
Doctor = Callable[..., tuple[int, Findings]]

HOUR_MS = 3_600_000
SAFE = {"min.insync.replicas": "2"}


@pytest.fixture
def cluster() -> Iterator[InProcessCluster]:
    with InProcessCluster(
        brokers=3, log_dirs=2, settings={"log.retention.check.interval.ms": "60000"}
    ) as cluster:
        yield cluster


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str]) -> Doctor:
    """Runs ``sparklog doctor --json``; its exit status, and findings that are not ok."""

    def run(*words: str) -> tuple[int, Findings]:
        capsys.readouterr()
        status = main(["doctor", "--json", *words])
        out, err = capsys.readouterr()
        assert out, err
        findings = json.loads(out)["findings"]
        names = {"check", "severity", "subject", "value", "harm", "remedy"}
        assert all(one.keys() == names for one in findings)
        assert (status == 1) == any(one["severity"] == "grave" for one in findings)
        return status, [one for one in findings if one["severity"] != "ok"]

    return run


def at(cluster: InProcessCluster) -> tuple[str, str]:
    return "--bootstrap-server", cluster.bootstrap_servers


def kinds(findings: Findings, check: str) -> list[tuple[str, str]]:
    return [(one["severity"], one["subject"]) for one in findings if one["check"] == check]


def value_of(findings: Findings, check: str) -> str:
    """The first finding's."""
    return next(str(one["value"]) for one in findings if one["check"] == check)


def test_of_a_cluster_that_is_well_only_what_one_host_cannot_have_is_noted(
    cluster: InProcessCluster, doctor: Doctor
) -> None:
    cluster.create_topic("t", partitions=3, configs=SAFE)
    cluster.produce("t", ["a", "b"])
    status, findings = doctor(*at(cluster))
    disks = ("disks", "devices")  # this machine's may be nearly full, and is one
    unlike_disks = [(one["check"], one["severity"]) for one in findings if one["check"] not in disks]
    assert (status, unlike_disks) == (0, [("zookeeper", "note")])


def test_what_only_the_host_of_a_broker_knows(
    cluster: InProcessCluster, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = kinds(doctor(*at(cluster))[1], "devices")
    assert shared == [
        *(("warning", f"broker {broker}") for broker in (1, 2, 3)),
        ("note", "brokers 1, 2, 3"),
    ]
    few = int(len(os.listdir("/proc/self/fd")) * 1.1)
    monkeypatch.setattr("sparklog.broker.life.reporting.own_report.open_files_max", lambda: few)
    _, findings = doctor(*at(cluster))
    assert [subject for _, subject in kinds(findings, "files")] == ["broker 1", "broker 2", "broker 3"]
    assert f" of {few} open files are used" in next(
        one["value"] for one in findings if one["check"] == "files"
    )


def test_a_certificate_that_expires(doctor: Doctor, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    in_20_days = datetime.now(UTC) + timedelta(days=20, hours=1)
    settings = {
        "listeners": "SSL://:0",
        "security.inter.broker.protocol": "SSL",
        **authority.settings(authority.issue("broker", not_after=in_20_days), client_auth="required"),
    }
    properties = tmp_path / "client.properties"
    stores = ("ssl.keystore.location", "ssl.truststore.location")
    lines = [f"{name}={settings[name]}\n" for name in stores]
    properties.write_text("security.protocol=SSL\n" + "".join(lines))
    with InProcessCluster(tmp_path / "cluster", brokers=1, settings=settings) as cluster:
        _, findings = doctor(*at(cluster), "--command-config", str(properties))
    assert kinds(findings, "certificates") == [("warning", "listener SSL of broker 1")]
    assert "expires in 20 days" in value_of(findings, "certificates")


def test_topics_that_are_less_safe_than_they_look(cluster: InProcessCluster, doctor: Doctor) -> None:
    cluster.create_topic("alone", replication_factor=1)
    cluster.create_topic("loose", configs={"min.insync.replicas": "1"})
    cluster.create_topic("tight", configs={"min.insync.replicas": "3"})
    cluster.create_topic("unclean", configs={**SAFE, "unclean.leader.election.enable": "true"})
    _, findings = doctor(*at(cluster))
    assert kinds(findings, "topics") == [
        ("warning", f"topic {name}") for name in ("alone", "loose", "tight", "unclean")
    ]


def test_a_dead_broker_leaves_partitions_short_or_without_a_leader(
    cluster: InProcessCluster, doctor: Doctor
) -> None:
    cluster.create_topic("t", configs={"min.insync.replicas": "3"})
    cluster.create_topic("alone", partitions=3, replication_factor=1)
    lost = next(one.partition for one in cluster.partitions("alone") if one.leader == 2)
    cluster.kill(2)
    until(lambda: cluster.partitions("alone")[lost].leader < 0)
    until(lambda: len(cluster.partitions("t")[0].isr) == 2)
    status, findings = doctor(*at(cluster))
    assert status == 1
    assert kinds(findings, "isr") == [
        ("grave", f"partition alone-{lost}"),
        ("grave", "partition t-0"),
        ("warning", "broker 2"),
    ]
    assert ("warning", "broker 2") in kinds(findings, "brokers")


def test_a_failed_directory_and_a_full_one(cluster: InProcessCluster, doctor: Doctor) -> None:
    cluster.create_topic("t", partitions=4, configs=SAFE)
    parts = cluster.brokers[1].body.parts
    parts.failures.on_log_failed(
        parts.table.get(TopicPartition("t", 0)), "its disk is broken", is_suspect=False
    )
    ClusterChanges(cluster.client).alter_broker_configs(2, {"log.dirs.free.min.bytes": str(2**62)})
    until(lambda: kinds(doctor(*at(cluster))[1], "disks")[:1] == [("grave", failed_directory(cluster))])
    _, findings = doctor(*at(cluster))
    full = [one for one in findings if one["check"] == "disks" and "broker 2" in one["subject"]]
    assert [one["severity"] for one in full] == ["grave", "grave"]
    assert all("log.dirs.free.min.bytes is 4611686018427387904" in one["value"] for one in full)


def failed_directory(cluster: InProcessCluster) -> str:
    (failed,) = cluster.brokers[1].body.parts.log_dirs.offline
    return f"{failed} of broker 1"


def test_settings_that_differ(cluster: InProcessCluster, doctor: Doctor) -> None:
    ClusterChanges(cluster.client).alter_broker_configs(3, {"log.retention.ms": "1000000"})
    until(lambda: kinds(doctor(*at(cluster))[1], "settings") == [("warning", "log.retention.ms")])
    (finding,) = [one for one in doctor(*at(cluster))[1] if one["check"] == "settings"]
    assert finding["value"].endswith("1000000 at broker 3")


def test_what_a_drivers_spark_lacks(cluster: InProcessCluster, doctor: Doctor) -> None:
    assert cluster.controller is not None
    cluster.controller.publish([], ["spark.task.maxFailures=4: set spark.task.maxFailures=1"])
    until(lambda: kinds(doctor(*at(cluster))[1], "spark") == [("warning", "application sparklog-testing")])


def test_a_hanging_transaction(cluster: InProcessCluster, doctor: Doctor) -> None:
    hanging = AppendedTransactions(cluster, "t")
    hanging.write(77, b"left open", sequence=0)
    _, findings = doctor(*at(cluster))
    assert kinds(findings, "transactions") == [("grave", "partition t-0")]
    (finding,) = [one for one in findings if one["check"] == "transactions"]
    assert main(finding["remedy"].split()[1:]) == 0, "the remedy is a command that does it"
    until(lambda: kinds(doctor(*at(cluster))[1], "transactions") == [])


def test_a_group_without_progress_and_one_that_reads_on(
    cluster: InProcessCluster, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = TopicPartition("t", 0)
    cluster.create_topic("t", configs=SAFE)
    with Producer(cluster.client) as producer:
        for value in (b"a", b"b", b"c"):
            producer.send("t", value, timestamp_ms=int(time.time() * 1_000) - HOUR_MS)
    cluster.produce("t", ["young"])
    admin = GroupAdmin(cluster.client)
    for group, offset in (("stands", 1), ("reads", 1), ("young", 3), ("done", 4)):
        commit = partial(commit_offsets, admin.coordinator(group), {place: offset})
        until(lambda commit=commit: commit() == {})

    def read_on(client: ClusterClient, pause_ms: int) -> None:
        assert pause_ms == gathering.PROGRESS_WAIT_MS
        commit_offsets(GroupAdmin(client).coordinator("reads"), {place: 2})

    monkeypatch.setattr(ClusterClient, "wait", read_on)
    _, findings = doctor(*at(cluster))
    assert kinds(findings, "groups") == [("note", "group reads"), ("note", "group stands")]
    by_subject = {one["subject"]: one["value"] for one in findings}
    assert by_subject["group stands"].startswith("3 records of partition t-0 are unread")
    assert by_subject["group stands"].endswith("nobody reads")
    assert by_subject["group reads"].endswith("it reads on")


def test_while_no_broker_answers_the_controller_is_asked(
    cluster: InProcessCluster, doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparklog.cli.connect.REACH_TIMEOUT_MS", 300)
    cluster.create_topic("t", configs=SAFE)
    assert cluster.controller is not None
    for broker in (1, 2, 3):
        cluster.kill(broker)
    controller = {"host": "127.0.0.1", "port": cluster.controller.port, "active": True}
    content = {"bootstrap_servers": cluster.bootstrap_servers, "controllers": [controller]}
    (tmp_path / "cluster.json").write_text(json.dumps(content))
    status, findings = doctor("--root", str(tmp_path))
    assert status == 1
    assert kinds(findings, "brokers")[0] == ("grave", "cluster")
    assert ("grave", "1 of 1 partitions") in kinds(findings, "isr")
    assert {one["value"] for one in findings if one["check"] == "topics"} == {
        "not examined: no broker answers"
    }


def test_nobody_answers(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparklog.cli.connect.REACH_TIMEOUT_MS", 300)
    assert main(["doctor", "--bootstrap-server", "127.0.0.1:1"]) == 1
    assert "no broker of 127.0.0.1:1 answered" in capsys.readouterr().err


def test_a_user_without_rights_learns_what_was_not_examined(doctor: Doctor, tmp_path: Path) -> None:
    with InProcessCluster(brokers=1, secure=True) as cluster:
        cluster.create_topic("t", configs={"min.insync.replicas": "1"})
        user = cluster.as_user("ann")
        properties = tmp_path / "ann.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in user.properties.items()))
        _, findings = doctor(*at(cluster), "--command-config", str(properties))
        unseen = {one["check"]: one["value"] for one in findings if one["value"].startswith("not examined")}
        assert {"releases", "disks", "zookeeper", "settings", "files", "certificates"} <= unseen.keys()
