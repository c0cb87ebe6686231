"""Bugs of proposals to change an ISR: which answer settles which, and whom the controller counts."""

from dataclasses import replace
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.broker.partition.partition import Partition
from sparklog.core.controller.actions import SendStopReplica
from sparklog.core.controller.pipeline import step_decisions
from sparklog.core.controller.pipeline.pushes import PendingPushes
from sparklog.core.controller.state.image import ClusterImage, LiveBroker
from sparklog.core.replication.actions import Action
from sparklog.core.replication.isr import committed_isr, pending_proposal
from sparklog.core.replication.leader import IsrReply, Leader
from sparklog.model.ids import BrokerId
from sparklog.model.time import MonotonicMs


def _any_answer_settles_a_proposal(switch: Switch) -> None:
    """The controller's answer counts for whatever is proposed when it comes, in whichever epoch."""

    def on_partition(original: Any) -> Any:
        def mutated(self: Partition, leader_epoch: int, proposal: int, reply: IsrReply) -> int:
            leader = self._replica.leader
            now = leader_epoch if leader is None else leader.leader_epoch
            grown: int = original(self, now, proposal, reply)
            return grown

        return mutated

    def on_leader(original: Any) -> Any:
        def mutated(self: Leader, proposal: int, reply: IsrReply, now_ms: MonotonicMs) -> list[Action]:
            pending, known = pending_proposal(self.isr), committed_isr(self.isr).partition_epoch
            told = replace(
                reply, leader_epoch=self.leader_epoch, partition_epoch=max(known, reply.partition_epoch)
            )
            actions: list[Action] = original(self, proposal if pending is None else pending, told, now_ms)
            return actions

        return mutated

    switch.method(Partition, "on_isr_reply", on_partition)
    switch.method(Leader, "on_isr_reply", on_leader)


def _counts_who_shuts_down(switch: Switch) -> None:
    """A broker that was relieved of everything, and is about to stop, is counted again when it fetches. It
    does, as it is not told to stop its replicas; and nobody takes it out again, as the controller forgets who
    shuts down with the next proposal."""

    def decide_isrs(original: Any) -> Any:
        def mutated(image: ClusterImage, *step: Any) -> Any:
            image.shutting_down.clear()
            return original(image, *step)

        return mutated

    def stop_replicas(original: Any) -> Any:
        def mutated(
            self: PendingPushes, image: ClusterImage, broker: BrokerId, partitions: Any
        ) -> SendStopReplica:
            stop: SendStopReplica = original(self, image, broker, ())
            return stop

        return mutated

    switch.method(step_decisions, "decide_isrs", decide_isrs)
    switch.method(PendingPushes, "stop_replicas", stop_replicas)


def _counts_who_is_gone(switch: Switch) -> None:
    """A broker that is registered no more is counted, as it was when it was registered last."""
    last_seen: dict[BrokerId, LiveBroker] = {}

    def decide_isrs(original: Any) -> Any:
        def mutated(image: ClusterImage, *step: Any) -> Any:
            last_seen.update(image.brokers)
            gone = last_seen.keys() - image.brokers.keys()
            image.brokers.update({broker: last_seen[broker] for broker in gone})
            try:
                return original(image, *step)
            finally:
                for broker in gone:
                    del image.brokers[broker]

        return mutated

    def add_broker(original: Any) -> Any:
        def mutated(self: ClusterImage, live: LiveBroker) -> None:
            last_seen[live.broker.id] = live
            original(self, live)

        return mutated

    switch.method(step_decisions, "decide_isrs", decide_isrs)
    switch.method(ClusterImage, "add_broker", add_broker)


PROPOSALS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "any-answer-settles-a-proposal",
        "KAFKA-12686",
        "a leader commits by an ISR that is not in force",
        20,
        _any_answer_settles_a_proposal,
        Hunt(plot=43, settings={"replica.lag.time.max.ms": "600"}),
        brings_back=("K19",),
    ),
    Mutant(
        "counts-who-shuts-down",
        "KAFKA-14140, KIP-841",
        "a stopping broker stays in sync, is waited for, or is elected",
        20,
        _counts_who_shuts_down,
        Hunt(plot=49, settings={"replica.fetch.backoff.ms": "100"}),
        brings_back=("K22",),
    ),
    Mutant(
        "counts-who-is-gone",
        "KIP-841, fenced replicas",
        "an ISR counts an absent broker, and writes wait for it",
        20,
        _counts_who_is_gone,
        Hunt(plot=50),
        is_quick=True,
        brings_back=("K22",),
    ),
)
