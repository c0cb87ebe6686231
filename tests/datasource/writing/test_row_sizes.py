"""Sizes of rows are estimated from whole columns, never too small."""

import pyarrow as pa

from sparklog.records.row_columns import HEADERS_TYPE
from sparklog_datasource.writing.row_sizes import HEADER_BYTES, ROW_BYTES, row_sizes


def rows(
    key: list[bytes | None] | None, value: list[bytes | None], headers: list[object] | None
) -> pa.RecordBatch:
    count = len(value)
    return pa.record_batch(
        {
            "key": pa.nulls(count) if key is None else pa.array(key, pa.binary()),
            "value": pa.array(value, pa.binary()),
            "headers": pa.nulls(count) if headers is None else pa.array(headers, HEADERS_TYPE),
        }
    )


def test_keys_and_values_count_nulls_do_not() -> None:
    sizes = row_sizes(rows([b"k", None, b""], [b"value", b"v", None], None))
    assert (sizes - ROW_BYTES).tolist() == [6, 1, 0]


def test_headers_count_with_a_little_for_each() -> None:
    headers = [
        [{"key": "ab", "value": b"c"}, {"key": "d", "value": None}],
        None,
        [],
        [{"key": "e", "value": b""}],
    ]
    sizes = row_sizes(rows(None, [b""] * 4, headers))
    assert (sizes - ROW_BYTES).tolist() == [4 + 2 * HEADER_BYTES, 0, 0, 1 + HEADER_BYTES]


def test_slices_are_measured_by_their_own_rows() -> None:
    headers = [[{"key": "ab", "value": b"c"}], [{"key": "d", "value": b"efg"}], None]
    whole = rows([b"1", b"22", b"333"], [b"", b"4", b"55"], headers)
    assert row_sizes(whole.slice(1, 2)).tolist() == row_sizes(whole).tolist()[1:]
