"""How many tasks read a micro-batch on a real Spark, and in which order."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparklog.testing import InProcessCluster
from tests.datasource.queries import WAIT_S

pytestmark = [pytest.mark.integration, pytest.mark.every_spark]

Frames = Callable[..., Any]
Places = list[tuple[int, int]]


class Tasks:
    """A sink that keeps, for each task of a micro-batch, partition and offset of its rows in their order."""

    def __init__(self) -> None:
        self.tasks: list[list[Places]] = []

    def __call__(self, frame: Any, batch_id: int) -> None:
        rows = frame.selectExpr(
            "spark_partition_id() AS task", "monotonically_increasing_id() AS place", "partition", "offset"
        ).collect()
        tasks: dict[int, Places] = {}
        for row in sorted(rows, key=lambda row: int(row.place)):
            tasks.setdefault(row.task, []).append((row.partition, row.offset))
        self.tasks.append([tasks[number] for number in sorted(tasks)])


def test_a_small_micro_batch_has_one_task_and_the_minimum_of_partitions_is_obeyed(
    cluster: InProcessCluster, read_stream: Frames, tmp_path: Path
) -> None:
    cluster.create_topic("few", partitions=3)
    for partition in range(3):
        cluster.produce("few", ["x"] * 2, partition=partition)
    pairs = [[(partition, 0), (partition, 1)] for partition in range(3)]
    together = [place for pair in pairs for place in pair]
    for number, (options, expected) in enumerate([({}, [together]), ({"minPartitions": "3"}, pairs)]):
        sink = Tasks()
        frame = read_stream("few", startingOffsets="earliest", **options)
        writer = frame.writeStream.foreachBatch(sink).option(
            "checkpointLocation", str(tmp_path / str(number))
        )
        query = writer.trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(WAIT_S)
        finally:
            query.stop()
        assert sink.tasks == [expected]
