"""What the group machine answers, with the fields of the newest served version of each response.

The handlers leave out what the request's version does not have.
"""

from dataclasses import dataclass
from typing import Final

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_OFFSET, TopicPartition

NO_GENERATION: Final = -1


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """A member as the leader sees it: ``metadata`` belongs to the protocol of the generation."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinGroupAnswer:
    """``members`` is empty for all but the leader. ``protocol_type`` and ``protocol`` are None on errors.

    ``skip_assignment`` tells a static leader that came back to leave the assignment as it is (KIP-814).
    """

    error: ErrorCode
    member_id: str
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncGroupAnswer:
    error: ErrorCode
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class LeftMember:
    """``member_id`` and ``group_instance_id`` as the request had them."""

    member_id: str
    group_instance_id: str | None
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class LeaveGroupAnswer:
    """``members`` in the order of the request; empty if ``error`` concerns the whole request."""

    error: ErrorCode
    members: tuple[LeftMember, ...] = ()


@dataclass(frozen=True, slots=True)
class OffsetCommitAnswer:
    """One error for each partition, in the order of the request."""

    errors: tuple[tuple[TopicPartition, ErrorCode], ...]


@dataclass(frozen=True, slots=True)
class TransactionalCommitAnswer:
    """One error for each partition, in the order of the request.

    ``guard``: nothing was written; have the transaction verified, and ask again with this guard.
    """

    errors: tuple[tuple[TopicPartition, ErrorCode], ...]
    guard: int | None = None


@dataclass(frozen=True, slots=True)
class FetchedOffset:
    """``offset`` is -1 if the group has committed none."""

    topic_partition: TopicPartition
    offset: int = NO_OFFSET
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True)
class OffsetFetchAnswer:
    error: ErrorCode
    offsets: tuple[FetchedOffset, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """``metadata`` and ``assignment`` are empty unless the group is stable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class DescribeGroupAnswer:
    """``state`` is Kafka's name of it: Dead for a group that is not there, "" on an error.

    ``protocol`` is "" unless the group is stable.
    """

    error: ErrorCode
    group_id: str
    state: str = ""
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class ListedGroup:
    group_id: str
    protocol_type: str
    state: str


@dataclass(frozen=True, slots=True)
class ListGroupsAnswer:
    """The groups of one shard."""

    error: ErrorCode
    groups: tuple[ListedGroup, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteGroupAnswer:
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class OffsetDeleteAnswer:
    """With an ``error`` of the group, ``errors`` is empty; else it has one for each partition."""

    error: ErrorCode
    errors: tuple[tuple[TopicPartition, ErrorCode], ...] = ()
