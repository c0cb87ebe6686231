"""Produce (key 0): append batches to partitions.

``records`` is what the client sent, byte for byte; when a request is decoded it is a view into the frame.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class ProducePartition:
    index: int
    records: bytes | memoryview | None = None


@dataclass(slots=True, kw_only=True)
class ProduceTopic:
    name: str
    partition_data: list[ProducePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ProduceRequest:
    """``acks``: 0 none (and no response), 1 the leader, -1 the whole ISR.

    ``payload_kinds`` is an extension of ours: the payload kinds, each ``kind << 8 | version``, that this
    client knowingly sends. Without it a batch with the arrow bit is refused.
    """

    API_KEY: ClassVar[int] = 0

    transactional_id: str | None = None
    acks: int = -1
    timeout_ms: int = 30_000
    topic_data: list[ProduceTopic] = field(default_factory=list)
    payload_kinds: tuple[int, ...] = ()


@dataclass(slots=True, kw_only=True)
class BatchIndexAndErrorMessage:
    """Why one record of a refused batch was refused."""

    batch_index: int
    batch_index_error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class ProducePartitionResponse:
    """``log_append_time_ms`` is -1 unless the topic stamps records when it appends them."""

    index: int
    error_code: ErrorCode = ErrorCode.none
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: list[BatchIndexAndErrorMessage] = field(default_factory=list)
    error_message: str | None = None


@dataclass(slots=True, kw_only=True)
class ProduceTopicResponse:
    name: str
    partition_responses: list[ProducePartitionResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ProduceResponse:
    API_KEY: ClassVar[int] = 0

    responses: list[ProduceTopicResponse] = field(default_factory=list)
    throttle_time_ms: int = 0
