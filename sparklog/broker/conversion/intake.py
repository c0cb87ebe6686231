"""What a producer sent for one partition, on its way to the log: checked, and as its topic wants it.

A log holds batches of format 2 alone. Produce 0 to 2 also carries message sets of formats 0 and 1, which
become one batch here; from 3 on they are refused, as in Kafka. Then the batch gets the codec and the time of
its topic. All of this is done before the partition's lock is taken.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from sparklog.model.errors import ErrorCode
from sparklog.model.settings.config import TopicConfig
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.records.envelope import MAGIC_POSITION, Compression
from sparklog.records.legacy.message import FORMATS
from sparklog.records.legacy.to_batch import batch_of_messages
from sparklog.records.recompress import Codec, recompress
from sparklog.records.timestamps import check_create_times, stamp_append_time
from sparklog.records.validate import Accepted, RefusedBatch, check_produced

LOG_APPEND_TIME: Final = "LogAppendTime"
CODECS_WITH_LEVELS: Final = ("gzip", "lz4", "zstd")
LAST_VERSION_WITH_MESSAGES: Final = 2
FIRST_VERSION_WITH_ZSTD: Final = 7


class Intake(NamedTuple):
    """What to append."""

    records: bytearray | memoryview
    accepted: Accepted
    converted: int = 0
    """Records that came as messages of format 0 or 1."""


def prepared(
    sent: memoryview,
    config: TopicConfig,
    *,
    version: int,
    payload_kinds: Collection[int],
    now_ms: int,
    columns: TopicColumns | None = None,
) -> Intake | RefusedBatch:
    """What to append of the bytes ``sent`` in Produce ``version``, or why the topic does not take them.

    ``columns`` are those of a typed topic.
    """
    if (
        columns is None
        and version <= LAST_VERSION_WITH_MESSAGES
        and len(sent) > MAGIC_POSITION
        and sent[MAGIC_POSITION] in FORMATS
    ):
        taken = _of_messages(sent, config)
    else:
        taken = _of_batch(sent, config, version, payload_kinds, columns)
    if isinstance(taken, RefusedBatch):
        return taken
    timed = _timed(config, taken.records, taken.accepted, now_ms)
    return timed if isinstance(timed, RefusedBatch) else taken._replace(accepted=timed)


def topic_codec(config: TopicConfig) -> Codec | None:
    """The codec of a topic's batches; None for that of their producers."""
    name = config.get_str("compression.type")
    if name == "producer":
        return None
    if name == "uncompressed":
        return Codec(Compression.NONE)
    level = config.get_int(f"compression.{name}.level") if name in CODECS_WITH_LEVELS else None
    return Codec(Compression[name.upper()], level)


def _of_messages(sent: memoryview, config: TopicConfig) -> Intake | RefusedBatch:
    max_batch_bytes = config.get_int("max.message.bytes")
    converted = batch_of_messages(sent, topic_codec(config), max_batch_bytes=max_batch_bytes)
    if isinstance(converted, RefusedBatch):
        return converted
    batch, _ = converted
    checked = check_produced(
        batch,
        max_batch_bytes=max_batch_bytes,
        payload_kinds=(),
        look_inside=False,  # its records were written here
        requires_keys=_requires_keys(config),
    )
    if isinstance(checked, RefusedBatch):
        return checked
    return Intake(batch, checked, checked.batches[0][1].record_count)


def _of_batch(
    sent: memoryview,
    config: TopicConfig,
    version: int,
    payload_kinds: Collection[int],
    columns: TopicColumns | None,
) -> Intake | RefusedBatch:
    max_batch_bytes = config.get_int("max.message.bytes")
    checked = check_produced(
        sent,
        max_batch_bytes=max_batch_bytes,
        payload_kinds=payload_kinds,
        requires_keys=_requires_keys(config),
        columns=columns,
    )
    if isinstance(checked, RefusedBatch):
        return checked
    if version < FIRST_VERSION_WITH_ZSTD and checked.batches[0][1].compression is Compression.ZSTD:
        reason = f"a zstd batch in Produce version {version}: it takes version {FIRST_VERSION_WITH_ZSTD}"
        return RefusedBatch(ErrorCode.unsupported_compression_type, reason)
    recompressed = recompress(sent, checked, topic_codec(config), max_batch_bytes=max_batch_bytes)
    return recompressed if isinstance(recompressed, RefusedBatch) else Intake(*recompressed)


def _requires_keys(config: TopicConfig) -> bool:
    return "compact" in config.get_list("cleanup.policy")


def _timed(
    config: TopicConfig, records: bytearray | memoryview, accepted: Accepted, now_ms: int
) -> Accepted | RefusedBatch:
    """Look at the records' time, or give them the leader's, as the topic wants it."""
    if config.get_str("message.timestamp.type") == LOG_APPEND_TIME:
        return stamp_append_time(records, accepted, now_ms)
    return check_create_times(
        records,
        accepted,
        now_ms,
        before_max_ms=config.get_int("message.timestamp.before.max.ms"),
        after_max_ms=config.get_int("message.timestamp.after.max.ms"),
    )
