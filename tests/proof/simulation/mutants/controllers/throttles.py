"""Bugs of throttles that operations have: which of two counts, how long one stays, what it writes over."""

from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.operations import advance, throttling
from sparklog.core.controller.state.image import ClusterImage

MOVES: Final = Hunt(kinds=("kill broker",), wishes=1.0, throttles=1.0)
UNLIMITED: Final = 2**63 - 1


def _goes_with_the_first(switch: Switch) -> None:
    """Once a plan's operation has ended, nothing is limited any more."""

    def rate_of(original: Any) -> Any:
        def mutated(image: ClusterImage) -> int:
            plans = [one for one in image.operations.values() if one.kind is OperationKind.reassign]
            return 0 if any(not one.is_running for one in plans) else int(original(image))

        return mutated

    switch.method(throttling, "rate_of", rate_of)


def _outlives_its_moves(switch: Switch) -> None:
    """A plan's operation waits for moves that are done."""
    switch.instead(advance, "carry_on", lambda image, operation: ())


def _writes_over_a_lower_one(switch: Switch) -> None:
    """An operation's rate counts instead of a lower one that Kafka's tools have set."""
    switch.instead(throttling, "_rate", lambda image, own, name: UNLIMITED)


THROTTLES: Final[tuple[Mutant, ...]] = (
    Mutant(
        "throttle-goes-with-the-first",
        "sparklog",
        "moves take all of the network, although the throttle of theirs is not over",
        20,
        _goes_with_the_first,
        MOVES,
        is_quick=True,
    ),
    Mutant(
        "throttle-outlives-its-moves",
        "sparklog",
        "replicas that return from a crash take hours, long after the move that was limited",
        20,
        _outlives_its_moves,
        MOVES,
    ),
    Mutant(
        "throttle-over-a-lower-one",
        "sparklog",
        "a plan's throttle lets moves take more than an operator has allowed",
        20,
        _writes_over_a_lower_one,
        MOVES,
    ),
)
