"""Typed rows whatever a session's zone is, and with Spark's large types of Arrow."""

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.datasource.test_spark_types import AS_TEXT, VALUES

pytestmark = [pytest.mark.integration, pytest.mark.every_spark, pytest.mark.proof]

TYPES = [kind for kind in VALUES if kind != "variant"]
ZONE, LARGE = "spark.sql.session.timeZone", "spark.sql.execution.arrow.useLargeVarTypes"


@pytest.fixture(params=[("Europe/Berlin", "true"), ("America/St_Johns", "false")], ids="{0[0]}".format)
def zone(spark: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """The session's zone; in the first one types are large, too."""
    given = dict(zip((ZONE, LARGE), request.param, strict=True))
    before = {name: spark.conf.get(name) for name in given}
    for name, value in given.items():
        spark.conf.set(name, value)
    yield request.param[0].replace("/", "-")
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture
def every_type(spark: Any) -> Any:
    """A row for each value, and one of nulls."""
    columns = [f"cast({{}} as {kind}) c{nth}" for nth, kind in enumerate(TYPES)]
    lists = [[*VALUES[kind], ""] for kind in TYPES]
    rows = [
        "select "
        + ", ".join(column.format(value or "null") for column, value in zip(columns, values, strict=True))
        for values in itertools.zip_longest(*lists, fillvalue="")
    ]
    return spark.sql(" union all ".join(rows))


def texts_of(frame: Any) -> list[str]:
    texts = [re.sub(r"\bc\b", f"c{nth}", AS_TEXT.get(kind, "string(c)")) for nth, kind in enumerate(TYPES)]
    return sorted(map(str, frame.selectExpr(*texts).collect()))


def test_every_type_comes_back_equal(
    spark: Any, every_type: Any, append: Callable[..., None], read: Callable[..., Any], zone: str
) -> None:
    topic = f"typed-sessions-{zone}"
    append(every_type, topic, createTopic="typed")
    back = read(topic)
    assert back.dtypes == every_type.dtypes
    assert texts_of(back) == texts_of(every_type)
    at = f"c{TYPES.index('timestamp')}"
    spark.conf.set(ZONE, "UTC")
    spark.conf.set(LARGE, "false")
    instants = [f"unix_micros({at}) at", f"c{TYPES.index('string')}"]
    found = read(topic, columns=f"c{TYPES.index('string')}, {at}").selectExpr(*instants).collect()
    assert sorted(map(str, found)) == sorted(map(str, every_type.selectExpr(*instants).collect()))


def test_a_stream_writes_and_reads_every_type(
    every_type: Any, append: Callable[..., None], read: Callable[..., Any], read_stream: Callable[..., Any],
    cluster: Any, zone: str, tmp_path: Any,
) -> None:  # fmt: skip
    topic = f"typed-sessions-stream-{zone}"
    append(every_type, topic, createTopic="typed")
    frame = read_stream(topic, startingOffsets="earliest")
    query = (
        frame.writeStream.format("sparklog").option("bootstrap.servers", cluster.bootstrap_servers)
        .options(topic=f"{topic}-copy", createTopic="typed", checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    assert texts_of(read(f"{topic}-copy")) == texts_of(every_type)
