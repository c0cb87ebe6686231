"""Bugs of a broker around its partitions: which requests it obeys."""

from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.client_mix import ClientMix
from simulation.plans.faults import Hunt
from sparklog.broker.disks.gone_replicas import GoneReplicas
from sparklog.broker.life.broker_life import BrokerLife
from sparklog.broker.partition.partition import Partition
from sparklog.broker.replicas.controller_fence import ControllerFence
from sparklog.broker.replicas.roles import Roles
from sparklog.core.producers.producer_state import ProducerBatch
from sparklog.core.producers.refused_batches import RefusedBatches, RefusingConnections
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_EPOCH, LeaderEpoch, TopicPartition
from sparklog.records import transcode


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


def _late_stops_are_obeyed(switch: Switch) -> None:
    """StopReplica names no leader epoch."""

    def stop_replica(original: Any) -> Any:
        def mutated(
            self: Roles, topic_partition: TopicPartition, leader_epoch: int, **facts: Any
        ) -> ErrorCode:
            error: ErrorCode = original(self, topic_partition, min(leader_epoch, NO_EPOCH), **facts)
            return error

        return mutated

    switch.method(Roles, "stop_replica", stop_replica)


def _brokers_outlive_their_sessions(switch: Switch) -> None:
    """A broker whose session has expired goes on, unregistered: nobody tells it anything any more."""

    def goes_on(original: Any) -> Any:
        def mutated(self: BrokerLife, why: str) -> None:
            """Goes on."""

        return mutated

    switch.method(BrokerLife, "lose_session", goes_on)
    switch.method(BrokerLife, "lose_registration", goes_on)


def _obeys_what_an_earlier_life_was_told(switch: Switch) -> None:
    """A request of the controller is obeyed by whoever is at that address, whichever life of it was meant."""

    def accept_controller(original: Any) -> Any:
        def mutated(self: ControllerFence, controller_epoch: int, broker_epoch: int) -> ErrorCode:
            error: ErrorCode = original(self, controller_epoch, self.broker_epoch)
            return error

        return mutated

    switch.method(ControllerFence, "accept_controller", accept_controller)


def _deletions_are_forgotten(switch: Switch) -> None:
    """Who deleted a replica takes up a role for it that was given before, and comes late."""

    def is_gone(original: Any) -> Any:
        def mutated(self: GoneReplicas, *role: Any) -> bool:
            return False

        return mutated

    switch.method(GoneReplicas, "is_gone", is_gone)


def _rot_is_given_a_right_crc(switch: Switch) -> None:
    """Arrow batches are turned into records for those who know no Arrow, whatever their CRC says."""

    def crc_matches(original: Any) -> Any:
        def mutated(*batch: Any) -> bool:
            return True

        return mutated

    switch.method(transcode, "crc_matches", crc_matches)


def _what_is_behind_a_refused_batch_comes_first(switch: Switch) -> None:
    """Of several requests under way the first is refused, and the second judged by itself."""

    def is_before(original: Any) -> Any:
        def mutated(self: RefusedBatches, batch: ProducerBatch, now_ms: int) -> bool:
            return False

        return mutated

    switch.method(RefusedBatches, "is_before", is_before)
    _what_connections_refused_is_forgotten(switch)


def _what_connections_refused_is_forgotten(switch: Switch) -> None:
    """What no replica can remember: refused before there was one, or for a flipped bit."""

    def has_refused(original: Any) -> Any:
        def mutated(self: RefusingConnections, *refusal: Any) -> bool:
            return False

        return mutated

    switch.method(RefusingConnections, "has_refused", has_refused)


BROKER: Final[tuple[Mutant, ...]] = (
    Mutant(
        "roles-of-old-epochs-are-taken-up",
        "KAFKA-1460",
        "a late request creates a leader or follower of an old epoch",
        20,
        _roles_of_old_epochs_are_taken_up,
        Hunt(plot=5),
        brings_back=("K17",),
    ),
    Mutant(
        "late-stops-are-obeyed",
        "KAFKA-9539, KIP-570",
        "a late request deletes a replica that was assigned again",
        20,
        _late_stops_are_obeyed,
        Hunt(plot=51, operations=("move",)),
        brings_back=("K26",),
    ),
    Mutant(
        "brokers-outlive-their-sessions",
        "KAFKA-2729",
        "a broker that lost its session never returns",
        20,
        _brokers_outlive_their_sessions,
        Hunt(kinds=("expire session", "cut zookeeper")),
        is_quick=True,
        brings_back=("K16",),
    ),
    Mutant(
        "obeys-what-an-earlier-life-was-told",
        "KAFKA-7235, KIP-380",
        "a broker without its log's tail leads its old epoch again, and followers truncate",
        30,
        _obeys_what_an_earlier_life_was_told,
        Hunt(plot=64, settings={"min.insync.replicas": "2"}),
        brings_back=("K17",),
    ),
    Mutant(
        "deletions-are-forgotten",
        "B7",
        "a replica that was moved away returns, and follows forever",
        20,
        _deletions_are_forgotten,
        Hunt(plot=51, operations=("move", "cancel move")),
        brings_back=("B7",),
    ),
    Mutant(
        "rot-is-given-a-right-crc",
        "B65",
        "readers get rotten timestamps and attributes",
        100,
        _rot_is_given_a_right_crc,
        Hunt(
            kinds=("rot a batch",),
            settings={"min.insync.replicas": "2"},
            clients=ClientMix(has_rereaders=True, arrow_share=1.0),
        ),
        brings_back=("B65",),
    ),
    Mutant(
        "what-is-behind-a-refused-batch-comes-first",
        "B63; as in Kafka",
        "a producer's second batch meets a gap, or is accepted as its first",
        250,
        _what_is_behind_a_refused_batch_comes_first,
        Hunt(
            kinds=("stop broker", "delay frames"),
            settings={"min.insync.replicas": "2"},
            operations=("move", "elect preferred"),
        ),
        brings_back=("B63",),
    ),
    Mutant(
        "what-connections-refused-is-forgotten",
        "B64; as in Kafka",
        "after a flipped bit the second batch meets a gap, or is accepted as the first",
        20,
        _what_connections_refused_is_forgotten,
        Hunt(kinds=("flip bits",)),
        is_quick=True,
        brings_back=("B64",),
    ),
)
