"""Historical bugs that can be switched back on, to prove that the simulation would have found them.

A mutant replaces methods of the shipped classes for the length of one run; shipped code has no switches for
it. Each names where the bug was known and what it damages, and within how many seeds it must be caught.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Final

from sparklog.broker import log_cleaner
from sparklog.broker.partition import Partition
from sparklog.core.controller import isr_proposals
from sparklog.core.controller.commands import ProposedMember
from sparklog.core.controller.image import ClusterImage
from sparklog.core.replication.actions import Action, CompleteProduce, TruncateTo
from sparklog.core.replication.follower import FetchPosition, Follower
from sparklog.core.replication.leader import Diverging, Leader
from sparklog.core.replication.replica import Replica
from sparklog.model.cluster import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_EPOCH, LeaderEpoch, TopicPartition
from sparklog.model.zookeeper import ANY_VERSION, Check, Operation, SetData
from sparklog.storage import log_directory
from sparklog.storage.cleaner.view import LogView
from sparklog.storage.disk import Disk
from sparklog.storage.log import Log
from sparklog.testing.simulation.faults import Hunt
from sparklog.testing.simulation.zookeeper import Ensemble


@dataclass(slots=True)
class Switch:
    """What a mutant may change; ``undo`` puts everything back."""

    ensemble: Ensemble
    _undo: list[Callable[[], None]]

    def method(self, owner: type | ModuleType, name: str, make: Callable[[Any], Any]) -> None:
        """Put ``make(original)`` in the place of a method, or of a module's function."""
        original = getattr(owner, name)
        setattr(owner, name, make(original))
        self._undo.append(lambda: setattr(owner, name, original))

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug. ``seeds_max`` is the budget within which it must be caught, from seed 1 on.

    With ``hunt`` its seeds have plans that are made for it: it would take hundreds of others to meet it.
    """

    name: str
    origin: str
    damage: str
    seeds_max: int
    switch_on: Callable[[Switch], None]
    hunt: Hunt | None = None


@contextmanager
def applied(mutant: Mutant | None, ensemble: Ensemble) -> Iterator[None]:
    """The shipped code with this bug in it, until the end of the block."""
    switch = Switch(ensemble, [])
    try:
        if mutant is not None:
            mutant.switch_on(switch)
        yield
    finally:
        switch.undo()


def _truncate_to_high_watermark(switch: Switch) -> None:
    """A follower cuts at its high watermark when it begins to follow, and asks nobody where the logs part."""

    def on_leader_and_isr(original: Any) -> Any:
        def mutated(self: Replica, state: Any, **facts: Any) -> list[Action]:
            actions: list[Action] = original(self, state, **facts)
            if self.follower is not None and actions:
                return [TruncateTo(self.marks.high_watermark), *actions]
            return actions

        return mutated

    def fetch_position(original: Any) -> Any:
        def mutated(self: Follower) -> FetchPosition | None:
            position: FetchPosition | None = original(self)
            return position and replace(position, last_fetched_epoch=-1)

        return mutated

    switch.method(Replica, "on_leader_and_isr", on_leader_and_isr)
    switch.method(Follower, "fetch_position", fetch_position)


def _ack_on_append(switch: Switch) -> None:
    """A produce with acks=all is answered when the leader has it."""

    def on_produce_waits(original: Any) -> Any:
        def mutated(self: Leader, token: int, required_offset: int) -> list[Action]:
            return [CompleteProduce(token, ErrorCode.none)]

        return mutated

    switch.method(Leader, "on_produce_waits", on_produce_waits)


def _isr_write_without_version_check(switch: Switch) -> None:
    """A change of an ISR is written whatever ZooKeeper holds by then, by whoever was controller once."""

    def wash(operations: Sequence[Operation]) -> Sequence[Operation]:
        if not any(isinstance(one, SetData) and one.path.endswith("/state") for one in operations):
            return operations
        return [
            replace(one, version=ANY_VERSION) if isinstance(one, SetData) else one
            for one in operations
            if not isinstance(one, Check)
        ]

    switch.ensemble.wash = wash


def _no_epoch_fence_on_fetch(switch: Switch) -> None:
    """Fetches carry no leader epoch: leaders answer any of them, who does not lead says just that, and only
    the first fetch of a role asks where the logs part."""
    compared: dict[int, Follower] = {}  # keeps them, so that no number is used twice

    def check_epoch(original: Any) -> Any:
        def mutated(self: Leader, current_leader_epoch: int) -> ErrorCode:
            return ErrorCode.none

        return mutated

    def on_appended(original: Any) -> Any:
        def mutated(self: Follower, *marks: int) -> list[Action]:
            compared[id(self)] = self
            actions: list[Action] = original(self, *marks)
            return actions

        return mutated

    def fetch_position(original: Any) -> Any:
        def mutated(self: Follower) -> FetchPosition | None:
            position: FetchPosition | None = original(self)
            return replace(position, last_fetched_epoch=-1) if position and id(self) in compared else position

        return mutated

    def no_leader(original: Any) -> Any:
        def mutated(self: Partition, current_leader_epoch: int) -> ErrorCode:
            error: ErrorCode = original(self, NO_EPOCH)
            return error

        return mutated

    switch.method(Leader, "check_epoch", check_epoch)
    switch.method(Partition, "_no_leader", no_leader)
    switch.method(Follower, "on_appended", on_appended)
    switch.method(Follower, "fetch_position", fetch_position)


def _no_epoch_fence_at_the_leader(switch: Switch) -> None:
    """A leader serves readers of any epoch and compares no histories; followers still fence what they get."""

    def check_epoch(original: Any) -> Any:
        def mutated(self: Leader, current_leader_epoch: int) -> ErrorCode:
            return ErrorCode.none

        return mutated

    def check_fetch_position(original: Any) -> Any:
        def mutated(self: Leader, fetch_offset: int, last_fetched_epoch: int) -> Diverging | ErrorCode:
            position: Diverging | ErrorCode = original(self, fetch_offset, -1)
            return position

        return mutated

    switch.method(Leader, "check_epoch", check_epoch)
    switch.method(Leader, "check_fetch_position", check_fetch_position)


def _roles_of_old_epochs_are_taken_up(switch: Switch) -> None:
    """A LeaderAndIsr that was overtaken by a newer one is obeyed, whatever its leader epoch."""

    def on_leader_and_isr(original: Any) -> Any:
        def mutated(self: Partition, state: PartitionState, **facts: Any) -> ErrorCode:
            replica = self._replica
            replica.leader_epoch = LeaderEpoch(min(replica.leader_epoch, state.leader_epoch - 1))
            error: ErrorCode = original(self, state, **facts)
            return error

        return mutated

    switch.method(Partition, "on_leader_and_isr", on_leader_and_isr)


def _no_broker_epoch_in_isr_proposals(switch: Switch) -> None:
    """The controller counts members whichever of their lives it was in which they caught up."""

    def may_be_counted(original: Any) -> Any:
        def mutated(
            image: ClusterImage, partition: TopicPartition, state: PartitionState, member: ProposedMember
        ) -> bool:
            now = image.epoch_of(member.broker)
            may: bool = original(
                image, partition, state, member if now is None else replace(member, epoch=now)
            )
            return may

        return mutated

    switch.method(isr_proposals, "_may_be_counted", may_be_counted)


def _pages_are_trusted_after_a_failed_fsync(switch: Switch) -> None:
    """A directory whose fsync failed is opened as it can be read, and not written anew."""

    def write_anew(original: Any) -> Any:
        def mutated(disk: Disk, directory: str, recovery_point: int) -> None:
            return

        return mutated

    switch.method(log_directory, "write_anew", write_anew)


def _read_beyond_high_watermark(switch: Switch) -> None:
    """Consumers are served to the end of the leader's log."""

    def readable_end(original: Any) -> Any:
        def mutated(self: Leader, *, is_follower: bool) -> int:
            return self.marks.log_end_offset

        return mutated

    switch.method(Leader, "readable_end", readable_end)


