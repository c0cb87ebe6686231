"""Bugs of the controller: what it writes, and whom it obeys."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.controller.term import Term
from sparklog.core.controller.actions import Action, SendUpdateMetadata, WriteZooKeeper
from sparklog.core.controller.commands.partition_commands import AlterPartition, IsrProposal, ProposedMember
from sparklog.core.controller.leaders import isr_changes
from sparklog.core.controller.machine import ControllerMachine
from sparklog.core.controller.pipeline.pushes import PendingPushes
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.steps import Decision
from sparklog.core.replication.follower_progress import FollowerProgress
from sparklog.core.replication.leader import Leader
from sparklog.model.cluster_facts import Broker, PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, TopicPartition
from sparklog.model.zookeeper import ANY_VERSION, Check, Operation, SetData


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

    switch.method(isr_changes, "_may_be_counted", may_be_counted)


def _no_check_of_the_controller_epoch(switch: Switch) -> None:
    """A controller writes without asking whether it still is one, over whatever session it has by then."""

    def write(original: Any) -> Any:
        def mutated(self: ControllerMachine, decision: Decision, now_ms: int) -> WriteZooKeeper:
            asked: WriteZooKeeper = original(self, decision, now_ms)
            check, *operations = asked.operations
            assert isinstance(check, Check)
            return WriteZooKeeper((replace(check, version=ANY_VERSION), *operations))

        return mutated

    def send(original: Any) -> Any:
        def mutated(self: Term, question: WriteZooKeeper) -> list[Action]:
            self._generation = self._zookeeper.generation
            actions: list[Action] = original(self, question)
            return actions

        return mutated

    switch.method(ControllerMachine, "_write", write)
    switch.method(Term, "_write", send)


def _repeated_proposals_are_refused(switch: Switch) -> None:
    """A proposal is first measured by its version: the repetition of one that was granted has an old one."""

    def judge(original: Any) -> Any:
        def mutated(
            image: ClusterImage, request: AlterPartition, proposal: IsrProposal
        ) -> PartitionState | ErrorCode:
            name = image.topic_names.get(proposal.topic_id)
            state = None if name is None else image.state(TopicPartition(name, proposal.partition))
            is_of_this_epoch = state is not None and proposal.leader_epoch == state.leader_epoch
            if is_of_this_epoch and state is not None and proposal.partition_epoch < state.partition_epoch:
                return ErrorCode.invalid_update_version
            verdict: PartitionState | ErrorCode = original(image, request, proposal)
            return verdict

        return mutated

    switch.method(isr_changes, "_judge", judge)


def _moved_replicas_come_back(switch: Switch) -> None:
    """A replica that was moved away fetches once more, and its leader and the controller count it again."""

    def check_epoch(original: Any) -> Any:
        def mutated(self: Leader, current_leader_epoch: int) -> ErrorCode:
            return ErrorCode.none

        return mutated

    def check_follower(original: Any) -> Any:
        def mutated(self: Leader, follower: BrokerId, broker_epoch: BrokerEpoch) -> ErrorCode:
            self.followers.setdefault(follower, FollowerProgress())
            error: ErrorCode = original(self, follower, broker_epoch)
            return error

        return mutated

    def may_be_counted(original: Any) -> Any:
        def mutated(
            image: ClusterImage, partition: TopicPartition, state: PartitionState, member: ProposedMember
        ) -> bool:
            replicas = (*state.replicas, member.broker)
            may: bool = original(image, partition, replace(state, replicas=replicas), member)
            return may

        return mutated

    switch.method(Leader, "check_epoch", check_epoch)
    switch.method(Leader, "check_follower", check_follower)
    switch.method(isr_changes, "_may_be_counted", may_be_counted)


def _metadata_of_moves_is_stale(switch: Switch) -> None:
    """While a partition moves, clients are told of the leader epoch before; its replicas know the new one."""

    def stale(state: PartitionState) -> PartitionState:
        is_moving = bool(state.adding or state.removing)
        return replace(state, leader_epoch=LeaderEpoch(state.leader_epoch - 1)) if is_moving else state

    def update(original: Any) -> Any:
        def mutated(
            self: PendingPushes, image: ClusterImage, broker: Broker, live: Any, topics: Any, **facts: Any
        ) -> SendUpdateMetadata:
            told = tuple(
                replace(one, partitions=tuple((number, stale(state)) for number, state in one.partitions))
                for one in topics
            )
            send: SendUpdateMetadata = original(self, image, broker, live, told, **facts)
            return send

        return mutated

    switch.method(PendingPushes, "_update", update)


CONTROL: Final[tuple[Mutant, ...]] = (
    Mutant(
        "isr-write-without-version-check",
        "KAFKA-2729, KIP-497",
        "a deposed controller or leader overwrites a newer partition state",
        20,
        _isr_write_without_version_check,
        Hunt(plot=4),
        brings_back=("K16", "K18"),
    ),
    Mutant(
        "no-broker-epoch-in-isr-proposals",
        "KIP-903",
        "a replica that lost its log is counted in sync",
        20,
        _no_broker_epoch_in_isr_proposals,
        Hunt(plot=2),
        is_quick=True,
        brings_back=("K23",),
    ),
    Mutant(
        "no-check-of-the-controller-epoch",
        "KAFKA-6082",
        "a paused controller writes decisions that its successor never reads",
        200,
        _no_check_of_the_controller_epoch,
        Hunt(plot=45, operations=("move", "elect preferred")),
        brings_back=("K18",),
    ),
    Mutant(
        "repeated-proposals-are-refused",
        "KAFKA-14144",
        "a leader whose answer was lost never changes its ISR again",
        20,
        _repeated_proposals_are_refused,
        Hunt(plot=48),
        brings_back=("K20",),
    ),
    Mutant(
        "moved-replicas-come-back",
        "KAFKA-1097",
        "an ISR counts a replica whose log is being deleted",
        20,
        _moved_replicas_come_back,
        Hunt(kinds=("delay frames", "lose answers"), operations=("move",)),
        brings_back=("K25",),
    ),
    Mutant(
        "metadata-of-moves-is-stale",
        "KAFKA-9212",
        "clients are fenced for as long as a move lasts",
        20,
        _metadata_of_moves_is_stale,
        Hunt(kinds=("kill broker",), operations=("move",)),
        is_quick=True,
        brings_back=("K27",),
    ),
)
