"""Spark's own Kafka connector, release 4.2, in batch, in streams and in real-time mode."""

import json
import os
import subprocess

import pytest

from tests.interop.clients import HERE
from tests.interop.kafka_jars import JARS

pytestmark = [pytest.mark.clients, pytest.mark.integration, pytest.mark.timeout(300)]

CACHE = JARS.parent


def run_job(case, servers, topics, folder, options=None):
    """Runs a case of spark/connector.py to its end; what it found."""
    python, jars = CACHE / "venv/bin/python", sorted((CACHE / "connector").glob("*.jar"))
    if not (python.exists() and jars):
        pytest.skip("Spark's Kafka connector is not here: scripts/clients-setup fetches it")
    line = [str(python), str(HERE / "spark/connector.py"), case, servers, *topics, str(folder)]
    environment = {
        **os.environ,
        "SPARKLOG_CONNECTOR_JARS": os.pathsep.join(map(str, jars)),
        "SPARKLOG_CONNECTOR_OPTIONS": json.dumps(options or {}),
    }
    done = subprocess.run(line, capture_output=True, text=True, timeout=240, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def spark_job(target, make_topic, tmp_path):
    """Runs a case with two topics of its own."""
    topics = [make_topic(2), make_topic(2)]

    def run(case):
        return run_job(case, target.bootstrap_servers, topics, tmp_path)

    run.topics = topics
    return run


def test_spark_reads_and_writes_batches(spark_job):
    found = spark_job("batch")
    assert found["rows"] == sorted([str(n), f"v{n}"] for n in range(100))
    assert found["first"] == 20
    assert found["later"] == 0


def test_spark_streams_from_a_checkpoint(spark_job):
    assert spark_job("stream")["counts"] == [50, 100]


def test_spark_reads_what_is_committed(spark_job, reference):
    reference.txn_init(producer="for-spark", transactional_id="for-spark")
    for number, commits in enumerate((True, False, True)):
        reference.txn_begin(producer="for-spark")
        records = [{"partition": part, "key": "k", "value": f"{number}:{part}"} for part in (0, 1)]
        reference.txn_send(producer="for-spark", topic=spark_job.topics[0], records=records)
        reference.txn_end(producer="for-spark", commit=commits)
    reference.txn_begin(producer="for-spark")
    reference.txn_send(
        producer="for-spark", topic=spark_job.topics[0], records=[{"partition": 0, "value": "open"}]
    )
    try:
        found = spark_job("committed")
    finally:
        reference.txn_close(producer="for-spark")
    assert found["committed"] == [["k", "0:0"], ["k", "0:1"], ["k", "2:0"], ["k", "2:1"]]
    assert found["streamed"] == 4
    assert found["uncommitted"] == 7


def test_spark_in_real_time_mode(spark_job):
    found = spark_job("real_time")
    assert found["rows"] == 10, found
    assert found["finished_batches"] == 0  # the records did not wait for the end of a batch
