"""Finding records by time, down to the record, in both kinds of payload."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.model.transaction_end import TransactionEnd
from sparklog.records.control import build_marker
from sparklog.records.envelope import Compression, build_envelope, split, stamp
from sparklog.records.payload import payload_of
from sparklog.records.payload_kinds import PayloadKind
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from sparklog.storage.segments import segment_search

SMALL = LogConfig(segment_bytes=2_000, index_interval_bytes=300)
ARROW = split(
    build_envelope(
        b"", attributes=1 << 14, record_count=1, last_offset_delta=0, base_timestamp_ms=0, max_timestamp_ms=0
    )
)[0][1]
RECORDS = split(
    build_envelope(
        b"", attributes=0, record_count=1, last_offset_delta=0, base_timestamp_ms=0, max_timestamp_ms=0
    )
)[0][1]
KINDS = {PayloadKind.RECORDS: RECORDS, PayloadKind.ARROW: ARROW}


def append_records(log: Log, kind: PayloadKind, timestamps_ms: list[int]) -> None:
    columns = pa.table(
        {
            "key": pa.nulls(len(timestamps_ms), pa.binary()),
            "value": pa.array([b"v"] * len(timestamps_ms), pa.binary()),
            "timestamp": pa.array([stamp * 1_000 for stamp in timestamps_ms], pa.timestamp("us", "UTC")),
        }
    )
    data = bytearray(payload_of(KINDS[kind]).from_columns(columns, now_ms=0, compression=Compression.NONE))
    stamp(data, 0, log.log_end_offset, 0)
    log.append(data, split(data))


def append_end(log: Log, timestamp_ms: int) -> None:
    """The end of a transaction."""
    end = build_marker(TransactionEnd(True, 0), producer_id=9, producer_epoch=0, now_ms=timestamp_ms)
    marker = bytearray(end)
    stamp(marker, 0, log.log_end_offset, 0)
    log.append(marker, split(marker))


@pytest.mark.parametrize("kind", list(PayloadKind))
def test_the_first_late_enough_record_is_found_inside_its_batch(bench: Any, kind: PayloadKind) -> None:
    log = bench.open(SMALL)
    append_records(log, kind, [100, 300, 200])
    append_records(log, kind, [150, 400, 400])
    assert log.offset_for_timestamp(0) == (0, 100)
    assert log.offset_for_timestamp(101) == (1, 300)
    assert log.offset_for_timestamp(300) == (1, 300)
    assert log.offset_for_timestamp(301) == (4, 400)
    assert log.offset_for_timestamp(401) is None
    assert log.max_timestamp() == (4, 400)


@pytest.mark.parametrize("kind", list(PayloadKind))
def test_records_before_the_log_start_are_not_found(bench: Any, kind: PayloadKind) -> None:
    log = bench.open(SMALL)
    append_records(log, kind, [100, 300, 200])
    append_records(log, kind, [250])
    log.raise_log_start(2)
    assert log.offset_for_timestamp(100) == (2, 200)
    assert log.offset_for_timestamp(201) == (3, 250)


@pytest.mark.bug(
    "B91", "records", "A search by time finds the end of a write, and a read up to it ends too early."
)
def test_the_end_of_a_write_is_no_record_however_late_it_is(bench: Any) -> None:
    log = bench.open(SMALL)
    append_records(log, PayloadKind.ARROW, [100, 200])
    append_end(log, 9_000)
    append_records(log, PayloadKind.ARROW, [300, 400])
    assert log.offset_for_timestamp(201) == (3, 300)
    assert log.offset_for_timestamp(401) is None
    assert log.max_timestamp() == (2, 9_000)


def test_a_search_past_the_end_of_a_write_is_bounded_because_it_holds_the_lock(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_search, "MARKER_SEARCH_BATCHES_MAX", 30)
    log = bench.open(LogConfig(segment_bytes=1_000_000))  # segments without a time so late are not looked at
    append_end(log, 9_000)
    for _ in range(30):
        append_records(log, PayloadKind.ARROW, [100])
    append_records(log, PayloadKind.ARROW, [200])
    assert log.offset_for_timestamp(100) == (1, 100)
    assert log.offset_for_timestamp(200) == (0, 9_000)
    monkeypatch.setattr(segment_search, "MARKER_SEARCH_BATCHES_MAX", 31)
    assert log.offset_for_timestamp(200) == (31, 200)
    assert log.offset_for_timestamp(201) is None


def test_an_empty_log_has_no_times(bench: Any) -> None:
    log = bench.open(SMALL)
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp() is None


@settings(max_examples=40, deadline=None)
@given(
    batches=st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=8), min_size=1, max_size=30),
    kept=st.integers(1, 30),
    restart=st.sampled_from(["no", "clean", "killed"]),
)
def test_lookups_by_time_equal_a_linear_scan(
    tmp_path_factory: pytest.TempPathFactory,
    make_bench: type[Any],
    batches: list[list[int]],
    kept: int,
    restart: str,
) -> None:
    bench = make_bench(tmp_path_factory.mktemp("times"))
    log = bench.open(SMALL)
    for timestamps in batches:
        append_records(log, PayloadKind.RECORDS, timestamps)
    batches = batches[:kept]
    log.truncate_to(sum(map(len, batches)))
    if restart == "clean":
        log.close()
    if restart != "no":
        log = bench.open(SMALL, recovery_point=log.recovery_point, clean=restart == "clean")
    flat = [stamp for timestamps in batches for stamp in timestamps]
    for wanted in range(0, 62, 3):
        first = next(((offset, found) for offset, found in enumerate(flat) if found >= wanted), None)
        assert log.offset_for_timestamp(wanted) == first
    assert log.max_timestamp() == (flat.index(max(flat)), max(flat))
