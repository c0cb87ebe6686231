"""Bugs of a follower: where it cuts its log, and whom it believes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.broker.following import fetcher
from sparklog.broker.following.fetcher import Fetcher
from sparklog.broker.partition.follower_append import FollowerAppend
from sparklog.broker.partition.reads import Reads
from sparklog.core.producers.producer_state import ProducerStates
from sparklog.core.replication.actions import Action, RestartAt, TruncateTo
from sparklog.core.replication.epoch_history import EarlierHistory
from sparklog.core.replication.follower import FetchPosition, Follower
from sparklog.core.replication.leader import Diverging, Leader
from sparklog.core.replication.replica import Replica
from sparklog.core.replication.watermarks import Watermarks
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_EPOCH
from sparklog.records.envelope import split
from sparklog.wire.messages.data.fetch import FetchPartitionData


def _truncate_to_high_watermark(switch: Switch) -> None:
    """A follower cuts at its high watermark when it begins to follow, and asks nobody where the logs part."""

    def on_leader_and_isr(original: Any) -> Any:
        def mutated(self: Replica, state: Any, **facts: Any) -> list[Action]:
            actions: list[Action] = original(self, state, **facts)
            if self.follower is not None and actions:
                return [TruncateTo(self.marks.high_watermark), *actions]
            return actions

        return mutated

    def fetch_position(original: Any) -> Any:
        def mutated(self: Follower) -> FetchPosition | None:
            position: FetchPosition | None = original(self)
            return position and replace(position, last_fetched_epoch=-1)

        return mutated

    switch.method(Replica, "on_leader_and_isr", on_leader_and_isr)
    switch.method(Follower, "fetch_position", fetch_position)


def _no_epoch_fence_on_fetch(switch: Switch) -> None:
    """Fetches carry no leader epoch: leaders answer any of them, who does not lead says just that, and only
    the first fetch of a role asks where the logs part."""
    compared: dict[int, Follower] = {}  # keeps them, so that no number is used twice

    def check_epoch(original: Any) -> Any:
        def mutated(self: Leader, current_leader_epoch: int) -> ErrorCode:
            return ErrorCode.none

        return mutated

    def on_appended(original: Any) -> Any:
        def mutated(self: Follower, *marks: int) -> list[Action]:
            compared[id(self)] = self
            actions: list[Action] = original(self, *marks)
            return actions

        return mutated

    def fetch_position(original: Any) -> Any:
        def mutated(self: Follower) -> FetchPosition | None:
            position: FetchPosition | None = original(self)
            return replace(position, last_fetched_epoch=-1) if position and id(self) in compared else position

        return mutated

    def no_leader(original: Any) -> Any:
        def mutated(self: Reads, current_leader_epoch: int) -> ErrorCode:
            error: ErrorCode = original(self, NO_EPOCH)
            return error

        return mutated

    switch.method(Leader, "check_epoch", check_epoch)
    switch.method(Reads, "_no_leader", no_leader)
    switch.method(Follower, "on_appended", on_appended)
    switch.method(Follower, "fetch_position", fetch_position)


def _takes_a_watermark_before_it_cuts(switch: Switch) -> None:
    """A reply that names where logs diverge moves the high watermark; the log is cut a fetch later.

    The next fetch begins in the event of the reply, before any rule looks: a cut then would hide the bug.
    """
    postponed: dict[int, list[Callable[[], None]]] = {}
    due: dict[int, list[Callable[[], None]]] = {}

    def take_partition(original: Any) -> Any:
        def mutated(self: Fetcher, followed: Any, position: FetchPosition, data: FetchPartitionData) -> bool:
            if data.diverging_epoch is None or data.diverging_epoch.epoch < 0:
                taken: bool = original(self, followed, position, data)
                return taken
            followed.partition.follower_append.append(
                b"",
                [],
                leader_epoch=position.leader_epoch,
                fetch_offset=position.fetch_offset,
                leader_high_watermark=data.high_watermark,
                leader_log_start_offset=data.log_start_offset,
            )
            cuts = postponed.setdefault(id(self), [])
            cuts.append(lambda: original(self, followed, position, data))
            return True

        return mutated

    def look(original: Any) -> Any:
        def mutated(self: Fetcher) -> None:
            for cut in due.pop(id(self), ()):
                cut()
            due[id(self)] = postponed.pop(id(self), [])
            original(self)

        return mutated

    switch.method(Fetcher, "_take_partition", take_partition)
    switch.method(Fetcher, "_look", look)


def _cuts_by_the_word_of_any_leader(switch: Switch) -> None:
    """A reply that tells where logs part is obeyed, whichever epoch and end of the log it was asked for."""

    def on_diverging(
        self: FollowerAppend, leader_epoch: int, fetch_offset: int, diverging: Diverging, leader_start: int
    ) -> None:
        with self._log_guard.step:
            if (follower := self._replica.follower) is not None:
                self._log_guard.apply(follower.on_diverging(diverging, leader_start))

    switch.instead(FollowerAppend, "on_diverging", on_diverging)


def _late_refusals_count(switch: Switch) -> None:
    """A refusal counts for the epoch that there is when it comes, not for that of its request."""

    def on_fetch_error(original: Any) -> Any:
        def mutated(self: Follower, error: ErrorCode, request_leader_epoch: int) -> list[Action]:
            actions: list[Action] = original(self, error, self.leader_epoch)
            return actions

        return mutated

    switch.method(Follower, "on_fetch_error", on_fetch_error)


def _out_of_range_begins_anew(switch: Switch) -> None:
    """As before logs were compared: a follower beyond its leader's end is out of range. It asks where that
    end is, cuts to there, and begins anew if that is not below its own end by then."""

    def check_fetch_position(original: Any) -> Any:
        def mutated(self: Leader, fetch_offset: int, last_fetched_epoch: int) -> Diverging | ErrorCode:
            if fetch_offset > self.marks.log_end_offset:
                return ErrorCode.offset_out_of_range
            position: Diverging | ErrorCode = original(self, fetch_offset, last_fetched_epoch)
            return position

        return mutated

    def on_leader_offsets(
        self: Follower,
        leader_start: int,
        leader_end: int,
        producers: ProducerStates | None,
        history: EarlierHistory | None,
    ) -> list[Action]:
        if leader_end < self.marks.log_end_offset:
            return [TruncateTo(leader_end)]
        return [RestartAt(leader_start, producers, history)]

    switch.method(Leader, "check_fetch_position", check_fetch_position)
    switch.instead(Follower, "on_leader_offsets", on_leader_offsets)


def _keeps_a_watermark_below_its_start(switch: Switch) -> None:
    """A log that begins anew, or gives up its start, leaves the high watermark where it was."""

    def clamp(self: Watermarks) -> None:
        self.high_watermark = min(self.high_watermark, self.log_end_offset)

    switch.instead(Watermarks, "clamp", clamp)


def _followers_compare_no_crc(switch: Switch) -> None:
    """A follower takes over whatever has the form of batches."""
    switch.instead(fetcher, "check_replicated", split)


FOLLOWER: Final[tuple[Mutant, ...]] = (
    Mutant(
        "truncate-to-high-watermark",
        "KIP-101, KAFKA-1211",
        "a follower truncates committed records above its high watermark, and leads",
        20,
        _truncate_to_high_watermark,
        brings_back=("K1", "K2"),
    ),
    Mutant(
        "no-epoch-fence-on-fetch",
        "KIP-320",
        "a deposed leader sends a follower records, or counts it",
        30,
        _no_epoch_fence_on_fetch,
        Hunt(plot=1, settings={"replica.lag.time.max.ms": "2000"}),
        brings_back=("K2", "K11"),
    ),
    Mutant(
        "takes-a-watermark-before-it-cuts",
        "KAFKA-14704",
        "uncommitted records of a deposed leader count as committed until their truncation",
        60,
        _takes_a_watermark_before_it_cuts,
        brings_back=("K8",),
    ),
    Mutant(
        "cuts-by-the-word-of-any-leader",
        "KAFKA-13207",
        "a log is truncated by an answer of a deposed leader",
        90,
        _cuts_by_the_word_of_any_leader,
        Hunt(plot=23, settings={"replica.lag.time.max.ms": "2000"}),
        brings_back=("K9",),
    ),
    Mutant(
        "late-refusals-count",
        "KAFKA-7786",
        "a refusal of an earlier epoch stops a follower for good",
        100,
        _late_refusals_count,
        Hunt(kinds=("delay frames", "kill broker"), operations=("elect preferred",)),
        brings_back=("K10",),
    ),
    Mutant(
        "out-of-range-begins-anew",
        "KAFKA-2143",
        "a follower that its leader overtook discards its log",
        20,
        _out_of_range_begins_anew,
        Hunt(plot=27, settings={"replica.lag.time.max.ms": "2000"}),
        brings_back=("K12",),
    ),
    Mutant(
        "keeps-a-watermark-below-its-start",
        "KAFKA-9491",
        "a replica leads with a high watermark outside its log",
        20,
        _keeps_a_watermark_below_its_start,
        brings_back=("K13",),
    ),
    Mutant(
        "followers-compare-no-crc",
        "bit rot, damaged frames",
        "rot at the leader is copied, until no good copy is left",
        20,
        _followers_compare_no_crc,
        Hunt(plot=61, settings={"min.insync.replicas": "2"}),
        is_quick=True,
    ),
)
