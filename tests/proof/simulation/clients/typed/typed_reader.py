"""Readers of a typed topic. Each keeps the columns that it planned, and then plans anew."""

from typing import Any

from simulation.clients.client import Workplace
from simulation.clients.consumers import Consumer
from simulation.clients.typed.column_asker import ColumnAsker
from simulation.invariants.invariant import Violation
from simulation.invariants.typed.columns import ColumnRules, Send
from simulation.invariants.typed.values import DoesNotFitError, expected
from simulation.recorder import FoundRow
from simulation.schedule import dice
from simulation.truth import Entry
from sparklog.model.errors import SchemaError
from sparklog.model.ids import TopicPartition
from sparklog.model.schema.data_types import Columns
from sparklog.records.arrow.topic_columns import UnknownColumns
from sparklog.records.envelope import BatchHeader
from sparklog.records.payload_kinds import ALL_PAYLOADS
from sparklog.records.typed_decoding import TypedReading


class TypedReader(Consumer):
    """Reads everything over and over, and looks at each row's columns."""

    def __init__(
        self,
        place: Workplace,
        name: str,
        topic_partition: TopicPartition,
        rules: ColumnRules,
        *,
        replan_every_ms: float,
    ) -> None:
        super().__init__(place, name, topic_partition)
        self._payload_kinds = ALL_PAYLOADS
        self._columns = ColumnAsker(self, place.hosts, rules, self._look_at_held)
        self._rules = rules
        self._planned: Columns | None = None
        self._held: list[tuple[bytes, BatchHeader]] = []
        """Batches of versions that it does not know yet."""
        self._replan_every_ms = replan_every_ms
        self._replan_dice = dice(place.seed, f"{self.name} plans anew")

    @property
    def unrest(self) -> str | None:
        return f"{self.name} holds {len(self._held)} batches of unknown columns" if self._held else None

    def start(self) -> None:
        super().start()
        self._replan()

    def _replan(self) -> None:
        if self._columns.known is not None:
            self._planned = self._columns.known.newest.columns
        self._columns.ask()
        self.later(self._replan_dice.expovariate(1 / self._replan_every_ms), self._replan)

    def _take_batch(
        self, batch: memoryview, header: BatchHeader, entry: Entry, found: list[Entry | FoundRow]
    ) -> None:
        super()._take_batch(batch, header, entry, found)
        if not header.is_control:
            self._look_at(bytes(batch), header)

    def _look_at_held(self) -> None:
        held, self._held = self._held, []
        for batch, header in held:
            self._look_at(batch, header)

    def _look_at(self, batch: bytes, header: BatchHeader) -> None:
        known = self._columns.known
        if self._planned is None and known is not None:
            self._planned = known.newest.columns
        if known is None or self._planned is None:
            self._hold(batch, header)
            return
        send: Send = header.producer_id, header.producer_epoch, header.base_sequence
        try:
            found = _rows_of(TypedReading(known, self._planned), batch, header)
        except UnknownColumns:
            self._rules.marks.reach("a reader met columns that it did not know")
            self._hold(batch, header)
            return
        except SchemaError as refused:
            self._restart_after(send, str(refused))
            self._look_at(batch, header)
            return
        self._check(send, found)

    def _hold(self, batch: bytes, header: BatchHeader) -> None:
        self._held.append((batch, header))
        self._columns.ask()

    def _check(self, send: Send, found: list[dict[str, Any]]) -> None:
        assert self._planned is not None
        written, numbers = self._rules.written[send]
        try:
            wanted = [expected(self._planned, written, number) for number in numbers]
        except DoesNotFitError as lost:
            what = f"{self.name} reads {found}, though column {lost} cannot hold a value"
            raise Violation("ColumnsAreThoseOfTheirIds", what) from None
        if written != self._planned:
            self._rules.marks.reach("a reader mapped rows of another version")
        self._rules.check_row(found, wanted, f"batch {send}")

    def _restart_after(self, send: Send, refused: str) -> None:
        """The query is restarted, with wider columns, if a value does not fit."""
        assert self._planned is not None
        assert self._columns.known is not None
        written, numbers = self._rules.written[send]
        try:
            for number in numbers:
                expected(self._planned, written, number)
        except DoesNotFitError:
            self._rules.marks.reach("a reader was told of a value that its columns cannot hold")
            self._planned = self._wider(self._planned, self._columns.known.newest.columns)
            return
        raise Violation("ColumnsAreThoseOfTheirIds", f"{self.name} is refused what fits: {refused}")

    def _wider(self, planned: Columns, newest: Columns) -> Columns:
        """What it plans after a value that did not fit."""
        return newest


def _rows_of(reading: TypedReading, batch: bytes, header: BatchHeader) -> list[dict[str, Any]]:
    (rows,) = reading.read(batch, [(0, header)])
    found: list[dict[str, Any]] = rows.select(range(len(reading.wanted))).to_pylist()
    return found
