"""Brokers on a standalone Spark of the installed package, by `sparklog start` and by spark-submit."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sparklog.zookeeper.embedded import EmbeddedZooKeeper
from sparklog_runtime import submit
from sparklog_runtime.session import spark_home

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


def _run_until(command: list[str], log: Path, words: str) -> tuple[str, "subprocess.Popen[bytes]"]:
    """Run until the log says so; returns what follows the words on their line."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env={**os.environ, "PYSPARK_PYTHON": sys.executable}
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


def test_spark_submit_hosts_a_cluster_of_its_own_beside_data_jobs(
    tmp_path, master_url, kafka, launch, free_port
):
    with EmbeddedZooKeeper(tmp_path / "zk") as zookeeper:
        settings = tmp_path / "server.properties"
        settings.write_text(
            f"zookeeper.connect={zookeeper.connect_string}/c\nlog.dirs={tmp_path}/d1,{tmp_path}/d2\n"
        )
        options = {
            "spark.app.name": "sparklog-a",
            "spark.executor.cores": "3",
            "spark.cores.max": "6",
            "spark.executor.memory": "512m",
            "spark.ui.enabled": "false",
            "spark.pyspark.python": sys.executable,
        }
        command = [str(spark_home() / "bin" / "spark-submit"), "--master", master_url]
        for name, value in options.items():
            command += ["--conf", f"{name}={value}"]
        arguments = ["--brokers", "2", "--settings", str(settings), "--root", str(tmp_path / "root")]
        cluster = launch([*command, submit.__file__, *arguments, "--port", str(free_port)], tmp_path / "root")
        # spark-submit sends standard error the same way.
        while not (line := cluster.wait_ready()).startswith("sparklog is ready"):
            assert line.startswith(("sparklog: ", "WARNING: ", "2")), line
        content = cluster.cluster()
        assert content["zookeeper_pid"] is None
        assert content["brokers"][0]["log_dirs"] == [f"{tmp_path}/d1/broker-1", f"{tmp_path}/d2/broker-1"]
        executors = {_parent(_parent(broker["pid"])) for broker in content["brokers"]}
        assert len(executors) == 2
        kafka.create_topic(content["bootstrap_servers"], "t", replicas=2)
        kafka.produce(content["bootstrap_servers"], [b"1"])
        os.kill(content["controllers"][0]["pid"], 15)
        cluster.process.communicate(timeout=60)
        assert cluster.process.returncode == 0
        cluster.wait_gone()


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
