"""The typed records of writes in ``__transaction_state``: one for each app,
one for each member, and one for each agreement.
"""

from dataclasses import dataclass
from typing import Final

from sparklog.core.transaction_coordinator.records import TransactionTopic
from sparklog.core.write_coordinator.states import AppState
from sparklog.model.ids import NO_EPOCH, LeaderEpoch
from sparklog.model.write_outcomes import MemberState

NO_VERSION: Final = -1
NO_WRITE_NUMBER: Final = -1


@dataclass(frozen=True, slots=True)
class HeadKey:
    """An app. It has no more to do with a transactional id of the same name than their partition."""

    app: str


@dataclass(frozen=True, slots=True)
class MemberKey:
    app: str
    write_number: int
    member_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What is known of an app, beside the members of its write.

    ``version`` and ``write_number`` are those of the write that is open or being ended, else of the last one.
    ``committed_version``: the last version that was committed; -1 for none. ``winners``: member numbers, once
    a commit is decided. ``aborted_runs``: their members are aborted, and they get no further ones for this
    version. ``is_plain``: nobody will ask for the version again. Times by the wall clock. ``opened_in``: the
    leader epoch in which the write was opened; -1 if that is unknown.
    """

    state: AppState
    version: int
    write_number: int
    committed_version: int
    timeout_ms: int
    is_plain: bool
    start_ms: int
    last_update_ms: int
    winners: frozenset[int] = frozenset()
    aborted_runs: tuple[str, ...] = ()
    opened_in: LeaderEpoch = NO_EPOCH


@dataclass(frozen=True, slots=True)
class Member:
    """One task attempt. ``topics``: the partitions to which it may write, and so will need its marker."""

    state: MemberState
    run: str
    attempt: str
    topics: tuple[TransactionTopic, ...]


@dataclass(frozen=True, slots=True)
class AgreementKey:
    """What tasks agree about. An app or a transactional id of the same name is another key."""

    name: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """The first value that was put. ``agreed_ms`` by the wall clock."""

    value: bytes
    agreed_ms: int
