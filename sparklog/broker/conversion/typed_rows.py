"""Rows of typed topics for readers that do not know them: JSON, as records.

Batches of *records*, which are markers of transactions, go as they are.
"""

import logging
from functools import partial
from typing import Final

from sparklog.broker.conversion.converting_reader import (
    Converted,
    ConvertingReader,
    Room,
    StoredBatch,
    as_it_is,
)
from sparklog.broker.partition.answers import ReadRequest, ReadResult
from sparklog.broker.partition.partition import Partition
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.records.arrow.topic_columns import TopicColumns, UnknownColumns
from sparklog.records.json.json_batches import RowTooLarge, json_batches

logger: Final = logging.getLogger(__name__)


def json_taken(
    converter: ConvertingReader, partition: Partition, read: ReadRequest, result: ReadResult
) -> ReadResult:
    """``ConvertingReader.take`` with each row as JSON."""
    convert = partial(as_json, topic_partition=partition.topic_partition, columns=partition.columns)
    return converter.take(partition, read, result, convert)


def as_json(
    batch: StoredBatch, room: Room, topic_partition: TopicPartition, columns: TopicColumns | None
) -> Converted:
    """Batches of records; an error if the columns are not known here yet, or if no reader takes a row.

    The first is NOT_LEADER_OR_FOLLOWER, upon which every client asks again: the columns are on their way.
    """
    if not batch.header.is_arrow:
        return as_it_is(batch, room)
    if columns is None:
        return _unknown(topic_partition, "the topic's columns are on their way here")
    try:
        made = json_batches(
            batch.read(),
            columns,
            from_offset=room.from_offset,
            bytes_max=room.bytes_max,
            at_least_one=room.at_least_one,
        )
    except UnknownColumns as unknown:
        return _unknown(topic_partition, str(unknown))
    except RowTooLarge as problem:
        logger.error("%s: a Kafka client cannot read on: %s", topic_partition, problem)
        return Converted(is_whole=False, error=ErrorCode.message_too_large)
    return Converted(made.batches, made.size_bytes, made.record_count, made.is_whole)


def _unknown(topic_partition: TopicPartition, why: str) -> Converted:
    logger.info("%s cannot be given as JSON yet: %s", topic_partition, why)
    return Converted(is_whole=False, error=ErrorCode.not_leader_or_follower)
