"""Reads and writes of the data source over TLS, called as Spark calls it, and by Spark."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from socket import gethostname
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructType

from pyspark_sparklog import DefaultSource
from sparklog.client.errors import SecurityRefused
from sparklog.model.errors import ConfigError
from sparklog.model.settings.tls_settings import tls_settings_of_listener
from sparklog.network.tls.from_settings import server_side
from sparklog_datasource import clients
from tests.certificates import Authority

Options = dict[str, str]
ROWS = StructType().add("value", StringType())

# A job that tried again would do so for ten minutes. Spark itself may be slow.
pytestmark = pytest.mark.timeout(300, func_only=True)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def fake(authority: Authority) -> Iterator[Any]:
    """A broker that asks for certificates; topic t has one partition."""
    name = "sparklog_tests_fake_cluster"
    if name not in sys.modules:
        path = Path(__file__).parent.parent / "client" / "fake_cluster.py"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    settings = authority.settings(authority.issue("broker"), client_auth="required")
    cluster = sys.modules[name].FakeCluster(1, server_side(tls_settings_of_listener(settings, "SSL")))
    cluster.create_topic("t", **{"max.message.bytes": "1048588"})
    yield cluster
    cluster.stop()
    for connection in [key for key in clients._clients if key.bootstrap_servers == cluster.bootstrap_servers]:
        clients._clients.pop(connection).close()
    while clients._inherited:
        clients._inherited.pop().close()


@pytest.fixture
def trusting(fake: Any, authority: Authority) -> Options:
    """Of a job that knows the broker's authority, and has no certificate."""
    return {
        "kafka.bootstrap.servers": fake.bootstrap_servers,
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.location": str(authority.file),
        "kafka.default.api.timeout.ms": "600000",
        "kafka.max.block.ms": "600000",
    }


@pytest.fixture
def known(trusting: Options, authority: Authority) -> Options:
    """Of a job with a certificate."""
    return {**trusting, "kafka.ssl.keystore.location": str(authority.issue("job"))}


def read(options: Options) -> list[str]:
    source = DefaultSource({**options, "subscribe": "t", "valueformat": "string"})
    reader = source.reader(source.schema())
    batches = [rows for partition in reader.partitions() for rows in reader.read(partition)]
    return [value for rows in batches for value in rows.column("value").to_pylist()]


def write(options: Options, *values: str) -> None:
    given = {**options, "topic": "t", "delivery": "at-least-once"}
    writer = DefaultSource(given).writer(ROWS, overwrite=False)
    rows = pa.record_batch({"value": pa.array(values, pa.string())})
    writer.commit([writer.write(iter([rows]))])


def test_rows_are_written_and_read_over_tls(known: Options) -> None:
    write(known, "a", "b")
    assert read(known) == ["a", "b"]


def a_stream(options: Options) -> None:
    source = DefaultSource({**options, "subscribe": "t"})
    source.streamReader(source.schema()).initialOffset()


@pytest.mark.parametrize("job", [read, write, a_stream])
def test_a_job_that_the_brokers_refuse_ends_before_its_tasks(
    job: Callable[[Options], Any], trusting: Options
) -> None:
    with pytest.raises(SecurityRefused, match=r"it asks for a client certificate: set ssl\.keystore"):
        job(trusting)


def test_a_key_that_is_missing_on_a_host_is_told_with_the_host(known: Options, tmp_path: Path) -> None:
    (tmp_path / "job.pem").unlink()
    with pytest.raises(ConfigError, match=rf"^on host {gethostname()}: .*{tmp_path}/job\.pem"):
        read(known)


def test_a_task_on_a_host_without_the_key_says_so(known: Options, tmp_path: Path) -> None:
    write(known, "a")
    source = DefaultSource({**known, "subscribe": "t"})
    reader = source.reader(source.schema())
    (partition,) = reader.partitions()
    clients._after_fork_in_child()  # a worker elsewhere has no client yet
    (tmp_path / "job.pem").unlink()
    with pytest.raises(ConfigError, match=rf"^on host {gethostname()}: .*{tmp_path}/job\.pem"):
        list(reader.read(partition))


def test_a_key_may_be_named_by_a_reference(
    known: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBS_KEYS", str(tmp_path))
    assert read({**known, "kafka.ssl.keystore.location": "${env:JOBS_KEYS}/job.pem"}) == []


def test_only_jobs_with_the_same_credentials_share_connections(known: Options, trusting: Options) -> None:
    read(known)
    with pytest.raises(SecurityRefused):
        read(trusting)


@pytest.mark.integration
def test_spark_writes_and_reads_over_tls(spark: Any, known: Options) -> None:
    rows = spark.createDataFrame([("a",), ("b",)], "value string").coalesce(1)
    terms = {"topic": "t", "delivery": "at-least-once"}
    rows.write.format("sparklog").options(**known, **terms).mode("append").save()
    found = spark.read.format("sparklog").options(**known, subscribe="t", valueFormat="string").load()
    assert [row.value for row in found.select("value").collect()] == ["a", "b"]


def run_batch(spark: Any, options: Options, _folder: Path) -> None:
    spark.read.format("sparklog").options(**options).load().collect()


def run_stream(spark: Any, options: Options, folder: Path) -> None:
    rows = spark.readStream.format("sparklog").options(**options).load()
    writing = rows.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    writing.start().awaitTermination()


@pytest.mark.integration
@pytest.mark.parametrize("run", [run_batch, run_stream])
def test_a_job_of_spark_that_is_refused_ends_at_once_and_says_why(
    run: Callable[[Any, Options, Path], None], spark: Any, trusting: Options, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match=r"it asks for a client certificate: set ssl\.keystore"):
        run(spark, {**trusting, "subscribe": "t"}, tmp_path)
