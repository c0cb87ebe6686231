"""One member of a group, as its coordinator knows it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from sparklog.core.coordinator.actions import Token
from sparklog.core.group.records import MemberValue
from sparklog.core.group.requests import JoinGroup, JoinProtocol, SyncGroup
from sparklog.core.group.responses import DescribedMember, JoinedMember
from sparklog.model.time import MonotonicMs


class WaitingJoin(NamedTuple):
    """A JoinGroup that is answered when the rebalance begins its next generation."""

    token: Token
    request: JoinGroup


class WaitingSync(NamedTuple):
    """A SyncGroup that is answered when the leader's assignment is in the log."""

    token: Token
    request: SyncGroup


@dataclass(slots=True, kw_only=True)
class Member:
    """``protocols`` in the member's order of preference, with distinct names.

    ``assignment`` is the latest that a leader brought; it counts only in a stable group.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[JoinProtocol, ...]
    session_deadline_ms: MonotonicMs
    """When the member has failed, unless it gives a sign of life before."""
    assignment: bytes = b""
    is_new: bool = False
    """Whether the member has not seen its first generation. It does not know its member id yet and cannot
    send heartbeats, so only the age of its JoinGroup shows that it has gone."""
    waiting_join: WaitingJoin | None = None
    waiting_sync: WaitingSync | None = None

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    def expires_at_ms(self) -> MonotonicMs | None:
        """When the member fails; None while it waits for an answer and therefore cannot send heartbeats."""
        if not self.is_new and (self.waiting_join is not None or self.waiting_sync is not None):
            return None
        return self.session_deadline_ms

    def supports(self, protocol: str) -> bool:
        return any(name == protocol for name, _ in self.protocols)

    def metadata(self, protocol: str) -> bytes:
        """The member's metadata for a protocol that it supports; raises KeyError for another."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise KeyError(protocol)

    def vote(self, candidates: Collection[str]) -> str:
        """The first of the member's protocols that is a candidate; raises ValueError if none is."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise ValueError(f"{self.member_id} supports none of {candidates}")

    def as_value(self, protocol: str) -> MemberValue:
        return MemberValue(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            subscription=self.metadata(protocol),
            assignment=self.assignment,
        )

    def as_joined(self, protocol: str) -> JoinedMember:
        return JoinedMember(self.member_id, self.group_instance_id, self.metadata(protocol))

    def as_described(self, protocol: str | None) -> DescribedMember:
        """What DescribeGroups shows; without ``protocol`` neither metadata nor assignment."""
        return DescribedMember(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            b"" if protocol is None else self.metadata(protocol),
            b"" if protocol is None else self.assignment,
        )
