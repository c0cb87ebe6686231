import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.records import bridge

few_bytes = st.lists(st.none() | st.binary(max_size=5), max_size=30)
few_numbers = st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=30)
cuts = st.tuples(st.integers(0, 30), st.integers(0, 30))


@given(values=few_bytes, cut=cuts)
def test_binary_columns_are_those_that_arrow_makes(values, cut):
    column = bridge.binaries(values)
    column.validate(full=True)
    assert column.equals(pa.array(values, pa.binary()))
    part = column.slice(*cut)
    assert bridge.nulls_of(part).tolist() == [value is None for value in part.to_pylist()]
    assert bridge.value_lengths(part).tolist() == pc.binary_length(part).fill_null(0).to_pylist()


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.timestamp("us", tz="UTC")])
@given(values=few_numbers, cut=cuts)
def test_numbers_are_read_where_they_are(kind, values, cut):
    part = pa.array(values, pa.int64()).cast(pa.int32() if kind == pa.int32() else pa.int64())
    part = part.view(kind).slice(*cut)
    nulls = bridge.nulls_of(part)
    assert nulls.tolist() == part.is_null().to_pylist()
    integers = part.view(pa.int32() if kind == pa.int32() else pa.int64())
    assert bridge.values_of(part)[~nulls].tolist() == [one for one in integers.to_pylist() if one is not None]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@given(values=few_numbers)
def test_numbers_become_columns(dtype, values):
    nulls = np.array([value is None for value in values], np.bool_)
    own = np.array([value or 0 for value in values], dtype)
    column = bridge.numbers(own, nulls)
    column.validate(full=True)
    assert column.to_pylist() == values
    assert bridge.numbers(own[::2]).to_pylist() == own[::2].tolist()
    assert bridge.booleans(nulls).to_pylist() == nulls.tolist()


@given(lists=st.lists(st.none() | st.lists(st.integers(0, 9), max_size=4), max_size=20), cut=cuts)
def test_lists_have_lengths_too_and_nulls_have_none(lists, cut):
    part = pa.array(lists, pa.list_(pa.int64())).slice(*cut)
    assert bridge.value_lengths(part).tolist() == [len(one or []) for one in part.to_pylist()]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.large_binary()])
def test_every_column_with_offsets_has_lengths(kind):
    assert bridge.value_lengths(pa.array(["a", None, "bcd"], kind)).tolist() == [1, 0, 3]


def test_a_null_has_no_length_whatever_lies_behind_it():
    hidden = pa.Array.from_buffers(
        pa.binary(),
        2,
        [pa.py_buffer(b"\x02"), pa.py_buffer(np.array([0, 3, 4], np.int32)), pa.py_buffer(b"abcd")],
    )
    assert bridge.value_lengths(hidden).tolist() == [0, 1]


def test_a_column_of_type_null_is_all_null():
    assert bridge.nulls_of(pa.nulls(3)).tolist() == [True] * 3


def test_a_text_is_repeated():
    assert bridge.repeated_text("wétter", 3).equals(pa.array(["wétter"] * 3))
    assert len(bridge.repeated_text("a", 0)) == 0
    with pytest.raises(OverflowError, match="do not fit"):
        bridge.repeated_text("a" * 249, 2**24)


def test_a_column_of_other_numbers_is_refused():
    with pytest.raises(TypeError, match="int8"):
        bridge.values_of(pa.array([1], pa.int8()))


ROUND_TRIP = """
import sys
import numpy as np, pyarrow as pa
from sparklog.records.bridge import binaries
from sparklog.records.envelope import parse_header
from sparklog.records.payload import payload
from sparklog.records.payload_kinds import PayloadKind
for kind in PayloadKind:
    for count in (1, {few}):
        rows = pa.record_batch({{"key": binaries([b"k"] * count), "value": binaries([b"v"] * count)}})
        batch = payload(kind).from_columns(rows, now_ms=1)
        assert payload(kind).to_columns(batch, parse_header(batch)).num_rows == count
print([name for name in ("pandas", "aiokafka") if name in sys.modules])
"""


@pytest.mark.parametrize(("few", "loaded"), [(16, "[]"), (40, "['aiokafka']")])
def test_writing_and_reading_batches_imports_no_pandas_and_few_records_no_aiokafka(few, loaded):
    code = ROUND_TRIP.format(few=few)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (loaded, "")
