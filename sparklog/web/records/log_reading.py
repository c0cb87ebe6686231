"""Stretches of a topic's partitions, read from their leaders into records that the page can show.

Only read-committed records are shown; what is missing between them is named: *aborted*, a transaction's
*marker*, or *compacted*. Each record keeps a preview of its bytes, so that memory stays bounded whatever
their size.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from sparklog.client.calls.retry import Deadline
from sparklog.client.cluster import Answer, ClusterClient
from sparklog.client.errors import unreadable
from sparklog.client.fetched import Fetched, FetchTerms, fetch_request, fetched_of
from sparklog.client.isolation import IsolationLevel
from sparklog.client.metadata.cluster_metadata import ClusterMetadata, KnownLeader
from sparklog.client.topic_schemas import describe_schemas
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.records.arrow.key_text import key_texts
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.records.json.json_texts import object_texts
from sparklog.records.payload_kinds import ALL_PAYLOADS, SUPPORTED_PAYLOADS
from sparklog.records.typed_decoding import OFFSET, TIMESTAMP_NAME, TypedReading
from sparklog.web.records.shown_record import Gap, ShownRecord, Text, of_row
from sparklog.web.records.stretches import Stretch
from sparklog.wire.messages.data.fetch import FetchPartitionData, FetchRequest, FetchResponse

FETCH_BYTES_MAX: Final = 4 * 1024 * 1024
PARTITION_BYTES_MAX: Final = 1024 * 1024
TYPED_ROWS_AT_ONCE: Final = 1_024
"""Rows of which JSON is made at once."""
FETCHES_MAX: Final = 40
"""Requests of one step and leader; a step that needs more reads less of each partition."""


@dataclass(frozen=True, slots=True)
class Read:
    """What a step has read of one partition: up to ``end`` (exclusive), maybe short of what was wanted."""

    end: int
    records: list[ShownRecord] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)


class LogReading:
    """Reads one topic for one look. ``text`` keeps only records that have it in key, value or headers."""

    def __init__(self, cluster: ClusterClient, topic: str, *, text: Text, preview_bytes: int) -> None:
        self._cluster = cluster
        self._topic = topic
        self._text = text
        self._preview_bytes = preview_bytes
        self._typed = _typed_reading(cluster, topic)
        self._terms = FetchTerms(
            max_wait_ms=0,
            max_bytes=FETCH_BYTES_MAX,
            partition_max_bytes=PARTITION_BYTES_MAX,
            isolation_level=IsolationLevel.READ_COMMITTED,
            payload_kinds=SUPPORTED_PAYLOADS if self._typed is None else ALL_PAYLOADS,
        )

    def read(
        self, stretches: Mapping[int, Stretch], seen: ClusterMetadata, deadline: Deadline
    ) -> dict[int, Read]:
        """As much of each stretch as the deadline allows. KafkaError for a partition that cannot be read."""
        reads = {partition: Read(stretch.begin) for partition, stretch in stretches.items()}
        for _ in range(FETCHES_MAX):
            positions = {
                TopicPartition(self._topic, partition): reads[partition].end
                for partition, stretch in stretches.items()
                if reads[partition].end < stretch.end
            }
            if not positions or deadline.is_over:
                break
            answers = self._fetch(positions, seen, deadline)
            moved = False
            for one, answer in answers.items():
                before = reads[one.partition]
                reads[one.partition] = self._with(before, one, answer, stretches[one.partition].end)
                moved = moved or reads[one.partition].end > before.end
            if not moved:
                break
        return reads

    def _fetch(
        self, positions: Mapping[TopicPartition, int], seen: ClusterMetadata, deadline: Deadline
    ) -> dict[TopicPartition, FetchPartitionData]:
        """The answers of the leaders that gave one; a leader that is changing gives none."""

        def build(leaders: Mapping[TopicPartition, KnownLeader]) -> FetchRequest:
            return fetch_request(leaders, positions, self._terms)

        answers = self._cluster.ask_leaders(positions, seen, build, self._answers, deadline)
        for one, (code, _) in answers.items():
            if code is not ErrorCode.none and not code.retriable:
                raise unreadable(one, code, self._cluster.bootstrap_servers)
        return {one: answer for one, (_, answer) in answers.items() if answer is not None}

    def _answers(self, response: FetchResponse) -> dict[TopicPartition, Answer[FetchPartitionData]]:
        """The topic's own name, as newer versions have its id alone."""
        return {
            TopicPartition(self._topic, one.partition_index): (
                one.error_code,
                one if one.error_code is ErrorCode.none else None,
            )
            for topic in response.responses
            for one in topic.partitions
        }

    def _with(self, before: Read, one: TopicPartition, answer: FetchPartitionData, end: int) -> Read:
        fetched = fetched_of(one, before.end, answer, typed=self._typed)
        records = [*before.records]
        gaps = [*before.gaps, *_gaps_between(fetched, end)]
        expected = before.end
        for record in self._records(fetched, end):
            if record.offset > expected and not any(gap.covers(expected) for gap in gaps):
                gaps.append(Gap(one.partition, expected, record.offset, "compacted"))
            expected = record.offset + 1
            if self._text.is_in(record):
                records.append(record.cut(self._preview_bytes))
        return Read(min(max(before.end, fetched.next_offset), end), records, gaps)

    def _records(self, fetched: Fetched, end: int) -> Iterator[ShownRecord]:
        partition = fetched.topic_partition.partition
        for rows in fetched.rows(end):
            if self._typed is None:
                yield from _untyped_records(partition, rows)
            else:
                yield from _typed_records(self._typed, partition, rows)


