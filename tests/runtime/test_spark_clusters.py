"""Brokers on a standalone Spark of the installed package, by `sparklog start` and by spark-submit."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sparklog.zookeeper.embedded import EmbeddedZooKeeper
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper
from sparklog_runtime import submit
from sparklog_runtime.session import spark_home

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


def _run_until(command: list[str], log: Path, words: str) -> tuple[str, "subprocess.Popen[bytes]"]:
    """Run until the log says so; returns what follows the words on their line.

    The first ``python3`` of its path is the system's, which has no sparklog.
    """
    path = f"/usr/bin:/bin:{Path(shutil.which('java') or '').parent}"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            env={"PATH": path, "HOME": os.environ.get("HOME", "/"), "SPARK_HOME": str(spark_home())},
        )
    while words not in (text := log.read_text()):
        assert process.poll() is None, text
        time.sleep(0.02)
    return text.split(words, 1)[1].split("\n")[0].strip(), process


@pytest.fixture(scope="module")
def master_url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("standalone")
    spark_class = str(spark_home() / "bin" / "spark-class")
    url, master = _run_until(
        [spark_class, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0"],
        folder / "master.log",
        "Starting Spark master at ",
    )
    worker_class = "org.apache.spark.deploy.worker.Worker"
    sizes = ["--host", "127.0.0.1", "-c", "6", "-m", "3g", "--work-dir", str(folder / "work")]
    _, worker = _run_until(
        [spark_class, worker_class, *sizes, url], folder / "worker.log", "Successfully registered with master"
    )
    yield url
    for process in (worker, master):
        process.terminate()
        process.wait(30)


def test_start_runs_one_broker_on_each_executor_of_a_master(start, tmp_path, master_url, kafka):
    cluster = start(tmp_path, "--brokers", "2", "--port", "0", "--master", master_url)
    cluster.wait_ready()
    executors = {_parent(_parent(cluster.broker_pid(broker_id))) for broker_id in (1, 2)}
    assert len(executors) == 2
    bootstrap = cluster.cluster()["bootstrap_servers"]
    kafka.create_topic(bootstrap, "t", replicas=2)
    kafka.produce(bootstrap, [b"1"])
    assert cluster.stop()[0] == 0
    assert cluster.processes() == []


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory):
    with EmbeddedZooKeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
def spark_submit(launch, tmp_path, master_url, zookeeper, free_port):
    """`spark-submit submit.py` with two brokers; its arguments override settings of Spark."""
    settings = tmp_path / "server.properties"
    settings.write_text(
        f"zookeeper.connect={zookeeper.connect_string}/{tmp_path.name}\n"
        f"log.dirs={tmp_path}/d1,{tmp_path}/d2\n"
    )

    def run(**conf: str):
        options = {
            "spark.app.name": "sparklog-a",
            "spark.executor.cores": "3",
            "spark.cores.max": "6",
            "spark.executor.memory": "512m",
            "spark.ui.enabled": "false",
            **{name.replace("_", "."): value for name, value in conf.items()},
        }
        # As in an activated virtual environment, of which executors know nothing.
        path = f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}"
        command = ["env", path, str(spark_home() / "bin" / "spark-submit"), "--master", master_url]
        for name, value in options.items():
            command += ["--conf", f"{name}={value}"]
        arguments = ["--brokers", "2", "--settings", str(settings), "--root", str(tmp_path / "root")]
        return launch([*command, submit.__file__, *arguments, "--port", str(free_port)], tmp_path / "root")

    return run


def _wait_ready(cluster):
    """Wait for the ready line; every line before it, from driver and JVM, is Spark's or says whose it is."""
    while not (line := cluster.wait_ready()).startswith("sparklog is ready"):
        assert line.startswith(("sparklog: ", "WARNING: ", "2")), line
    return cluster.cluster()


def test_spark_submit_hosts_a_cluster_of_its_own_beside_data_jobs(spark_submit, tmp_path, kafka, zookeeper):
    cluster = spark_submit()
    content = _wait_ready(cluster)
    assert content["zookeeper_pid"] is None
    assert content["brokers"][0]["log_dirs"] == [f"{tmp_path}/d1/broker-1", f"{tmp_path}/d2/broker-1"]
    executors = {_parent(_parent(broker["pid"])) for broker in content["brokers"]}
    assert len(executors) == 2
    kafka.create_topic(content["bootstrap_servers"], "t", replicas=2)
    kafka.produce(content["bootstrap_servers"], [b"1"])
    os.kill(content["controllers"][0]["pid"], signal.SIGTERM)
    cluster.process.communicate(timeout=60)
    assert cluster.process.returncode == 0
    cluster.wait_gone()
    _assert_stopped_cleanly(tmp_path, zookeeper)


@pytest.mark.parametrize(
    ("number", "is_for_both"), [(signal.SIGTERM, False), (signal.SIGHUP, True)], ids=["kill", "hang-up"]
)
def test_a_signal_to_sparks_jvm_stops_brokers_before_spark_whatever_became_of_the_terminal(
    spark_submit, tmp_path, zookeeper, number, is_for_both
):
    cluster = spark_submit()
    driver = _wait_ready(cluster)["controllers"][0]["pid"]
    cluster.process.stdout.close()
    cluster.process.stderr.close()
    cluster.process.send_signal(number)
    if is_for_both:
        os.kill(driver, number)
    assert cluster.process.wait(60) == 128 + number
    cluster.wait_gone()
    _assert_stopped_cleanly(tmp_path, zookeeper)


def _assert_stopped_cleanly(folder: Path, server: EmbeddedZooKeeper) -> None:
    """The office is free, the cluster's file gone, and each log directory has its marker of a clean stop."""
    assert not (folder / "root/cluster.json").exists()
    markers = folder.glob("d[12]/broker-[12]/.kafka_cleanshutdown")
    assert len(list(markers)) == 4
    session = KazooZooKeeper(f"{server.connect_string}/{folder.name}", 10_000)
    session.start(10_000)
    try:
        assert session.get("/controller") is None
        assert session.children("/brokers/ids") == []
    finally:
        session.close()


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
