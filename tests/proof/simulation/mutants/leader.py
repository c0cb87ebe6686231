"""Bugs of a leader: what it answers, counts and lets be read."""

from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from sparklog.core.replication.actions import Action, CompleteProduce
from sparklog.core.replication.leader import Diverging, Leader
from sparklog.core.replication.visibility import Visibility
from sparklog.core.replication.watermarks import Watermarks
from sparklog.model.errors import ErrorCode
from sparklog.storage.log import Log


def _ack_on_append(switch: Switch) -> None:
    """A produce with acks=all is answered when the leader has it."""

    def on_produce_waits(original: Any) -> Any:
        def mutated(self: Leader, token: int, required_offset: int, **_how: Any) -> list[Action]:
            return [CompleteProduce(token, ErrorCode.none)]

        return mutated

    switch.method(Leader, "on_produce_waits", on_produce_waits)


def _no_epoch_fence_at_the_leader(switch: Switch) -> None:
    """A leader serves readers of any epoch and compares no histories; followers still fence what they get."""

    def check_epoch(original: Any) -> Any:
        def mutated(self: Leader, current_leader_epoch: int) -> ErrorCode:
            return ErrorCode.none

        return mutated

    def check_fetch_position(original: Any) -> Any:
        def mutated(self: Leader, fetch_offset: int, last_fetched_epoch: int) -> Diverging | ErrorCode:
            position: Diverging | ErrorCode = original(self, fetch_offset, -1)
            return position

        return mutated

    switch.method(Leader, "check_epoch", check_epoch)
    switch.method(Leader, "check_fetch_position", check_fetch_position)


def _read_beyond_high_watermark(switch: Switch) -> None:
    """Consumers are served to the end of the leader's log."""

    def readable_end(original: Any) -> Any:
        def mutated(self: Watermarks, visibility: Visibility) -> int:
            return self.log_end_offset

        return mutated

    switch.method(Watermarks, "readable_end", readable_end)


def _reads_sealed_segments_whole(switch: Switch) -> None:
    """A read ends at the high watermark in the last segment; one that was sealed is read to its end."""

    def read(original: Any) -> Any:
        def mutated(self: Log, fetch_offset: int, max_bytes: int, max_offset: int, **how: Any) -> Any:
            sealed = [one for one in self.segments[:-1] if one.base_offset <= max_offset < one.end_offset]
            return original(
                self, fetch_offset, max_bytes, sealed[0].end_offset if sealed else max_offset, **how
            )

        return mutated

    switch.method(Log, "read", read)


LEADER: Final[tuple[Mutant, ...]] = (
    Mutant(
        "ack-on-append",
        "KAFKA-3410; acks=1 instead of all",
        "acknowledged records are lost with the leader",
        20,
        _ack_on_append,
        is_quick=True,
    ),
    Mutant(
        "no-epoch-fence-at-the-leader",
        "KIP-320 and KIP-595, the leader's half",
        "a leader counts and serves followers of another epoch",
        40,
        _no_epoch_fence_at_the_leader,
        brings_back=("K11",),
    ),
    Mutant(
        "read-beyond-high-watermark",
        "the consumer side of KIP-101; KAFKA-15583 in part",
        "consumers see records that are lost later",
        20,
        _read_beyond_high_watermark,
        brings_back=("K28", "K34"),
    ),
    Mutant(
        "reads-sealed-segments-whole",
        "KAFKA-9835, KAFKA-9807, KAFKA-9196",
        "consumers see uncommitted records after the log rolled",
        20,
        _reads_sealed_segments_whole,
        is_quick=True,
        brings_back=("K28",),
    ),
)
