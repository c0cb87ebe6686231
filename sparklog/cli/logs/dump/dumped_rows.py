"""The rows of a typed topic: offset and time always, columns with the ``schema`` in the segment's directory.

A row is shown as its key's text and an object of its columns, with the newest names that the directory knows.
"""

import json
import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from sparklog.cli.logs.dump.rows import RecordRow
from sparklog.model.errors import CorruptBatch, SchemaError
from sparklog.records.arrow.envelope_crc import VERSION_POSITION
from sparklog.records.arrow.key_text import key_texts
from sparklog.records.arrow.topic_columns import TopicColumns, UnknownColumns
from sparklog.records.arrow.typed_payload import read_typed
from sparklog.records.envelope import BatchHeader
from sparklog.records.payload import payload_of
from sparklog.records.payload_kinds import TYPED_ARROW_VERSION
from sparklog.storage.disk import LocalDisk
from sparklog.storage.small_files.schema_file import read_schema


def is_typed(batch: memoryview, header: BatchHeader) -> bool:
    return (
        header.is_arrow and len(batch) > VERSION_POSITION and batch[VERSION_POSITION] == TYPED_ARROW_VERSION
    )


def columns_beside(path: str) -> TopicColumns | None:
    """The columns of the topic whose segment is at ``path``; None without them, or if they are damaged."""
    try:
        document = read_schema(LocalDisk(), os.path.dirname(path))
    except (OSError, SchemaError):
        return None
    return None if document is None else TopicColumns(document)


def typed_rows(
    batch: memoryview,
    header: BatchHeader,
    topic: TopicColumns | None,
    shows_metadata: bool,
    shows_content: bool,
) -> Iterator[RecordRow]:
    """The rows of a batch, in order; CorruptBatch if they cannot be read."""
    offsets, times_ms = payload_of(header).times(batch, header)
    keys, objects = _content(batch, header, topic) if topic is not None else (None, None)
    for nth, (offset, time_ms) in enumerate(zip(offsets.tolist(), times_ms.tolist(), strict=True)):
        key = None if keys is None else keys[nth].as_py()
        value = None if objects is None else objects.slice(nth, 1).to_pylist()[0]
        yield RecordRow(
            header,
            offset,
            time_ms,
            key.encode() if isinstance(key, str) else key,
            None if value is None else json.dumps(value, ensure_ascii=False, default=_text).encode(),
            [],
            "",
            shows_metadata,
            shows_content,
        )


def _content(
    batch: memoryview, header: BatchHeader, topic: TopicColumns
) -> tuple[Any | None, pa.RecordBatch]:
    """The keys, and the columns of the newest version."""
    newest = topic.newest
    try:
        arrays = read_typed(batch, header, topic).mapped(newest.columns)
    except (UnknownColumns, SchemaError) as error:
        raise CorruptBatch(str(error)) from None
    schema = newest.schema.of_columns([field.id for field in newest.columns])
    keys = [
        key_texts(array)
        for field, array in zip(newest.columns, arrays, strict=True)
        if field.id == newest.key
    ]
    return keys[0] if keys else None, pa.RecordBatch.from_arrays(arrays, schema=schema)


def _text(value: object) -> str:
    """Dates, times and decimals as text, bytes as hexadecimal digits."""
    return value.hex() if isinstance(value, bytes) else str(value)
