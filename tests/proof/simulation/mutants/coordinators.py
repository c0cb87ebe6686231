"""Bugs of coordinators: what they load, when they answer, and what becomes of their appends."""

from collections.abc import Sequence
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.broker.coordination import loading
from sparklog.broker.coordination.coordinators import CoordinatorShards
from sparklog.broker.coordination.last_values import LastValues
from sparklog.broker.coordination.loading import Load, Loads
from sparklog.broker.coordination.shard_host import ShardHost
from sparklog.core.coordinator.actions import Action, Refused
from sparklog.core.coordinator.attention import Attention
from sparklog.core.coordinator.shard import (
    AppendOutcome,
    Committed,
    MayBeCommitted,
    Phase,
    Shard,
    ShardAction,
)
from sparklog.core.coordinator.state_machine import Now
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import LeaderEpoch, TopicPartition
from sparklog.model.time import MonotonicMs
from sparklog.records.kafka.spans import spans_of


def _loads_end_at_the_high_watermark(switch: Switch) -> None:
    """A load is done when it has read what is committed, though the log goes on."""

    def advance(original: Any) -> Any:
        def mutated(self: Loads, load: Load) -> bool:
            high_watermark = load.host.high_watermark()
            if not isinstance(high_watermark, ErrorCode) and high_watermark <= load.position < load.end:
                self._finish(load)
                return True
            ended: bool = original(self, load)
            return ended

        return mutated

    switch.method(Loads, "_advance", advance)


def overtaken_loads_go_on(switch: Switch) -> None:
    """A load whose leader epoch is over goes on in the next epoch of the same broker."""
    overtaken: dict[tuple[CoordinatorShards, TopicPartition], ShardHost] = {}

    def ceased_leading(original: Any) -> Any:
        def mutated(self: CoordinatorShards, where: TopicPartition, leader_epoch: LeaderEpoch) -> None:
            host = self._hosts.get(where)
            if host is not None and host.shard.phase is Phase.loading:
                overtaken[self, where] = self._hosts.pop(where)
            else:
                original(self, where, leader_epoch)

        return mutated

    def began_leading(original: Any) -> Any:
        def mutated(self: CoordinatorShards, where: TopicPartition, leader_epoch: LeaderEpoch) -> None:
            host = overtaken.pop((self, where), None)
            if host is None:
                original(self, where, leader_epoch)
            else:
                vars(host)["leader_epoch"] = leader_epoch
                self._hosts[where] = host

        return mutated

    switch.method(CoordinatorShards, "ceased_leading", ceased_leading)
    switch.method(CoordinatorShards, "began_leading", began_leading)


def _loads_forget_tombstones(switch: Switch) -> None:
    """Of each key a load takes the last value, also where a tombstone is behind it."""

    def last_values(run: bytes, begins: Sequence[int]) -> LastValues:
        spans = spans_of(run, list(begins))
        keys = zip(spans.key_starts, spans.key_lengths, strict=True)
        values = zip(spans.value_starts, spans.value_lengths, strict=True)
        return {
            run[key_start : key_start + key_length]: run[value_start : value_start + value_length]
            for (key_start, key_length), (value_start, value_length) in zip(keys, values, strict=True)
            if value_length >= 0
        }

    switch.instead(loading, "last_values", last_values)


def _resigned_coordinators_answer(switch: Switch) -> None:
    """A coordinator whose leader epoch is over goes on from its memory."""

    def ceased_leading(self: CoordinatorShards, where: TopicPartition, leader_epoch: LeaderEpoch) -> None:
        """Nobody tells the shard."""

    switch.instead(CoordinatorShards, "ceased_leading", ceased_leading)


def _slept_coordinators_answer(switch: Switch) -> None:
    """After a standstill a coordinator does not ask whether it still is one."""

    def standstills(self: Attention, now_ms: MonotonicMs) -> int:
        return 0

    switch.instead(Attention, "standstills", standstills)


def _doubts_are_forgotten(switch: Switch) -> None:
    """An append that timed out counts as refused, though it may be committed later."""

    def doubt(self: Shard, doubted: Any, error: ErrorCode, now: Now) -> list[Action]:
        return self._conclude(doubted.writes, Refused(error), now)

    switch.instead(Shard, "_doubt", doubt)


def _doubts_count_as_done(switch: Switch) -> None:
    """An append that timed out counts as committed, though another leader may lack it."""

    def on_appended(original: Any) -> Any:
        def mutated(self: Shard, append_id: int, outcome: AppendOutcome, now: Now) -> list[ShardAction]:
            if isinstance(outcome, MayBeCommitted) and outcome.end_offset is not None:
                outcome = Committed(outcome.end_offset)
            actions: list[ShardAction] = original(self, append_id, outcome, now)
            return actions

        return mutated

    switch.method(Shard, "on_appended", on_appended)


ONE_LOG: Final = {"offsets.topic.num.partitions": "1", "offsets.load.buffer.size": "1"}
DOUBTFUL: Final = {"offsets.commit.timeout.ms": "300", "min.insync.replicas": "2"}

COORDINATORS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "loads-end-at-the-high-watermark",
        "a load without the condition on the high watermark",
        "a coordinator lacks what its predecessor has acknowledged",
        20,
        _loads_end_at_the_high_watermark,
        Hunt(kinds=("kill broker", "pause broker"), groups=1.0),
    ),
    Mutant(
        "overtaken-loads-go-on",
        "KAFKA-9307",
        "a coordinator lacks what another one wrote while it loaded",
        60,
        overtaken_loads_go_on,
        Hunt(plot=82, operations=("elect preferred",), settings=ONE_LOG, groups=1.0),
        brings_back=("K31",),
    ),
    Mutant(
        "loads-forget-tombstones",
        "a load that skips records without a value",
        "deleted groups and offsets come back with the next coordinator",
        20,
        _loads_forget_tombstones,
        Hunt(kinds=("kill broker",), groups=1.0),
        is_quick=True,
    ),
    Mutant(
        "resigned-coordinators-answer",
        "a coordinator that is not told that its leadership is over",
        "clients read offsets that have been replaced",
        20,
        _resigned_coordinators_answer,
        Hunt(operations=("move", "elect preferred"), groups=1.0),
    ),
    Mutant(
        "slept-coordinators-answer",
        "leases without a clock; as in Kafka",
        "after a standstill clients read offsets that have been replaced",
        40,
        _slept_coordinators_answer,
        Hunt(plot=81, groups=1.0),
    ),
    Mutant(
        "doubts-are-forgotten",
        "as in Kafka: an append that timed out counts as failed",
        "a coordinator contradicts its own log",
        20,
        _doubts_are_forgotten,
        Hunt(kinds=("cut link", "pause broker", "delay frames"), settings=DOUBTFUL, groups=1.0),
    ),
    Mutant(
        "doubts-count-as-done",
        "an append that timed out, taken for a success",
        "clients read offsets that are lost with the leader",
        20,
        _doubts_count_as_done,
        Hunt(kinds=("cut link", "pause broker", "delay frames"), settings=DOUBTFUL, groups=1.0),
    ),
)
