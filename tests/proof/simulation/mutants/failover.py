"""Bugs that a change of leader brings to light: what replicas forget, what restarts prove, who is elected."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.broker.partition.partition import Partition
from sparklog.broker.replicas.chores import Chores
from sparklog.core.controller.state import incarnation, leader_choice
from sparklog.core.controller.state.candidates import Candidates
from sparklog.core.controller.state.incarnation import Incarnation
from sparklog.core.controller.state.leader_choice import Election, Rules
from sparklog.core.producers.producer_state import ProducerStates
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_LEADER, TopicPartition
from sparklog.storage.log import Log
from sparklog.storage.log_directory import LogDirectory


def _producers_are_forgotten(switch: Switch) -> None:
    """A new leader knows nothing of what producers have sent to the one before."""

    def on_leader_and_isr(original: Any) -> Any:
        def mutated(self: Partition, state: PartitionState, **facts: Any) -> ErrorCode:
            led = self.is_leader
            error: ErrorCode = original(self, state, **facts)
            if self.is_leader and not led:
                self.log.producers = ProducerStates()
            return error

        return mutated

    switch.method(Partition, "on_leader_and_isr", on_leader_and_isr)


def _elects_whoever_lives(switch: Switch) -> None:
    """When nobody of the ISR lives, any replica is elected, and nobody is told what that may lose."""

    def elect_outside_isr(original: Any) -> Any:
        def mutated(state: PartitionState, candidates: Candidates, rules: Rules) -> Election | None:
            live = [member for member in state.replicas if member in candidates.live]
            if not live:
                found: Election | None = original(state, candidates, rules)
                return found
            return leader_choice._elected(state, live[0], (live[0],), candidates, rules)

        return mutated

    switch.method(leader_choice, "_elect_outside_isr", elect_outside_isr)


def _a_reboot_is_a_restart(switch: Switch) -> None:
    """After a power cut a broker is trusted with its logs as after a crash of its process."""

    def same_machine(record: Incarnation, *, host_id: str, boot_id: str) -> bool:
        return record.host_id == host_id

    switch.instead(incarnation, "same_machine", same_machine)


def _checkpoints_who_has_a_leader(switch: Switch) -> None:
    """The checkpoint of high watermarks has those replicas only whose leader is known, and nothing else."""

    def checkpoint(original: Any) -> Any:
        def mutated(self: Chores) -> None:
            table = self._table
            everybody = table._partitions
            table._partitions = {name: one for name, one in everybody.items() if _has_leader(one)}
            try:
                original(self)
            finally:
                table._partitions = everybody

        return mutated

    def write_high_watermarks(original: Any) -> Any:
        def mutated(self: LogDirectory, high_watermarks: Mapping[TopicPartition, int]) -> None:
            self._high_watermarks = {}
            original(self, high_watermarks)

        return mutated

    switch.method(Chores, "checkpoint_high_watermarks", checkpoint)
    switch.method(LogDirectory, "write_high_watermarks", write_high_watermarks)


def _has_leader(partition: Partition) -> bool:
    follower = partition._replica.follower
    return partition.is_leader or (follower is not None and follower.leader != NO_LEADER)


def _retention_passes_the_high_watermark(switch: Switch) -> None:
    """Retention removes what is too old or too much, committed or not."""

    def delete_old_segments(original: Callable[[Log, int], int]) -> Any:
        def mutated(self: Log, high_watermark: int) -> int:
            return original(self, self.log_end_offset)

        return mutated

    switch.method(Log, "delete_old_segments", delete_old_segments)


FAILOVER: Final[tuple[Mutant, ...]] = (
    Mutant(
        "producers-are-forgotten",
        "KIP-98 without producer states at followers",
        "a batch that was sent again is committed twice",
        20,
        _producers_are_forgotten,
        is_quick=True,
    ),
    Mutant(
        "elects-whoever-lives",
        "unclean elections before KIP-106, unreported",
        "acknowledged records are lost without a report",
        30,
        _elects_whoever_lives,
    ),
    Mutant(
        "a-reboot-is-a-restart",
        "replication without fsync; KIP-966's premise",
        "a replica that lost its log's tail stays in sync",
        30,
        _a_reboot_is_a_restart,
        Hunt(kinds=("cut the power", "kill broker"), settings={"min.insync.replicas": "2"}),
    ),
    Mutant(
        "checkpoints-who-has-a-leader",
        "KAFKA-1647",
        "a replica forgets what is committed",
        20,
        _checkpoints_who_has_a_leader,
        Hunt(
            kinds=("kill broker", "cut from controllers"),
            settings={"replica.high.watermark.checkpoint.interval.ms": "100"},
        ),
        brings_back=("K15",),
    ),
    Mutant(
        "retention-passes-the-high-watermark",
        "KAFKA-5634",
        "a log begins after its committed records",
        60,
        _retention_passes_the_high_watermark,
        Hunt(
            kinds=("cut link", "kill broker", "pause broker"),
            topic_configs={"retention.bytes": "1500", "segment.bytes": "500"},
        ),
        brings_back=("K14",),
    ),
)
