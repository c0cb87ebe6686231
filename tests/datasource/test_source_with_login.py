"""Reads and writes of the data source by users who log in, called as Spark calls it."""

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructType

from pyspark_sparklog import DefaultSource
from sparklog.client.errors import SecurityRefused
from sparklog.client.security.user_admin import UserAdmin
from sparklog.model.errors import ConfigError
from sparklog.model.settings.jaas import SCRAM_MODULE
from sparklog.testing import InProcessCluster
from sparklog_datasource import clients

ROWS = StructType().add("value", StringType())

# A job that tried again would do so for ten minutes.
pytestmark = pytest.mark.timeout(120, func_only=True)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    settings = {
        "listeners": "PLAINTEXT://:0,CLIENTS://:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    }
    with InProcessCluster(tmp_path_factory.mktemp("login"), brokers=1, settings=settings) as running:
        UserAdmin(running.client).set_password("job", "SCRAM-SHA-256", "of-the-job", 4_096)
        running.create_topic("rows-of-a-job")
        yield running
        for connection in list(clients._clients):
            clients._clients.pop(connection).close()


@pytest.fixture
def options(cluster):
    return {
        "kafka.bootstrap.servers": cluster.brokers[1].addresses["CLIENTS"],
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "SCRAM-SHA-256",
        "kafka.sasl.jaas.config": f'{SCRAM_MODULE} required username="job" password="${{env:JOB_PASSWORD}}";',
        "kafka.default.api.timeout.ms": "600000",
        "kafka.max.block.ms": "600000",
    }


def read(options):
    source = DefaultSource({**options, "subscribe": "rows-of-a-job", "valueformat": "string"})
    reader = source.reader(source.schema())
    batches = [rows for partition in reader.partitions() for rows in reader.read(partition)]
    return [value for rows in batches for value in rows.column("value").to_pylist()]


def write(options, *values):
    given = {**options, "topic": "rows-of-a-job", "delivery": "at-least-once"}
    writer = DefaultSource(given).writer(ROWS, overwrite=False)
    writer.commit([writer.write(iter([pa.record_batch({"value": pa.array(values, pa.string())})]))])


def test_rows_are_written_and_read_by_a_user(options, monkeypatch):
    monkeypatch.setenv("JOB_PASSWORD", "of-the-job")
    write(options, "a", "b")
    assert read(options) == ["a", "b"]


def test_a_refused_login_ends_a_job_at_once(options, monkeypatch):
    monkeypatch.setenv("JOB_PASSWORD", "wrong")
    other = {**options, "kafka.client.id": "with-a-wrong-password"}
    for job in (read, write):
        with pytest.raises(SecurityRefused, match="the login is refused: Authentication failed"):
            job(other)


def test_a_password_that_is_missing_on_a_host_names_the_host(options, monkeypatch):
    monkeypatch.delenv("JOB_PASSWORD", raising=False)
    other = {**options, "kafka.client.id": "without-a-password"}
    with pytest.raises(ConfigError, match=r"on host .*sasl\.jaas\.config: \$\{env:JOB_PASSWORD\}"):
        read(other)
