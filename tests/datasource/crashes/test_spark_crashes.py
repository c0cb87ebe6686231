"""Tasks and drivers of a real Spark are killed at each point of an atomic write: each row is there once."""

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparklog.testing import InProcessCluster
from tests.datasource.crashes.killing import AT, DRIVER, FORMAT, NOTES, register_killed

pytestmark = pytest.mark.integration

ROWS = 2_000
PARTITIONS = 3
TASK_POINTS = ("before-open", "after-open", "mid-way", "after-flush", "after-finish", "after-message")
QUICK_POINTS = ("before-open", "mid-way", "after-finish")
STREAMED_POINTS = ("mid-way", "after-finish")
WAIT_S = 120

Frames = Callable[..., Any]
Job = Callable[..., int]
Check = Callable[[str, int, int], None]


def step(cluster: InProcessCluster, topic: str, at: str, notes: Path, **fields: Any) -> dict[str, Any]:
    notes.mkdir(exist_ok=True)
    named = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "topic": topic}
    options = {**named, **fields.pop("options", {})}
    return {"rows": ROWS, "at": at, "notes": str(notes), "options": options, **fields}


@pytest.mark.proof
@pytest.mark.parametrize("at", QUICK_POINTS)
def test_a_write_whose_task_was_killed_is_there_once_when_it_has_been_run_again(
    at: str, cluster: InProcessCluster, spark: Any, is_there_once: Check, tmp_path: Path
) -> None:
    """In a session that does not try tasks again: the write fails, and is written again under its version."""
    topic = f"killed-once-{at}"
    cluster.create_topic(topic, partitions=PARTITIONS)
    register_killed(spark)
    frame = spark.range(0, ROWS, 1, 2).selectExpr("string(id) value")
    given = step(cluster, topic, at, tmp_path / "notes")["options"]
    named = {"delivery": "exactly-once", "txnAppId": topic, "txnVersion": "1"}
    of_death = {AT: at, NOTES: str(tmp_path / "notes"), DRIVER: ""}
    writer = frame.write.format(FORMAT).options(**given, **named, **of_death).mode("append")
    with pytest.raises(Exception, match=r"crashed|exited unexpectedly|EOF"):
        writer.save()
    writer.save()
    is_there_once(topic, ROWS, PARTITIONS)


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("master", "points"),
    [
        ("local[2,4]", TASK_POINTS),
        ("local-cluster[2,1,1024]", ("mid-way", "after-message")),
    ],
    ids=["local", "workers"],
)
def test_a_task_that_is_killed_and_run_again_by_spark_writes_its_rows_once(
    master: str,
    points: tuple[str, ...],
    cluster: InProcessCluster,
    append: Any,
    spark: Any,
    job: Job,
    is_there_once: Check,
    tmp_path: Path,
) -> None:
    """A local cluster has a standalone master, workers, and executors that are processes of their own."""
    kind = master.partition("[")[0]
    source = f"killed-source-{kind}"
    cluster.create_topic(source, partitions=2)
    append(spark.range(ROWS).selectExpr("string(id) value"), source)
    steps = [step(cluster, f"{kind}-batch-{at}", at, tmp_path / f"batch-{at}") for at in points]
    stream = {"source": source, "batch_rows": ROWS}
    for at in STREAMED_POINTS[: len(points) // 2]:
        checkpoint = str(tmp_path / f"checkpoint-{at}")
        notes = tmp_path / f"stream-{at}"
        steps.append(step(cluster, f"{kind}-stream-{at}", at, notes, checkpoint=checkpoint, **stream))
    for one in steps:
        cluster.create_topic(one["options"]["topic"], partitions=PARTITIONS)
    assert job(*steps, master=master) == 0
    for one in steps:
        assert (Path(one["notes"]) / "died").exists(), one
        is_there_once(one["options"]["topic"], ROWS, PARTITIONS)


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_a_stream_and_a_batch_whose_drivers_are_killed_have_every_row_once(
    cluster: InProcessCluster, append: Any, spark: Any, job: Job, is_there_once: Check, tmp_path: Path
) -> None:
    """The stream's before, during and after EndWrite: the last before Spark notes that the batch is done."""
    cluster.create_topic("driver-source", partitions=2)
    for topic in ("stream-killed", "batch-killed"):
        cluster.create_topic(topic, partitions=PARTITIONS)
    append(spark.range(ROWS).selectExpr("string(id) value"), "driver-source")
    checkpoint = tmp_path / "checkpoint"
    stream = {"source": "driver-source", "checkpoint": str(checkpoint), "batch_rows": ROWS // 5}
    batch = {"options": {"txnAppId": "batch-killed", "txnVersion": "3"}}
    for at in ("before-end:0", "during-end:1", "after-end:2"):
        assert job(step(cluster, "stream-killed", at, tmp_path / at, **stream)) == -signal.SIGKILL
    assert sorted(path.name for path in (checkpoint / "commits").glob("[0-9]*")) == ["0", "1"]
    assert job(step(cluster, "batch-killed", "before-end", tmp_path / "batch", **batch)) == -signal.SIGKILL
    last = tmp_path / "nobody dies"
    again = step(cluster, "stream-killed", "", last, **stream)
    assert job(again, step(cluster, "batch-killed", "", last, **batch)) == 0
    for topic in ("stream-killed", "batch-killed"):
        is_there_once(topic, ROWS, PARTITIONS)


@pytest.mark.proof
def test_two_queries_that_both_run_a_batch_again_write_to_one_topic_once(
    cluster: InProcessCluster,
    spark: Any,
    read_stream: Frames,
    append: Any,
    is_there_once: Check,
    tmp_path: Path,
) -> None:
    cluster.create_topic("both", partitions=PARTITIONS)
    servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers}
    given = {**servers, "topic": "both", "delivery": "exactly-once"}

    def start(number: int) -> Any:
        frame = read_stream(f"both-{number}", startingOffsets="earliest").selectExpr("value")
        writer = frame.writeStream.format("sparklog").options(**given).trigger(availableNow=True)
        return writer.option("checkpointLocation", str(tmp_path / str(number))).start()

    for number in range(2):
        rows = spark.range(number * ROWS // 2, (number + 1) * ROWS // 2).selectExpr("string(id) value")
        append(rows, f"both-{number}")
    for _ in range(2):
        queries = [start(number) for number in range(2)]
        for number, query in enumerate(queries):
            assert query.awaitTermination(WAIT_S)
            # As if the driver had died after its commit, before Spark noted it.
            shutil.rmtree(tmp_path / str(number) / "commits")
    is_there_once("both", ROWS, PARTITIONS)
