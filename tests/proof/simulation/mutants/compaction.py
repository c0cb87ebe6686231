"""Bugs of compaction: what goes too early, or should have stayed."""

from dataclasses import replace
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.broker.disks import log_cleaner
from sparklog.core.compaction import IfEmpty, LastOfProducer
from sparklog.records.envelope import BatchHeader
from sparklog.storage.cleaner import survivors
from sparklog.storage.cleaner.round import Round
from sparklog.storage.cleaner.view import LogView
from sparklog.storage.log import Log


def _tombstones_go_at_once(switch: Switch) -> None:
    """What deletes a key goes with the next round, whatever ``delete.retention.ms`` says."""

    def view_of(original: Any) -> Any:
        def mutated(log: Log, high_watermark: int) -> LogView | None:
            view: LogView | None = original(log, high_watermark)
            return view and replace(view, rules=replace(view.rules, delete_retention_ms=0))

        return mutated

    switch.method(log_cleaner, "view_of", view_of)


def _cleaned_ends_go(switch: Switch) -> None:
    """The last batch of a segment goes with its records, and nothing tells where the segment ended."""

    def if_empty(original: Any) -> Any:
        def mutated(**facts: Any) -> IfEmpty:
            fate: IfEmpty = original(**{**facts, "segment_end": -1})
            return fate

        return mutated

    switch.method(survivors, "if_empty", if_empty)


def _first_batches_of_epochs_go(switch: Switch) -> None:
    """The first batch of a leader epoch goes with its records, and nothing tells where the epoch began."""

    def view_of(original: Any) -> Any:
        def mutated(log: Log, high_watermark: int) -> LogView | None:
            view: LogView | None = original(log, high_watermark)
            return view and replace(view, epoch_starts=frozenset())

        return mutated

    switch.method(log_cleaner, "view_of", view_of)


def _only_last_batches_stay(switch: Switch) -> None:
    """Of each producer the last batch alone keeps its envelope, as in Kafka."""

    def last_of(known: LastOfProducer) -> LastOfProducer:
        return replace(known, data_offsets=frozenset(sorted(known.data_offsets)[-1:]))

    def view_of(original: Any) -> Any:
        def mutated(log: Log, high_watermark: int) -> LogView | None:
            view: LogView | None = original(log, high_watermark)
            return view and replace(
                view, producers={name: last_of(known) for name, known in view.producers.items()}
            )

        return mutated

    switch.method(log_cleaner, "view_of", view_of)


def _learns_keys_past_the_dirty_range(switch: Switch) -> None:
    """The map of keys takes what is in the segments that a round reads, also what is not committed yet."""

    def has_keys(original: Any) -> Any:
        def mutated(self: Round, header: BatchHeader) -> bool:
            return header.next_offset > self._dirty.first_dirty and header.record_count > 0

        return mutated

    switch.method(Round, "_has_keys", has_keys)


COMPACTION: Final[tuple[Mutant, ...]] = (
    Mutant(
        "tombstones-go-at-once",
        "KIP-534, the promise of delete.retention.ms",
        "slow readers miss the deletion of a key",
        20,
        _tombstones_go_at_once,
        Hunt(is_compacted=True, kinds=("kill broker",)),
        is_quick=True,
    ),
    Mutant(
        "cleaned-ends-go",
        "KAFKA-17076",
        "offsets are assigned twice, or replaced segments reappear",
        20,
        _cleaned_ends_go,
        Hunt(is_compacted=True, kinds=("kill broker", "kill broker in a write")),
        is_quick=True,
        brings_back=("K32",),
    ),
    Mutant(
        "first-batches-of-epochs-go",
        "B10; as in Kafka",
        "a replica gets a late end of its epoch, and keeps uncommitted records",
        20,
        _first_batches_of_epochs_go,
        Hunt(plot=42, is_compacted=True),
        brings_back=("B10",),
    ),
    Mutant(
        "only-last-batches-stay",
        "B9; as in Kafka",
        "a leader with rebuilt producer states refuses a resent batch forever",
        20,
        _only_last_batches_stay,
        Hunt(plot=66, is_compacted=True),
        brings_back=("B9",),
    ),
    Mutant(
        "learns-keys-past-the-dirty-range",
        "the cleaner's key map without an end",
        "a committed record is compacted for a later one, which is truncated",
        20,
        _learns_keys_past_the_dirty_range,
        Hunt(plot=1, is_compacted=True, settings={"replica.lag.time.max.ms": "2000"}),
    ),
)
