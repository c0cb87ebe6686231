"""Historical bugs that can be switched back on, to prove that the simulation would have found them.

A mutant replaces methods of the shipped classes for the length of one run; shipped code has no switches for
it. Each names where the bug was known and what it damages, and within how many seeds it must be caught.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from sparklog.broker.partition import Partition
from sparklog.core.replication.actions import Action, CompleteProduce, TruncateTo
from sparklog.core.replication.follower import FetchPosition, Follower
from sparklog.core.replication.leader import Leader
from sparklog.core.replication.replica import Replica
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_EPOCH
from sparklog.model.zookeeper import ANY_VERSION, Check, Operation, SetData
from sparklog.testing.simulation.zookeeper import Ensemble


@dataclass(slots=True)
class Switch:
    """What a mutant may change; ``undo`` puts everything back."""

    ensemble: Ensemble
    _undo: list[Callable[[], None]]

    def method(self, owner: type, name: str, make: Callable[[Any], Any]) -> None:
        """Put ``make(original)`` in the place of a method."""
        original = getattr(owner, name)
        setattr(owner, name, make(original))
        self._undo.append(lambda: setattr(owner, name, original))

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug. ``seeds_max`` is the budget within which it must be caught, from seed 1 on; ``caught_at`` is
    the first seed that does."""

    name: str
    origin: str
    damage: str
    seeds_max: int
    caught_at: int
    switch_on: Callable[[Switch], None]


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


def _read_beyond_high_watermark(switch: Switch) -> None:
    """Consumers are served to the end of the leader's log."""

    def readable_end(original: Any) -> Any:
        def mutated(self: Leader, *, is_follower: bool) -> int:
            return self.marks.log_end_offset

        return mutated

    switch.method(Leader, "readable_end", readable_end)


MUTANTS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "truncate-to-high-watermark",
        "KIP-101, KAFKA-1211",
        "a follower cuts committed records that its high watermark did not cover yet, and then leads",
        20,
        1,
        _truncate_to_high_watermark,
    ),
    Mutant(
        "ack-on-append",
        "KAFKA-3410 and every acks=1 for all",
        "acknowledged records are lost with the leader",
        20,
        1,
        _ack_on_append,
    ),
    Mutant(
        "isr-write-without-version-check",
        "KAFKA-2729, KIP-497",
        "a deposed controller or leader overwrites a newer partition state",
        1_000,
        127,
        _isr_write_without_version_check,
    ),
    Mutant(
        "no-epoch-fence-on-fetch",
        "KIP-320",
        "a follower takes records of a deposed leader, or is counted by one",
        1_000,
        302,
        _no_epoch_fence_on_fetch,
    ),
    Mutant(
        "read-beyond-high-watermark",
        "the consumer side of KIP-101; KAFKA-15583 in part",
        "consumers see records that are lost later",
        20,
        1,
        _read_beyond_high_watermark,
    ),
)


def find_mutant(name: str) -> Mutant | None:
    return next((mutant for mutant in MUTANTS if mutant.name == name), None)
