"""When the operations under way are looked at.

A look reads every partition, which takes tens of milliseconds if there are 10,000; and partitions change
often while an operation waits for them. Therefore, after a look that found nothing to write, changes of
partitions are looked at together, after a pause of many times a look. What changes of brokers, of their
wishes and of operations is looked at at once, and so is what follows when a restart has paused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sparklog.core.controller.actions import Action, WakeAt
from sparklog.core.controller.operations.advance import next_operation
from sparklog.core.controller.operations.operation_writes import Wait
from sparklog.core.controller.operations.settling import Settling
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.steps import Decision

UNPAUSED_MAX: Final = 200
"""With so many partitions or fewer a look takes no longer than many facts do, and there is no pause."""

PARTITIONS_PER_PAUSED_MS: Final = 20
"""A pause has a millisecond for each so many partitions, which is many times what a look at them takes."""


@dataclass(slots=True)
class OperationLooks:
    waits: Mapping[int, tuple[Wait, ...]] = field(default_factory=dict)
    """What each operation that is under way waits for, by the last look that found nothing to write."""
    waiting_since_ms: Mapping[int, int] = field(default_factory=dict)
    """Since when each operation has waited without a break, as looks found it."""
    pause_until_ms: int = 0
    is_due: bool = False
    """Whether something may have changed since that look, and the pause lasts."""
    _brokers: object = None
    """What that look saw of brokers and operations."""
    _is_awaited: bool = False
    """Whether a ``WakeAt`` for the end of the pause was given."""
    _settling: Settling = field(default_factory=Settling)
    _settled_ms: int | None = None
    """The end of a restart's pause, for which a ``WakeAt`` was given."""

    def next(self, image: ClusterImage, now_ms: int) -> Decision | None:
        """The next write of an operation, if it is time to look and there is one."""
        brokers = _brokers_and_operations(image)
        settled_ms = self._settling.until_ms
        is_settled = settled_ms is not None and now_ms >= settled_ms
        if now_ms < self.pause_until_ms and brokers == self._brokers and not is_settled:
            self.is_due = True
            return None
        self._settling.begin_look(now_ms, {one.id for one in image.operations.values() if one.is_running})
        found, waits = next_operation(image, self._settling)
        if waits != self.waits:
            image.changes += 1  # reports of the cluster show them
        if found is None:
            before = self.waiting_since_ms
            self.waiting_since_ms = {one: before.get(one, now_ms) for one, named in waits.items() if named}
        pause_ms = _pause_ms(image.counts.partitions) if waits and found is None else 0
        self.waits, self.pause_until_ms, self._brokers = waits, now_ms + pause_ms, brokers
        self.is_due = self._is_awaited = False
        return found

    def wake(self) -> list[Action]:
        """How the machine is called at the end of a pause: of looks, if something may have changed in it, and
        of a restart.
        """
        calls: list[Action] = []
        settled_ms = self._settling.until_ms
        if settled_ms is not None and settled_ms != self._settled_ms:
            calls.append(WakeAt(settled_ms))
        self._settled_ms = settled_ms
        if self.is_due and not self._is_awaited:
            self._is_awaited = True
            calls.append(WakeAt(self.pause_until_ms))
        return calls

    def check_invariants(self, image: ClusterImage) -> None:
        """Nothing is left to write, and the waits are those of now, unless a look is due."""
        if self.is_due:
            assert self._is_awaited, "nothing ends the pause"
            return
        found, waits = next_operation(image, self._settling)
        assert found is None, found
        assert waits == self.waits, (waits, self.waits)


def _pause_ms(partitions: int) -> int:
    return 0 if partitions <= UNPAUSED_MAX else partitions // PARTITIONS_PER_PAUSED_MS


def _brokers_and_operations(image: ClusterImage) -> object:
    return (
        tuple((broker, live.broker.epoch) for broker, live in image.brokers.items()),
        frozenset(image.shutting_down),
        tuple((broker, known.version) for broker, known in image.known.items()),
        tuple((number, operation.version) for number, operation in image.operations.items()),
        image.applications,
    )
