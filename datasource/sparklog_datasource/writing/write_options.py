"""The options of a write, under the names of Spark's Kafka connector.

Only ``topic`` is the connector's own; ``delivery``, ``txnAppId`` and ``txnVersion`` are ours
(``writing.delivery``), and so are ``createTopic`` and ``mergeSchema`` (``writing.typed_target``). Of the
Kafka client's options those that have a meaning here are acted upon; sizes of buffers and batches and
lingering times are not, because whole columns are batched here, not records one by one.

An arrow payload knows LZ4 and ZSTD; ``kafka.compression.type`` snappy is written as LZ4, gzip as ZSTD.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sparklog.client.cluster import NEW_TOPIC_WAIT_MS
from sparklog.model.errors import ConfigError
from sparklog.model.ids import topic_name_problem
from sparklog.model.kafka_numbers import ACKS_ALL
from sparklog.records.envelope import Compression
from sparklog_datasource.options.option_names import (
    CREATE_KEY,
    CREATE_PARTITIONS,
    CREATE_REPLICATION,
    CREATE_TIMESTAMP,
    CREATE_TOPIC,
    MERGE_SCHEMA,
    READ_OPTIONS,
    WRITE_OPTIONS,
)
from sparklog_datasource.options.option_parsing import INT_MAX, ConnectionOptions, Options
from sparklog_datasource.writing.delivery import ExactlyOnce, delivery_of

COMPRESSIONS: Final[Mapping[str, Compression]] = {
    "none": Compression.NONE,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
    "snappy": Compression.LZ4,
    "gzip": Compression.ZSTD,
}

SHORT_MAX: Final = 2**15 - 1
_ACKS: Final[Mapping[str, int]] = {"all": ACKS_ALL, "-1": ACKS_ALL, "1": 1, "0": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTypedTopic:
    """The topic that ``createTopic=typed`` makes if it is not there; -1: the cluster's default."""

    partitions: int
    replication_factor: int
    key: str
    timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """A write, as asked for."""

    connection: ConnectionOptions
    topic: str | None
    """Where all rows go, whatever a topic column says; None: where that column says."""
    acks: int
    is_idempotent: bool
    compression: Compression
    delivery_timeout_ms: int
    topic_wait_ms: int
    exactly_once: ExactlyOnce | None
    """None: at least once."""
    request_bytes_max: int | None
    """``kafka.max.request.size``: no batch larger than this, even if the topic takes it."""
    new_topic: NewTypedTopic | None
    """None: a missing topic is not created, unless the brokers create it."""
    merges_schema: bool
    """Whether a typed topic gets the frame's columns that it lacks, and wider types."""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "WriteOptions":
        options = Options(given, WRITE_OPTIONS, "write", passed_over=READ_OPTIONS)
        acks = _ACKS[options.client_choice("acks", "all", _ACKS)]
        wants_idempotence = options.client_choice("enable.idempotence", "true", ("true", "false")) == "true"
        if wants_idempotence and acks != ACKS_ALL and options.client("enable.idempotence") is not None:
            raise ConfigError(
                f"option kafka.enable.idempotence=true needs kafka.acks=all, not {options.client('acks')!r}"
            )
        request_bytes_max = options.client_integer("max.request.size", 0)
        return cls(
            connection=options.connection(retry_option="max.block.ms", auto_create_topics=True),
            topic=_topic(options),
            acks=acks,
            is_idempotent=wants_idempotence and acks == ACKS_ALL,
            compression=COMPRESSIONS[options.client_choice("compression.type", "none", COMPRESSIONS)],
            delivery_timeout_ms=options.client_integer("delivery.timeout.ms", 120_000, minimum=1),
            topic_wait_ms=options.client_integer("max.block.ms", NEW_TOPIC_WAIT_MS, maximum=INT_MAX),
            exactly_once=delivery_of(options),
            request_bytes_max=request_bytes_max or None,
            new_topic=_new_topic(options),
            merges_schema=_merges_schema(options),
        )


def _new_topic(options: Options) -> NewTypedTopic | None:
    if options.text(CREATE_TOPIC) is None:
        for name in (CREATE_PARTITIONS, CREATE_REPLICATION, CREATE_KEY, CREATE_TIMESTAMP):
            if options.text(name) is not None:
                raise ConfigError(f"option {name} needs {CREATE_TOPIC}=typed: set it, or leave {name} out")
        return None
    options.choice(CREATE_TOPIC, "typed", ("typed",))
    if options.text("topic") is None:
        raise ConfigError(f"option {CREATE_TOPIC}=typed needs option topic, which names the topic to create")
    partitions = options.integer(CREATE_PARTITIONS, minimum=1, maximum=INT_MAX)
    replication_factor = options.integer(CREATE_REPLICATION, minimum=1, maximum=SHORT_MAX)
    return NewTypedTopic(
        partitions=-1 if partitions is None else partitions,
        replication_factor=-1 if replication_factor is None else replication_factor,
        key=options.text(CREATE_KEY) or "",
        timestamp=options.text(CREATE_TIMESTAMP) or "",
    )


def _merges_schema(options: Options) -> bool:
    wanted = options.boolean(MERGE_SCHEMA, False)
    if wanted and options.text("topic") is None:
        raise ConfigError(
            f"option {MERGE_SCHEMA}=true needs option topic, which names the typed topic to change"
        )
    return wanted


def _topic(options: Options) -> str | None:
    text = options.text("topic")
    if text is None:
        return None
    problem = topic_name_problem(text.strip())
    if problem:
        raise ConfigError(f"option topic={text!r}: {problem}")
    return text.strip()
