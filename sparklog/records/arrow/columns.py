"""The columns of an arrow payload by their numbers, and the Arrow schema that follows from those present."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.header import UNTYPED_SCHEMA
from sparklog.records.row_columns import HEADERS_TYPE

KEY_COLUMN: Final = 1
VALUE_COLUMN: Final = 2
TIMESTAMP_COLUMN: Final = 3
HEADERS_COLUMN: Final = 4

WIRE_TIMESTAMP: Final = pa.timestamp("ms", tz="UTC")


@dataclass(frozen=True, slots=True)
class ArrowColumn:
    """One column, with the number of nodes and buffers of its type in an Arrow message."""

    field: pa.Field
    node_count: int
    buffer_count: int


@dataclass(frozen=True, slots=True)
class ArrowSchema:
    """A schema's id, and all its columns by number; a batch lacks none of those in ``required``."""

    schema_id: int
    columns: Mapping[int, ArrowColumn]
    required: frozenset[int] = frozenset()

    def of_columns(self, numbers: Sequence[int]) -> pa.Schema:
        """The Arrow schema of a batch with these columns."""
        return pa.schema([self.columns[number].field for number in numbers])

    def check(self, schema_id: int, numbers: Sequence[int]) -> None:
        """CorruptBatch unless a batch of schema ``schema_id`` with these columns is one of this schema."""
        if schema_id != self.schema_id:
            raise CorruptBatch(f"schema {schema_id} is unknown to this release; a newer one may read it")
        are_known = list(numbers) == sorted(set(numbers) & self.columns.keys())
        if not are_known or not self.required <= set(numbers):
            whose = "an untyped topic" if schema_id == UNTYPED_SCHEMA else f"version {schema_id} of the topic"
            raise CorruptBatch(f"columns {list(numbers)} are not those of {whose}")


UNTYPED: Final = ArrowSchema(
    UNTYPED_SCHEMA,
    {
        KEY_COLUMN: ArrowColumn(pa.field("key", pa.binary()), 1, 3),
        VALUE_COLUMN: ArrowColumn(pa.field("value", pa.binary()), 1, 3),
        TIMESTAMP_COLUMN: ArrowColumn(pa.field("timestamp", WIRE_TIMESTAMP), 1, 2),
        HEADERS_COLUMN: ArrowColumn(pa.field("headers", HEADERS_TYPE), 4, 9),
    },
    frozenset({VALUE_COLUMN}),
)
"""The schema of untyped topics."""
