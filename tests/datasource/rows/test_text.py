"""Keys and values become text; what is no UTF-8 is named by its place, or null."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.model.ids import TopicPartition
from sparklog.records.row_columns import HEADERS_TYPE, row_batch
from sparklog_datasource.rows.form import ColumnForm
from sparklog_datasource.rows.text import NotText, as_form

T3 = TopicPartition("t", 3)
HALF_A_CHARACTER = "ü".encode()[:1]
OTHER_HALF = "ü".encode()[1:]


def batch_of(values: list[bytes | None]) -> pa.RecordBatch:
    count = len(values)
    return row_batch(
        key=pa.nulls(count, pa.binary()),
        value=pa.array(values, pa.binary()),
        timestamps_ms=np.zeros(count, np.int64),
        headers=pa.nulls(count, HEADERS_TYPE),
        offsets=np.arange(40, 40 + count),
        timestamp_types=np.zeros(count, np.int32),
    )


def texts(values: list[bytes | None], form: ColumnForm) -> list[str | None]:
    column = as_form(batch_of(values), "value", form, T3)
    assert column.type == pa.string()
    return column.to_pylist()


@pytest.mark.parametrize("form", [ColumnForm.TEXT, ColumnForm.TEXT_OR_NULL])
def test_text_comes_back_and_null_and_empty_differ(form: ColumnForm) -> None:
    assert texts(["größe 🦈\0".encode(), None, b""], form) == ["größe 🦈\0", None, ""]
    assert as_form(batch_of([None]), "key", form, T3).to_pylist() == [None]


def test_binary_is_handed_on_as_it_is() -> None:
    rows = batch_of([b"\xff"])
    assert as_form(rows, "value", ColumnForm.BINARY, T3).equals(rows.column("value"))


def test_what_is_no_text_is_named_by_partition_and_offset_with_the_remedy() -> None:
    with pytest.raises(NotText) as caught:
        texts([b"a", None, b"b\xff", b"\xfe"], ColumnForm.TEXT)
    assert str(caught.value) == (
        "the value at offset 42 of t-3 is no UTF-8 text: invalid start byte, 0xff as byte 1 of 2. Leave out "
        "option valueFormat to read it as binary, or set valueFormat.errors=null, which makes it null"
    )


def test_a_character_that_lies_in_two_values_is_no_text() -> None:
    split = [HALF_A_CHARACTER, OTHER_HALF, b"c"]
    assert texts(split, ColumnForm.TEXT_OR_NULL) == [None, None, "c"]
    with pytest.raises(NotText, match=r"offset 40 of t-3.*unexpected end of data"):
        texts(split, ColumnForm.TEXT)


def test_a_slice_answers_for_its_own_rows_alone() -> None:
    """Bytes of other rows, and those below a null, lie in the same buffer."""
    rows = batch_of([b"\xff", b"a", b"b", b"\xff"]).slice(1, 2)
    assert as_form(rows, "value", ColumnForm.TEXT, T3).to_pylist() == ["a", "b"]
    hidden = pa.Array.from_buffers(
        pa.binary(), 2, [pa.py_buffer(b"\x02"), *pa.array([b"\xff", b"a"]).buffers()[1:]]
    )
    masked = rows.set_column(rows.schema.get_field_index("value"), "value", hidden)
    assert as_form(masked, "value", ColumnForm.TEXT, T3).to_pylist() == [None, "a"]


@given(st.lists(st.none() | st.binary(max_size=6) | st.text(max_size=3).map(str.encode), max_size=20))
def test_arrow_and_python_agree_on_what_is_text(values: list[bytes | None]) -> None:
    def text(value: bytes | None) -> str | None:
        try:
            return None if value is None else value.decode()
        except UnicodeDecodeError:
            return None

    assert texts(values, ColumnForm.TEXT_OR_NULL) == [text(value) for value in values]
