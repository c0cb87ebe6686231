"""Short ways to read and write with the session's Spark."""

from collections.abc import Callable
from typing import Any

import pytest

from sparklog.testing import InProcessCluster


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
