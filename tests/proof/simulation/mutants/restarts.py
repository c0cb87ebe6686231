"""Bugs of what outlives what: the mark of a clean stop, another disk, snapshots and checkpoints of a cut."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.core.controller.state import incarnation
from sparklog.core.controller.state.incarnation import DirectoryIdentity, StoredIncarnation
from sparklog.model.ids import BrokerEpoch, TopicPartition
from sparklog.storage.log_directory import LogDirectory
from sparklog.storage.recovery.log_recovery import Recovered, _Recovery
from sparklog.storage.segments.snapshots import Snapshots


def _the_mark_of_a_clean_stop_stays(switch: Switch) -> None:
    """A start leaves the mark where it is, and the mark does not say whose stop it was: a later start, after
    a crash, takes the files for those of a clean stop."""

    def take_clean_marker(original: Any) -> Any:
        def mutated(self: LogDirectory) -> BrokerEpoch | None:
            return self._clean_stop.read_marker()

        return mutated

    def is_intact(original: Any) -> Any:
        def mutated(
            previous: StoredIncarnation, directory: DirectoryIdentity, host_id: str, boot_id: str
        ) -> bool:
            if directory.clean_epoch is not None:
                directory = replace(directory, clean_epoch=previous.broker_epoch)
            intact: bool = original(previous, directory, host_id, boot_id)
            return intact

        return mutated

    switch.method(LogDirectory, "take_clean_marker", take_clean_marker)
    switch.method(incarnation, "_is_intact", is_intact)


def _another_disk_is_the_same(switch: Switch) -> None:
    """A broker is trusted by its id and its boot: nobody asks whether its directories are what it had."""

    def known(original: Any) -> Any:
        def mutated(
            previous: StoredIncarnation, directories: Sequence[DirectoryIdentity]
        ) -> list[DirectoryIdentity]:
            return [replace(one, emptied=False, same_boot=True) for one in directories]

        return mutated

    def is_proven(original: Any) -> Any:
        def mutated(
            previous: StoredIncarnation, directories: Sequence[DirectoryIdentity], *machine: Any
        ) -> bool:
            names = tuple(one.uuid for one in directories)
            record = replace(previous.record, directories=names)
            proven: bool = original(replace(previous, record=record), directories, *machine)
            return proven

        return mutated

    switch.method(incarnation, "_known", known)
    switch.method(incarnation, "_is_proven", is_proven)


def _snapshots_outlive_a_cut(switch: Switch) -> None:
    """What producers had sent into records that were cut is remembered, and believed once the log is as long
    again."""

    def remove_after(original: Any) -> Any:
        def mutated(self: Snapshots, offset: int) -> None:
            """They stay."""

        return mutated

    switch.method(Snapshots, "remove_after", remove_after)


def _checkpoints_outlive_a_cut(switch: Switch) -> None:
    """A cut lowers no checkpoint on the disk: they speak of what is no more until they are written again."""

    def lower(original: Any) -> Any:
        def mutated(self: LogDirectory, topic_partition: TopicPartition, end_offset: int) -> None:
            """They stay."""

        return mutated

    switch.method(LogDirectory, "_lower", lower)


def _starts_remember_one_batch(switch: Switch) -> None:
    """After a start a log knows the last batch of each producer, and not the others that may come again."""

    def result(original: Any) -> Any:
        def mutated(self: _Recovery, first: int) -> Recovered:
            recovered: Recovered = original(self, first)
            for state in recovered.producers.producers.values():
                while len(state.batches) > 1:
                    state.batches.popleft()
            return recovered

        return mutated

    switch.method(_Recovery, "result", result)


RESTARTS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "the-mark-of-a-clean-stop-stays",
        "KAFKA-10471",
        "a power cut counts as a clean stop, and a shortened log leads",
        20,
        _the_mark_of_a_clean_stop_stays,
        Hunt(plot=62, settings={"min.insync.replicas": "2"}),
        brings_back=("K29",),
    ),
    Mutant(
        "another-disk-is-the-same",
        "replication by broker id alone; KIP-966's premise",
        "a broker with an empty disk stays in sync, and may lead",
        20,
        _another_disk_is_the_same,
        Hunt(plot=65, settings={"min.insync.replicas": "2"}),
        is_quick=True,
    ),
    Mutant(
        "snapshots-outlive-a-cut",
        "a producer snapshot newer than its log",
        "a leader takes a new batch for a duplicate, or refuses it forever",
        30,
        _snapshots_outlive_a_cut,
        Hunt(
            plot=67,
            operations=("elect preferred",),
            settings={"log.segment.bytes": "1048576", "replica.lag.time.max.ms": "2000"},
        ),
    ),
    Mutant(
        "checkpoints-outlive-a-cut",
        "a checkpoint newer than its log",
        "an intact log counts as damaged after the next crash",
        30,
        _checkpoints_outlive_a_cut,
        Hunt(
            plot=63,
            settings={
                "log.flush.acks": "fsync",
                "log.flush.offset.checkpoint.interval.ms": "500",
                "replica.lag.time.max.ms": "2000",
            },
        ),
    ),
    Mutant(
        "starts-remember-one-batch",
        "snapshots of one batch for each producer, as Kafka's",
        "a producer whose batches were all appended is refused forever",
        20,
        _starts_remember_one_batch,
        Hunt(plot=66),
    ),
)
