"""Apache Kafka's own commands about storage, against our brokers.

Kafka is looked for where the benchmarks keep it: `benchmarks/setup` fetches it there. Without it these tests
are reported as not run.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sparklog.testing import InProcessCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def cluster():
    with InProcessCluster(brokers=3, log_dirs=2) as cluster:
        cluster.create_topic("t", partitions=2)
        cluster.produce("t", [str(n) for n in range(20)], partition=0)
        yield cluster


@pytest.fixture
def kafka(cluster):
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(os.environ.get("SPARKLOG_BENCH_CACHE") or f"{home}/sparklog-bench") / "kafka"
    if not any(folder.glob("kafka_2.13-*.jar")) or shutil.which("java") is None:
        pytest.skip(f"not run: Apache Kafka is not here ({folder}); benchmarks/setup fetches it")

    def run(command, *arguments):
        line = ["java", "-Xmx256m", "-cp", f"{folder}/*", f"org.apache.kafka.tools.{command}"]
        line += ["--bootstrap-server", cluster.bootstrap_servers, *map(str, arguments)]
        return subprocess.run(line, capture_output=True, text=True, check=True, timeout=120).stdout

    return run


def test_kafka_delete_records(kafka, tmp_path):
    wanted = [{"topic": "t", "partition": 0, "offset": 7}, {"topic": "t", "partition": 1, "offset": -1}]
    offsets = tmp_path / "offsets.json"
    offsets.write_text(json.dumps({"version": 1, "partitions": wanted}))
    said = kafka("DeleteRecordsCommand", "--offset-json-file", offsets).split("completed:\n")[1]
    assert set(said.splitlines()) == {"partition: t-0\tlow_watermark: 7", "partition: t-1\tlow_watermark: 0"}


def test_kafka_log_dirs(kafka, cluster):
    said = json.loads(kafka("LogDirsCommand", "--describe", "--topic-list", "t").splitlines()[-1])
    assert sorted(one["broker"] for one in said["brokers"]) == [1, 2, 3]
    for broker in said["brokers"]:
        held = {Path(one["logDir"]).name: one for one in broker["logDirs"]}
        assert set(held) == {"0", "1"}
        assert sorted(tp["partition"] for one in held.values() for tp in one["partitions"]) == ["t-0", "t-1"]
        assert all(one["error"] is None for one in held.values())
