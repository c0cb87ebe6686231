"""Running streaming queries to their end."""

from pathlib import Path
from typing import Any

WAIT_S = 120


class Batches:
    """A sink that keeps each micro-batch's values, and can be made to fail."""

    def __init__(self) -> None:
        self.values: list[list[str]] = []
        self.fails = False

    def __call__(self, frame: Any, batch_id: int) -> None:
        if self.fails:
            raise ValueError("the sink was told to fail")
        rows = frame.orderBy("topic", "partition", "offset").select("value").collect()
        self.values.append([bytes(row.value).decode() for row in rows])

    @property
    def all(self) -> list[str]:
        return [value for batch in self.values for value in batch]


def run(frame: Any, sink: Batches, checkpoint: Path, **trigger: Any) -> Any:
    """Run a query to its end; its progress reports."""
    writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(**(trigger or {"availableNow": True})).start()
    try:
        assert query.awaitTermination(WAIT_S)
        return query.recentProgress
    finally:
        query.stop()
