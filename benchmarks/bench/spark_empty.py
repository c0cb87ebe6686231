"""A Python sink that takes rows and a Python source that has them ready: the limit that Spark sets to each.

The rows are as large as those of the benchmark, and come in batches as large as ours. Nothing is encoded,
sent or read. Workers get these classes by value, so they need not find this module.
"""

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)

cloudpickle.register_pickle_by_value(sys.modules[__name__])

PARTITIONS: Final = 4
BATCH_ROWS: Final = 50_000
SCHEMA: Final = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int"
)
ROW: Final = {
    "key": (pa.binary(), b"0" * 10),
    "value": (pa.binary(), b"x" * 100),
    "topic": (pa.string(), "empty"),
    "partition": (pa.int32(), 0),
    "offset": (pa.int64(), 0),
    "timestamp": (pa.timestamp("us", "UTC"), datetime(2026, 1, 1, tzinfo=UTC)),
    "timestampType": (pa.int32(), 0),
}


class Empty(DataSource):  # type: ignore[misc]  # Spark's has no types
    """Format ``empty``; ``rows`` says how many a read has, ``rowsPerSecond`` how fast a stream gets them."""

    @classmethod
    def name(cls) -> str:
        return "empty"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: Any) -> "EmptyReader":
        return EmptyReader(int(self.options["rows"]))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        pace = self.options.get("rowsPerSecond")
        return EmptyStream(int(self.options["rows"])) if pace is None else PacedStream(int(pace))

    def writer(self, schema: Any, overwrite: bool) -> "EmptyWriter":
        return EmptyWriter()


class EmptyWriter(DataSourceArrowWriter):  # type: ignore[misc]  # Spark's has no types
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


class EmptyReader(DataSourceReader):  # type: ignore[misc]  # Spark's has no types
    def __init__(self, rows: int) -> None:
        self._rows = rows

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(self._rows // PARTITIONS) for _ in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(partition.value)


class EmptyStream(DataSourceStreamReader):  # type: ignore[misc]  # Spark's has no types
    """All rows are there from the beginning, and no more come."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
        return {"rows": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802 (Spark's name)
        return {"rows": self._rows}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        count = (end["rows"] - start["rows"]) // PARTITIONS
        return [InputPartition(count) for _ in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(partition.value)


class PacedStream(DataSourceStreamReader):  # type: ignore[misc]  # Spark's has no types
    """Rows at an even pace for ever, each with the time at which it became there; one task reads them."""

    def __init__(self, rows_per_s: int) -> None:
        self._rows_per_s = rows_per_s
        self._initial = self._now()

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
        return self._initial  # Spark asks twice

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802 (Spark's name)
        return self._now()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition((start["row"], end["row"]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        start, end = partition.value
        times = [row * 1_000_000 // self._rows_per_s for row in range(start, end)]
        for batch in batches(end - start):
            column = pa.array(times, pa.int64()).cast(ROW["timestamp"][0])
            yield batch.set_column(batch.schema.get_field_index("timestamp"), "timestamp", column)

    def _now(self) -> dict[str, int]:
        return {"row": int(time.time() * self._rows_per_s)}


def batches(rows: int) -> Iterator[pa.RecordBatch]:
    """One batch after the other, of the same buffers."""
    count = min(rows, BATCH_ROWS)
    columns = {name: pa.repeat(pa.scalar(value, kind), count) for name, (kind, value) in ROW.items()}
    whole = pa.RecordBatch.from_pydict(columns)
    while rows > 0:
        yield whole if rows >= count else whole.slice(0, rows)
        rows -= count
