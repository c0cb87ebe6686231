"""The rows of an offset range, read inside a Spark task of a batch or of a stream.

Deleted records fail the task. With ``failOnDataLoss`` false the task continues at the next offset in the log,
never at one that it has passed. Offsets without a visible record (transaction markers, compacted records) are
not losses.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pyarrow as pa

from sparklog.client.admin import Admin
from sparklog.client.cluster import NEW_TOPIC_WAIT_MS, ClusterClient
from sparklog.client.errors import OffsetOutOfRange, RangeNotReadable, TopicRecreated
from sparklog.client.isolation import IsolationLevel
from sparklog.client.reader import read_range
from sparklog.client.transactions.cut import PartitionCut
from sparklog.model.errors import KafkaError, SparklogError
from sparklog.model.ids import TopicId
from sparklog.records.typed_decoding import OFFSET, TypedReading
from sparklog_datasource.clients import cluster_client
from sparklog_datasource.reads.data_loss import Loss, Losses, Reason, deletion_reason
from sparklog_datasource.reads.discovery import UNKNOWN_TOPIC
from sparklog_datasource.reads.ranges import OffsetRange
from sparklog_datasource.reads.read_options import ReadOptions
from sparklog_datasource.reads.resolution import latest_offsets
from sparklog_datasource.rows.placed import put_together, with_place
from sparklog_datasource.rows.typed_form import TypedForm, reading_of

METADATA_RETRY_S: Final = 0.05


def read_rows(
    options: ReadOptions,
    offset_range: OffsetRange,
    topic_id: TopicId | None = None,
    *,
    cut: PartitionCut | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a range for Spark; with a ``cut``, those that the cut shows.

    ``topic_id`` is the id of the topic that the offsets belong to; None if it is unknown.
    """
    topic_partition = offset_range.topic_partition
    cluster = cluster_client(options.connection)
    ensure_topic_id(cluster, topic_partition.topic, topic_id)
    losses = Losses(options.fail_on_data_loss)
    form = options.form
    typed = None
    if isinstance(form, TypedForm):
        typed = reading_of(cluster, form, topic_partition.topic)
    else:
        _refuse_typed(cluster, topic_partition.topic)
    rows = _rows_from(cluster, options, offset_range, topic_id, losses, cut, typed)
    try:
        yield from put_together(with_place(batch, topic_partition, form) for batch in rows)
    finally:
        losses.tell()  # a reader that leaves early reports the losses up to there, too


def _refuse_typed(cluster: ClusterClient, topic: str) -> None:
    """SparklogError for a typed topic in a query with the columns of untyped ones, which would get JSON."""
    known = cluster.latest_metadata.topics.get(topic)
    if known is not None and known.schema_version:
        raise SparklogError(
            f"topic {topic!r} is typed, and was not there as the query was loaded: load again for its columns"
        )


def ensure_topic_id(cluster: ClusterClient, topic: str, topic_id: TopicId | None) -> None:
    """Refresh this process's metadata unless it has ``topic_id``: it may be of an earlier topic of that name.

    Brokers that have not received the new topic yet get a little time. After that the reader reports the
    topic's state.
    """
    known = cluster.latest_metadata.topics.get(topic)
    if topic_id is not None and known is not None and known.topic_id == topic_id:
        return
    deadline = cluster.deadline(NEW_TOPIC_WAIT_MS)
    while True:
        known = cluster.metadata([topic], max_age_ms=0).topics.get(topic)
        is_the_one = topic_id is None or (known is not None and known.topic_id == topic_id)
        if is_the_one or deadline.is_over:
            return
        time.sleep(METADATA_RETRY_S)


def _rows_from(
    cluster: ClusterClient,
    options: ReadOptions,
    offset_range: OffsetRange,
    topic_id: TopicId | None,
    losses: Losses,
    cut: PartitionCut | None,
    typed: TypedReading | None,
) -> Iterator[pa.RecordBatch]:
    """The rows of the range; notes losses and reads on after them, unless they are fatal."""
    position = offset_range.start_offset
    # The ranges of a cut end at its high watermark, not at the last stable offset.
    level = options.isolation_level if cut is None else IsolationLevel.READ_UNCOMMITTED
    while position < offset_range.end_offset:
        try:
            for batch in read_range(
                cluster,
                offset_range.topic_partition,
                position,
                offset_range.end_offset,
                isolation_level=options.isolation_level,
                topic_id=topic_id,
                cut=cut,
                timeout_ms=options.poll_timeout_ms,
                typed=typed,
            ):
                yield batch
                position = batch.column("offset" if typed is None else OFFSET)[-1].as_py() + 1
            return
        except (OffsetOutOfRange, RangeNotReadable, KafkaError) as error:
            loss = _loss(error, cluster, level, replace(offset_range, start_offset=position))
            losses.note(loss)
            if losses.is_fatal:
                losses.tell()
            position = offset_range.end_offset if loss.end_offset is None else loss.end_offset


def _loss(
    error: OffsetOutOfRange | RangeNotReadable | KafkaError,
    cluster: ClusterClient,
    level: IsolationLevel,
    rest: OffsetRange,
) -> Loss:
    """The loss in the rest of a range that an error shows; raises an error that shows none."""
    topic_partition, end = rest.topic_partition, rest.end_offset
    if isinstance(error, OffsetOutOfRange):
        # A start after the last record that was read may have passed markers; the error has the true one.
        start = max(rest.start_offset, error.offset)
        if error.log_start_offset > error.offset:
            reason = deletion_reason(cluster, topic_partition.topic)
            return Loss(topic_partition, start, min(error.log_start_offset, end), reason)
        return Loss(topic_partition, start, end, Reason.LOG_CUT)
    if isinstance(error, RangeNotReadable):
        latest = latest_offsets(Admin(cluster), [topic_partition], level)[topic_partition]
        if latest > error.offset:  # the log has the offset, so nothing is lost
            raise error
        return Loss(topic_partition, max(rest.start_offset, error.offset), end, Reason.LOG_CUT)
    if isinstance(error, TopicRecreated):
        return Loss(topic_partition, rest.start_offset, end, Reason.TOPIC_RECREATED)
    if error.code in UNKNOWN_TOPIC:
        return Loss(topic_partition, rest.start_offset, end, Reason.TOPIC_DELETED)
    raise error
