"""The live view: a streaming query that counts earthquakes by magnitude class while they come in."""

import threading
from collections.abc import Callable
from typing import Any, Final

CLASSES: Final = ("< 1", "1-2", "2-3", "3-4", "4-5", ">= 5", "unknown")
TRIGGER: Final = "1 second"


class LiveCount:
    """``spark.readStream`` on the topic, grouped by class; every batch calls ``show`` with the counts."""

    def __init__(
        self,
        spark: Any,
        bootstrap_servers: str,
        topic: str,
        checkpoint: str,
        show: Callable[[dict[str, int]], None],
    ) -> None:
        self._show = show
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        stream = (
            spark.readStream.format("sparklog")
            .option("bootstrap.servers", bootstrap_servers)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
        )
        self._query = (
            _by_class(stream)
            .writeStream.outputMode("complete")
            .option("checkpointLocation", checkpoint)
            .trigger(processingTime=TRIGGER)
            .foreachBatch(self._on_batch)
            .start()
        )

    @property
    def total(self) -> int:
        with self._lock:
            return sum(self._counts.values())

    def failure(self) -> str | None:
        error = self._query.exception()
        return None if error is None else str(error)

    def catch_up(self) -> None:
        """Wait until everything that is in the topic now has been counted."""
        self._query.processAllAvailable()

    def stop(self) -> None:
        self._query.stop()

    def _on_batch(self, frame: Any, _batch_id: int) -> None:
        counts = {row["class"]: row["count"] for row in frame.collect()}
        with self._lock:
            self._counts = counts
        self._show({name: counts.get(name, 0) for name in CLASSES})


def _by_class(stream: Any) -> Any:
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    magnitude = F.get_json_object(F.col("value").cast("string"), "$.mag").cast("double")
    bucket = F.when(magnitude.isNull(), CLASSES[6]).when(magnitude < 1, CLASSES[0])
    for upper, name in ((2, CLASSES[1]), (3, CLASSES[2]), (4, CLASSES[3]), (5, CLASSES[4])):
        bucket = bucket.when(magnitude < upper, name)
    return stream.groupBy(bucket.otherwise(CLASSES[5]).alias("class")).count()
