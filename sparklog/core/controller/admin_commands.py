"""What administrators ask of the controller about topics that exist, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, TopicPartition

# ------------------------------------------------------------------------------------- more partitions


@dataclass(frozen=True, slots=True)
class Increase:
    """A topic is to have ``count`` partitions in all; ``assignment`` places the new ones, in order."""

    topic: str
    count: int
    assignment: tuple[tuple[BrokerId, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    topics: tuple[Increase, ...]
    timeout_ms: int
    validate_only: bool = False


# ------------------------------------------------------------------------------------- settings

TOPIC: Final = 2
BROKER: Final = 4
"""The kinds of resources that have settings, by Kafka's numbers."""

Operation = Literal["set", "delete", "append", "subtract"]

ALL_BROKERS = ""
"""The name of the resource whose settings hold for every broker that does not have its own."""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """``value`` is None for "delete"; ``operation`` is None if nobody knows what was asked."""

    name: str
    operation: Operation | None
    value: str | None = None


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """Changes of one resource. ``replaces_all``: what is not named loses its value (AlterConfigs)."""

    kind: int
    name: str
    changes: tuple[SettingChange, ...]
    replaces_all: bool = False


@dataclass(frozen=True, slots=True)
class ChangeConfigs:
    resources: tuple[ConfigChange, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class ConfigResult:
    kind: int
    name: str
    error: ErrorCode = ErrorCode.none
    message: str = ""
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConfigsResult:
    resources: tuple[ConfigResult, ...]


# ------------------------------------------------------------------------------------- elections


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """Let preferred replicas lead, or with ``unclean`` any live one where nobody leads.

    ``partitions`` None means all of them; the answer then leaves out those that need nothing.
    """

    unclean: bool
    partitions: tuple[TopicPartition, ...] | None = None


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """What became of one partition that was to be led by, or moved to, others."""

    partition: TopicPartition
    error: ErrorCode = ErrorCode.none
    message: str = ""


@dataclass(frozen=True, slots=True)
class PartitionsResult:
    """``error`` is about the request as a whole."""

    partitions: tuple[PartitionResult, ...] = ()
    error: ErrorCode = ErrorCode.none
    message: str = ""


# ------------------------------------------------------------------------------------- reassignment


@dataclass(frozen=True, slots=True)
class Move:
    """``target`` is where the replicas shall be, the preferred leader first; None cancels a move."""

    partition: TopicPartition
    target: tuple[BrokerId, ...] | None


@dataclass(frozen=True, slots=True)
class AlterReassignments:
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class ListReassignments:
    """``partitions`` None asks for every move that is under way."""

    partitions: tuple[TopicPartition, ...] | None = None


@dataclass(frozen=True, slots=True)
class OngoingMove:
    """``replicas`` has those that are being added and those that will be removed in it."""

    partition: TopicPartition
    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...]
    removing: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class ReassignmentsResult:
    moves: tuple[OngoingMove, ...] = ()
    error: ErrorCode = ErrorCode.none
    message: str = ""
