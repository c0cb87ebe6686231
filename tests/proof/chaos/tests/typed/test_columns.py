"""Values of every type fit their columns, also after these were widened, and keep their text."""

from random import Random

import pyarrow as pa
import pytest

from chaos.typed.columns import TYPES, WIDER, id_of, value_of_type
from histories.typed.cells import text_of
from sparklog.model.schema.ddl_parser import parse_column
from sparklog.records.arrow.arrow_types import arrow_type


def texts(array):
    return [None if value is None else text_of(value) for value in array.to_pylist()]


@pytest.mark.parametrize("name", sorted({*TYPES, *WIDER, *WIDER.values()}))
def test_a_value_has_the_text_that_its_column_shows_however_wide_that_becomes(name):
    rng = Random(name)
    kind = parse_column("x", "x", name, depth=1).type
    values = [value_of_type(kind, rng) for _ in range(200)]
    sent = [None if value is None else text_of(value) for value in values]
    stored = pa.array(values, arrow_type(kind))
    assert texts(stored) == sent
    while (name := WIDER.get(name)) is not None:
        stored = stored.cast(arrow_type(parse_column("x", "x", name, depth=1).type))
        assert texts(stored) == sent


@pytest.mark.parametrize(
    ("name", "planned", "known"), [("name", 9, 1), ("c7", 9, 7), ("c12_30", 9, 12), ("again", 9, 9)]
)
def test_a_name_says_which_column_it_is_whatever_the_planner_believes(name, planned, known):
    assert id_of(name, planned) == known
