"""The protocol between a shard and the state machine of its kind: groups, or transactions.

A *shard* is one coordinator on one partition of its internal topic, in one leader epoch. It reads the log
into a fresh machine, and then passes facts to the machine and carries out the machine's actions:

    loading: replay, replay_pending, replay_end, replay_loss (each in log order), on_loaded
    active:  on_request, on_written, on_time, on_topics_deleted   -> Reply, Write, Tell
             on_end
    end:     on_resigned                                          -> Reply

A machine has two kinds of state. *Applied* state follows from the records below the high watermark alone;
``replay`` while loading and ``Written`` while active change it, both in log order. The rest (timers, waiting
requests, a rebalance that is under way) is lost with the shard.

A shard guarantees to its machine:

- Writes enter the log in the order of the actions, and ``Written`` outcomes arrive in log order.
- From a ``Write`` that holds its key until the final outcome, and from any ``InDoubt`` until ``Written``, no
  request of that key reaches the machine. In return the machine does not act on that key in ``on_time``.
- A request whose ``key`` is None concerns all keys, and never waits for a held key.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sparklog.core.coordinator.actions import Action, Reply, StateRecord, Token, WriteId, WriteOutcome
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NamedTopic
from sparklog.model.time import MonotonicMs, WallMs

ResponseT = TypeVar("ResponseT", covariant=True)


@dataclass(frozen=True, slots=True)
class Now:
    """One moment on both clocks: members time out by the monotonic one, commits are stamped by the other."""

    monotonic_ms: MonotonicMs
    wall_ms: WallMs


class Request(Protocol[ResponseT]):
    """A request to a coordinator: a frozen dataclass that knows the answers which need no machine."""

    @property
    def key(self) -> str | None:
        """The group or transactional id, which names the partition; None asks every shard."""

    def invalid(self) -> ResponseT | None:
        """The answer to a request that no coordinator accepts, whatever its state; None if there is none.

        It goes before every other answer.
        """

    def while_loading(self) -> ResponseT:
        """The answer of a coordinator that reads its log."""

    def refused(self, error: ErrorCode) -> ResponseT:
        """The answer that says only ``error``, for everything that the request names."""


class StateMachine(Protocol):
    """One machine: all keys of one partition, in one leader epoch."""

    def replay(self, record: StateRecord) -> None:
        """Apply a record of the log, while loading."""

    def replay_pending(self, record: StateRecord, producer_id: int) -> None:
        """Apply a record of a producer's open transaction, while loading; it counts after a commit."""

    def replay_end(self, producer_id: int, is_commit: bool) -> None:
        """Apply the end of a producer's transaction, while loading."""

    def replay_loss(self) -> None:
        """Acknowledged records that followed here may be lost; at most once, while loading."""

    def on_loaded(self, now: Now) -> list[Action]:
        """The log up to the end that it had at the election was replayed, and is committed."""

    def on_request(self, token: Token, request: Any, now: Now) -> list[Action]: ...

    def on_written(self, write_id: WriteId, outcome: WriteOutcome, now: Now) -> list[Action]: ...

    def on_end(self, producer_id: int, is_commit: bool, now: Now) -> list[Action]:
        """A producer's transaction has ended: its marker is below the high watermark of this partition.

        Comes in log order with the outcomes of writes. The keys of the transaction may be held.
        """

    def on_time(self, now: Now) -> list[Action]:
        """Everything whose time has come."""

    def next_deadline_ms(self) -> MonotonicMs | None:
        """When ``on_time`` has something to do next; None if nothing waits for a time."""

    def on_topics_deleted(self, topics: Iterable[NamedTopic], now: Now) -> list[Action]:
        """These topics are gone. Others may have been made under their names."""

    def topics(self) -> Collection[NamedTopic]:
        """The topics of which the machine keeps state; asked when all is replayed, before ``on_loaded``.
        Those that are gone by then are passed to ``on_topics_deleted`` after it.
        """

    def counts(self) -> Mapping[str, int]:
        """How often things have happened since the load, by name; for metrics."""

    def on_resigned(self) -> list[Reply]:
        """The last call: NOT_COORDINATOR to every request that waits in the machine."""

    def check_invariants(self) -> None:
        """What holds after every fact; raises AssertionError."""
