"""The progress of queries on a real Spark, drawn where no terminal is, and in one."""

import io
import os
import pty
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pyspark_sparklog
from sparklog.testing import InProcessCluster
from tests.datasource.queries import WAIT_S, Batches

pytestmark = [pytest.mark.integration, pytest.mark.every_spark]

Frames = Callable[..., Any]


def start(writer: Any, checkpoint: Path) -> Any:
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def test_the_last_plain_line_has_all_rows_and_no_lag(
    cluster: InProcessCluster, read_stream: Frames, tmp_path: Path
) -> None:
    cluster.create_topic("drawn", partitions=2)
    cluster.produce("drawn", ["x"] * 10, partition=0)
    cluster.produce("drawn", ["x"] * 2, partition=1)
    frame = read_stream("drawn", startingOffsets="earliest", maxOffsetsPerTrigger="6")
    file = io.StringIO()
    query = start(frame.writeStream.queryName("plain").format("noop"), tmp_path)
    try:
        assert pyspark_sparklog.progress(query, file).wait(WAIT_S)
    finally:
        query.stop()
    last = file.getvalue().splitlines()[-1]
    assert last.startswith("plain: 12 rows, ")
    assert last.endswith(", 0 behind (ended)")
    assert "\x1b" not in file.getvalue()
    assert "\r" not in file.getvalue()


def test_a_terminal_shows_a_bar_and_why_a_query_failed(
    cluster: InProcessCluster, read_stream: Frames, tmp_path: Path
) -> None:
    cluster.create_topic("drawn-failing", partitions=1)
    cluster.produce("drawn-failing", ["x"])
    sink = Batches()
    sink.fails = True
    frame = read_stream("drawn-failing", startingOffsets="earliest")
    ours, theirs = pty.openpty()
    with open(theirs, "w") as terminal:
        query = start(frame.writeStream.queryName("failing").foreachBatch(sink), tmp_path)
        try:
            assert pyspark_sparklog.progress(query, terminal).wait(WAIT_S)
        finally:
            query.stop()
        shown = ""
        while not shown.endswith("\n"):  # the kernel hands it over by and by
            shown += os.read(ours, 65_536).decode()
    os.close(ours)
    assert "\r\x1b[Kfailing " in shown
    assert "(failed: " in shown
