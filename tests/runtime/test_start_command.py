"""`sparklog start` with real brokers in real Spark tasks: ready, deaths, stops at any moment, restarts.

Each start takes seconds, so one test lives through much of a cluster's life.
"""

import json
import os
import re
import shutil
import signal
import socket
import time
import urllib.request
from pathlib import Path

import pytest

from tests.waiting import until

KILLED = "(was killed by SIGKILL|has died)"  # kernels before 6.15 do not tell the signal
pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


def test_a_cluster_serves_survives_the_death_of_a_broker_and_finds_its_data_again(start, tmp_path, kafka):
    cluster = start(tmp_path, "--brokers", "3", "--port", "0", "-c", "background.threads=1", "metrics.port=0")
    ready = cluster.wait_ready()
    content = cluster.cluster()
    bootstrap = content["bootstrap_servers"]
    assert ready == f"sparklog is ready: bootstrap.servers={bootstrap}\n"
    assert [broker["id"] for broker in content["brokers"]] == [1, 2, 3]
    assert content["brokers"][1]["log_dirs"] == [f"{tmp_path}/broker-2/0"]
    assert content["controllers"] == [
        {**content["controllers"][0], "pid": cluster.process.pid, "host": "127.0.0.1", "active": True}
    ]
    pids = [content["zookeeper_pid"], cluster.process.pid, *(broker["pid"] for broker in content["brokers"])]
    assert set(pids) <= set(cluster.processes())
    assert len(set(pids)) == 5
    assert "sparklog_controller_live_brokers 3.0" in _metrics(content["controllers"][0])
    for broker in content["brokers"]:  # which has all of the internal topics
        until(
            lambda broker=broker: "sparklog_broker_partitions 100.0" in _metrics(broker), "100 partitions", 20
        )

    page = content["controllers"][0]["web_url"]
    assert page == f"http://127.0.0.1:{content['controllers'][0]['web_port']}/"
    with urllib.request.urlopen(f"{page}api/", timeout=60) as answer:  # which starts its process
        overview = json.load(answer)
    assert overview["verdict"]["sentence"] == "Well: 3 brokers, 100 partitions led and in sync."
    assert [one["web_url"] for one in overview["controllers"]] == [page]

    second = start(tmp_path, "--brokers", "3", "--port", "0")
    _, err = second.process.communicate(timeout=60)
    assert second.process.returncode == 1
    assert f"is in use by process {cluster.process.pid}" in err

    kafka.produce(bootstrap, [b"1", b"2"])  # which creates the topic
    assert kafka.topics(bootstrap)["t"] == [3]

    for broker in content["brokers"]:
        os.kill(broker["pid"], signal.SIGKILL)
        until(lambda broker=broker: cluster.broker_pid(broker["id"]) != broker["pid"], "a new pid", 20)
        until(lambda broker=broker: _listens(broker["port"]), "the broker listens again", 20)
    kafka.produce(bootstrap, [b"3"])
    for broker in content["brokers"]:
        cluster.wait_log(f"broker {broker['id']} is back as process")
    assert cluster.cluster()["bootstrap_servers"] == bootstrap

    status, out, err = cluster.stop()
    assert f"sparklog: page: {page}\n" in err
    assert (status, out) == (0, "")
    assert "background.threads=1 is accepted" in err
    assert "(default.replication.factor=3), and writes with acks=all need 2 in sync" in err
    for broker in content["brokers"]:
        who = rf"broker {broker['id']} \(process {broker['pid']}\)"
        assert re.search(rf"{who} {KILLED}; it is launched again", err), err
        assert re.search(rf"broker {broker['id']} is back as process \d+ after [\d.]+ s", err), err
    assert cluster.processes() == []
    assert not (tmp_path / "cluster.json").exists()

    again = start(tmp_path, "--brokers", "3", "--port", "0")
    again.wait_ready()
    assert again.cluster()["cluster_id"] == content["cluster_id"]
    assert kafka.consume(again.cluster()["bootstrap_servers"], 3) == [b"1", b"2", b"3"]
    status, _, err = again.stop(signal.SIGINT)
    assert (status, again.processes()) == (0, [])
    assert "(min.insync.replicas=2)" in err, "the directory keeps what its first start chose"