def _compaction_passes_the_high_watermark(switch: Switch) -> None:
    """Records that are not committed replace committed ones."""

    def view(original: Any) -> Any:
        def mutated(log: Log, high_watermark: int) -> LogView | None:
            found: LogView | None = original(log, log.log_end_offset)
            return found

        return mutated

    switch.method(log_cleaner, "view_of", view)


FAILED_SYNCS: Final = Hunt(
    kinds=("fail an fsync", "fail a checkpoint"),
    settings={"log.segment.bytes": "500", "log.flush.offset.checkpoint.interval.ms": "500"},
)

MUTANTS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "truncate-to-high-watermark",
        "KIP-101, KAFKA-1211",
        "a follower cuts committed records that its high watermark did not cover yet, and then leads",
        20,
        _truncate_to_high_watermark,
    ),
    Mutant(
        "ack-on-append",
        "KAFKA-3410 and every acks=1 for all",
        "acknowledged records are lost with the leader",
        20,
        _ack_on_append,
    ),
    Mutant(
        "isr-write-without-version-check",
        "KAFKA-2729, KIP-497",
        "a deposed controller or leader overwrites a newer partition state",
        100,
        _isr_write_without_version_check,
        Hunt(plot=4),
    ),
    Mutant(
        "no-epoch-fence-on-fetch",
        "KIP-320",
        "a follower takes records of a deposed leader, or is counted by one",
        120,
        _no_epoch_fence_on_fetch,
        Hunt(plot=1, settings={"replica.lag.time.max.ms": "2000"}),
    ),
    Mutant(
        "no-epoch-fence-at-the-leader",
        "KIP-320 and KIP-595, the leader's half",
        "a leader counts and serves followers of another epoch",
        40,
        _no_epoch_fence_at_the_leader,
    ),
    Mutant(
        "roles-of-old-epochs-are-taken-up",
        "KAFKA-1460 and its kin",
        "a request that came late makes a leader, or a follower, of an epoch that is over",
        40,
        _roles_of_old_epochs_are_taken_up,
        Hunt(plot=5),
    ),
    Mutant(
        "no-broker-epoch-in-isr-proposals",
        "KIP-903",
        "a replica that lost its log is counted in sync for what it had before",
        40,
        _no_broker_epoch_in_isr_proposals,
        Hunt(plot=2),
    ),
    Mutant(
        "pages-are-trusted-after-a-failed-fsync",
        "PostgreSQL's fsync errors of 2018",
        "what an fsync should have saved is counted as saved, and gone when memory is short",
        60,
        _pages_are_trusted_after_a_failed_fsync,
        FAILED_SYNCS,
    ),
    Mutant(
        "compaction-passes-the-high-watermark",
        "KAFKA-2024 and its kin",
        "a record goes because of a later one, which is cut",
        80,
        _compaction_passes_the_high_watermark,
        Hunt(plot=1, is_compacted=True, settings={"replica.lag.time.max.ms": "2000"}),
    ),
    Mutant(
        "read-beyond-high-watermark",
        "the consumer side of KIP-101; KAFKA-15583 in part",
        "consumers see records that are lost later",
        20,
        _read_beyond_high_watermark,
    ),
)


def find_mutant(name: str) -> Mutant | None:
    return next((mutant for mutant in MUTANTS if mutant.name == name), None)
