"""UpdateMetadata (key 6): the controller sends every broker the live brokers and partition states."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, TopicId


@dataclass(slots=True, kw_only=True)
class UpdateMetadataPartitionState:
    """``zk_version`` is the partition epoch; ``leader`` -2 says that the partition is being deleted.

    ``lost_in_epoch`` is an extension of ours: see ``PartitionState``.
    """

    partition_index: int
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: list[int] = field(default_factory=list)
    zk_version: int
    replicas: list[int] = field(default_factory=list)
    offline_replicas: list[int] = field(default_factory=list)
    lost_in_epoch: int = -1


@dataclass(slots=True, kw_only=True)
class UpdateMetadataTopicState:
    """``configs`` is an extension of ours: the topic's settings that differ from the defaults. So is
    ``schema_version``: the newest version of its columns; 0 if it has none.
    """

    topic_name: str
    topic_id: TopicId = NO_TOPIC_ID
    partition_states: list[UpdateMetadataPartitionState] = field(default_factory=list)
    configs: dict[str, str] = field(default_factory=dict)
    schema_version: int = 0


@dataclass(slots=True, kw_only=True)
class UpdateMetadataEndpoint:
    port: int
    host: str
    listener: str = "PLAINTEXT"
    security_protocol: int = 0


@dataclass(slots=True, kw_only=True)
class UpdateMetadataBroker:
    """``epoch`` is an extension of ours: the broker's epoch, which leaders put into ISR proposals."""

    id_: int
    endpoints: list[UpdateMetadataEndpoint] = field(default_factory=list)
    rack: str | None = None
    epoch: int = -1


@dataclass(slots=True, kw_only=True)
class UpdateMetadataRequest:
    API_KEY: ClassVar[int] = 6

    controller_id: int
    is_k_raft_controller: bool = False
    controller_epoch: int
    broker_epoch: int = -1
    type_: int = 0
    topic_states: list[UpdateMetadataTopicState] = field(default_factory=list)
    live_brokers: list[UpdateMetadataBroker] = field(default_factory=list)
    dynamic_configs: dict[str, str] = field(default_factory=dict)
    """An extension of ours: what was set for the broker while the cluster runs; ..."""
    default_configs: dict[str, str] = field(default_factory=dict)
    """... and what was set for all brokers, over which the broker's own settings go."""
    push: int = -1
    """An extension of ours: a controller numbers what it says, so that a repetition is known as one."""
    ended: tuple[int, ...] = ()
    """An extension of ours: the epochs of brokers that left and are known to have ended. A broker that left
    and is not among them was silent until its session expired."""


@dataclass(slots=True, kw_only=True)
class UpdateMetadataResponse:
    API_KEY: ClassVar[int] = 6

    error_code: ErrorCode = ErrorCode.none
