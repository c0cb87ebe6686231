"""Everybody at the typed topic, and what there is left to do before it rests."""

from collections.abc import Iterable

from simulation.clients.client import Workplace
from simulation.clients.typed.changer import Changer
from simulation.clients.typed.column_reader import ColumnReader
from simulation.clients.typed.typed_producer import TypedProducer
from simulation.clients.typed.typed_reader import TypedReader
from simulation.invariants.columns import ColumnRules
from simulation.plans.typed import TYPED_TOPIC, TypedPlan
from sparklog.broker.partition.partition import Partition
from sparklog.model.ids import TopicPartition


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
        for client in (*self.producers, *self.readers, *self._changers):
            client.start()

    def calm(self) -> None:
        """No column changes any more."""
        for changer in self._changers:
            changer.is_stopping = True

    def unrest(self, partitions: Iterable[Partition]) -> str | None:
        """``partitions``: the typed topic's replicas."""
        for partition in partitions:
            if partition.lacks_columns:
                return f"a replica lacks version {partition.schema_version} of the columns"
        return next((reader.unrest for reader in self.readers if reader.unrest is not None), None)

    def check_at_rest(self, partitions: Iterable[Partition]) -> None:
        """Every replica has the columns that the cluster has."""
        for partition in partitions:
            assert partition.columns is not None
            self.rules.see(partition.columns.document)