def _gaps_between(fetched: Fetched, end: int) -> list[Gap]:
    """Batches that are hidden from readers, and offsets that no batch covers."""
    partition = fetched.topic_partition.partition
    gaps = [Gap(partition, begin, stop, "compacted") for begin, stop in fetched.gaps(end)]
    visible = {position for position, _ in fetched.visible(end)}
    for position, header in fetched.batches:
        if position in visible or header.base_offset >= end or header.next_offset <= fetched.fetch_offset:
            continue
        reason = "marker" if header.is_control else "aborted"
        gaps.append(Gap(partition, max(header.base_offset, fetched.fetch_offset), header.next_offset, reason))
    return sorted(gaps, key=lambda gap: gap.begin)


def _typed_reading(cluster: ClusterClient, topic: str) -> TypedReading | None:
    """None if the topic has no columns."""
    if not cluster.topic(topic, timeout_ms=0).schema_version:
        return None
    document = describe_schemas(cluster, [topic]).get(topic)
    if document is None:
        return None
    columns = TopicColumns(document)
    return TypedReading(columns, columns.newest.columns)


def _untyped_records(partition: int, rows: pa.RecordBatch) -> Iterator[ShownRecord]:
    parts = rows.select(["key", "value", "headers", "offset"]).to_pylist()
    for time_ms, row in zip(_times_ms(rows, "timestamp"), parts, strict=True):
        yield of_row(partition, time_ms, row)


def _typed_records(typed: TypedReading, partition: int, rows: pa.RecordBatch) -> Iterator[ShownRecord]:
    """Key and value as Kafka's clients get them."""
    ids = [column.id for column in typed.wanted]
    key_id = typed.topic.newest.key
    for start in range(0, rows.num_rows, TYPED_ROWS_AT_ONCE):
        some = rows.slice(start, TYPED_ROWS_AT_ONCE)
        arrays = some.columns[: len(ids)]
        values = object_texts(typed.wanted, arrays, some.num_rows).cast(pa.binary()).to_pylist()
        keys = (
            key_texts(arrays[ids.index(key_id)]).cast(pa.binary()).to_pylist()
            if key_id in ids
            else [None] * some.num_rows
        )
        places = zip(some.column(OFFSET).to_pylist(), _times_ms(some, TIMESTAMP_NAME), strict=True)
        for (offset, time_ms), key, value in zip(places, keys, values, strict=True):
            yield of_row(partition, time_ms, {"offset": offset, "key": key, "value": value, "headers": None})


def _times_ms(rows: pa.RecordBatch, name: str) -> list[int]:
    """As numbers, because a writer's time may be beyond what a datetime holds."""
    return [time_us // 1_000 for time_us in rows.column(name).cast(pa.int64()).to_pylist()]
