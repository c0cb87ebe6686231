"""Reading a resolved range of one partition inside a Spark task, on both batch and streaming paths.

Deleted records fail the task. With ``failOnDataLoss`` false the task continues at the next offset in the log,
never at an offset that it has already passed. Offsets without a visible record (transaction markers,
compacted records) are no loss.
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
from sparklog.model.errors import KafkaError
from sparklog.model.ids import TopicId
from sparklog_datasource.clients import cluster_client
from sparklog_datasource.discovery import UNKNOWN_TOPIC
from sparklog_datasource.losses import Loss, Losses, Reason, deletion_reason
from sparklog_datasource.ranges import OffsetRange
from sparklog_datasource.read_options import ReadOptions
from sparklog_datasource.resolution import latest_offsets
from sparklog_datasource.rows.placed import put_together, with_place

LOOK_AGAIN_S: Final = 0.05


def read_rows(
    options: ReadOptions,
    wanted: OffsetRange,
    topic_id: TopicId | None = None,
    *,
    cut: PartitionCut | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a range as Spark wants them; ``topic_id`` is that of the topic the offsets belong to.

    With a ``cut`` they are those that it shows.
    """
    topic_partition = wanted.topic_partition
    cluster = cluster_client(options.connection)
    look_again(cluster, topic_partition.topic, topic_id)
    losses = Losses(options.fail_on_data_loss)
    rows = _what_is_left(cluster, options, wanted, topic_id, losses, cut)
    try:
        yield from put_together(with_place(batch, topic_partition, options.form) for batch in rows)
    finally:
        losses.tell()  # a reader who leaves early learns of what was passed over until then


def look_again(cluster: ClusterClient, topic: str, topic_id: TopicId | None) -> None:
    """Refresh this process's metadata if it is of an earlier topic of the same name.

    Sends no request if the metadata has ``topic_id`` already. Waits a little for brokers that have not
    received the new topic yet; after that the reader reports the topic's state.
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
        time.sleep(LOOK_AGAIN_S)


def _what_is_left(
    cluster: ClusterClient,
    options: ReadOptions,
    wanted: OffsetRange,
    topic_id: TopicId | None,
    losses: Losses,
    cut: PartitionCut | None,
) -> Iterator[pa.RecordBatch]:
    position = wanted.start_offset
    level = options.isolation_level if cut is None else IsolationLevel.READ_UNCOMMITTED
    while position < wanted.end_offset:
        try:
            for batch in read_range(
                cluster,
                wanted.topic_partition,
                position,
                wanted.end_offset,
                isolation_level=options.isolation_level,
                topic_id=topic_id,
                cut=cut,
                timeout_ms=options.poll_timeout_ms,
            ):
                yield batch
                position = batch.column("offset")[-1].as_py() + 1
            return
        except (OffsetOutOfRange, RangeNotReadable, KafkaError) as error:
            loss = _loss(error, cluster, level, replace(wanted, start_offset=position))
            losses.note(loss)
            if losses.is_fatal:
                losses.tell()
            position = wanted.end_offset if loss.end_offset is None else loss.end_offset


def _loss(
    error: OffsetOutOfRange | RangeNotReadable | KafkaError,
    cluster: ClusterClient,
    level: IsolationLevel,
    left: OffsetRange,
) -> Loss:
    """What of the rest of a range an error says to be lost; raises an error that is no loss."""
    topic_partition, end = left.topic_partition, left.end_offset
    if isinstance(error, OffsetOutOfRange):
        # A start after the last record that was read may lie behind markers; the error has the true one.
        start = max(left.start_offset, error.offset)
        if error.log_start_offset > error.offset:
            reason = deletion_reason(cluster, topic_partition.topic)
            return Loss(topic_partition, start, min(error.log_start_offset, end), reason)
        return Loss(topic_partition, start, end, Reason.LOG_CUT)
    if isinstance(error, RangeNotReadable):
        latest = latest_offsets(Admin(cluster), [topic_partition], level)[topic_partition]
        if latest > error.offset:
            raise error
        return Loss(topic_partition, max(left.start_offset, error.offset), end, Reason.LOG_CUT)
    if isinstance(error, TopicRecreated):
        return Loss(topic_partition, left.start_offset, end, Reason.TOPIC_RECREATED)
    if error.code in UNKNOWN_TOPIC:
        return Loss(topic_partition, left.start_offset, end, Reason.TOPIC_DELETED)
    raise error
