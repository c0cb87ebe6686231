"""A wrong port, in a Spark of its own: its user learns of it long before the read gives up."""

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.proof, pytest.mark.timeout(300)]

JOB = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
events = spark.read.format("sparklog").options(subscribe="t", **{
    "kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "6000"})
events.load().show()
"""


def test_a_wrong_port_is_told_after_seconds_and_the_read_ends_with_the_same_address() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", JOB],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 1
    early = ran.stderr.find("no broker of 127.0.0.1:1 has answered for 3 s")
    late = ran.stderr.find("no broker of 127.0.0.1:1 answered within 6000 ms")
    assert 0 <= early < late, ran.stderr[-4_000:]
