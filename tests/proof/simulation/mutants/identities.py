"""Bugs of producer ids: who gets which."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.client_mix import ClientMix
from simulation.plans.faults import Hunt
from sparklog.broker.call import Call
from sparklog.broker.handlers import init_producer_id
from sparklog.core.controller.commands.broker_commands import AllocateProducerIdsResult
from sparklog.core.controller.pipeline import step_decisions
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.znodes import PRODUCER_ID_BLOCK
from sparklog.core.controller.steps import AllocateIds, Decision
from sparklog.model.errors import ErrorCode
from sparklog.model.zookeeper import ANY_VERSION, Check, Operation, SetData
from sparklog.wire.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

PRODUCER_EPOCH_MAX: Final = 32_767


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

    switch.method(step_decisions, "decide_block", decide_block)


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


def _claimed_identities_are_believed(switch: Switch) -> None:
    """A producer without a transactional id that names an id gets that id, in the next epoch."""

    def answer(original: Any) -> Any:
        def mutated(call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
            if request.producer_id >= 0 and 0 <= request.producer_epoch < PRODUCER_EPOCH_MAX - 1:
                named, bumped = request.producer_id, request.producer_epoch + 1
                return InitProducerIdResponse(producer_id=named, producer_epoch=bumped)
            fresh: InitProducerIdResponse = original(call, request)
            return fresh

        return mutated

    switch.method(init_producer_id, "answer_without_transactional_id", answer)


IDENTITIES: Final[tuple[Mutant, ...]] = (
    Mutant(
        "blocks-are-given-again",
        "KIP-730, with a cached answer",
        "two producers have one id, and their batches are confused",
        20,
        _blocks_are_given_again,
    ),
    Mutant(
        "blocks-without-a-version-check",
        "KIP-98: id blocks without compare-and-set",
        "a deposed controller assigns ids that others have",
        20,
        _blocks_without_a_version_check,
        Hunt(plot=4, clients=ClientMix(crash_every_ms=500.0)),
        is_quick=True,
    ),
    Mutant(
        "claimed-identities-are-believed",
        "KIP-360 without its transactional id",
        "producers share an id, and batches of one are acknowledged as retries of another's",
        20,
        _claimed_identities_are_believed,
        brings_back=("B83",),
    ),
)
