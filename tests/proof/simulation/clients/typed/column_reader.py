"""Readers of some columns of a typed topic: their fetches name these, and brokers send no others."""

from typing import Any, Final

from simulation.clients.client import RETRY_MS
from simulation.clients.typed.typed_reader import TypedReader
from simulation.truth import Entry
from sparklog.model.errors import CorruptBatch, SchemaError
from sparklog.model.schema.data_types import Columns
from sparklog.records.arrow.cut_batch import cut_crc_matches
from sparklog.records.arrow.topic_columns import UnknownColumns
from sparklog.records.envelope import BatchHeader
from sparklog.records.typed_decoding import TypedReading

WANTED_MAX: Final = 2


class ColumnReader(TypedReader):
    """Wants one or two columns, until it plans anew. What it reads next has just these."""

    _next_plan: Columns | None = None

    def _replan(self) -> None:
        known, planned = self._columns.known, self._planned
        super()._replan()
        self._planned = planned
        if known is not None:
            newest = known.newest.columns
            count = min(self._replan_dice.randint(1, WANTED_MAX), len(newest))
            wanted = {field.id for field in self._replan_dice.sample(newest, count)}
            self._next_plan = tuple(field for field in newest if field.id in wanted)

    def go_on(self) -> None:
        """The next fetch, once nothing is left of what was read by the plan before."""
        if self._next_plan is None or self._held:
            self._columns.ask()
            self.later(RETRY_MS, self.go_on)
            return
        self._planned = self._next_plan
        self.columns = tuple(sorted(field.id for field in self._planned))
        super().go_on()

    def _wider(self, planned: Columns, newest: Columns) -> Columns:
        """The same columns, as far as they are there still: it was given no others."""
        ids = {field.id for field in planned}
        return tuple(field for field in newest if field.id in ids)

    def _is_sound(self, records: bytes, position: int, header: BatchHeader) -> bool:
        """Each column of a cut batch has a CRC of its own."""
        if not header.is_cut:
            return super()._is_sound(records, position, header)
        batch = memoryview(records)[position : position + header.size_bytes]
        known = self._columns.known
        if not cut_crc_matches(batch, header) or known is None or self._planned is None:
            return False
        try:
            list(TypedReading(known, self._planned).read(batch, [(0, header)]))
        except (UnknownColumns, SchemaError):
            return True
        except CorruptBatch:
            return False
        return True

    def _entry(self, records: bytes, position: int, header: BatchHeader) -> Entry:
        """The batch in the log, which has another CRC than what is left of it here."""
        entry = super()._entry(records, position, header)
        if not header.is_cut:
            return entry
        self._rules.marks.reach("a reader was given the columns that it named")
        return entry._replace(crc=self._rules.crcs[entry.send])

    def _check(self, send: tuple[int, int, int], found: list[dict[str, Any]]) -> None:
        if self._planned:
            super()._check(send, found)
