"""What Kafka's clients are given of typed rows, decoded without sparklog's code."""

import json

import pytest

from chaos.clients.typed.json_rows import NO_NAME, JsonRows
from histories.typed.columns import TopicColumns

DOCUMENT = {
    "format": 1,
    "version": 3,
    "next_id": 5,
    "key": 1,
    "timestamp": None,
    "columns": [
        {"id": 1, "name": "name", "type": "string"},
        {"id": 2, "name": [[1, "c2"], [2, "c2_2"]], "type": [[1, "float"], [3, "double"]]},
        {"id": 3, "name": "c3", "type": "int", "dropped": 2},
        {"id": 4, "name": "again", "type": {"array": "int"}, "since": 2},
    ],
}


@pytest.fixture
def rows():
    return JsonRows(TopicColumns(json.dumps(DOCUMENT).encode()))


def test_a_row_has_its_name_and_the_newest_columns(rows):
    assert rows.ids == [2, 4]
    value = b'{"name":"a","c2_2":2.50,"again":[1,null]}'
    assert rows.row(b"a", value) == ("a", {2: "2.5", 4: "[1,null]"})


@pytest.mark.parametrize(
    "value", [None, b"", b"[]", b"7", b'{"c2_2":1}', b'{"name":"a","c2":1}', b'{"name":"a","c2_2":"x"}']
)
def test_what_is_no_such_row_has_a_name_that_nobody_sent(rows, value):
    assert rows.row(b"a", value)[0].startswith(NO_NAME)


def test_a_row_under_another_key_has_a_name_that_nobody_sent(rows):
    assert rows.row(b"b", b'{"name":"a"}')[0] == "a under the key b'b'"
