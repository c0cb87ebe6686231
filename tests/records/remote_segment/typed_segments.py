"""Typed batches for tests of remote segments: a topic in two versions, and rows of each."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from sparklog.model.schema.change_texts import parse_change
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.evolution import changed
from sparklog.model.schema.new_schema import new_schema
from sparklog.records.arrow.arrow_types import columns_of_arrow
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.records.arrow.written_rows import WrittenRows
from sparklog.records.envelope import Compression, stamp
from tests.records.remote_segment.segments import IDENTITY, Built, build

DDL = "id bigint NOT NULL, place string, mag double, at timestamp, depth struct<km: double, by: string>"
FIRST = new_schema(parse_ddl(DDL), key="id", timestamp="at")
CHANGES = [("add-column", "felt int"), ("rename-column", "mag=magnitude"), ("drop-column", "place")]
TOPIC = TopicColumns(changed(FIRST, [parse_change(*change) for change in CHANGES]))

QUAKES = pa.table(
    {
        "id": pa.array(range(1, 6), pa.int64()),
        "place": ["Etna", None, "Hilo", "Nome", "Oslo"],
        "mag": [2.5, 4.0, None, 6.25, 3.0],
        "at": pa.array([1_000_999, 2_000_000, None, -1, 5_000_000], pa.timestamp("us", "UTC")),
        "depth": [{"km": 1.5, "by": "x"}, None, {"km": None, "by": None}, {"km": 3.0, "by": "y"}, None],
    }
)
NOW_MS = 1_700_000_000_123


def typed(
    rows: pa.Table,
    base_offset: int,
    *,
    version: int = 1,
    topic: TopicColumns = TOPIC,
    codec: Compression = Compression.NONE,
) -> bytes:
    """One batch of the log."""
    written = WrittenRows.fitting(topic.at(version), columns_of_arrow(rows.schema))
    (batch,) = rows.combine_chunks().to_batches()
    data = bytearray(written.encode(written.rows(batch), now_ms=NOW_MS, compression=codec))
    stamp(data, 0, base_offset, 7)
    return bytes(data)


def build_typed(
    batches: list[bytes], *, version: int = 1, topic: TopicColumns = TOPIC, **options: Any
) -> Built:
    identity = replace(IDENTITY, topic="quakes", schema_version=version)
    return build(batches, identity=identity, columns=topic, **options)
