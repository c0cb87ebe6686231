"""Orders to the Spark driver under measurement (``bench.spark_worker``) about rows of 20 columns.

They go to typed topics as they are, to other topics as JSON, and to Parquet files.
"""

import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession

COLUMNS = {
    **{f"n{nth}": f"cast(xxhash64(id, {nth}) % 1000000 as bigint)" for nth in range(6)},
    **{f"x{nth}": f"rand({nth}) * 1000" for nth in range(6)},
    **{
        f"text{nth}": f"concat('value ', cast(pmod(xxhash64(id, 10 + {nth}), 1000) as string))"
        for nth in range(5)
    },
    **{f"at{nth}": f"timestamp_micros(id * 1000 + {nth})" for nth in range(2)},
    "ok": "id % 2 = 0",
}
"""Six numbers, six fractions, five texts, two times, a truth; each with what makes it."""
TYPES = {"n": "bigint", "x": "double", "t": "string", "a": "timestamp", "o": "boolean"}
SCHEMA = ", ".join(f"{name} {TYPES[name[0]]}" for name in COLUMNS)
"""In Spark's DDL."""
PARQUET = "parquet"


class TypedOrders:
    _spark: SparkSession
    _columns: tuple[int, DataFrame] | None = None

    def hold_columns(self, rows: int) -> dict[str, Any]:
        """Make what a write takes, and hold it in memory."""
        self._held(rows)
        return {}

    def write_columns(
        self, form: str, servers: str, topic: str, rows: int, as_json: bool, options: dict[str, str]
    ) -> dict[str, Any]:
        """Write a frame that is held in memory before the clock runs. ``topic``: for Parquet, a folder."""
        frame = self._held(rows)
        if as_json:
            frame = frame.selectExpr("to_json(struct(*)) as value")
        writer = frame.write.format(form).options(**options).mode("append")
        if form != PARQUET:
            writer = writer.option("kafka.bootstrap.servers", servers).option("topic", topic)
        began = time.monotonic()
        writer.save(*([topic] if form == PARQUET else []))
        return {"seconds": time.monotonic() - began}

    def read_columns(
        self, form: str, servers: str, topic: str, as_json: bool, column: str = "", where: str = ""
    ) -> dict[str, Any]:
        """One column, or all, to nowhere; ``where``: of typed rows for which that is true."""
        frame = self._found(form, servers, topic, as_json, column, where)
        began = time.monotonic()
        frame.write.format("noop").mode("overwrite").save()
        return {"seconds": time.monotonic() - began}

    def count_column(
        self, form: str, servers: str, topic: str, as_json: bool, column: str, where: str = ""
    ) -> dict[str, Any]:
        """How many rows have a value in it."""
        found = self._found(form, servers, topic, as_json, column, where)
        (counted,) = found.selectExpr(f"count({column})").collect()
        return {"rows": counted[0]}

    def _found(
        self, form: str, servers: str, topic: str, as_json: bool, column: str, where: str
    ) -> DataFrame:
        if form == PARQUET:
            frame = self._spark.read.parquet(topic)
            return frame.select(column) if column else frame
        reader = self._spark.read.format(form).option("kafka.bootstrap.servers", servers)
        reader = reader.option("subscribe", topic)
        if as_json:
            rows = reader.load().selectExpr(f"from_json(cast(value as string), '{SCHEMA}') as row")
            return rows.selectExpr(f"row.{column or '*'}")
        wanted = {"columns": column, "where": where}
        return reader.options(**{name: value for name, value in wanted.items() if value}).load()

    def _held(self, rows: int) -> DataFrame:
        if self._columns is None or self._columns[0] != rows:
            if self._columns is not None:
                self._columns[1].unpersist()
            made = [f"{how} as {name}" for name, how in COLUMNS.items()]
            frame = self._spark.range(0, rows, 1, 2).selectExpr(*made).cache()
            frame.count()
            self._columns = rows, frame
        return self._columns[1]
