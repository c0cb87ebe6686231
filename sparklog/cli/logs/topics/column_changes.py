"""``sparklog topics alter`` of columns: the options, in their order, and what was changed."""

import argparse
import json
from collections.abc import Sequence
from typing import Any, Final

from sparklog.cli.command import DONE, UsageError
from sparklog.cli.connect import wants_json
from sparklog.cli.logs.topics.column_options import columns_as_json, schema_of, show_columns
from sparklog.cli.progress import patience, say
from sparklog.cli.topic_names import topic_wanted
from sparklog.client.cluster import ClusterClient
from sparklog.client.topic_schemas import alter_schema
from sparklog.model.errors import SchemaError
from sparklog.model.schema.change_texts import (
    ADD,
    DROP,
    DROP_NOT_NULL,
    RENAME,
    WIDEN,
    AddColumn,
    SchemaChange,
    parse_change,
)
from sparklog.model.schema.notation import without_inner_not_null

_OPTIONS: Final = (
    (ADD, "'PATH TYPE'", "a column, or a field of a struct (s.x), at the end; it may be null"),
    (DROP, "PATH", "a column or field; its values are not read any more"),
    (RENAME, "PATH=NAME", "another name; values and running queries stay"),
    (WIDEN, "'PATH TYPE'", "a type that holds all values of the present one; a.element and m.value too"),
    (DROP_NOT_NULL, "COLUMN", "allow null"),
)


class _Change(argparse.Action):
    """Collects the changes of all these options, because their order counts."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        namespace.columns = [*namespace.columns, (self.operation_of[option_string or ""], str(values))]

    operation_of: Final = {f"--{name}": name for name, _, _ in _OPTIONS}


def add_change_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that change columns."""
    group = parser.add_argument_group(
        "columns of a typed topic", "May be repeated and mixed; together they are one version."
    )
    for name, metavar, words in _OPTIONS:
        group.add_argument(
            f"--{name}", action=_Change, metavar=metavar, help=words, dest="columns", default=[]
        )


def alter_columns(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    """Make the version that the options describe. KafkaError if another change overtook it."""
    name: str = arguments.name
    changes = [_parsed(operation, text) for operation, text in arguments.columns]
    with patience(f"changing the columns of topic {name!r}"), topic_wanted(cluster, arguments, name):
        before = schema_of(cluster, name)
        after = alter_schema(cluster, name, before, changes)
    if wants_json(arguments):
        versions = {"before": before.version, "after": after.version}
        topic = {"name": name, "schema_version": versions, "schema": columns_as_json(after)}
        print(json.dumps({"topics": [topic]}))
        return DONE
    print(f"topic {name!r}: columns of version {before.version} -> {after.version}")
    show_columns(after)
    return DONE


def _parsed(operation: str, text: str) -> SchemaChange:
    try:
        change = parse_change(operation, text)
    except SchemaError as error:
        raise UsageError(f"--{operation}: {error}") from None
    if isinstance(change, AddColumn):
        _, dropped = without_inner_not_null((change.field,))
        if dropped:
            say(f"note: NOT NULL of {', '.join(dropped)} is dropped: it holds for columns, not within them")
    return change
