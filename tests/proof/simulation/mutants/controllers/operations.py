"""Bugs of operations on brokers: what they stop too early, do twice, or forget."""

from dataclasses import replace
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.core.controller.actions import WriteZooKeeper
from sparklog.core.controller.events.cluster_event import ClusterEvent, NumberedEvent
from sparklog.core.controller.events.event_log import EventLog
from sparklog.core.controller.machine import ControllerMachine
from sparklog.core.controller.operations import advance, availability, begin
from sparklog.core.controller.operations.operation_writes import Wait
from sparklog.core.controller.state.image import ClusterImage, ClusterSnapshot
from sparklog.core.controller.state.operations import Operation, Phase
from sparklog.core.controller.steps import AdvanceOperation, Decision
from sparklog.model.ids import BrokerId
from sparklog.model.settings.config import BrokerConfig

CALM: Final = Hunt(kinds=("kill broker", "stop broker"), wishes=1.0)
TAKE_OVERS: Final = Hunt(kinds=("kill controller",), wishes=1.0)


def _drain_leaves_a_replica(switch: Switch) -> None:
    """A drain stops its broker as soon as that leads nothing."""
    switch.instead(advance, "drain", lambda image, operation, broker: None)
    switch.instead(advance, "_still_named", lambda image, broker: ())


def _restart_does_not_wait(switch: Switch) -> None:
    """The next broker is stopped as soon as the last one is registered again."""

    def nothing(image: ClusterImage, operation: Operation, ignored: tuple[BrokerId, ...]) -> tuple[Wait, ...]:
        return ()

    switch.instead(advance, "not_full_again", nothing)


def _stopping_brokers_count(switch: Switch) -> None:
    """A member of an ISR counts as one that stays, though it is to stop as well."""
    switch.instead(availability, "stays", lambda image, broker: broker in image.brokers)


def _wishes_are_written_by_anybody(switch: Switch) -> None:
    """An operation goes on without a look at the controller's epoch."""

    def write(original: Any) -> Any:
        def mutated(self: ControllerMachine, decision: Decision, now_ms: int) -> WriteZooKeeper:
            asked: WriteZooKeeper = original(self, decision, now_ms)
            is_operation = isinstance(decision.step, AdvanceOperation)
            return WriteZooKeeper(asked.operations[1:]) if is_operation else asked

        return mutated

    switch.method(ControllerMachine, "_write", write)


def _operations_begin_again(switch: Switch) -> None:
    """A new controller begins what is under way from the beginning."""

    def of(original: Any) -> Any:
        def mutated(snapshot: ClusterSnapshot, config: BrokerConfig) -> ClusterImage:
            image: ClusterImage = original(snapshot, config)
            for number, one in image.operations.items():
                if one.is_running:
                    image.operations[number] = replace(one, position=0, phase=Phase.begun)
            return image

        return mutated

    switch.method(ClusterImage, "of", of)


def _removed_with_a_replica(switch: Switch) -> None:
    """Whatever does not serve can be removed."""

    def check(original: Any) -> Any:
        def mutated(image: ClusterImage, broker: BrokerId) -> None:
            if broker in image.brokers:
                original(image, broker)

        return mutated

    switch.method(begin, "check_removal", check)


def _events_share_a_number(switch: Switch) -> None:
    """Each fifth event has the number of the one before."""

    def add(original: Any) -> Any:
        def mutated(self: EventLog, event: ClusterEvent, time_ms: int) -> NumberedEvent:
            added: NumberedEvent = original(self, event, time_ms)
            if added.number % 5:
                return added
            repeated = replace(added, number=added.number - 1)
            self.kept = (*self.kept[:-1], repeated)
            return repeated

        return mutated

    switch.method(EventLog, "add", add)


OPERATIONS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "drain-leaves-a-replica",
        "sparklog",
        "a drained broker is taken away with records that nobody else has",
        20,
        _drain_leaves_a_replica,
        CALM,
        is_quick=True,
    ),
    Mutant(
        "restart-does-not-wait",
        "sparklog",
        "a restart of all brokers stops one while another is not in sync again",
        20,
        _restart_does_not_wait,
        CALM,
    ),
    Mutant(
        "stopping-brokers-count",
        "sparklog",
        "two stops at once leave a partition below its minimum",
        80,
        _stopping_brokers_count,
        CALM,
    ),
    Mutant(
        "wishes-are-written-by-anybody",
        "sparklog",
        "a controller that was deposed stops brokers",
        20,
        _wishes_are_written_by_anybody,
        CALM,
    ),
    Mutant(
        "operations-begin-again",
        "sparklog",
        "a broker is restarted twice when the controller changes",
        40,
        _operations_begin_again,
        TAKE_OVERS,
    ),
    Mutant(
        "removed-with-a-replica",
        "sparklog",
        "the proofs of a broker's logs go while partitions need them",
        40,
        _removed_with_a_replica,
        CALM,
    ),
    Mutant(
        "events-share-a-number",
        "sparklog",
        "a reader of events passes over one",
        20,
        _events_share_a_number,
        CALM,
        is_quick=True,
    ),
)
