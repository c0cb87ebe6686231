import pyarrow as pa
from hypothesis import given, settings

from sparklog.records.arrow.arrow_types import columns_of_arrow
from sparklog.records.arrow.written_rows import WrittenRows
from sparklog.records.envelope import Compression
from sparklog_datasource.writing.batching import TypedEncoding
from sparklog_datasource.writing.typed_sizes import typed_row_sizes
from tests.records.arrow.typed_strategies import tables


@settings(deadline=None, max_examples=60)
@given(drawn=tables())
def test_a_batch_takes_no_more_than_its_rows_and_its_overhead(drawn):
    topic, rows = drawn
    encoding = TypedEncoding(
        Compression.NONE, WrittenRows.fitting(topic.newest, columns_of_arrow(rows.schema))
    )
    size = len(encoding.encode(encoding.written.rows(rows)))
    assert size <= typed_row_sizes(rows).sum() + encoding.overhead_bytes


@settings(deadline=None, max_examples=40)
@given(drawn=tables())
def test_the_sizes_of_slices_are_those_of_their_rows(drawn):
    _, rows = drawn
    sizes = typed_row_sizes(rows).tolist()
    for nth in range(rows.num_rows):
        assert typed_row_sizes(rows.slice(nth, 1)).tolist() == sizes[nth : nth + 1]
    assert typed_row_sizes(rows.slice(rows.num_rows)).tolist() == []


def test_long_texts_count_where_they_are():
    rows = pa.record_batch({"a": ["x" * 1_000, ""], "b": [[b"y" * 500], None]})
    first, second = typed_row_sizes(rows).tolist()
    assert 1_500 <= first <= 1_600
    assert second <= 100
