"""StopReplica (key 5): the controller tells a broker to stop hosting partitions, and maybe delete them."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, TopicId


@dataclass(slots=True, kw_only=True)
class StopReplicaPartitionState:
    """``leader_epoch`` -2 stands above every epoch: the topic is being deleted."""

    partition_index: int
    leader_epoch: int = -1
    delete_partition: bool = False


@dataclass(slots=True, kw_only=True)
class StopReplicaTopicState:
    """``topic_id`` is an extension of ours: logs of another topic of this name are not meant."""

    topic_name: str
    topic_id: TopicId = NO_TOPIC_ID
    partition_states: list[StopReplicaPartitionState] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class StopReplicaRequest:
    API_KEY: ClassVar[int] = 5

    controller_id: int
    is_k_raft_controller: bool = False
    controller_epoch: int
    broker_epoch: int = -1
    topic_states: list[StopReplicaTopicState] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class StopReplicaPartitionError:
    topic_name: str
    partition_index: int
    error_code: ErrorCode = ErrorCode.none


@dataclass(slots=True, kw_only=True)
class StopReplicaResponse:
    API_KEY: ClassVar[int] = 5

    error_code: ErrorCode = ErrorCode.none
    partition_errors: list[StopReplicaPartitionError] = field(default_factory=list)
