"""Bugs of what is on disk: recovery, cleaning, and what is believed after an error."""

import contextlib
from dataclasses import replace
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.broker.disks import log_cleaner, log_dirs
from sparklog.broker.partition import log_guard
from sparklog.broker.partition.follower_append import FollowerAppend
from sparklog.core.replication.watermarks import Watermarks
from sparklog.model.time import MonotonicMs
from sparklog.storage import log_directory
from sparklog.storage.cleaner.view import LogView
from sparklog.storage.disk import Disk, SyncFailed, WriteFailed
from sparklog.storage.flush import Flush
from sparklog.storage.log import Log
from sparklog.storage.segments.segment import Segment

FAILED_SYNCS: Final = Hunt(
    kinds=("fail an fsync", "fail a checkpoint"),
    settings={"log.segment.bytes": "500", "log.flush.offset.checkpoint.interval.ms": "500"},
)

FSYNC: Final = Hunt(
    kinds=("kill broker", "cut all power"),
    settings={"log.flush.acks": "fsync", "log.segment.bytes": "500"},
)


def _pages_are_trusted_after_a_failed_fsync(switch: Switch) -> None:
    """A directory whose fsync failed is opened as it can be read, and not written anew."""

    def write_anew(original: Any) -> Any:
        def mutated(disk: Disk, directory: str, recovery_point: int) -> None:
            return

        return mutated

    switch.method(log_directory, "write_anew", write_anew)


def _rotten_time_indexes_are_believed(switch: Switch) -> None:
    """Retention takes a time index at its word, and asks no batch."""

    def bears_out(original: Any) -> Any:
        def mutated(self: Segment) -> bool:
            return True

        return mutated

    switch.method(Segment, "bears_out_greatest_timestamp", bears_out)


def _failed_fsyncs_are_ignored(switch: Switch) -> None:
    """A sync that failed counts like one that did not, and the recovery point is raised."""

    def run(original: Any) -> Any:
        def mutated(self: Flush) -> None:
            with contextlib.suppress(SyncFailed):
                original(self)

        return mutated

    switch.method(Flush, "run", run)


def _failed_writes_are_trusted(switch: Switch) -> None:
    """Only a failed sync says that what was written before may be gone, and not a failed write."""

    def may_have_lost(original: Any) -> Any:
        def mutated(error: Exception) -> bool:
            lost: bool = original(error)
            return lost and not isinstance(error, WriteFailed)

        return mutated

    for module in (log_guard, log_dirs, log_cleaner, log_directory):
        switch.method(module, "may_have_lost", may_have_lost)


def _acknowledges_before_its_fsync(switch: Switch) -> None:
    """With log.flush.acks=fsync, too, a replica vouches for what its machine has."""

    def own_end_offset(self: Watermarks) -> int:
        return self.log_end_offset

    switch.instead(Watermarks, "own_end_offset", property(own_end_offset))


def _claims_before_its_fsync(switch: Switch) -> None:
    """A leader counts itself by what is on its disk; a follower fetches on, and is counted, without that."""

    def flush_if_owed(original: Any) -> Any:
        def mutated(self: FollowerAppend) -> None:
            with self._log_guard.step:
                self._replica.on_flushed(self._log.log_end_offset, self._replica.generation, MonotonicMs(0))

        return mutated

    switch.method(FollowerAppend, "_flush_if_owed", flush_if_owed)


def _names_are_not_synced(switch: Switch) -> None:
    """A flush brings files to disk, and not the names by which they are found."""

    def run(original: Any) -> Any:
        def mutated(self: Flush) -> None:
            original(replace(self, directories=()))

        return mutated

    switch.method(Flush, "run", run)


def _compaction_passes_the_high_watermark(switch: Switch) -> None:
    """Records that are not committed replace committed ones."""

    def view(original: Any) -> Any:
        def mutated(log: Log, high_watermark: int) -> LogView | None:
            found: LogView | None = original(log, log.log_end_offset)
            return found

        return mutated

    switch.method(log_cleaner, "view_of", view)


STORAGE: Final[tuple[Mutant, ...]] = (
    Mutant(
        "pages-are-trusted-after-a-failed-fsync",
        "PostgreSQL's fsync errors of 2018",
        "unsaved pages count as saved, and are lost when memory is short",
        20,
        _pages_are_trusted_after_a_failed_fsync,
        FAILED_SYNCS,
    ),
    Mutant(
        "failed-writes-are-trusted",
        "B25",
        "a broker is trusted with records that its disk dropped",
        40,
        _failed_writes_are_trusted,
        Hunt(kinds=("fail a write",), settings={"log.flush.offset.checkpoint.interval.ms": "60000"}),
        brings_back=("B25",),
    ),
    Mutant(
        "compaction-passes-the-high-watermark",
        "KAFKA-2024",
        "a record is compacted for a later one, which is truncated",
        20,
        _compaction_passes_the_high_watermark,
        Hunt(plot=1, is_compacted=True, settings={"replica.lag.time.max.ms": "2000"}),
    ),
    Mutant(
        "rotten-time-indexes-are-believed",
        "B15",
        "retention removes young, committed records",
        40,
        _rotten_time_indexes_are_believed,
        Hunt(
            kinds=("rot what derives", "rot what derives", "rot what derives", "kill broker"),
            topic_configs={"retention.ms": "600000", "segment.bytes": "300"},
            settings={"log.index.interval.bytes": "1000", "log.flush.offset.checkpoint.interval.ms": "500"},
        ),
        brings_back=("B15",),
    ),
    Mutant(
        "failed-fsyncs-are-ignored",
        "PostgreSQL's fsync errors of 2018",
        "unsynced data is trusted, and has holes",
        20,
        _failed_fsyncs_are_ignored,
        Hunt(kinds=("fail an fsync", "kill broker"), settings=FAILED_SYNCS.settings),
    ),
    Mutant(
        "acknowledges-before-its-fsync",
        "log.flush.acks=fsync without effect",
        "a power cut of all machines loses acknowledged records",
        20,
        _acknowledges_before_its_fsync,
        FSYNC,
        is_quick=True,
    ),
    Mutant(
        "claims-before-its-fsync",
        "the follower's half of log.flush.acks=fsync",
        "acknowledged records are on the leader's disk only",
        20,
        _claims_before_its_fsync,
        FSYNC,
    ),
    Mutant(
        "names-are-not-synced",
        "the missing fsync of a directory, in many databases",
        "a power cut loses the name of a synced segment",
        20,
        _names_are_not_synced,
        FSYNC,
    ),
)
