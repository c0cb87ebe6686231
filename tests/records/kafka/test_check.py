import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import ENVELOPE_BYTES, parse_header
from sparklog.records.kafka.check import check_records
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.kafka.walk import walk

NOW_MS = 1_700_000_000_123

nullable_bytes = st.none() | st.binary(max_size=20) | st.sampled_from([63, 64, 9_000]).map(bytes)
records = st.builds(
    Record,
    key=nullable_bytes,
    value=nullable_bytes,
    timestamp_ms=st.integers(-(2**40), 2**45),
    headers=st.lists(st.tuples(st.text(max_size=3), nullable_bytes), max_size=3),
)
changes = st.tuples(st.sampled_from(["set", "insert", "remove", "cut"]), st.integers(0), st.integers(0, 255))


def decoder_takes(payload: bytes, count: int, last_offset_delta: int) -> bool:
    """The verdict of reading every record: the reference."""
    try:
        deltas = [record.offset_delta for record in walk(payload, count)]
    except CorruptBatch:
        return False
    grows = all(one < other for one, other in zip([-1, *deltas], deltas, strict=False))
    return grows and (not deltas or deltas[-1] <= last_offset_delta)


def check_takes(payload: bytes, count: int, last_offset_delta: int) -> bool:
    try:
        check_records(payload, count, last_offset_delta)
    except CorruptBatch:
        return False
    return True


def changed(payload: bytes, how: str, where: int, byte: int) -> bytes:
    where %= len(payload)
    if how == "cut":
        return payload[:where]
    middle = b"" if how == "remove" else bytes([byte])
    return payload[:where] + middle + payload[where + (how != "insert") :]


@settings(deadline=None, max_examples=150)
@given(
    some=st.lists(records, min_size=1, max_size=6),
    damage=st.lists(changes, max_size=3),
    count_off=st.sampled_from([0, 0, 0, 1, -1]),
    last_off=st.sampled_from([0, 0, 0, 1, -1]),
)
def test_the_check_and_the_decoder_agree_on_every_payload(some, damage, count_off, last_off):
    batch = build_records_batch(some, now_ms=NOW_MS)
    payload, header = batch[ENVELOPE_BYTES:], parse_header(batch)
    for how, where, byte in damage:
        payload = changed(payload, how, where, byte) or payload
    asked = payload, header.record_count + count_off, header.last_offset_delta + last_off
    assert check_takes(*asked) == decoder_takes(*asked)
    if not (damage or count_off) and last_off >= 0:
        assert check_takes(*asked)


@settings(deadline=None, max_examples=150)
@given(payload=st.binary(max_size=40), count=st.integers(0, 5), last=st.integers(0, 6))
@example(payload=b"\x0c\x00\x00\x00\x01\x01\x00", count=1, last=0)
@example(payload=b"\x80\x00\x00\x00\x00\x01\x01\x00", count=1, last=0)  # a length of two bytes that says 0
@example(payload=b"\x0c\x00\x00\x00\xff\xff\xff\xff\x0f", count=1, last=0)
@example(payload=b"\x0e\x00\x00\x00\x01\x01\x02\x01\x01", count=1, last=0)  # a header without a key
@example(payload=b"\x0e\x00\x00\x00\x01\x01\x01", count=1, last=0)  # minus one header
def test_they_agree_on_bytes_that_are_no_records_either(payload, count, last):
    assert check_takes(payload, count, last) == decoder_takes(payload, count, last)


@pytest.mark.parametrize("bytes_max", [5, 10])
def test_numbers_that_never_end_are_refused(bytes_max: int):
    endless = b"\x80" * 30
    record = b"\x00" + (endless if bytes_max == 10 else b"\x00" + endless)
    with pytest.raises(CorruptBatch, match=f"longer than {bytes_max} bytes"):
        check_records(bytes([len(record) * 2]) + record, 1, 0)
