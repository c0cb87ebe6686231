"""The typed records of writes in ``__transaction_state``: of apps, of members, and of agreements."""

from dataclasses import dataclass
from typing import Final

from sparklog.core.security.requester import ANONYMOUS
from sparklog.core.transaction_coordinator.records import TransactionTopic
from sparklog.core.write_coordinator.states import AppState
from sparklog.model.ids import NO_EPOCH, LeaderEpoch
from sparklog.model.write_outcomes import MemberState

NO_VERSION: Final = -1
NO_WRITE_NUMBER: Final = -1


@dataclass(frozen=True, slots=True)
class HeadKey:
    """An app. A transactional id of the same name is in the same partition, and something else."""

    app: str


@dataclass(frozen=True, slots=True)
class MemberKey:
    app: str
    write_number: int
    member_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The state of an app without the members of its write. Times are by the wall clock."""

    state: AppState
    version: int
    """That of the open or ending write, greater than ``committed_version``; while idle, the last write's."""
    write_number: int
    """That of the same write."""
    committed_version: int
    """The last version that was committed; -1 if there is none."""
    timeout_ms: int
    is_plain: bool
    """Whether the write is the only one of its app, so that no later driver asks for its version."""
    start_ms: int
    last_update_ms: int
    winners: frozenset[int] = frozenset()
    """Numbers of finished members; empty unless a commit is prepared."""
    aborted_runs: tuple[str, ...] = ()
    """Runs of ``version`` whose members are aborted, and whose attempts do not become members."""
    opened_in: LeaderEpoch = NO_EPOCH
    """The leader epoch in which the write was opened; -1 if unknown."""
    owner: str = ""
    """The principal that first opened a write under a name of sparklog's; empty if nobody owns the name."""


@dataclass(frozen=True, slots=True)
class Member:
    """One task attempt. ``topics`` are the partitions that it may write to, and that then need its marker."""

    state: MemberState
    run: str
    attempt: str
    topics: tuple[TransactionTopic, ...]


@dataclass(frozen=True, slots=True)
class AgreementKey:
    """The name of an agreement, and the principal whose value it has. An app or a transactional id of the
    same name is another key.
    """

    name: str
    principal: str = ANONYMOUS


@dataclass(frozen=True, slots=True)
class Agreement:
    """The first value of a name. ``agreed_ms`` is by the wall clock."""

    value: bytes
    agreed_ms: int
