"""Requests about writes, with the answers that need no machine."""

from dataclasses import dataclass
from typing import Final

from sparklog.core.security.requester import ANONYMOUS
from sparklog.core.transaction_coordinator.records import TransactionTopic
from sparklog.core.write_coordinator.responses import NO_PRODUCER_ID, Agreed, EndedWrite, OpenedWrite
from sparklog.model.errors import ErrorCode
from sparklog.model.internal_topics import AGREED_BYTES_MAX
from sparklog.model.write_ids import MEMBERS_MAX
from sparklog.model.write_outcomes import MemberState

APP_LENGTH_MAX: Final = 1_000
NAME_LENGTH_MAX: Final = 200
"""Most characters of the name of a run or an attempt."""


@dataclass(frozen=True, slots=True)
class Claim:
    """By what a requester may use an app's name. ``owner``: the principal that owns what it opens, empty
    for one that owns nothing. ``holds_right``: whether names of others are open to it.
    """

    owner: str = ""
    holds_right: bool = True

    def covers(self, owner: str) -> bool:
        """Whether the requester may use a name of ``owner``; a name without one is everybody's."""
        return self.holds_right or owner in ("", self.owner)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWrite:
    """A task attempt joins the write of ``version``, gives a sign of life, or finishes.

    ``run`` is one driver's try at the write; ``attempt`` is unique in the run. ``topics`` are added to the
    member's. ``producer_id`` is the attempt's, -1 before it has one. ``state`` ABORTED withdraws the member.
    ``fresh_write_number`` follows the answer NEEDS_WRITE_NUMBER.
    """

    app: str
    version: int
    run: str
    attempt: str
    timeout_ms: int
    is_plain: bool
    topics: tuple[TransactionTopic, ...] = ()
    state: MemberState = MemberState.WORKING
    producer_id: int = NO_PRODUCER_ID
    fresh_write_number: int | None = None
    claim: Claim = Claim()

    @property
    def key(self) -> str:
        return self.app

    def invalid(self) -> OpenedWrite | None:
        is_valid = _is_app(self.app, self.version) and _is_name(self.run) and _is_name(self.attempt)
        return None if is_valid else self.refused(ErrorCode.invalid_request)

    def while_loading(self) -> OpenedWrite:
        return self.refused(ErrorCode.coordinator_load_in_progress)

    def refused(self, error: ErrorCode) -> OpenedWrite:
        return OpenedWrite(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndWrite:
    """A driver commits the write of ``version``, or aborts the members of its own ``run``.

    ``winners``: producer ids of the members whose rows count; empty for an abort.
    """

    app: str
    version: int
    run: str
    is_commit: bool
    is_plain: bool
    winners: tuple[int, ...] = ()
    claim: Claim = Claim()

    @property
    def key(self) -> str:
        return self.app

    def invalid(self) -> EndedWrite | None:
        is_valid = (
            _is_app(self.app, self.version)
            and _is_name(self.run)
            and len(set(self.winners)) == len(self.winners) <= MEMBERS_MAX
            and (self.is_commit or not self.winners)
        )
        return None if is_valid else self.refused(ErrorCode.invalid_request)

    def while_loading(self) -> EndedWrite:
        return self.refused(ErrorCode.coordinator_load_in_progress)

    def refused(self, error: ErrorCode) -> EndedWrite:
        return EndedWrite(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agree:
    """Asks for the value of ``name`` that ``principal`` has: another's value is another.

    ``value`` becomes it if there is none; None only asks.
    """

    name: str
    value: bytes | None = None
    principal: str = ANONYMOUS

    @property
    def key(self) -> str:
        return self.name

    def invalid(self) -> Agreed | None:
        is_valid = 0 < len(self.name) <= APP_LENGTH_MAX and len(self.value or b"") <= AGREED_BYTES_MAX
        return None if is_valid else self.refused(ErrorCode.invalid_request)

    def while_loading(self) -> Agreed:
        return self.refused(ErrorCode.coordinator_load_in_progress)

    def refused(self, error: ErrorCode) -> Agreed:
        return Agreed(error)


def _is_app(app: str, version: int) -> bool:
    return 0 < len(app) <= APP_LENGTH_MAX and version >= 0


def _is_name(text: str) -> bool:
    return 0 < len(text) <= NAME_LENGTH_MAX
