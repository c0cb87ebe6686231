"""Bugs of columns that change: versions, ids, and what a reader makes of another version's rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.broker.conversion import converting_reader
from sparklog.core.controller.pipeline import command_intake
from sparklog.core.controller.topics import schema_changes
from sparklog.model.schema.change_texts import SchemaChange
from sparklog.model.schema.data_types import Columns, all_fields
from sparklog.model.schema.document import SchemaDocument
from sparklog.records import validate
from sparklog.records.arrow import mapping, typed_payload
from sparklog.records.arrow.arrow_types import arrow_type
from sparklog.records.arrow.topic_columns import TopicColumns, UnknownColumns
from sparklog.records.envelope import BatchHeader, Bytes

CHANGES: Final = Hunt(kinds=("kill broker", "delay answers", "kill controller"), typed=1.0)
CONDITIONS: Final = Hunt(kinds=("kill broker", "delay answers", "isolate broker"), typed=1.0, conditions=1.0)
LAGGING: Final = Hunt(kinds=("cut from controllers", "lose frames", "delay frames"), typed=1.0)


def _changes_are_made_without_a_look_at_the_version(switch: Switch) -> None:
    """The controller adds each change to what there is, whatever its author has seen."""

    def make(plan: Any) -> Any:
        def plan_any(image: Any, command: Any, request: Any) -> Any:
            topic = image.topics.get(request.topic)
            seen = request.from_version if topic is None else topic.node.schema_version
            return plan(image, command, replace(request, from_version=seen))

        return plan_any

    switch.method(command_intake, "plan_schema", make)


def _rows_of_unknown_columns_are_taken(switch: Switch) -> None:
    """A leader appends a batch whose columns it cannot check."""

    def make(check: Any) -> Any:
        def check_known(buffer: Bytes, header: BatchHeader, columns: TopicColumns) -> Any:
            try:
                typed_payload.read_typed(buffer, header, columns)
            except UnknownColumns:
                return None
            return check(buffer, header, columns)

        return check_known

    switch.method(validate, "_check_typed", make)


def _ids_are_used_again(switch: Switch) -> None:
    """A new column gets the first id that no present one has."""

    def make(change: Any) -> Any:
        def change_with_free_ids(document: SchemaDocument, changes: Sequence[SchemaChange]) -> Any:
            used = {field.id for field in all_fields(document.at(document.version))}
            return change(replace(document, next_id=max(used) + 1), changes)

        return change_with_free_ids

    switch.method(schema_changes, "changed", make)


def _columns_are_found_by_their_names(switch: Switch) -> None:
    """A reader takes what is called like its own columns by now."""

    def by_name(present: Mapping[int, Any], source: Columns, target: Columns, row_count: int) -> list[Any]:
        named = {field.name: field for field in source}
        return [
            pa.nulls(row_count, arrow_type(field.type))
            if field.name not in named or named[field.name].id not in present
            else mapping._column(present[named[field.name].id], named[field.name], field)
            for field in target
        ]

    switch.instead(typed_payload, "mapped_columns", by_name)


def _narrower_types_wrap(switch: Switch) -> None:
    """A value that the reader's narrower type cannot hold is cut to its lower bits."""
    switch.instead(mapping, "_scalar", lambda column, kind: column.cast(kind, safe=False))


def _batches_without_room_count_as_looked_at(switch: Switch) -> None:
    """A replica has looked past the batch that had no room in its answer, too."""

    def make(add: Any) -> Any:
        def add_and_go_on(self: Any, batch: Any) -> None:
            add(self, batch)
            self.next_offset = max(self.next_offset, batch.header.next_offset)

        return add_and_go_on

    switch.method(converting_reader._Run, "_add", make)


COLUMNS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "changes-are-made-without-a-look-at-the-version",
        "ALTER TABLE without a version",
        "two changes at a time are both made, and the later one is added to what its author has not seen",
        40,
        _changes_are_made_without_a_look_at_the_version,
        CHANGES,
    ),
    Mutant(
        "rows-of-unknown-columns-are-taken",
        "a leader that lags a change",
        "a leader appends rows of columns that it does not know, unchecked",
        60,
        _rows_of_unknown_columns_are_taken,
        LAGGING,
    ),
    Mutant(
        "ids-are-used-again",
        "columns without a next id",
        "a dropped column's values come back in a new one",
        20,
        _ids_are_used_again,
        CHANGES,
        is_quick=True,
    ),
    Mutant(
        "columns-are-found-by-their-names",
        "columns by name",
        "after a rename a running query reads another column's values",
        20,
        _columns_are_found_by_their_names,
        CHANGES,
        is_quick=True,
    ),
    Mutant(
        "narrower-types-wrap",
        "an unsafe cast",
        "a running query reads other numbers after a column was widened",
        60,
        _narrower_types_wrap,
        CHANGES,
    ),
    Mutant(
        "batches-without-room-count-as-looked-at",
        "an answer that says how far a replica has looked",
        "a query with a condition misses the rows for which an answer had no room",
        20,
        _batches_without_room_count_as_looked_at,
        CONDITIONS,
    ),
)
