"""Drawn changes are allowed ones, and a column's name says its id through all versions."""

from random import Random

import pytest

from chaos.typed.changes import COLUMNS_MAX, COLUMNS_MIN, drawn_changes, parsed
from chaos.typed.columns import AGAIN, DDL, KEY, id_of
from sparklog.model.schema.evolution import changed
from sparklog.model.schema.new_schema import new_schema
from sparklog.model.schema.notation import parse_schema

OPERATIONS = {"add-column", "drop-column", "rename-column", "widen-column"}


@pytest.mark.parametrize("seed", range(5))
def test_two_hundred_versions_are_allowed_and_names_say_which_column_it_is(seed):
    rng, document = Random(seed), new_schema(parse_schema(DDL), KEY, "")
    operations, ids_of_again = set(), set()
    for _ in range(200):
        changes = drawn_changes(document, rng)
        operations |= {operation for operation, _ in changes}
        document = changed(document, parsed(changes))
        columns = document.at(document.version)
        assert COLUMNS_MIN < len(columns) <= COLUMNS_MAX + 1
        for column in columns:
            assert id_of(column.name, column.id) == column.id
            assert id_of(column.name, 0) in (column.id, 0)
            ids_of_again |= {column.id} if column.name == AGAIN else set()
    assert operations == OPERATIONS
    assert len(ids_of_again) > 1
