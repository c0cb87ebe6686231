"""The JSON of a Spark schema is read."""

import json
from typing import Any

import pytest

from sparklog.model.errors import SchemaError
from sparklog.model.schema.ddl_text import ddl_text
from sparklog.model.schema.notation import parse_schema


def of_column(data_type: Any, **more: Any) -> str:
    field = {"name": "a", "type": data_type, "nullable": True, "metadata": {}, **more}
    return json.dumps({"type": "struct", "fields": [field]})


def test_nested_columns_are_read() -> None:
    inner = {"type": "struct", "fields": [{"name": "b c", "type": "decimal(5,2)", "nullable": False}]}
    of_map = {"type": "map", "keyType": "integer", "valueType": inner, "valueContainsNull": False}
    array = {"type": "array", "elementType": of_map, "containsNull": True}
    columns = parse_schema(" " + of_column(array, nullable=False, metadata={"comment": "it's"}))
    assert ddl_text(columns) == (
        r"a array<map<int, struct<`b c`: decimal(5,2) NOT NULL>>> NOT NULL COMMENT 'it\'s'"
    )


DEEP: Any = "integer"
for _ in range(40):
    DEEP = {"type": "array", "elementType": DEEP}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "schema: this is no JSON"),
        ('{"type": "array", "elementType": "integer"}', "schema: a schema is of type struct"),
        ('{"type": "struct"}', "schema: its type is neither a name nor a struct, array or map"),
        ('{"type": "struct", "fields": [{"name": "a"}]}', "schema: each field has a name and a type"),
        (of_column(7), "column a: its type is neither a name nor a struct, array or map"),
        (of_column("integer", nullable=1), "column a: nullable is true or false"),
        (of_column("integer", metadata=[]), "column a: nullable is true or false"),
        (of_column("void"), "column a: type void is not supported"),
        (of_column("interval day to second"), "column a: type interval is not supported"),
        (of_column("time(6)"), "column a: type time is not supported"),
        (of_column("char(3)"), "column a: type char is not supported"),
        (of_column("geometry(OGC:CRS84)"), "column a: type geometry is not supported"),
        (of_column("string collate UTF8_LCASE"), "column a: collation UTF8_LCASE is not supported"),
        (
            of_column("string", metadata={"__COLLATIONS": {"a": "spark.UTF8_LCASE"}}),
            "column a: collation spark.UTF8_LCASE is not supported",
        ),
        (of_column({"type": "udt", "sqlType": "string"}), "column a: type udt is not supported"),
        ('{"a":' * 5_000, "schema: "),
        (of_column(DEEP), "types are at most 32 levels deep"),
    ],
)
def test_bad_json_is_refused_with_its_column(text: str, message: str) -> None:
    with pytest.raises(SchemaError) as refusal:
        parse_schema(text)
    assert message in str(refusal.value)
