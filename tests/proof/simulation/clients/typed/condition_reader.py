"""Readers of the rows of a typed topic of which a condition is true: their fetches name it, beside columns.

A reader plans columns and condition, reads from the beginning, and after a while plans anew. What answers
hold, and how far they have looked, is for the shipped code to say.
"""

import random
from collections.abc import Sequence
from typing import Final

from simulation.clients.client import RETRY_MS, Workplace
from simulation.clients.consumers import Consumer
from simulation.clients.typed.column_asker import ColumnAsker
from simulation.invariants.invariant import Violation
from simulation.invariants.typed.columns import ColumnRules
from simulation.invariants.typed.conditions import (
    Comparison,
    ConditionRules,
    Row,
    Wanted,
    differing,
)
from simulation.invariants.typed.values import filled
from simulation.recorder import FoundRow, SeenPoll
from simulation.schedule import dice
from simulation.truth import Entry, PartitionTruth, entry_of
from sparklog.client.fetched import Fetched, fetched_of
from sparklog.model.errors import CorruptBatch, SchemaError
from sparklog.model.ids import TopicPartition
from sparklog.model.schema.data_types import Field, Scalar
from sparklog.model.schema.predicates.parser import parse_condition
from sparklog.records.arrow.topic_columns import UnknownColumns, VersionColumns
from sparklog.records.payload_kinds import ALL_PAYLOADS
from sparklog.records.typed_decoding import TypedReading
from sparklog.wire.messages.data.fetch import FetchPartitionData

BYTES: Final = (1, 1_500, 4_000, 1 << 20)
"""How much a reader asks for at a time."""

COLUMNS_MAX: Final = 2
SIGNS: Final = ("=", "!=", "<", "<=", ">", ">=", "in", "is null", "is not null")
AMONG_MAX: Final = 3
FIRST_NUMBER: Final = 100_000
"""The number of a row, where none was written yet."""


