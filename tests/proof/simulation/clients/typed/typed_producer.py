"""Idempotent producers of typed rows. Each writes the version that it planned, until it plans anew."""

from typing import Any

from simulation.clients.client import Workplace
from simulation.clients.idempotent_producers import Producer
from simulation.clients.typed.column_asker import ColumnAsker
from simulation.invariants.typed.columns import ColumnRules
from simulation.invariants.typed.values import batch_of
from simulation.schedule import dice
from simulation.truth import Rows
from sparklog.model.ids import TopicPartition
from sparklog.records.arrow.topic_columns import VersionColumns
from sparklog.records.envelope import parse_header
from sparklog.records.payload_kinds import ALL_PAYLOADS
from sparklog.records.restamp import set_producer

ROWS_MAX = 3


class TypedProducer(Producer):
    kind = "typed-producer"
    payload_kinds = ALL_PAYLOADS

    def __init__(
        self,
        place: Workplace,
        number: int,
        topic_partition: TopicPartition,
        rules: ColumnRules,
        *,
        replan_every_ms: float,
        **more: Any,
    ) -> None:
        super().__init__(place, number, topic_partition, records_max=ROWS_MAX, **more)
        self._columns = ColumnAsker(self, place.hosts, rules, lambda: None)
        self._planned: VersionColumns | None = None
        self._rules = rules
        self._rows_begun = number * 100_000
        self._replan_every_ms = replan_every_ms
        self._replan_dice = dice(place.seed, f"{self.name} plans anew")

    def start(self) -> None:
        super().start()
        self._replan()

    def _replan(self) -> None:
        if self._columns.known is not None:
            self._planned = self._columns.known.newest
        self._columns.ask()
        self.later(self._replan_dice.expovariate(1 / self._replan_every_ms), self._replan)

    def send_a_batch(self) -> None:
        if self._planned is None and self._columns.known is not None:
            self._planned = self._columns.known.newest
        if self._planned is not None:
            super().send_a_batch()

    def _built(self, count: int, rows: Rows, now_ms: int) -> bytes:
        assert self._planned is not None
        numbers = range(self._rows_begun, self._rows_begun + count)
        self._rows_begun += count
        batch = bytearray(batch_of(self._planned, numbers, now_ms))
        identity = self.identity
        set_producer(
            batch,
            0,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=self._sequence,
        )
        self._rules.wrote(parse_header(batch), self._planned, numbers)
        return bytes(batch)