@pytest.mark.proof
def test_every_listener_of_every_broker_keeps_its_port_over_a_death(start, tmp_path, kafka):
    listeners = (
        "listeners=INTERNAL://:0,EXTERNAL://0.0.0.0:0",
        "advertised.listeners=EXTERNAL://localhost:0,INTERNAL://:0",
        "listener.security.protocol.map=INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT",
        "inter.broker.listener.name=INTERNAL",
    )
    cluster = start(tmp_path, "--brokers", "2", "--port", "0", "-c", *listeners)
    cluster.wait_ready()
    content = cluster.cluster()
    external = ",".join(broker["listeners"]["EXTERNAL"] for broker in content["brokers"])
    internal = ",".join(broker["listeners"]["INTERNAL"] for broker in content["brokers"])
    assert content["bootstrap_servers"] == external
    assert external.startswith("localhost:")
    assert internal.startswith("127.0.0.1:")
    kafka.create_topic(external, "t", replicas=2, min_insync_replicas="2")
    kafka.produce(external, [b"1"])
    kafka.produce(internal, [b"2"])
    first = content["brokers"][0]
    os.kill(first["pid"], signal.SIGKILL)
    until(lambda: cluster.broker_pid(1) != first["pid"], "a new pid", 20)
    until(lambda: cluster.cluster()["brokers"][0]["listeners"] == first["listeners"], "its listeners", 20)
    kafka.produce(internal, [b"3"])
    assert cluster.stop()[0] == 0


def _metrics(server: dict) -> list[str]:
    url = f"http://{server['host']}:{server['metrics_port']}/metrics"
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read().decode().splitlines()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize(
    "moment",
    [
        "ZooKeeper answers",
        "controller candidate up",
        "JVM answers",
        "context made",
        "broker 1 is process",
    ],
)
@pytest.mark.proof
def test_a_stop_during_the_start_leaves_no_process_behind(start, tmp_path, moment):
    cluster = start(tmp_path, "--brokers", "2", "--port", "0")
    cluster.wait_log(moment)
    status, out, _ = cluster.stop()
    assert (status, out) == (0, "")
    assert cluster.processes() == []


@pytest.mark.proof
def test_the_death_of_the_start_itself_ends_everything_tidily(start, tmp_path):
    cluster = start(tmp_path, "--brokers", "2", "--port", "0")
    cluster.wait_ready()
    cluster.stop(signal.SIGKILL)
    until(lambda: cluster.processes() == [], "all processes have ended", 40)


@pytest.mark.chaos
def test_a_start_right_after_a_death_waits_for_its_remnants_and_has_all_data(
    start, tmp_path, kafka, free_port
):
    arguments = ("--brokers", "2", "--port", str(free_port), "-c", "zookeeper.session.timeout.ms=120000")
    cluster = start(tmp_path, *arguments)
    cluster.wait_ready()
    before = cluster.cluster()
    kafka.create_topic(before["bootstrap_servers"], "t", replicas=2, min_insync_replicas="2")
    kafka.produce(before["bootstrap_servers"], [b"1", b"2"])
    os.kill(before["brokers"][0]["pid"], signal.SIGSTOP)  # one that would never end by itself
    cluster.process.kill()
    cluster.process.communicate(timeout=10)

    began = time.monotonic()
    again = start(tmp_path, *arguments)
    again.wait_ready()
    assert time.monotonic() - began < 100  # not for as long as the old sessions last
    after = again.cluster()
    assert after["bootstrap_servers"] == before["bootstrap_servers"]
    assert after["controllers"] == [
        {**after["controllers"][0], "pid": again.process.pid, "active": True},
    ]
    assert kafka.topics(after["bootstrap_servers"])["t"] == [2]
    assert kafka.consume(after["bootstrap_servers"], 2) == [b"1", b"2"]
    kafka.produce(after["bootstrap_servers"], [b"3"])
    assert "deleted /controller of the run before" in (tmp_path / "logs/controller.log").read_text()
    assert again.stop()[0] == 0
    until(lambda: cluster.processes() == [], "nothing of the first start is left", 5)


@pytest.mark.chaos
def test_a_zookeeper_that_dies_is_started_again_and_brokers_go_on(start, tmp_path):
    cluster = start(tmp_path, "--brokers", "1", "--port", "0", "-c", "min.insync.replicas=2")
    cluster.wait_ready()
    before = cluster.cluster()
    os.kill(before["zookeeper_pid"], signal.SIGKILL)
    until(
        lambda: cluster.cluster()["zookeeper_pid"] not in (None, before["zookeeper_pid"]),
        "a new ZooKeeper",
        30,
    )
    assert cluster.cluster()["zookeeper"] == before["zookeeper"]
    assert cluster.broker_pid(1) == before["brokers"][0]["pid"]

    standby = start(tmp_path / "standby", "--brokers", "0", "--zookeeper", before["zookeeper"])
    assert standby.wait_ready() == f"sparklog is ready: bootstrap.servers={before['bootstrap_servers']}\n"
    controllers = standby.cluster()["controllers"]
    assert [entry["active"] for entry in controllers] == [False, True]
    assert controllers[1]["pid"] == cluster.process.pid
    _, _, err = cluster.stop()
    assert f"ZooKeeper (process {before['zookeeper_pid']}) was killed by SIGKILL; it is started again" in err
    assert re.search(r"ZooKeeper is back as process \d+ after [\d.]+ s", err), err
    _, _, err = standby.stop()
    assert "warning: min.insync.replicas is 2 at the controller in office" in err
    assert cluster.processes() == standby.processes() == []


