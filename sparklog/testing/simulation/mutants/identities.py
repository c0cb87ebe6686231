"""Bugs of producer ids: who gets which, and whom a later epoch shuts out."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from sparklog.core.controller import workbench
from sparklog.core.controller.commands import AllocateProducerIdsResult
from sparklog.core.controller.image import ClusterImage
from sparklog.core.controller.steps import AllocateIds, Decision
from sparklog.core.controller.znodes import PRODUCER_ID_BLOCK
from sparklog.core.transaction.producer_state import ProducerBatch, ProducerStates, Verdict
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import ProducerId
from sparklog.model.zookeeper import ANY_VERSION, Check, Operation, SetData
from sparklog.testing.simulation.mutants.mutant import Mutant, Switch


def _blocks_are_given_again(switch: Switch) -> None:
    """A broker that asks again is given the block that it has already, as if its answer had been lost."""

    def decide_block(original: Any) -> Any:
        def mutated(image: ClusterImage, step: AllocateIds) -> Decision | AllocateProducerIdsResult:
            block, request = image.producer_block, step.request
            is_current = image.is_current(request.broker, request.broker_epoch)
            if block is not None and is_current and block.broker == request.broker:
                return AllocateProducerIdsResult(ErrorCode.none, block.first, block.last - block.first + 1)
            decided: Decision | AllocateProducerIdsResult = original(image, step)
            return decided

        return mutated

    switch.method(workbench, "decide_block", decide_block)


def _blocks_without_a_version_check(switch: Switch) -> None:
    """A block is written whatever ZooKeeper holds by then, by whoever was controller once."""

    def wash(operations: Sequence[Operation]) -> Sequence[Operation]:
        if not any(isinstance(one, SetData) and one.path == PRODUCER_ID_BLOCK for one in operations):
            return operations
        return [
            replace(one, version=ANY_VERSION) if isinstance(one, SetData) else one
            for one in operations
            if not isinstance(one, Check)
        ]

    switch.ensemble.wash = wash


def _earlier_epochs_are_taken(switch: Switch) -> None:
    """A leader takes what a producer sent before it went on in another epoch."""

    def check(original: Any) -> Any:
        def mutated(self: ProducerStates, batch: ProducerBatch) -> Verdict:
            state = self.producers.get(ProducerId(batch.producer_id))
            if state is not None and batch.producer_epoch < state.epoch:
                return original(ProducerStates(), batch)  # type: ignore[no-any-return]
            return original(self, batch)  # type: ignore[no-any-return]

        return mutated

    switch.method(ProducerStates, "check", check)


IDENTITIES: Final[tuple[Mutant, ...]] = (
    Mutant(
        "blocks-are-given-again",
        "KIP-730, with an answer that is remembered for a broker",
        "two producers have one id, and the batches of one are taken for those of the other",
        20,
        _blocks_are_given_again,
        is_quick=True,
    ),
    Mutant(
        "blocks-without-a-version-check",
        "KIP-98: blocks of ids without their compare-and-set",
        "a controller that is none any more gives ids that others have",
        60,
        _blocks_without_a_version_check,
    ),
    Mutant(
        "earlier-epochs-are-taken",
        "KIP-360 without its fence",
        "what a producer gave up is written behind what it sent since",
        60,
        _earlier_epochs_are_taken,
    ),
)
