"""Decoding the rows of consecutive batches of a typed topic, as in a fetch reply.

Each batch is mapped from its version of the topic's columns to the columns that the reader wants. Offsets and
times follow in columns of their own, whose names no topic's column can have.

A reader that does not want all columns names the ids of those it wants in its fetches, and then gets batches
with these alone (``arrow/cut_batch``).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import numpy as np
import pyarrow as pa

from sparklog.model.errors import CorruptBatch
from sparklog.model.schema.data_types import Columns
from sparklog.model.schema.paths import quoted
from sparklog.model.schema.predicates.packed import pack
from sparklog.model.schema.predicates.tree import Condition, columns_of
from sparklog.records.arrow.arrow_types import TIMESTAMP, arrow_type
from sparklog.records.arrow.header import NO_COLUMN, DamagedColumn
from sparklog.records.arrow.row_filter import judged
from sparklog.records.arrow.topic_columns import TopicColumns, UnknownColumns
from sparklog.records.arrow.typed_payload import TypedRows, read_typed
from sparklog.records.bridge import numbers
from sparklog.records.decoding import Batch
from sparklog.records.envelope import BatchHeader, Bytes

OFFSET: Final = "_offset"
TIMESTAMP_NAME: Final = "_timestamp"
_MICROSECONDS: Final = 1_000
_MS_MAX: Final = (2**63 - 1) // _MICROSECONDS


@dataclass(slots=True)
class TypedReading:
    """What a reader of a typed topic knows, and the columns that it wants, in their order.

    ``ask`` returns the topic's columns with a version that the reader met, and did not know; it may block.
    What is wanted stays the same: a reader that runs keeps its columns, whatever their names are by now.
    Without ``with_times`` there are no times either, which may be those of a column.
    """

    topic: TopicColumns
    wanted: Columns
    ask: Callable[[int], TopicColumns] | None = None
    with_times: bool = True
    where: Condition | None = None
    """Which rows are wanted; None for all. Its columns have the types of the reader, as ``wanted`` do."""
    where_version: int = 0
    """The version of the topic's columns that has those types; 0 if replicas are to pass over no batch."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches that ``read`` yields."""
        return pa.schema(
            [
                *(pa.field(field.name, arrow_type(field.type)) for field in self.wanted),
                pa.field(OFFSET, pa.int64()),
                *([pa.field(TIMESTAMP_NAME, TIMESTAMP)] if self.with_times else []),
            ]
        )

    @property
    def column_ids(self) -> frozenset[int]:
        """The columns of which anything is read."""
        timestamp = self.topic.newest.timestamp
        with_time = self.with_times and timestamp != NO_COLUMN
        judged_by = () if self.where is None else columns_of(self.where)
        ids = frozenset(field.id for field in (*self.wanted, *judged_by))
        return ids | ({timestamp} if with_time else set())

    @property
    def named_ids(self) -> tuple[int, ...] | None:
        """The ids that a fetch names, in rising order; None if the topic has no other columns now, and all
        rows are wanted.
        """
        ids = self.column_ids
        if self.where is not None:
            return tuple(sorted(ids))
        return None if ids.issuperset(field.id for field in self.topic.newest.columns) else tuple(sorted(ids))

    @property
    def packed_condition(self) -> bytes:
        """Which rows a fetch names; empty for all."""
        return pack(self.where, self.where_version) if self.where is not None and self.where_version else b""

    def read(self, buffer: Bytes, batches: Iterable[Batch]) -> Iterator[pa.RecordBatch]:
        """The wanted rows of ``batches``, the result of ``split(buffer)``, in order. The caller checks CRCs.

        CorruptBatch for an unreadable batch. UnknownColumns for one of a version of the columns that nobody
        can be asked for. SchemaError for a value that a wanted column's type cannot hold.
        """
        schema = self.schema
        for position, header in batches:
            if header.is_control or not header.record_count:
                continue
            rows = self._rows(memoryview(buffer)[position : position + header.size_bytes], header)
            place = [numbers(header.base_offset + rows.offset_deltas)]
            if self.with_times:
                times_us = np.clip(rows.timestamps_ms(), None, _MS_MAX) * _MICROSECONDS
                place.append(numbers(times_us).view(TIMESTAMP))
            found = pa.RecordBatch.from_arrays([*rows.mapped(self.wanted), *place], schema=schema)
            yield found if self.where is None else found.filter(self._kept(self.where, rows))

    @staticmethod
    def _kept(where: Condition, rows: TypedRows) -> Any:
        """True for the rows that are wanted."""
        columns = columns_of(where)
        return judged(where, dict(zip((one.id for one in columns), rows.mapped(columns), strict=True)))

    def _rows(self, batch: Bytes, header: BatchHeader) -> TypedRows:
        wanted = self.column_ids
        try:
            try:
                return read_typed(batch, header, self.topic, wanted)
            except UnknownColumns as unknown:
                if self.ask is None:
                    raise
                self.topic = self.ask(unknown.version)
            return read_typed(batch, header, self.topic, wanted)
        except DamagedColumn as damage:
            self._name(damage, header)
        except CorruptBatch as error:
            raise CorruptBatch(f"the batch at offset {header.base_offset}: {error}") from None

    def _name(self, damage: DamagedColumn, header: BatchHeader) -> NoReturn:
        """Raise with the name that the column has for this reader, or in the topic."""
        fields = {field.id: field for field in (*self.topic.newest.columns, *self.wanted)}
        field = fields.get(damage.column_id)
        whose = "a dropped column" if field is None else f"column {quoted(field.name)}"
        raise CorruptBatch(
            f"the batch at offset {header.base_offset}, {whose}: {damage}; its replica's disk, or the way "
            "here, has damaged it"
        ) from None
