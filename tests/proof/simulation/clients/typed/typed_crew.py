"""The transactional id of a typed topic, whose producers commit and abort rows of the newest columns."""

from collections.abc import Iterator
from typing import Any

from simulation.clients.transactions.crew import Crew
from simulation.clients.transactions.producer import TransactionalProducer
from simulation.clients.transactions.script import GaveUpError
from simulation.invariants.typed.columns import ColumnRules
from simulation.invariants.typed.values import batch_of
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.records.envelope import parse_header
from sparklog.records.payload_kinds import ALL_PAYLOADS
from sparklog.records.restamp import set_producer


class TypedTransactionalProducer(TransactionalProducer):
    """``beginnings``: the numbers at which batches begin, so far apart that no two have a row in common."""

    payload_kinds = tuple(ALL_PAYLOADS)

    def __init__(self, *place: Any, columns: ColumnRules, beginnings: Iterator[int]) -> None:
        self._columns = columns
        self._beginnings = beginnings
        super().__init__(*place)

    def _built(self, count: int, sequence: int, now_ms: int) -> bytes:
        """Of the newest columns that anybody has heard of.

        Raises:
            GaveUpError: nobody has heard of any; or what would be sent is another batch already, as a
                coordinator that has lost its log has granted an identity twice.
        """
        newest, producer = self._columns.newest, self._producer
        if newest is None or (*producer, sequence) in self._columns.written:
            raise GaveUpError
        version, begin = TopicColumns(newest).newest, next(self._beginnings)
        numbers = range(begin, begin + count)
        batch = bytearray(batch_of(version, numbers, now_ms))
        set_producer(batch, 0, *producer, sequence, is_transactional=True)
        self._columns.wrote(parse_header(batch), version, numbers)
        return bytes(batch)


class TypedCrew(Crew):
    def __init__(self, *more: Any, columns: ColumnRules, beginnings: Iterator[int]) -> None:
        self._columns = columns
        self._beginnings = beginnings
        super().__init__(*more)

    def _new(self) -> TransactionalProducer:
        return TypedTransactionalProducer(
            self._place,
            self.name,
            self._lives,
            self._plan,
            self._rules,
            self._partitions,
            columns=self._columns,
            beginnings=self._beginnings,
        )
