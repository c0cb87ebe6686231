"""LeaderAndIsr (key 4): the controller sends a broker the partitions that it leads or follows."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, TopicId


@dataclass(slots=True, kw_only=True)
class LeaderAndIsrPartitionState:
    """``partition_epoch`` is the version of the partition's state znode."""

    partition_index: int
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: list[int] = field(default_factory=list)
    partition_epoch: int
    replicas: list[int] = field(default_factory=list)
    adding_replicas: list[int] = field(default_factory=list)
    removing_replicas: list[int] = field(default_factory=list)
    is_new: bool = False
    leader_recovery_state: int = 0
    min_insync_replicas: int = 1
    """An extension of ours: what this leader epoch commits with."""
    lost_in_epoch: int = -1
    """An extension of ours: see ``PartitionState``."""
    store_given_up_in_epoch: int = -1
    """An extension of ours: see ``PartitionState``."""


@dataclass(slots=True, kw_only=True)
class LeaderAndIsrTopicState:
    """``configs`` is an extension of ours: the topic's settings that differ from the defaults.

    A replica's log is opened with them, before anybody could have read them from ZooKeeper.
    ``schema_version``, ours too, is the newest version of the topic's columns; 0 if it has none.
    """

    topic_name: str
    topic_id: TopicId = NO_TOPIC_ID
    partition_states: list[LeaderAndIsrPartitionState] = field(default_factory=list)
    configs: dict[str, str] = field(default_factory=dict)
    schema_version: int = 0


@dataclass(slots=True, kw_only=True)
class LeaderAndIsrLiveLeader:
    broker_id: int
    host_name: str
    port: int


@dataclass(slots=True, kw_only=True)
class LeaderAndIsrRequest:
    """``type_`` 1 is everything the broker hosts (what is missing is stray), 2 only what changed."""

    API_KEY: ClassVar[int] = 4

    controller_id: int
    is_k_raft_controller: bool = False
    controller_epoch: int
    broker_epoch: int = -1
    type_: int = 0
    topic_states: list[LeaderAndIsrTopicState] = field(default_factory=list)
    live_leaders: list[LeaderAndIsrLiveLeader] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class LeaderAndIsrPartitionError:
    """The last two are extensions of ours: the epoch of the last record in the replica's log, and the log's
    end, if the partition has no leader.
    """

    partition_index: int
    error_code: ErrorCode = ErrorCode.none
    last_epoch: int = -1
    log_end_offset: int = -1


@dataclass(slots=True, kw_only=True)
class LeaderAndIsrTopicError:
    topic_id: TopicId = NO_TOPIC_ID
    partition_errors: list[LeaderAndIsrPartitionError] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class LeaderAndIsrResponse:
    API_KEY: ClassVar[int] = 4

    error_code: ErrorCode = ErrorCode.none
    topics: list[LeaderAndIsrTopicError] = field(default_factory=list)
