"""The kinds of coordinators: the only place of this room that knows what is coordinated.

A further kind is a further ``CoordinatorKind``: its internal topic, its state machine, its records.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sparklog.broker.coordination.group_metrics import group_metrics
from sparklog.broker.coordination.transaction_metrics import transaction_metrics
from sparklog.core.coordinator.state_machine import StateMachine
from sparklog.core.group.group_machine import GroupMachine
from sparklog.core.group.settings import GroupSettings
from sparklog.core.write_coordinator.transaction_state_machine import TransactionStateMachine
from sparklog.model.errors import WireError
from sparklog.model.ids import LeaderEpoch
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from sparklog.model.metric import Metric
from sparklog.model.settings.config import BrokerConfig
from sparklog.records.envelope import Compression
from sparklog.wire.consumer_protocol import decode_subscription
from sparklog.wire.coordinator_records.group_offsets import GroupOffsetsCodec
from sparklog.wire.coordinator_records.record_codec import RecordCodec
from sparklog.wire.coordinator_records.transaction_topic import TransactionTopicCodec


@dataclass(frozen=True, slots=True)
class NewInternalTopic:
    """An internal topic as it is created."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorKind:
    """One kind. ``topic`` is the internal topic that holds its state; ``codec`` encodes that topic's records.

    The functions read the settings of this broker, as they are at the time.
    """

    what: str
    topic: str
    codec: RecordCodec
    new_topic: Callable[[BrokerConfig], NewInternalTopic]
    new_machine: Callable[[BrokerConfig, LeaderEpoch], StateMachine]
    timeout_ms: Callable[[BrokerConfig], int]
    """Longest wait of an append for its replicas, and of a request for its turn."""
    compression: Callable[[BrokerConfig], Compression]
    metrics: Callable[[Sequence[Any], Mapping[str, int]], list[Metric]]
    """Metrics of the kind's machines on this broker, and of all that they have counted since its start."""


def _offsets_topic(config: BrokerConfig) -> NewInternalTopic:
    return NewInternalTopic(
        GROUP_OFFSETS_TOPIC,
        config.get_int("offsets.topic.num.partitions"),
        config.get_int("offsets.topic.replication.factor"),
        {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.get_int("offsets.topic.segment.bytes")),
        },
    )


def _subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics that a member's metadata names, if it is a subscription of the ``consumer`` protocol."""
    try:
        return frozenset(decode_subscription(metadata).topics)
    except WireError:
        return None


GROUPS: Final = CoordinatorKind(
    what="consumer groups",
    topic=GROUP_OFFSETS_TOPIC,
    codec=GroupOffsetsCodec(),
    new_topic=_offsets_topic,
    new_machine=lambda config, _: GroupMachine.of(GroupSettings.of(config), _subscribed_topics),
    timeout_ms=lambda config: config.get_int("offsets.commit.timeout.ms"),
    compression=lambda config: Compression(config.get_int("offsets.topic.compression.codec")),
    metrics=group_metrics,
)


def _transactions_topic(config: BrokerConfig) -> NewInternalTopic:
    return NewInternalTopic(
        TRANSACTION_STATE_TOPIC,
        config.get_int("transaction.state.log.num.partitions"),
        config.get_int("transaction.state.log.replication.factor"),
        {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(config.get_int("transaction.state.log.min.isr")),
            "segment.bytes": str(config.get_int("transaction.state.log.segment.bytes")),
            "unclean.leader.election.enable": "false",
        },
    )


TRANSACTIONS: Final = CoordinatorKind(
    what="transactions and atomic writes",
    topic=TRANSACTION_STATE_TOPIC,
    codec=TransactionTopicCodec(),
    new_topic=_transactions_topic,
    new_machine=TransactionStateMachine.of,
    timeout_ms=lambda config: config.get_int("offsets.commit.timeout.ms"),
    compression=lambda config: Compression.NONE,
    metrics=transaction_metrics,
)

KINDS: Final[Mapping[str, CoordinatorKind]] = {kind.topic: kind for kind in (GROUPS, TRANSACTIONS)}
"""By internal topic, all kinds."""
