"""What clients ask of the group machine, with the differences between versions already ironed out.

Each request is a ``core.coordinator.state_machine.Request``. A wire request for several groups becomes
several requests here.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from sparklog.core.coordinator.actions import Producer
from sparklog.core.group.responses import (
    DeleteGroupAnswer,
    DescribeGroupAnswer,
    FetchedOffset,
    HeartbeatAnswer,
    JoinGroupAnswer,
    LeaveGroupAnswer,
    ListGroupsAnswer,
    OffsetCommitAnswer,
    OffsetDeleteAnswer,
    OffsetFetchAnswer,
    SyncGroupAnswer,
    TransactionalCommitAnswer,
)
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition

UNKNOWN_MEMBER_ID: Final = ""
"""The member id of a client that has none yet."""

NO_RETENTION_TIME_MS: Final = -1


@dataclass(frozen=True, slots=True)
class _OfGroup:
    """A request about one group. An empty ``group_id`` is legal where Kafka takes it: see ``_OfMembers``."""

    group_id: str

    @property
    def key(self) -> str:
        return self.group_id


class JoinProtocol(NamedTuple):
    """A protocol that the member supports, with the member's metadata for it."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroup(_OfGroup):
    """Become a member, or take part in the next rebalance.

    ``protocols``: the preferred protocol first. ``rebalance_timeout_ms``: the session time-out in version 0.
    ``requires_member_id``: from version 4 on, a client without member id is given one and joins again
    (KIP-394). ``supports_skip_assignment``: from version 9 on (KIP-814).
    ``member_id_suffix``: a random UUID, drawn by the shell, for the member id of a new member.
    """

    member_id: str
    group_instance_id: str | None = None
    client_id: str
    client_host: str
    protocol_type: str
    protocols: tuple[JoinProtocol, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    requires_member_id: bool
    supports_skip_assignment: bool
    member_id_suffix: str
    reason: str | None = None

    def invalid(self) -> JoinGroupAnswer | None:
        return None if self.group_id else self.refused(ErrorCode.invalid_group_id)

    def while_loading(self) -> JoinGroupAnswer:
        return self.refused(ErrorCode.coordinator_load_in_progress)

    def refused(self, error: ErrorCode) -> JoinGroupAnswer:
        return JoinGroupAnswer(error, self.member_id)


class Assignment(NamedTuple):
    """What the leader assigns to a member."""

    member_id: str
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroup(_OfGroup):
    """Get one's assignment; the leader brings those of all members.

    ``protocol_type`` and ``protocol`` are None before version 5 (KIP-559).
    """

    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: tuple[Assignment, ...] = ()

    def invalid(self) -> SyncGroupAnswer | None:
        return None if self.group_id else self.refused(ErrorCode.invalid_group_id)

    def while_loading(self) -> SyncGroupAnswer:
        """The rebalance that was under way is lost, and old clients know no other code for it."""
        return self.refused(ErrorCode.rebalance_in_progress)

    def refused(self, error: ErrorCode) -> SyncGroupAnswer:
        return SyncGroupAnswer(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(_OfGroup):
    generation_id: int
    member_id: str
    group_instance_id: str | None = None

    def invalid(self) -> HeartbeatAnswer | None:
        return None if self.group_id else self.refused(ErrorCode.invalid_group_id)

    def while_loading(self) -> HeartbeatAnswer:
        """Success, so that no member leaves a group only because its coordinator has moved."""
        return self.refused(ErrorCode.none)

    def refused(self, error: ErrorCode) -> HeartbeatAnswer:
        return HeartbeatAnswer(error)


class LeavingMember(NamedTuple):
    """A member to remove: by its member id, or by its instance id if ``member_id`` is empty (KIP-345)."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroup(_OfGroup):
    members: tuple[LeavingMember, ...]

    def invalid(self) -> LeaveGroupAnswer | None:
        return None if self.group_id else self.refused(ErrorCode.invalid_group_id)

    def while_loading(self) -> LeaveGroupAnswer:
        return self.refused(ErrorCode.coordinator_load_in_progress)

    def refused(self, error: ErrorCode) -> LeaveGroupAnswer:
        return LeaveGroupAnswer(error)


class OffsetToCommit(NamedTuple):
    """``leader_epoch`` is -1 if the client gave none. ``commit_timestamp_ms``: only version 1 may name it."""

    topic_partition: TopicPartition
    offset: int
    leader_epoch: int = -1
    metadata: str | None = None
    commit_timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommit(_OfGroup):
    """Save positions. ``generation_id`` -1 and ``member_id`` "" if the client manages no membership here.

    ``retention_time_ms``: versions 2 to 4 may name it; else -1.
    """

    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    retention_time_ms: int = NO_RETENTION_TIME_MS
    offsets: tuple[OffsetToCommit, ...]

    def invalid(self) -> OffsetCommitAnswer | None:
        return None

    def while_loading(self) -> OffsetCommitAnswer:
        return self.refused(ErrorCode.coordinator_load_in_progress)

    def refused(self, error: ErrorCode) -> OffsetCommitAnswer:
        return OffsetCommitAnswer(tuple((offset.topic_partition, error) for offset in self.offsets))


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalOffsetCommit(_OfGroup):
    """Save positions that count once the producer's transaction is committed.

    ``generation_id`` -1 and ``member_id`` "" if the client names no membership (TxnOffsetCommit 0 to 2).
    ``guard``: from the answer that asked for the transaction to be verified; None the first time.
    """

    producer: Producer
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    offsets: tuple[OffsetToCommit, ...]
    guard: int | None = None
    connection: int | None = None
    """Over which it came; see ``core.producers.latest_connections``."""

    def invalid(self) -> TransactionalCommitAnswer | None:
        return None if self.group_id else self.refused(ErrorCode.invalid_group_id)

    def while_loading(self) -> TransactionalCommitAnswer:
        return self.refused(ErrorCode.coordinator_load_in_progress)

    def refused(self, error: ErrorCode) -> TransactionalCommitAnswer:
        return TransactionalCommitAnswer(tuple((one.topic_partition, error) for one in self.offsets))


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetch(_OfGroup):
    """Read committed offsets: of ``topic_partitions``, or with None of all that have any.

    ``require_stable``: say UNSTABLE_OFFSET_COMMIT for a partition with a commit under way (KIP-447).
    """

    topic_partitions: tuple[TopicPartition, ...] | None
    require_stable: bool = False

    def invalid(self) -> OffsetFetchAnswer | None:
        return None

    def while_loading(self) -> OffsetFetchAnswer:
        return self.refused(ErrorCode.coordinator_load_in_progress)

    def refused(self, error: ErrorCode) -> OffsetFetchAnswer:
        """The error of the group; versions without one say the partitions' (``offsets``)."""
        named = self.topic_partitions or ()
        return OffsetFetchAnswer(error, tuple(FetchedOffset(one, error=error) for one in named))


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroup(_OfGroup):
    def invalid(self) -> DescribeGroupAnswer | None:
        return None

    def while_loading(self) -> DescribeGroupAnswer:
        return self.refused(ErrorCode.coordinator_load_in_progress)

    def refused(self, error: ErrorCode) -> DescribeGroupAnswer:
        return DescribeGroupAnswer(error, self.group_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroups:
    """All groups of a shard, or those in one of ``states`` (upper or lower case does not matter)."""

    states: frozenset[str] = frozenset()

    @property
    def key(self) -> None:
        return None

    def invalid(self) -> ListGroupsAnswer | None:
        return None

    def while_loading(self) -> ListGroupsAnswer:
        return self.refused(ErrorCode.coordinator_load_in_progress)

    def refused(self, error: ErrorCode) -> ListGroupsAnswer:
        return ListGroupsAnswer(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroup(_OfGroup):
    """Remove a group without members, with its offsets."""

    def invalid(self) -> DeleteGroupAnswer | None:
        return None

    def while_loading(self) -> DeleteGroupAnswer:
        return self.refused(ErrorCode.coordinator_load_in_progress)

    def refused(self, error: ErrorCode) -> DeleteGroupAnswer:
        return DeleteGroupAnswer(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDelete(_OfGroup):
    """Remove the committed offsets of partitions to which the group is not subscribed (KIP-496)."""

    topic_partitions: tuple[TopicPartition, ...]

    def invalid(self) -> OffsetDeleteAnswer | None:
        return None if self.group_id else self.refused(ErrorCode.invalid_group_id)

    def while_loading(self) -> OffsetDeleteAnswer:
        return self.refused(ErrorCode.coordinator_load_in_progress)

    def refused(self, error: ErrorCode) -> OffsetDeleteAnswer:
        return OffsetDeleteAnswer(error)


GroupRequest = (
    JoinGroup
    | SyncGroup
    | Heartbeat
    | LeaveGroup
    | OffsetCommit
    | TransactionalOffsetCommit
    | OffsetFetch
    | DescribeGroup
    | ListGroups
    | DeleteGroup
    | OffsetDelete
)