class ConditionReader(Consumer):
    def __init__(
        self,
        place: Workplace,
        name: str,
        topic_partition: TopicPartition,
        columns: ColumnRules,
        rules: ConditionRules,
        *,
        replan_every_ms: float,
        isolation_level: int,
    ) -> None:
        super().__init__(place, name, topic_partition)
        self.isolation_level = isolation_level
        self.bytes_max = self._draw.choice(BYTES)
        self.is_calm = False
        """Whether it plans no more, so that it comes to the end."""
        self.rows: list[Row] = []
        """What it was given since it began."""
        self._payload_kinds = ALL_PAYLOADS
        self._columns = ColumnAsker(self, place.hosts, columns, lambda: None)
        self._written, self._crcs = columns.written, columns.crcs
        self._rules = rules
        self._wanted: Wanted | None = None
        self._reading: TypedReading | None = None
        self._must_plan = True
        self._first = 0
        """Where it began."""
        self._answer: FetchPartitionData | None = None
        self._replan_every_ms = replan_every_ms
        self._plan_dice = dice(place.seed, f"{name} plans anew")
        self._has_begun_again = False

    def start(self) -> None:
        super().start()
        self._plan_later()

    def _plan_later(self) -> None:
        self.later(self._plan_dice.expovariate(1 / self._replan_every_ms), self._plan_anew)

    def _plan_anew(self) -> None:
        if not self.is_calm:
            self._must_plan = True
            self._columns.ask()
            self._plan_later()

    # ---- plans ---------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """The next fetch, by another plan if that is due: no answer to an earlier one is under way."""
        if self._must_plan:
            self._plan()
        if self._reading is None:
            self._columns.ask()
            self.later(RETRY_MS, self.go_on)
        else:
            super().go_on()

    def _plan(self) -> None:
        known = self._columns.known
        wanted = None if known is None else self._drawn(known.newest)
        if known is None or wanted is None:
            return
        self._must_plan = False
        newest, self._wanted = known.newest, wanted
        where = parse_condition(wanted.condition, newest.columns)
        self._reading = reading = TypedReading(
            known, wanted.columns, with_times=False, where=where, where_version=newest.version
        )
        self.columns, self.condition = reading.named_ids, reading.packed_condition
        self._place.story.tell(self.name, f"wants {wanted.condition} of version {newest.version}")
        self.start_again()

    def _drawn(self, newest: VersionColumns) -> Wanted | None:
        """None if the topic has no column that could be compared."""
        draw = self._plan_dice
        scalars = [field for field in newest.columns if isinstance(field.type, Scalar)]
        if not scalars:
            return None
        columns = draw.sample(newest.columns, min(draw.randint(1, COLUMNS_MAX), len(newest.columns)))
        numbers = [one for _, some in self._written.values() for one in (some[0], some[-1])]
        comparisons = tuple(
            _comparison(draw, draw.choice(scalars), numbers or [FIRST_NUMBER])
            for _ in range(draw.choice((1, 1, 2)))
        )
        return Wanted(tuple(columns), comparisons, needs_all=draw.random() < 0.5)

    # ---- answers -------------------------------------------------------------------------------------------

    def seek(self, offset: int) -> None:
        """Such a reader is judged by rules of its own."""
        self.offset, self._last_epoch, self.is_at_end = offset, -1, False
        self._first = offset
        self.rows.clear()

    def _keep(self, poll: SeenPoll) -> None:
        """As ``seek``."""

    def _open(self, data: FetchPartitionData) -> None:
        self._answer = data

    def _take(self, records: bytes) -> list[Entry | FoundRow]:
        reading, known, wanted, answer = self._reading, self._columns.known, self._wanted, self._answer
        assert reading is not None
        assert known is not None
        assert wanted is not None
        assert answer is not None
        reading.topic = known
        fetched = fetched_of(self.topic_partition, self.offset, answer, typed=reading)
        marks = self._place.witness.marks
        try:
            rows = [row for together in fetched.rows() for row in together.to_pylist()]
        except UnknownColumns:
            marks.reach("a reader met columns that it did not know")
            self._columns.ask()
        except CorruptBatch:
            marks.reach("a consumer was given a rotten batch")
        except SchemaError as refused:
            sends = [entry_of(header).send for _, header in fetched.batches]
            self._rules.on_refusal(self.name, wanted, sends, str(refused))
            self._must_plan = True
            self._columns.ask()
        else:
            self._look_at(fetched, wanted, rows)
        return []

    def _look_at(self, fetched: Fetched, wanted: Wanted, rows: list[Row]) -> None:
        witness, start, end = self._place.witness, self.offset, fetched.next_offset
        for _, header in fetched.batches:
            entry = entry_of(header)
            crc = self._crcs[entry.send] if header.is_cut else entry.crc
            witness.on_read(self.topic_partition, self._topic_id, entry._replace(crc=crc))
        truth = witness.truths.get(self.topic_partition)
        if truth is not None and self._is_judged(truth):
            self._rules.on_rows(
                self.name, truth, wanted, (start, end), rows, is_committed_only=self.isolation_level > 0
            )
        if end > max((header.next_offset for _, header in fetched.batches), default=start):
            witness.marks.reach("a reader with a condition was passed over batches")
        self.rows += rows
        self.offset, self._last_epoch = end, -1

    def _is_judged(self, truth: PartitionTruth) -> bool:
        witness, where = self._place.witness, (truth.topic_partition, truth.topic_id)
        return not witness.is_silent and (not self.isolation_level or witness.transactions.is_judged(where))

    # ---- at rest -------------------------------------------------------------------------------------------

    def unrest(self, truth: PartitionTruth) -> str | None:
        """What it still has to do after all is healed.

        Raises:
            Violation: it has read everything, and has other rows than it wants.
        """
        wanted, span = self._wanted, (self._first, truth.committed_end)
        if wanted is None:
            return None
        if self.offset < truth.committed_end:
            return f"{self.name} has read up to {self.offset} of {truth.committed_end}"
        if not self._is_judged(truth):
            return None
        found = [*self._rules.rows(truth, wanted, span, is_committed_only=self.isolation_level > 0)]
        if self.rows == found:
            return None
        if truth.lossy_epoch >= 0 and not self._has_begun_again:
            self._has_begun_again = True
            self.start_again()
            return f"{self.name} may have read what an election lost, and reads again"
        what = f"{self.name} wants {wanted.condition} of all rows: {differing(self.rows, found)}"
        raise Violation("ConditionsReadEverything", what)


def _comparison(draw: random.Random, column: Field, numbers: Sequence[int]) -> Comparison:
    sign = draw.choice(SIGNS)
    count = 0 if sign.startswith("is") else draw.randint(1, AMONG_MAX) if sign == "in" else 1
    return Comparison(column, sign, tuple(filled(column, draw.choice(numbers)) for _ in range(count)))
