"""Everybody at the typed topic, and what there is left to do before it rests."""

import itertools
from collections.abc import Iterable
from typing import Final

from simulation.clients.client import Workplace
from simulation.clients.typed.changer import Changer
from simulation.clients.typed.column_reader import ColumnReader
from simulation.clients.typed.condition_reader import ConditionReader
from simulation.clients.typed.typed_crew import TypedCrew
from simulation.clients.typed.typed_producer import TypedProducer
from simulation.clients.typed.typed_reader import TypedReader
from simulation.invariants.typed.columns import ColumnRules
from simulation.invariants.typed.conditions import ConditionRules
from simulation.plans.typed import TYPED_TOPIC, TypedPlan
from sparklog.broker.partition.partition import Partition
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import READ_COMMITTED

TYPED_ID: Final = "typed-transactional"
FIRST_OF_TRANSACTIONS: Final = 900_000
"""The number of the first row in a transaction."""
BATCHES_APART: Final = 10
LEVELS: Final = (READ_COMMITTED, 0)
"""The isolation levels of readers with a condition, in turn."""


class TypedCrowd:
    def __init__(self, place: Workplace, plan: TypedPlan, controllers: tuple[str, ...]) -> None:
        self.rules = ColumnRules(place.witness.marks)
        where = TopicPartition(TYPED_TOPIC, 0)
        every_ms = plan.replan_every_ms
        self.producers = [
            TypedProducer(
                place,
                number,
                where,
                self.rules,
                replan_every_ms=every_ms,
                acks=-1,
                in_flight_max=3,
                interval_ms=150.0,
            )
            for number in range(1, plan.producers + 1)
        ]
        self.readers = [
            TypedReader(place, f"typed-reader-{number}", where, self.rules, replan_every_ms=every_ms)
            for number in range(2)
        ]
        self.readers += [
            ColumnReader(place, f"column-reader-{number}", where, self.rules, replan_every_ms=every_ms)
            for number in range(plan.column_readers)
        ]
        rules = ConditionRules(
            self.rules,
            lambda truth, entry: place.witness.transactions.is_open_or_aborted(
                (truth.topic_partition, truth.topic_id), entry
            ),
        )
        self._condition_readers = [
            ConditionReader(
                place,
                f"condition-reader-{number}",
                where,
                self.rules,
                rules,
                replan_every_ms=every_ms,
                isolation_level=level,
            )
            for number, level in zip(range(plan.condition_readers), LEVELS, strict=False)
        ]
        self._crews = [
            TypedCrew(
                place,
                one,
                TYPED_ID,
                place.witness.transactions,
                [where],
                columns=self.rules,
                beginnings=itertools.count(FIRST_OF_TRANSACTIONS, BATCHES_APART),
            )
            for one in plan.transactions
        ]
        self._place = place
        self._changers = [
            Changer(
                place,
                number,
                where,
                self.rules,
                change_every_ms=plan.change_every_ms,
                controllers=controllers,
            )
            for number in range(plan.changers)
        ]

    def start(self) -> None:
        for client in (*self.producers, *self.readers, *self._changers, *self._condition_readers):
            client.start()
        for crew in self._crews:
            crew.start()

    def calm(self) -> None:
        """No column changes any more."""
        for changer in self._changers:
            changer.is_stopping = True
        for crew in self._crews:
            crew.calm()
        for reader in self._condition_readers:
            reader.is_calm = True

    def unrest(self, partitions: Iterable[Partition]) -> str | None:
        """``partitions``: the typed topic's replicas."""
        for partition in partitions:
            if partition.lacks_columns:
                return f"a replica lacks version {partition.schema_version} of the columns"
        truth = self._place.witness.truths[TopicPartition(TYPED_TOPIC, 0)]
        troubles = [
            *(crew.unrest() for crew in self._crews),
            *(reader.unrest for reader in self.readers),
            *(reader.unrest(truth) for reader in self._condition_readers),
        ]
        return next((one for one in troubles if one is not None), None)

    def check_at_rest(self, partitions: Iterable[Partition]) -> None:
        """Every replica has the columns that the cluster has."""
        for partition in partitions:
            assert partition.columns is not None
            self.rules.see(partition.columns.document)
