"""Compaction against a dictionary: whatever was written, in whatever batches, segments and rounds."""

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparklog.records.envelope import Compression

KEYS = st.sampled_from([b"", b"a", b"b", b"c", b"a-longer-key", b"the-longest-key-of-all"])
ROWS = st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=12)), min_size=1, max_size=40)
CODECS = st.sampled_from(
    [("records", codec) for codec in Compression]
    + [("arrow", codec) for codec in (Compression.NONE, Compression.LZ4, Compression.ZSTD)]
)
PUT = st.tuples(st.just("put"), ROWS, CODECS)
TRANSACTION = st.tuples(st.just("transaction"), ROWS, st.booleans())
STEPS = st.lists(
    PUT
    | PUT
    | TRANSACTION
    | st.tuples(st.just("roll"))
    | st.tuples(st.just("clean"))
    | st.tuples(st.just("time"), st.integers(1, 86_400_000))
    | st.tuples(st.just("reopen")),
    min_size=3,
    max_size=25,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_a_compacted_log_keeps_what_a_dictionary_would(make_table, steps):
    with tempfile.TemporaryDirectory() as directory:
        check(make_table(Path(directory)), steps)


def check(table, steps) -> None:
    expected: dict[bytes, bytes] = {}
    written: dict[int, tuple[bytes, bytes | None]] = {}
    epoch = 0
    for step in steps:
        match step:
            case ("put", rows, (kind, codec)):
                base_offset = table.put(*rows, kind=kind, codec=codec)
                written |= {base_offset + nth: row for nth, row in enumerate(rows)}
                expected |= dict(rows)
            case ("transaction", rows, commit):
                epoch += 1
                base_offset = table.put(*rows, producer=(1, epoch, 0), transactional=True)
                table.mark(1, commit=commit, epoch=epoch)
                if commit:
                    written |= {base_offset + nth: row for nth, row in enumerate(rows)}
                    expected |= dict(rows)
            case ("roll",):
                table.roll()
            case ("clean",):
                dirty_end = table.clean().end
                sees_what_the_dictionary_has(table, expected, written, aborted_until=dirty_end)
                sees_one_record_per_key(table, dirty_end)
            case ("time", passed_ms):
                table.clock.now_ms += passed_ms
            case ("reopen",):
                before, producers = table.bytes_from(), table.log.producers.producers.keys()
                end = table.log.log_end_offset
                table.open()
                assert table.bytes_from() == before
                assert table.log.log_end_offset == end
                assert table.log.producers.producers.keys() == producers
    table.roll()
    table.clean()
    sees_what_the_dictionary_has(table, expected, written, aborted_until=1 << 60)
    once = table.bytes_from()
    table.checkpoint = None
    table.clean()
    idempotent_but_for_markers(table, once)


def sees_what_the_dictionary_has(table, expected, written, *, aborted_until: int) -> None:
    live = {key: value for key, value in expected.items() if value is not None}
    rows = [row for row in table.rows() if row[0] in written]
    assert {key: value for _, key, value in rows if value is not None}.items() >= live.items()
    last = {key: value for _, key, value in rows}
    assert {key: value for key, value in last.items() if value is not None} == live
    for offset, key, value in table.rows():
        if offset < aborted_until:
            assert written[offset] == (key, value)


def sees_one_record_per_key(table, end: int) -> None:
    keys = [key for offset, key, _ in table.rows() if offset < end]
    assert len(keys) == len(set(keys))


def idempotent_but_for_markers(table, before: bytes) -> None:
    """A marker whose data went in one round gets its horizon in the next; records stay as they are."""
    if len(table.bytes_from()) == len(before):
        return
    rows = table.rows()
    table.checkpoint = None
    table.clean()
    assert table.rows() == rows
