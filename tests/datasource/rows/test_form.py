"""The form of a read's rows is what its options say, and nothing else."""

import pytest
from pyspark.sql.types import BinaryType, StringType

from sparklog.model.errors import ConfigError
from sparklog_datasource.options.option_names import READ_OPTIONS
from sparklog_datasource.options.option_parsing import Options
from sparklog_datasource.rows.form import ColumnForm, RowForm, form_of, row_type, untyped_columns


def form(**given: str) -> RowForm:
    servers = {"kafka.bootstrap.servers": "127.0.0.1:1"}
    return form_of(Options({**servers, **given}, READ_OPTIONS, "read"))


def test_keys_and_values_are_binary_unless_asked_for_as_text() -> None:
    assert form() == RowForm(False, ColumnForm.BINARY, ColumnForm.BINARY)
    assert form(keyFormat="Binary", valueFormat="STRING").value is ColumnForm.TEXT
    assert form(keyFormat="string", valueFormat="binary").key is ColumnForm.TEXT


def test_what_is_no_text_fails_or_is_null() -> None:
    assert form(valueFormat="string", **{"valueFormat.errors": "fail"}).value is ColumnForm.TEXT
    nulls = form(valueFormat="string", keyFormat="string", **{"keyFormat.errors": "null"})
    assert (nulls.key, nulls.value) == (ColumnForm.TEXT_OR_NULL, ColumnForm.TEXT)


def test_the_columns_have_the_types_that_were_asked_for() -> None:
    fields = row_type(RowForm(key=ColumnForm.TEXT, value=ColumnForm.BINARY)).fields
    assert [field.dataType for field in fields[:2]] == [StringType(), BinaryType()]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"valueFormat": "json"}, r"option valueFormat='json': must be one of binary, string"),
        ({"keyFormat": ""}, r"option keyFormat='': must be one of binary, string"),
        (
            {"keyFormat": "string", "keyFormat.errors": "skip"},
            r"option keyFormat.errors='skip': must be one of fail, null",
        ),
        ({"valueFormat.errors": "null"}, r"option valueFormat.errors='null' needs valueFormat=string"),
        (
            {"keyFormat": "string", "valueFormat.errors": "fail"},
            r"option valueFormat.errors='fail' needs valueFormat=string: set it, or leave",
        ),
    ],
)
def test_words_that_there_are_not_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        form(**given)


def test_columns_that_are_named_are_there_alone_and_in_their_order() -> None:
    form = RowForm(value=ColumnForm.TEXT, columns=("offset", "headers", "value"))
    assert row_type(form).simpleString() == (
        "struct<offset:bigint,headers:array<struct<key:string,value:binary>>,value:string>"
    )
    assert row_type(RowForm()).names == untyped_columns()[:-1]
