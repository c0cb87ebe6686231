"""AddPartitionsToTxn (key 24): partitions that a producer is about to write to in its transaction.

Up to version 3 a producer sends its one transaction. Version 4 is for brokers: several transactions at once,
whose partitions are looked up with ``verify_only`` (KIP-890).
"""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, TopicId


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnTopic:
    """``topic_id``: of a broker that verifies, in a tag of our own; all zeros from Kafka's."""

    name: str
    partitions: list[int] = field(default_factory=list)
    topic_id: TopicId = NO_TOPIC_ID


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnTransaction:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnRequest:
    """``transactions`` from version 4 on, the other fields before."""

    API_KEY: ClassVar[int] = 24

    transactions: list[AddPartitionsToTxnTransaction] = field(default_factory=list)
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = -1
    v3_and_below_producer_epoch: int = -1
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnPartitionResult:
    partition_index: int
    partition_error_code: ErrorCode = ErrorCode.none


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnTopicResult:
    name: str
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnResult:
    transactional_id: str
    topic_results: list[AddPartitionsToTxnTopicResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnResponse:
    """``error_code`` and ``results_by_transaction`` from version 4 on."""

    API_KEY: ClassVar[int] = 24

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    results_by_transaction: list[AddPartitionsToTxnResult] = field(default_factory=list)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field(default_factory=list)
