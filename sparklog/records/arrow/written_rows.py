"""Rows of a writer as those of a typed topic: its columns fitted once, then each batch of rows.

written = WrittenRows.fitting(topic.newest, columns)
rows = written.rows(batch)          # the topic's types, checked, nothing copied where types are equal
keys = written.keys(rows)           # decide the partition
data = written.encode(rows, ...)    # a batch of the log, of these rows or of a slice of them
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from sparklog.model.errors import SchemaError
from sparklog.model.schema.data_types import Columns
from sparklog.model.schema.fitting import fit
from sparklog.model.schema.paths import quoted
from sparklog.records.arrow.key_text import key_texts
from sparklog.records.arrow.mapping import mapped_columns
from sparklog.records.arrow.topic_columns import VersionColumns
from sparklog.records.arrow.typed_payload import typed_batch
from sparklog.records.envelope import Compression


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """``given``: the writer's columns, with the ids of the topic's; ``target``: the same columns there."""

    version: VersionColumns
    given: Columns
    target: Columns

    @classmethod
    def fitting(cls, version: VersionColumns, columns: Columns, void: Sequence[str] = ()) -> Self:
        """SchemaError for columns that do not fit; ``void`` names those that are null in all rows."""
        given = fit(columns, version.columns, void, version.renamed)
        ids = {field.id for field in given}
        target = tuple(field for field in version.columns if field.id in ids)
        return cls(version, given, target or version.columns[:1])  # a batch has a column, be it of nulls

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows in the topic's types and order. SchemaError for a null in a column that is NOT NULL, and a
        date that no timestamp_ntz can be.
        """
        present = {field.id: batch.column(field.name) for field in self.given}
        arrays = mapped_columns(present, self.given, self.target, batch.num_rows)
        for field, array in zip(self.target, arrays, strict=True):
            if array.null_count and not field.nullable:
                raise SchemaError(
                    f"column {quoted(field.name)} is NOT NULL in the topic, and null in {array.null_count} "
                    f"of {len(array)} rows; filter these rows out, or fill the column"
                )
        schema = self.version.schema.of_columns([field.id for field in self.target])
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def keys(self, rows: pa.RecordBatch) -> Any | None:
        """The texts of the rows' keys; None without a key column, or if the writer has none."""
        for nth, field in enumerate(self.target):
            if field.id == self.version.key:
                return key_texts(rows.column(nth))
        return None

    def encode(self, rows: pa.RecordBatch, *, now_ms: int, compression: Compression) -> bytes:
        """A batch of the log."""
        present = dict(zip((field.id for field in self.target), rows.columns, strict=True))
        return typed_batch(present, rows.num_rows, self.version, now_ms=now_ms, compression=compression)
