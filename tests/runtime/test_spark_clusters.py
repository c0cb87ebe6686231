"""Brokers on a standalone Spark of the installed package, by `sparklog start` and by spark-submit."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sparklog.zookeeper.embedded import EmbeddedZooKeeper
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper
from sparklog_runtime import submit
from sparklog_runtime.start.session import spark_home
from tests.runtime.standalone import PYTHON, Standalone
from tests.runtime.watched import parent
from tests.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def standalone(tmp_path_factory):
    cluster = Standalone(tmp_path_factory.mktemp("standalone"))
    cluster.add_worker("worker", 6, sys.executable)
    yield cluster
    cluster.stop()


@pytest.mark.proof
def test_start_runs_one_broker_on_each_executor_of_a_master(start, tmp_path, standalone, kafka):
    cluster = start(tmp_path, "--brokers", "2", "--port", "0", "--master", standalone.url)
    cluster.wait_ready()
    executors = {parent(parent(cluster.broker_pid(broker_id))) for broker_id in (1, 2)}
    assert len(executors) == 2
    bootstrap = cluster.cluster()["bootstrap_servers"]
    kafka.create_topic(bootstrap, "t", replicas=2)
    kafka.produce(bootstrap, [b"1"])
    assert cluster.stop()[0] == 0
    assert cluster.processes() == []


@pytest.mark.proof
@pytest.mark.timeout(400)
def test_executors_of_a_master_write_typed_rows_and_read_columns_of_them(standalone, cluster):
    job = [sys.executable, str(Path(__file__).parent / "typed_job.py"), standalone.url]
    done = subprocess.run(
        [*job, cluster.bootstrap_servers, "standalone-typed"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "[('mag', 'double'), ('id', 'bigint')]" in done.stdout
    assert "=1000, sum(mag)=249750.0)" in done.stdout
    assert sum(broker.body.context.conversions.cut_batches for broker in cluster.brokers.values()) >= 1


@pytest.mark.proof
def test_the_broker_of_a_decommissioned_executor_stops_in_order_and_returns_elsewhere(start, tmp_path):
    spark = Standalone(tmp_path)
    try:
        for name in ("one", "two"):
            spark.add_worker(name, 1, sys.executable)
        cluster = start(tmp_path / "root", "--brokers", "2", "--port", "0", "--master", spark.url)
        cluster.wait_ready()
        executors = {number: parent(parent(cluster.broker_pid(number))) for number in (1, 2)}
        spark.decommission_worker()
        broker = int(_line_with(cluster, " stops: its executor is decommissioned").split()[2])
        _line_with(
            cluster,
            f"broker {broker} (process ",
            ") stopped (its executor is decommissioned); it is launched again",
        )
        cluster.wait_log(f"broker {broker} on 127.0.0.1 stopped")
        until(lambda: not Path(f"/proc/{executors[broker]}").exists(), "the end of the executor", 30)
        spark.add_worker("three", 1, sys.executable)
        _line_with(cluster, f"broker {broker} is back as process ")
        assert cluster.stop()[0] == 0
        assert cluster.processes() == []
    finally:
        spark.stop()


def _line_with(cluster, *parts: str) -> str:
    """The next notice of a start that has all of these."""
    while True:
        line = str(cluster.process.stderr.readline())
        assert line, f"the start ended before it said {parts}"
        if all(part in line for part in parts):
            return line


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory):
    with EmbeddedZooKeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
def spark_submit(launch, tmp_path, standalone, zookeeper, free_port):
    """`spark-submit submit.py` with two brokers; its arguments override settings of Spark."""
    settings = tmp_path / "server.properties"

    def run(*, brokers: int = 2, log_dirs: str = f"{tmp_path}/d1,{tmp_path}/d2", **conf: str):
        settings.write_text(
            f"zookeeper.connect={zookeeper.connect_string}/{tmp_path.name}\nlog.dirs={log_dirs}\n"
        )
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
        command = ["env", path, str(spark_home() / "bin" / "spark-submit"), "--master", standalone.url]
        for name, value in options.items():
            command += ["--conf", f"{name}={value}"]
        arguments = ["--brokers", str(brokers), "--settings", str(settings), "--root", str(tmp_path / "root")]
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
    executors = {parent(parent(broker["pid"])) for broker in content["brokers"]}
    assert len(executors) == 2
    kafka.create_topic(content["bootstrap_servers"], "t", replicas=2)
    kafka.produce(content["bootstrap_servers"], [b"1"])
    os.kill(content["controllers"][0]["pid"], signal.SIGTERM)
    cluster.process.communicate(timeout=60)
    assert cluster.process.returncode == 0
    cluster.wait_gone()
    _assert_stopped_cleanly(tmp_path, zookeeper)


@pytest.mark.proof
def test_a_signal_to_sparks_jvm_stops_brokers_first_without_a_terminal(spark_submit, tmp_path, zookeeper):
    cluster = spark_submit()
    _wait_ready(cluster)
    cluster.process.stdout.close()
    cluster.process.stderr.close()
    cluster.process.send_signal(signal.SIGTERM)
    assert cluster.process.wait(60) == 128 + signal.SIGTERM
    cluster.wait_gone()
    _assert_stopped_cleanly(tmp_path, zookeeper)


@pytest.mark.proof
def test_a_start_that_lacks_executors_says_why_and_stops_on_a_signal_to_sparks_jvm(spark_submit, tmp_path):
    cluster = spark_submit(spark_executor_cores="9", spark_cores_max="18")
    line = ""
    while "; the master has" not in line:
        line = cluster.process.stdout.readline()
    assert re.fullmatch(
        r"sparklog: Spark has given 0 of 2 executors for \d+ s; the master has 6 cores free and an executor "
        r"takes 9: add workers, or lower spark\.executor\.cores\n",
        line,
    ), line
    cluster.process.send_signal(signal.SIGHUP)
    cluster.process.communicate(timeout=60)
    assert cluster.process.returncode == 128 + signal.SIGHUP
    cluster.wait_gone()
    assert not (tmp_path / "root/cluster.json").exists()


@pytest.mark.proof
@pytest.mark.timeout(600)  # 44 s alone; at load 13 it is still starting after 200
def test_a_broker_whose_worker_is_gone_says_what_the_master_has_left_for_it(spark_submit, standalone):
    standalone.add_worker("leaving", 3, sys.executable)
    try:
        cluster = spark_submit(brokers=3, spark_cores_max="9")
        _wait_ready(cluster)
    finally:
        standalone.stop_worker()
    line = ""
    while ": no executor for" not in line:
        line = cluster.process.stdout.readline()
        assert line, cluster.process.stderr.read()
    assert re.fullmatch(
        r"sparklog: broker [123]: no executor for \d+ s; the master has 0 cores free and an executor takes "
        r"3: add workers, or end other applications\n",
        line,
    ), line


@pytest.mark.proof
def test_one_host_of_three_without_sparklog_is_named_before_anything_is_opened_there(
    spark_submit, standalone, tmp_path
):
    base = sys._base_executable
    standalone.add_worker("bare", 3, base)
    try:
        pythons = {"spark_pyspark_python": PYTHON, "spark_pyspark_driver_python": sys.executable}
        cluster = spark_submit(brokers=3, spark_cores_max="9", **pythons)
        out, err = cluster.process.communicate(timeout=90)
    finally:
        standalone.stop_worker()
    assert cluster.process.returncode == 1
    told = f"a broker cannot start: host {socket.gethostname()} has no sparklog in {base}"
    assert told in out + err
    cluster.wait_gone()


@pytest.mark.proof
def test_log_directories_in_the_work_directory_of_a_worker_are_refused(spark_submit, standalone):
    work = standalone.folder / "worker/work"
    cluster = spark_submit(log_dirs=f"{work}/logs")
    out, err = cluster.process.communicate(timeout=90)
    assert cluster.process.returncode == 1
    told = f"host {socket.gethostname()}: log.dirs names {work}/logs/broker-"
    assert told in out + err
    assert f"but Spark deletes what is in {work}" in out + err
    assert not (work / "logs").exists()


@pytest.mark.proof
def test_a_port_in_use_on_a_brokers_host_is_named_with_it(spark_submit, free_port):
    with socket.create_server(("127.0.0.1", free_port)):
        cluster = spark_submit()
        out, _ = cluster.process.communicate(timeout=90)
    assert cluster.process.returncode == 1
    assert f"port {free_port} on 127.0.0.1 is in use by another process; choose another with --port" in out


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
