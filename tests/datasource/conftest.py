"""One Spark session for all the tests that need one, and short ways to read and write with it."""

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sparklog.testing import InProcessCluster

SETTINGS = {
    "spark.master": "local[2]",
    "spark.app.name": "sparklog-tests",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A quiet local session whose Python workers are this interpreter."""
    os.environ.update(
        PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1"
    )
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.config(
        "spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse"))
    ).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def read(spark: Any, cluster: InProcessCluster) -> Callable[..., Any]:
    """A batch DataFrame of a topic, or of what the options say."""

    def load(topic: str | None = None, **options: str) -> Any:
        named = {"subscribe": topic} if topic is not None else {}
        servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers}
        return spark.read.format("sparklog").options(**servers, **named, **options).load()

    return load


@pytest.fixture
def read_stream(spark: Any, cluster: InProcessCluster) -> Callable[..., Any]:
    """A streaming DataFrame of a topic, or of what the options say."""

    def load(topic: str | None = None, **options: str) -> Any:
        named = {"subscribe": topic} if topic is not None else {}
        servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers}
        return spark.readStream.format("sparklog").options(**servers, **named, **options).load()

    return load


@pytest.fixture
def append(cluster: InProcessCluster) -> Callable[..., None]:
    """Write a DataFrame."""

    def save(frame: Any, topic: str | None = None, *, mode: str = "append", **options: str) -> None:
        named = {"topic": topic} if topic is not None else {}
        servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers}
        frame.write.format("sparklog").options(**servers, **named, **options).mode(mode).save()

    return save


@pytest.fixture
def values(spark: Any) -> Callable[..., Any]:
    """A DataFrame of one text column, value."""

    def frame(*texts: str) -> Any:
        return spark.createDataFrame([(text,) for text in texts], "value string")

    return frame
