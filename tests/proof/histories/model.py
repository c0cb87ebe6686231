"""A history in memory: each send, poll and question is one object, from invocation to completion.

Whoever records in memory (the simulation) makes these objects; the reader makes them of lines. Times are
nanoseconds of one clock. A number that is not known is -1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

ACKS_ALL: Final = -1

Outcome = Literal["ok", "fail", "info"]
"""It happened; it definitely did not; nobody knows. A send without an answer is ``info``."""

Record = tuple[int, str]
"""Offset and value."""

Cell = tuple[int, int, str]
"""Offset, the id of a column, and the text of what that row holds there."""


@dataclass(slots=True, eq=False)
class Send:
    """One record on its way into a log."""

    process: str
    topic: str
    partition: int
    value: str
    acks: int
    session: str
    seq: int
    is_idempotent: bool
    invoked_ns: int
    key: str | None = None
    is_tombstone: bool = False
    outcome: Outcome = "info"
    done_ns: int = -1
    offset: int = -1
    leader_epoch: int = -1
    error: str = "no answer"
    transaction: str | None = None
    """To which it belongs."""
    source: str | None = None
    """The value of the record of which a pipeline made it."""
    in_flight: int = -1
    """How many requests of its producer may be under way at once."""
    cells: Mapping[int, str] | None = None
    """Of a typed row: what its columns hold, by their ids, nulls left out; None: it is no such row."""

    @property
    def is_ok(self) -> bool:
        return self.outcome == "ok"


@dataclass(slots=True, eq=False)
class Poll:
    """What an assigned consumer was given, from its position on."""

    process: str
    topic: str
    partition: int
    start: int
    records: Sequence[Record]
    invoked_ns: int
    done_ns: int
    leader_epoch: int = -1
    epochs: Sequence[tuple[int, int]] = ()
    """From which of these records on they were appended in which leader epoch; for no record if not known."""
    isolation: Literal["", "committed", "uncommitted"] = ""
    """Empty where nobody tells: then its topic has no transactions."""
    columns: Sequence[int] | None = None
    """Of typed rows: the ids of the columns that the reader was given; None: it told no columns."""
    cells: Sequence[Cell] = ()
    """What these columns held, nulls left out."""


@dataclass(slots=True, eq=False)
class Seek:
    process: str
    topic: str
    partition: int
    offset: int
    done_ns: int


@dataclass(slots=True, eq=False)
class End:
    """An answer to ListOffsets(latest)."""

    process: str
    topic: str
    partition: int
    invoked_ns: int
    done_ns: int
    offset: int
    leader_epoch: int = -1


@dataclass(slots=True, eq=False)
class FinalRead:
    """All of a partition, read when everything was mended."""

    topic: str
    partition: int
    start: int
    end: int
    records: list[Record]
    done_ns: int
    high_watermark: int = -1
    """The log's end for readers of uncommitted records, where ``end`` is that of committed ones."""
    columns: Sequence[int] | None = None
    cells: list[Cell] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Dump:
    """One replica's log, read from its files. ``records`` are offset, leader epoch and value; ``batches`` are
    first offset, last offset and digest."""

    broker: str
    topic: str
    partition: int
    start: int
    end: int
    high_watermark: int
    records: list[tuple[int, int, str]]
    batches: list[tuple[int, int, str]]
    done_ns: int
    cells: list[Cell] | None = None
    """What all columns of typed rows hold, nulls left out; None: there are no such rows."""


@dataclass(slots=True, eq=False)
class Commit:
    """One offset that a member commits. ``value`` is unique among those of its group and partition."""

    process: str
    group: str
    topic: str
    partition: int
    value: str
    invoked_ns: int
    outcome: Outcome = "info"
    done_ns: int = -1
    error: str = "no answer"

    @property
    def is_ok(self) -> bool:
        return self.outcome == "ok"


@dataclass(slots=True, eq=False)
class Init:
    """A producer asks for its transactional id; from the answer on, producers before it are fenced."""

    process: str
    transactional_id: str
    session: str
    invoked_ns: int
    outcome: Outcome = "info"
    done_ns: int = -1
    error: str = "no answer"

    @property
    def is_ok(self) -> bool:
        return self.outcome == "ok"


@dataclass(slots=True, eq=False)
class Finish:
    """The end of a transaction is asked for. ``fail``: it is certain that this did not end it."""

    process: str
    transaction: str
    is_commit: bool
    invoked_ns: int
    outcome: Outcome = "info"
    done_ns: int = -1
    error: str = "no answer"
    write: str = ""
    """The version of an atomic write at which this transaction is a try; empty: it is none."""

    @property
    def is_ok(self) -> bool:
        return self.outcome == "ok"


@dataclass(slots=True, eq=False)
class Written:
    """The driver of an atomic write is told that this version is committed, by this try or an earlier one."""

    process: str
    write: str
    done_ns: int


@dataclass(slots=True, eq=False)
class CommittedRead:
    """An answer to OffsetFetch for one partition; None: the group has committed nothing there."""

    process: str
    group: str
    topic: str
    partition: int
    value: str | None
    invoked_ns: int
    done_ns: int


@dataclass(slots=True, eq=False)
class Assigned:
    """What a member was assigned in a generation of its group. ``member`` is an identity: a static member's
    instance id, since its twin owns what it owned; else the member id.
    """

    process: str
    group: str
    generation: int
    member: str
    shares: Sequence[str]
    done_ns: int


@dataclass(slots=True, eq=False)
class GroupLost:
    """From now on the group may have lost what it committed: an election of its log lost records, or somebody
    asked for its deletion.
    """

    group: str
    at_ns: int


@dataclass(slots=True, eq=False)
class TopicEvent:
    """A topic is there from now on, or is about to be deleted."""

    topic: str
    is_created: bool
    at_ns: int
    is_compacted: bool = False


@dataclass(slots=True, eq=False)
class Deleted:
    """From now on records below ``before`` may be gone."""

    topic: str
    partition: int
    before: int
    at_ns: int


@dataclass(slots=True, eq=False)
class Leader:
    topic: str
    partition: int
    leader: str
    leader_epoch: int
    at_ns: int
    is_unclean: bool = False


@dataclass(slots=True, eq=False)
class TimedOut:
    """A client gave a request of a session up, which had no answer for ``waited_ns``, and sends its records
    again.
    """

    session: str
    at_ns: int
    waited_ns: int


@dataclass(slots=True, eq=False)
class FaultWindow:
    """``end_ns`` is -1 if nobody said that it ended."""

    id: str
    kind: str
    target: str
    begin_ns: int
    end_ns: int = -1


@dataclass(slots=True, eq=False)
class History:
    """Everything, each kind in the order of completion as far as it has one."""

    sends: list[Send] = field(default_factory=list)
    reads: list[Poll | Seek] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    finals: list[FinalRead] = field(default_factory=list)
    dumps: list[Dump] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    inits: list[Init] = field(default_factory=list)
    finishes: list[Finish] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    committed: list[CommittedRead] = field(default_factory=list)
    assigned: list[Assigned] = field(default_factory=list)
    groups_lost: list[GroupLost] = field(default_factory=list)
    topics: list[TopicEvent] = field(default_factory=list)
    deleted: list[Deleted] = field(default_factory=list)
    leaders: list[Leader] = field(default_factory=list)
    timed_out: list[TimedOut] = field(default_factory=list)
    faults: list[FaultWindow] = field(default_factory=list)
    not_run: list[tuple[str, str]] = field(default_factory=list)
    healed_ns: int = -1
    """When everything was mended, for good: the last such event."""
