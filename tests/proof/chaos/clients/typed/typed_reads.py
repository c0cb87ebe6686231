"""Readers of typed rows, by what ``spark.read`` and ``readStream`` are made of: plan, and tasks.

A query is planned, reads for a while with the columns that it was planned with, and gives way to another: of
all columns or of some that it names, a stream or batches. Each goes on where the one before it ended. A value
that a running reader's narrower type cannot hold fails the query, which is then planned anew.
"""

import json
import pickle
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa

from chaos.clients.client_parts import (
    REQUEST_TIMEOUT_MS,
    Place,
    Positions,
    Settings,
    where_earlier_lives_stopped,
)
from chaos.typed.columns import KEY, TOPIC, id_of
from histories import Writer
from histories.typed.cells import text_of
from histories.write import Cell
from pyspark_sparklog import DefaultSource
from sparklog.model.errors import SparklogError
from sparklog_datasource.batch.batch_reader import BatchReader
from sparklog_datasource.reads.read_options import ReadOptions
from sparklog_datasource.reads.topic_form import with_form
from sparklog_datasource.rows.typed_form import TypedForm

QUERY_S: Final = (1.0, 15.0)
"""For so long a query keeps its columns."""
ALL: Final = 0.5
"""The share of queries of all columns."""
STREAMS: Final = 0.7
WANTED: Final = 0.4
"""Of the columns so many are named by a query that names some."""
LOOK_S: Final = 0.3
AGAIN_AFTER_S: Final = 0.5
CALL_MS: Final = 20_000
ROWS_PER_BATCH: Final = 500
PLACE: Final = ("_partition", "_offset")
ERROR_CHARACTERS_MAX: Final = 900


def tail(settings: Settings, writer: Writer) -> None:
    """Query after query, until told to stop."""
    reader = TypedReader(settings, writer)
    while not settings.is_stopping:
        try:
            reader.read_for_a_while()
        except (SparklogError, OSError) as error:
            writer.line(settings.name, "info", "poll", error=str(error)[:ERROR_CHARACTERS_MAX])
            time.sleep(AGAIN_AFTER_S)


class TypedReader:
    """Where it stands in each partition, and its queries."""

    def __init__(self, settings: Settings, writer: Writer) -> None:
        self._settings, self._writer, self._rng = settings, writer, Random(settings.seed)
        self._positions = Positions(settings, writer)
        known = where_earlier_lives_stopped(Path(settings.folder), settings.name)
        for place in settings.partitions():
            self._positions.seek(*place, known.get(place, 0))

    def read_for_a_while(self) -> None:
        """One query. SparklogError if it fails."""
        until = time.monotonic() + self._rng.uniform(*QUERY_S)
        options = self._options()
        read = self._stream if self._rng.random() < STREAMS else self._batches
        for form, rows in read(options):
            if rows is None:
                time.sleep(LOOK_S)
            else:
                self._take(form, rows)
            if self._settings.is_stopping or time.monotonic() > until:
                return

    def _options(self) -> Mapping[str, str]:
        """Of a query that goes on where the last one ended, of all columns or of some."""
        options = {
            **self._settings.access.spark(),
            "subscribe": TOPIC,
            "startingOffsets": self._starts(),
            "kafka.request.timeout.ms": str(REQUEST_TIMEOUT_MS),
            "kafka.default.api.timeout.ms": str(CALL_MS),
        }
        if self._rng.random() < ALL:
            return {**options, "includeMetadata": "true"}
        names = [name for name in DefaultSource(options).schema().names if name != KEY]
        wanted = [KEY, *(name for name in names if self._rng.random() < WANTED), *PLACE]
        self._rng.shuffle(wanted)
        return {**options, "columns": ", ".join(wanted)}

    def _starts(self) -> str:
        """The positions, as an option has them."""
        found: dict[str, dict[str, int]] = {}
        for (topic, partition), offset in self._positions.at.items():
            found.setdefault(topic, {})[str(partition)] = offset
        return json.dumps(found)

    def _stream(self, options: Mapping[str, str]) -> Iterator[tuple[TypedForm, Any]]:
        """Micro-batches of one streaming query; None where nothing is new."""
        source = DefaultSource({**options, "maxOffsetsPerTrigger": str(ROWS_PER_BATCH)})
        reader = source.streamReader(source.schema())
        at = reader.initialOffset()
        while True:
            end = reader.latestOffset(at, reader.getDefaultReadLimit())
            if end == at:
                yield TypedForm((), ()), None
                continue
            for partition in reader.partitions(at, end):
                for rows in pickle.loads(pickle.dumps(reader)).read(partition):
                    yield partition.form, rows
            at = end

    def _batches(self, options: Mapping[str, str]) -> Iterator[tuple[TypedForm, Any]]:
        """One batch query, which has an end."""
        schema = DefaultSource(options).schema()
        planned = with_form(ReadOptions.of_batch(options), schema)
        reader = BatchReader(planned)
        form = planned.form
        assert isinstance(form, TypedForm)
        for partition in reader.partitions():
            for rows in pickle.loads(pickle.dumps(reader)).read(partition):
                yield form, rows
        yield form, None

    def _take(self, form: TypedForm, rows: pa.RecordBatch) -> None:
        """Write down what a batch of rows shows, and go on after it."""
        (topic,) = form.topics
        ids = {field.name: id_of(field.name, field.id) for field in topic.columns if field.name != KEY}
        values = {name: rows.column(name).to_pylist() for name in (KEY, *ids, *PLACE)}
        found: dict[Place, list[int]] = {}
        for nth, partition in enumerate(values["_partition"]):
            found.setdefault((TOPIC, partition), []).append(nth)
        for place, some in found.items():
            offsets = values["_offset"]
            cells: list[Cell] = [
                (offsets[nth], column, text_of(values[name][nth]))
                for nth in some
                for name, column in ids.items()
                if values[name][nth] is not None
            ]
            self._writer.polled(
                self._settings.name,
                *place,
                self._positions.at[place],
                [(offsets[nth], values[KEY][nth]) for nth in some],
                isolation="committed",
                columns=sorted(ids.values()),
                cells=cells,
            )
            self._positions.at[place] = offsets[some[-1]] + 1
