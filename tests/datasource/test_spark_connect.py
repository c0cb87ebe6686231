"""Over a Spark Connect server, in processes of their own: read, write, stream, lag, progress, a pipeline."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.machines.places import free_ports
from sparklog.testing import InProcessCluster
from sparklog_runtime.start.reachable import is_listening
from tests.pages import DOCS, blocks_of
from tests.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.proof, pytest.mark.timeout(400)]

SPARK = Path(sysconfig.get_path("purelib")) / "pyspark"
START_S = 120.0
JOB_S = 180.0
(PIPELINE,) = (block for block in blocks_of(DOCS / "spark.md") if block.kind.endswith("orders.py"))
SPEC = """
name: orders
storage: file://{folder}/storage
libraries:
  - glob:
      include: transformations/**
"""

JOB = """
import io, sys
from pyspark.sql import SparkSession
import pyspark_sparklog

remote, servers, checkpoints = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
brokers = {"bootstrap.servers": servers}

def write(texts):
    frame = spark.createDataFrame([(text,) for text in texts], "value string")
    frame.write.format("sparklog").options(**brokers, topic="over-connect").mode("append").save()

write("abc")
rows = spark.read.format("sparklog").options(**brokers, subscribe="over-connect", valueFormat="string").load()
print("read", sorted(row.value for row in rows.collect()))
stream = spark.readStream.format("sparklog").options(**brokers, subscribe="over-connect")
values = stream.option("startingOffsets", "earliest").load().select("value")
writer = values.writeStream.queryName("copy").format("sparklog")
query = writer.options(**brokers, topic="copied", checkpointLocation=checkpoints).start()
drawn = io.StringIO()
drawing = pyspark_sparklog.progress(query, drawn)
query.processAllAvailable()
write("d")
query.processAllAvailable()
print("lag", pyspark_sparklog.lag(query)["maxOffsetsBehindLatest"])
query.stop()
assert drawing.wait(60)
print("drawn", drawn.getvalue().splitlines()[-1])
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Connect server's address."""
    folder, port = tmp_path_factory.mktemp("connect"), free_ports(1)
    conf = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    command = [str(SPARK / "bin" / "spark-submit")]
    for name, value in conf.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    output = folder / "server.txt"
    with output.open("wb") as stream:
        running = subprocess.Popen(
            command, cwd=folder, env=environment(), stdout=stream, stderr=stream, start_new_session=True
        )
    try:
        until(
            lambda: is_listening("127.0.0.1", port) or running.poll() is not None, output.read_text, START_S
        )
        assert running.poll() is None, output.read_text()
        yield f"sc://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait(60)


def environment() -> dict[str, str]:
    return {**os.environ, "SPARK_HOME": str(SPARK), "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}  # fmt: skip


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=JOB_S, check=False
    )
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]
    return done.stdout


def test_a_job_reads_writes_streams_and_is_watched(
    server: str, cluster: InProcessCluster, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", JOB, server, cluster.bootstrap_servers, str(tmp_path / "checkpoints")]
    printed = run(command, tmp_path).splitlines()
    assert printed[:2] == ["read ['a', 'b', 'c']", "lag 0"]
    assert printed[2].startswith("drawn copy: 4 rows, ")
    assert printed[2].endswith(", 0 behind (ended)")
    assert sorted(record.value for record in cluster.consume("copied", at_least=4)) == [
        b"a",
        b"b",
        b"c",
        b"d",
    ]


def test_the_pipeline_of_the_page_reads_a_topic_and_writes_to_another(
    server: str, cluster: InProcessCluster, tmp_path: Path
) -> None:
    for topic in ("orders", "shouted"):
        cluster.create_topic(topic)
    cluster.produce("orders", ["a", "b"])
    code = tmp_path / PIPELINE.kind.partition(" ")[2].strip()
    code.parent.mkdir()
    code.write_text(PIPELINE.text.replace("127.0.0.1:9092", cluster.bootstrap_servers))
    (tmp_path / "spark-pipeline.yml").write_text(SPEC.format(folder=tmp_path))
    run([str(SPARK / "bin" / "spark-pipelines"), "run", "--remote", server], tmp_path)
    assert sorted(record.value for record in cluster.consume("shouted", at_least=2)) == [b"A", b"B"]