@pytest.mark.proof
def test_a_stop_wakes_a_paused_broker_instead_of_waiting_for_it(start, tmp_path):
    cluster = start(tmp_path, "--brokers", "2", "--port", "0")
    cluster.wait_ready()
    os.kill(cluster.broker_pid(1), signal.SIGSTOP)
    assert cluster.stop()[0] == 0
    assert cluster.processes() == []
    assert (cluster.root / "broker-1/0/.kafka_cleanshutdown").exists(), "it was killed"


@pytest.mark.proof
def test_the_death_of_sparks_jvm_ends_the_start_with_its_reason(start, tmp_path):
    cluster = start(tmp_path, "--brokers", "1", "--port", "0")
    cluster.wait_ready()
    daemon = _parent(cluster.broker_pid(1))
    os.kill(_parent(daemon), signal.SIGKILL)
    _, err = cluster.process.communicate(timeout=60)
    assert cluster.process.returncode == 1
    assert "Spark's JVM was killed by SIGKILL" in err
    assert cluster.processes() == []


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_port_in_use_is_refused_before_anything_starts(start, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cluster = start(tmp_path, "--brokers", "1", "--port", str(port))
        _, err = cluster.process.communicate(timeout=60)
    assert cluster.process.returncode == 1
    assert f"port {port} on 127.0.0.1 is in use" in err
    assert list(tmp_path.iterdir()) == []


def test_a_machine_without_java_is_told_so_once_before_anything_starts(start, tmp_path, monkeypatch):
    programs, root = tmp_path / "bin", tmp_path / "some/where"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    cluster = start(root, "--brokers", "1", "--port", "0")
    out, err = cluster.process.communicate(timeout=60)
    assert (cluster.process.returncode, out) == (1, "")
    assert err.startswith("sparklog: no java found, which Spark and ZooKeeper need: install Java 17 or newer")
    assert err.count("\n") == 1
    assert not root.exists()


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("Exception: java.lang.UnsupportedClassVersionError: org/apache/spark/launcher/Main", "is too old"),
        ("out of luck", "it wrote: out of luck"),
    ],
)
def test_a_jvm_that_ends_at_once_is_told_once_with_its_words(start, tmp_path, monkeypatch, words, remedy):
    """With a Java that is good enough for ZooKeeper, as an old one is."""
    real, java = shutil.which("java"), tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        f'#!/bin/sh\ncase "$*" in *QuorumPeerMain*) exec {real} "$@";; esac\necho \'{words}\' >&2\nexit 1\n'
    )
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    cluster = start(tmp_path / "root", "--brokers", "1", "--port", "0")
    out, err = cluster.process.communicate(timeout=60)
    assert (cluster.process.returncode, out) == (1, "")
    assert err.count("Spark's JVM") == 1
    assert remedy in err
    named = re.search(r"\(see (.*)\)", err)
    assert named is not None
    assert all(Path(path).exists() for path in named[1].split(" and "))


def test_a_zookeeper_that_is_not_there_is_waited_for_with_progress_and_then_named(start, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    root = tmp_path / "some/where"
    timeout = ("-c", "zookeeper.connection.timeout.ms=3000")
    cluster = start(root, "--brokers", "1", "--port", "0", "--zookeeper", f"{address}/x", *timeout)
    out, err = cluster.process.communicate(timeout=60)
    assert (cluster.process.returncode, out) == (1, "")
    assert f"waiting for ZooKeeper at {address}/x (2 s)" in err
    assert f"no ZooKeeper answers at {address}/x for 3 s" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--brokers", "2", "--broker-ids", "1,1"), "'1,1' names a broker twice"),
        (
            ("--brokers", "0"),
            "a standby controller needs the cluster's ZooKeeper",
        ),
        (("--brokers", "1", "-c", "num.partition=3"), "did you mean num.partitions?"),
        (("--brokers", "1", "-c", "oops"), "not of the form name=value"),
        (("--brokers", "3", "--master", "local[3]"), "set --master local[4] or more"),
    ],
)
def test_wrong_usage_is_told_at_once_with_status_2(start, tmp_path, arguments, complaint):
    cluster = start(tmp_path, *arguments)
    _, err = cluster.process.communicate(timeout=60)
    assert complaint in err
    assert cluster.process.returncode == 2
    assert list(tmp_path.iterdir()) == []
