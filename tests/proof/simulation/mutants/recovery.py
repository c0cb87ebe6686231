"""Bugs of a start: what is believed of the files that are found."""

from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.core.replication.watermarks import Watermarks
from sparklog.storage.log_directory import LogDirectory
from sparklog.storage.recovery import log_recovery
from sparklog.storage.recovery.log_recovery import _Recovery
from sparklog.storage.segments import scan
from sparklog.storage.segments.intact_run import IntactRun
from sparklog.storage.segments.scan import Trouble


def _torn_tails_stay(switch: Switch) -> None:
    """A start leaves what a torn write left behind the last whole batch, and appends follow it."""

    def judge(original: Any) -> Any:
        def mutated(self: _Recovery, index: int, trouble: Trouble) -> None:
            segment, later = self.segments[index], self.segments[index + 1 :]
            if not self._is_torn(segment.end_offset, trouble, last=not later):
                original(self, index, trouble)
                return
            segment.size_bytes = segment.file.size()
            for other in reversed(later):
                other.remove()
            del self.segments[index + 1 :]

        return mutated

    switch.method(_Recovery, "_judge", judge)


def _damage_is_taken_for_a_torn_tail(switch: Switch) -> None:
    """Whatever follows the first bad batch is cut off at a start, synced and committed or not."""

    def is_torn(original: Any) -> Any:
        def mutated(self: _Recovery, offset: int, trouble: Trouble, *, last: bool) -> bool:
            return True

        return mutated

    switch.method(_Recovery, "_is_torn", is_torn)


def _recovery_compares_no_crc(switch: Switch) -> None:
    """Whatever has the form of a batch is one."""

    def crc_matches(original: Any) -> Any:
        def mutated(*batch: Any) -> bool:
            return True

        return mutated

    def intact_run(original: Any) -> Any:
        def mutated(*where: Any) -> None:
            """Leaves everything to the walk that looks at each batch."""

        return mutated

    switch.method(scan, "crc_matches", crc_matches)
    switch.method(scan, "intact_run", intact_run)


def _epochs_are_not_rebuilt(switch: Switch) -> None:
    """A start believes the file of epochs, and learns none from the batches that were checked."""

    def assign(original: Any) -> Any:
        def mutated(*batch: Any) -> None:
            """Nothing is noted."""

        return mutated

    def epoch_starts(original: Any) -> Any:
        def mutated(self: IntactRun) -> list[tuple[int, int]]:
            return []

        return mutated

    switch.method(log_recovery, "_assign", assign)
    switch.method(IntactRun, "epoch_starts", epoch_starts)


def _watermarks_beyond_the_log(switch: Switch) -> None:
    """The checkpoint of high watermarks is believed beyond the log's end, to which no start lowers it."""

    def clamp(original: Any) -> Any:
        def mutated(self: Watermarks) -> None:
            """The high watermark stays."""

        return mutated

    def lower_to_ends(original: Any) -> Any:
        def mutated(self: LogDirectory) -> None:
            """The checkpoints stay."""

        return mutated

    switch.method(Watermarks, "clamp", clamp)
    switch.method(LogDirectory, "_lower_to_ends", lower_to_ends)


RECOVERY: Final[tuple[Mutant, ...]] = (
    Mutant(
        "torn-tails-stay",
        "the torn write of every log",
        "records that are appended after a crash cannot be read",
        20,
        _torn_tails_stay,
        Hunt(kinds=("kill broker in a write",)),
        is_quick=True,
    ),
    Mutant(
        "damage-is-taken-for-a-torn-tail",
        "bit rot",
        "a replica that truncated committed records counts as intact, and leads",
        20,
        _damage_is_taken_for_a_torn_tail,
        Hunt(plot=68, settings={"min.insync.replicas": "2"}),
    ),
    Mutant(
        "recovery-compares-no-crc",
        "bit rot",
        "a batch that rotted under a stopped broker is served",
        20,
        _recovery_compares_no_crc,
        Hunt(kinds=("rot a log",), settings={"min.insync.replicas": "2"}),
    ),
    Mutant(
        "epochs-are-not-rebuilt",
        "KIP-101, the file of epochs that lags",
        "a replica names an old epoch, and truncates committed records",
        20,
        _epochs_are_not_rebuilt,
        Hunt(kinds=("kill broker",)),
        is_quick=True,
    ),
    Mutant(
        "watermarks-beyond-the-log",
        "a checkpoint newer than its log",
        "a high watermark exceeds its log",
        40,
        _watermarks_beyond_the_log,
        Hunt(kinds=("cut the power", "kill broker"), settings={"min.insync.replicas": "2"}),
    ),
)
