import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.model.errors import CorruptBatch
from sparklog.records.decoding import read_columns
from sparklog.records.envelope import (
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    Compression,
    build_envelope,
    split,
)
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.payload import payload_of
from tests.records.runs import run_of
from tests.records.to_arrow import records_to_arrow

kinds = st.sampled_from(["records", "lz4", "arrow", "log append time", "control", "empty"])
sizes = st.integers(1, 60)


def batch(kind: str, count: int) -> bytes:
    some = [
        Record(b"k%d" % nth, b"v" * (nth % 7) or None, 1_000 + nth, [("h", b"x")] * (nth % 3))
        for nth in range(count)
    ]
    codec = Compression.LZ4 if kind == "lz4" else Compression.NONE
    built = build_records_batch(some, now_ms=5, compression=codec)
    if kind == "arrow":
        return records_to_arrow(built)
    if kind in ("control", "log append time", "empty"):
        return build_envelope(
            b"" if kind == "empty" else built[61:],
            attributes={"control": CONTROL_BIT, "log append time": LOG_APPEND_TIME_BIT}.get(kind, 0),
            record_count=0 if kind == "empty" else count,
            last_offset_delta=count - 1,
            base_timestamp_ms=1_000,
            max_timestamp_ms=9_999,
        )
    return built


@settings(deadline=None, max_examples=60)
@given(parts=st.lists(st.tuples(kinds, sizes), min_size=1, max_size=12))
def test_a_run_reads_as_its_batches_do_one_by_one(parts: list[tuple[str, int]]):
    run = run_of(*(batch(*part) for part in parts))
    one_by_one = [
        payload_of(header).to_columns(memoryview(run)[position:], header)
        for position, header in split(run)
        if not header.is_control
    ]
    together = list(read_columns(run, split(run)))
    assert sum(rows.num_rows for rows in together) == sum(rows.num_rows for rows in one_by_one)
    if one_by_one:
        assert pa.Table.from_batches(together) == pa.Table.from_batches(one_by_one)


def test_neighbouring_record_batches_are_read_as_one():
    run = run_of(*[batch("records", 3)] * 50, batch("arrow", 3), *[batch("records", 3)] * 50)
    assert [rows.num_rows for rows in read_columns(run, split(run))] == [150, 3, 150]


def test_a_run_may_start_in_the_middle_of_a_buffer():
    run = run_of(*[batch("records", 3)] * 4)
    rows = list(read_columns(memoryview(run), split(run)[1:3]))
    assert rows[0].column("offset").to_pylist() == list(range(80, 86))


@pytest.mark.parametrize(
    "fields",
    [
        {"record_count": 2},
        {"record_count": 4},
        {"record_count": 2**31 - 1},
        {"last_offset_delta": 1},
    ],
)
def test_one_bad_batch_in_a_run_is_refused(fields: dict[str, int]):
    values = {
        "attributes": 0,
        "record_count": 3,
        "last_offset_delta": 2,
        "base_timestamp_ms": 0,
        "max_timestamp_ms": 0,
    }
    bad = build_envelope(batch("records", 3)[61:], **(values | fields))
    run = run_of(batch("records", 3), bad, batch("records", 3))
    with pytest.raises(CorruptBatch):
        list(read_columns(run, split(run)))


def test_offsets_that_do_not_grow_within_a_batch_of_a_run_are_refused():
    record = batch("records", 1)[61:]
    bad = build_envelope(
        record * 2,
        attributes=0,
        record_count=2,
        last_offset_delta=1,
        base_timestamp_ms=0,
        max_timestamp_ms=0,
    )
    run = run_of(batch("records", 2), bad)
    with pytest.raises(CorruptBatch, match="do not grow"):
        list(read_columns(run, split(run)))
