"""Rules of the names that both teams use, for atomic writes and for agreements.

OwnersStay             a name that a principal owns is given to no other, as the committed log has it
NamesAreTheirOwners    a name that jobs draw serves its owner alone, and who has WRITE on it as on a
                       transactional id; a name that a user has chosen serves the latter
DenialsHaveAReason     who is refused a name lacks the right, and another owns it
ValuesStayInTheirTeam  who agrees is given a value that the same principal has put
TheFirstValueCounts    and no other than was given before

After an election of ``__transaction_state`` that may lose, owners and first values are not judged any more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from simulation.invariants.access.rights import OF_TEAMS
from simulation.invariants.access.rule_stores import RuleStores
from simulation.invariants.coordinator_logs import records_in
from simulation.invariants.invariant import Invariant, Violation
from simulation.plans.principals import principal_of
from simulation.schedule import US_PER_MS, Process
from simulation.truth import Entry, PartitionTruth, ReplicaView
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.write_coordinator.records import Head, HeadKey
from sparklog.model.errors import ErrorCode
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC
from sparklog.model.own_names import is_own_name
from sparklog.model.parts import Part, read_parts
from sparklog.model.write_outcomes import EndOutcome, OpenOutcome
from sparklog.network.exchange import Exchange
from sparklog.wire.codec import decode_request, decode_response
from sparklog.wire.framing import FRAME_PREFIX
from sparklog.wire.messages.writes.agree import AgreeResponse
from sparklog.wire.messages.writes.end_write import EndWriteResponse
from sparklog.wire.messages.writes.open_write import OpenWriteResponse
from sparklog.wire.versions import KNOWN_VERSIONS

WATCHED: Final = frozenset({OpenWriteResponse.API_KEY, EndWriteResponse.API_KEY, AgreeResponse.API_KEY})
DENIED: Final = ErrorCode.transactional_id_authorization_failed

LOOK_US: Final = 1_000 * US_PER_MS
"""So long after a denial its owner must be known, whose record the coordinator had committed."""


@dataclass(frozen=True, slots=True)
class _Denial:
    name: str
    principal: str
    by: str
    at_us: int


class NameRules(Invariant):
    """``has_lost``: whether an election may have lost what coordinators knew."""

    def __init__(self, stores: RuleStores, now_us: Callable[[], int], reach: Callable[[str], None]) -> None:
        self.is_silent = False
        self.has_lost: Callable[[], bool] = lambda: False
        self._stores = stores
        self._now_us = now_us
        self._reach = reach
        self._owners: dict[str, str] = {}
        self._agreed: dict[tuple[str, str], bytes] = {}
        """The value that a principal was given under a name."""
        self._denials: list[_Denial] = []

    # -- the log

    def on_commit(self, truth: PartitionTruth, leader: ReplicaView, added: list[Entry]) -> None:
        if truth.topic_partition.topic != TRANSACTION_STATE_TOPIC:
            return
        assert leader.log is not None
        for entry in added:
            for record in records_in(leader.log, entry, TRANSACTION_STATE_TOPIC):
                if isinstance(record.key, HeadKey) and isinstance(record.value, Head):
                    self.on_owner(record.key.app, record.value.owner)

    def on_owner(self, name: str, owner: str) -> None:
        """The committed log says so."""
        known = self._owners.get(name, "")
        if known and owner != known and not self.has_lost():
            what = f"{name} is given to {owner or 'nobody'}, and {known} owns it"
            raise Violation("OwnersStay", what)
        self._owners[name] = owner

    # -- answers

    def on_answer(self, process: Process, exchange: Exchange, parts: list[Part]) -> None:
        """A broker is about to answer."""
        key, who = exchange.api_key, exchange.context
        if self.is_silent or key not in WATCHED or who.principal not in OF_TEAMS or not parts:
            return
        self._judge_denials()
        _, request = decode_request(exchange.frame)
        frame = memoryview(read_parts(parts))[FRAME_PREFIX.size :]
        _, response = decode_response(key, KNOWN_VERSIONS[key].max, frame)
        match response:
            case AgreeResponse(error_code=ErrorCode.none, value=value) if value is not None:
                self.on_value(who.principal, request.name, bytes(value))
            case OpenWriteResponse():
                serves = response.outcome != OpenOutcome.MEMBER_ENDED
                self._look_at_write(process, exchange, request.app_id, response.error_code, has_served=serves)
            case EndWriteResponse():
                serves = response.outcome != EndOutcome.NOT_OPEN
                self._look_at_write(process, exchange, request.app_id, response.error_code, has_served=serves)

    def on_value(self, principal: str, name: str, value: bytes) -> None:
        """The principal is given that value."""
        if principal_of(value.decode()) != principal:
            what = f"{principal} is given {value!r} under {name}, which another principal has put"
            raise Violation("ValuesStayInTheirTeam", what)
        first = self._agreed.setdefault((principal, name), value)
        if first != value and not self.has_lost():
            what = f"{principal} is given {value!r} under {name}, and was given {first!r}"
            raise Violation("TheFirstValueCounts", what)
        if all((one, name) in self._agreed for one in OF_TEAMS):
            self._reach("both teams agreed upon values of one name")

    def _look_at_write(
        self, process: Process, exchange: Exchange, name: str, error: ErrorCode, *, has_served: bool
    ) -> None:
        """``has_served``: not by an answer that a coordinator may give that does not know the name."""
        principal = exchange.context.principal
        rights, owner = self._rights(process, exchange, name), self._owners.get(name, "")
        if error is DENIED:
            if False not in rights:
                self._break_reason(process.name, principal, name, "who may write it")
            if is_own_name(name):
                self._denials.append(_Denial(name, principal, process.name, self._now_us()))
                self._reach("a team was refused the other's name")
        elif error is ErrorCode.none and (has_served or not is_own_name(name)):
            is_other = not is_own_name(name) or owner not in ("", principal)
            if is_other and True not in rights and not self.has_lost():
                what = f"{process.name} serves {principal} under {name}, which {owner or 'nobody'} owns"
                raise Violation("NamesAreTheirOwners", what)
            if is_own_name(name) and is_other:
                self._reach("a team used the other's name by a rule")

    def _rights(self, process: Process, exchange: Exchange, name: str) -> set[bool]:
        """What the broker says of them since the request came."""
        who = exchange.context
        return self._stores.said(
            process,
            who.principal,
            who.client_host,
            AclOperation.write,
            name,
            since_us=who.received_ms * US_PER_MS,
            resource=ResourceType.transactional_id,
        )

    def _judge_denials(self) -> None:
        """Once the record is surely known that says whose the name is."""
        while self._denials and self._denials[0].at_us + LOOK_US <= self._now_us():
            denial = self._denials.pop(0)
            owner = self._owners.get(denial.name, "")
            if owner in ("", denial.principal) and not self.has_lost():
                self._break_reason(
                    denial.by, denial.principal, denial.name, f"which {owner or 'nobody'} owns"
                )

    def _break_reason(self, by: str, principal: str, name: str, why: str) -> None:
        raise Violation("DenialsHaveAReason", f"{by} refuses {principal} the name {name}, {why}")
