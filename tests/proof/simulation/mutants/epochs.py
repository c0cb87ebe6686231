"""Bugs of leader epochs: what a log remembers of them, and when logs are compared by them."""

from dataclasses import replace
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.broker.partition.reads import Reads
from sparklog.broker.waiting.asked_partitions import AskedPartition
from sparklog.broker.waiting.session_partitions import SessionPartitions
from sparklog.core.replication.actions import Action, AssignEpoch
from sparklog.core.replication.epoch_history import UNDEFINED, EpochEnd, EpochHistory
from sparklog.core.replication.follower import FetchPosition, Follower
from sparklog.core.replication.leader import Diverging, Leader
from sparklog.core.replication.replica import Replica
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_EPOCH, LeaderEpoch, Offset
from sparklog.storage.log import Log


def _answers_for_epochs_it_never_had(switch: Switch) -> None:
    """Asked where an epoch ended that it never had, a replica names the start of its next one."""

    def end_offset_for(self: EpochHistory, epoch: int, log_end_offset: int) -> EpochEnd:
        if epoch < 0 or epoch > self.latest_epoch:
            return UNDEFINED
        later = [entry.start_offset for entry in self.entries if entry.epoch > epoch]
        return EpochEnd(LeaderEpoch(epoch), later[0] if later else Offset(log_end_offset))

    switch.instead(EpochHistory, "end_offset_for", end_offset_for)


def _leads_without_an_epoch(switch: Switch) -> None:
    """A leader notes its epoch with its first record, and not before. Of epochs later than its last one it
    knows nothing, and says so; a follower that is told so cuts at its high watermark."""

    def lead(original: Any) -> Any:
        def mutated(self: Replica, *facts: Any) -> list[Action]:
            actions: list[Action] = original(self, *facts)
            return [action for action in actions if not isinstance(action, AssignEpoch)]

        return mutated

    def check_fetch_position(original: Any) -> Any:
        def mutated(self: Leader, fetch_offset: int, last_fetched_epoch: int) -> Diverging | ErrorCode:
            if last_fetched_epoch > self.epochs.latest_epoch:
                return Diverging(last_fetched_epoch, -1)
            position: Diverging | ErrorCode = original(self, fetch_offset, last_fetched_epoch)
            return position

        return mutated

    switch.method(Replica, "_lead", lead)
    switch.method(Leader, "check_fetch_position", check_fetch_position)


def _keeps_epochs_that_begin_at_the_end(switch: Switch) -> None:
    """A truncation that cuts no record forgets no epoch either."""

    def truncate_to(original: Any) -> Any:
        def mutated(self: Log, offset: int) -> int:
            if offset >= self.log_end_offset and self.corruption is None:
                return self.log_end_offset
            end_offset: int = original(self, offset)
            return end_offset

        return mutated

    switch.method(Log, "truncate_to", truncate_to)


def _does_not_compare_with_the_same_leader(switch: Switch) -> None:
    """A follower whose leader in a newer epoch is the one that it had goes on where it was: fetches ask where
    logs part after a change of leader only."""
    trusting: dict[int, Follower] = {}  # keeps them, so that no number is used twice

    def on_leader_and_isr(original: Any) -> Any:
        def mutated(self: Replica, state: PartitionState, **facts: Any) -> list[Action]:
            before = self.follower
            actions: list[Action] = original(self, state, **facts)
            now = self.follower
            if before is not None and now is not None and now is not before and now.leader == before.leader:
                trusting[id(now)] = now
            return actions

        return mutated

    def fetch_position(original: Any) -> Any:
        def mutated(self: Follower) -> FetchPosition | None:
            position: FetchPosition | None = original(self)
            return replace(position, last_fetched_epoch=-1) if position and id(self) in trusting else position

        return mutated

    switch.method(Replica, "on_leader_and_isr", on_leader_and_isr)
    switch.method(Follower, "fetch_position", fetch_position)


def _sessions_forget_the_epoch(switch: Switch) -> None:
    """Fetches that a session completes carry no leader epoch: leaders answer whoever followed them once."""

    def begin(original: Any) -> Any:
        def mutated(self: SessionPartitions, *fetch: Any) -> list[AskedPartition]:
            entries: list[AskedPartition] = original(self, *fetch)
            for entry in entries:
                if entry.asked.current_leader_epoch >= 0:
                    entry.asked, entry.read = replace(entry.asked, current_leader_epoch=-1), None
            return entries

        return mutated

    switch.method(SessionPartitions, "begin", begin)
    switch.method(SessionPartitions, "begin_lean", begin)


def _no_fence_at_the_leader_alone(switch: Switch) -> None:
    """A leader serves followers of any epoch whose log is like its own; who leads no more says just that."""

    def check_epoch(self: Leader, current_leader_epoch: int) -> ErrorCode:
        return ErrorCode.none

    def no_leader(original: Any) -> Any:
        def mutated(self: Reads, current_leader_epoch: int) -> ErrorCode:
            error: ErrorCode = original(self, NO_EPOCH)
            return error

        return mutated

    switch.instead(Leader, "check_epoch", check_epoch)
    switch.method(Reads, "_no_leader", no_leader)


TO_AND_FRO: Final = Hunt(
    plot=21, operations=("elect preferred",), settings={"replica.lag.time.max.ms": "2000"}
)
PROMISES: Final = Hunt(plot=24, operations=("elect preferred",), settings={"replica.lag.time.max.ms": "5000"})

EPOCHS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "answers-for-epochs-it-never-had",
        "KIP-279, KAFKA-6361",
        "a follower keeps records of an epoch that its leader never saw",
        90,
        _answers_for_epochs_it_never_had,
        TO_AND_FRO,
        brings_back=("K3",),
    ),
    Mutant(
        "leads-without-an-epoch",
        "KAFKA-7415",
        "a leader without records finds no divergence, and followers truncate committed records",
        70,
        _leads_without_an_epoch,
        TO_AND_FRO,
        brings_back=("K4",),
    ),
    Mutant(
        "keeps-epochs-that-begin-at-the-end",
        "KAFKA-10706",
        "a follower diverges from its leader forever",
        20,
        _keeps_epochs_that_begin_at_the_end,
        Hunt(plot=29, operations=("elect preferred",), settings={"replica.lag.time.max.ms": "2000"}),
        brings_back=("K5",),
    ),
    Mutant(
        "does-not-compare-with-the-same-leader",
        "KAFKA-7164",
        "a follower that missed an epoch keeps records that its leader truncated",
        20,
        _does_not_compare_with_the_same_leader,
        Hunt(plot=28, settings={"replica.lag.time.max.ms": "2000"}),
        is_quick=True,
        brings_back=("K7",),
    ),
    Mutant(
        "sessions-forget-the-epoch",
        "KAFKA-9338",
        "a follower of an old epoch is counted in sync, and may obey an older leader",
        70,
        _sessions_forget_the_epoch,
        PROMISES,
        brings_back=("K11",),
    ),
    Mutant(
        "no-fence-at-the-leader-alone",
        "KIP-320, without the comparison of logs",
        "a follower of an old epoch is counted in sync, and may obey an older leader",
        70,
        _no_fence_at_the_leader_alone,
        PROMISES,
        brings_back=("K11",),
    ),
)
