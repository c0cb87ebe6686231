"""Compressed records are checked piece by piece: the same verdict as of the whole, in little memory."""

import subprocess
import sys
from pathlib import Path

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.model.errors import CorruptBatch
from sparklog.records.codecs import DECOMPRESSED_BYTES_MAX, STEP_BYTES, compress
from sparklog.records.envelope import ENVELOPE_BYTES, Compression, build_envelope, parse_header
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.kafka.pieces import measure
from sparklog.records.payload import payload_of
from tests.records.kafka.test_check import NOW_MS, changed, changes, decoder_takes, records

CODECS = [codec for codec in Compression if codec is not Compression.NONE]


def pieces(payload: bytes, size_bytes: int):
    return iter([payload[at : at + size_bytes] for at in range(0, len(payload), size_bytes)])


def takes(payload: bytes, size_bytes: int, count: int, last_offset_delta: int) -> bool:
    try:
        for _ in measure(pieces(payload, size_bytes), count, last_offset_delta):
            """Each record is checked as it is measured."""
    except CorruptBatch:
        return False
    return True


@settings(deadline=None, max_examples=150)
@given(
    some=st.lists(records, min_size=1, max_size=60),
    damage=st.lists(changes, max_size=3),
    count_off=st.sampled_from([0, 0, 0, 1, -1]),
    last_off=st.sampled_from([0, 0, 0, 1, -1]),
    size_bytes=st.sampled_from([1, 3, 7, 64, 1_000, 100_000]),
)
def test_the_verdict_is_that_of_reading_every_record(some, damage, count_off, last_off, size_bytes):
    batch = build_records_batch(some, now_ms=NOW_MS)
    payload, header = batch[ENVELOPE_BYTES:], parse_header(batch)
    for how, where, byte in damage:
        payload = changed(payload, how, where, byte) or payload
    count, last = header.record_count + count_off, header.last_offset_delta + last_off
    assert takes(payload, size_bytes, count, last) == decoder_takes(payload, count, last)


@settings(deadline=None, max_examples=150)
@given(
    payload=st.binary(max_size=40),
    count=st.integers(0, 5),
    last=st.integers(0, 6),
    size_bytes=st.integers(1, 41),
)
def test_bytes_that_are_no_records_are_refused_as_by_reading_them(payload, count, last, size_bytes):
    assert takes(payload, size_bytes, count, last) == decoder_takes(payload, count, last)


def compressed(codec: Compression, payload: bytes, count: int) -> bytes:
    return build_envelope(
        payload,
        attributes=codec,
        record_count=count,
        last_offset_delta=count - 1,
        base_timestamp_ms=NOW_MS,
        max_timestamp_ms=NOW_MS,
    )


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("value_bytes", [10, 5_000, 3 * STEP_BYTES])
def test_a_batch_of_several_steps_is_taken(codec: Compression, value_bytes: int) -> None:
    count = 5 * STEP_BYTES // value_bytes + 1
    plain = build_records_batch([Record(key=b"k", value=bytes(value_bytes))] * count, now_ms=NOW_MS)
    batch = compressed(codec, compress(codec, plain[ENVELOPE_BYTES:]), count)
    payload_of(parse_header(batch)).validate(batch, parse_header(batch))
    cut = compressed(codec, compress(codec, plain[ENVELOPE_BYTES:-1]), count)
    with pytest.raises(CorruptBatch):
        payload_of(parse_header(cut)).validate(cut, parse_header(cut))


@pytest.mark.parametrize(
    ("codec", "nothing"),
    [(Compression.GZIP, compress(Compression.GZIP, b"")), (Compression.SNAPPY, bytes(4))],
)
def test_an_empty_member_or_block_at_the_end_of_a_step_is_no_further_data(
    codec: Compression, nothing: bytes
) -> None:
    some = [Record(key=b"k", value=bytes(1_000))] * 2_000
    short_bytes = 2 * STEP_BYTES - len(build_records_batch(some, now_ms=NOW_MS)[ENVELOPE_BYTES:])
    for value_bytes in range(short_bytes - 20, short_bytes):
        filled = [Record(key=b"k", value=bytes(value_bytes)), *some]
        payload = build_records_batch(filled, now_ms=NOW_MS)[ENVELOPE_BYTES:]
        if len(payload) == 2 * STEP_BYTES:
            break
    assert len(payload) == 2 * STEP_BYTES
    batch = compressed(codec, compress(codec, payload) + nothing, len(filled))
    payload_of(parse_header(batch)).validate(batch, parse_header(batch))


PEAK = """
import sys
from sparklog.records.timestamps import check_create_times
from sparklog.records.validate import RefusedBatch, check_produced

def peak_kib():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

def check(path):
    batch = open(path, "rb").read()
    verdict = check_produced(batch, max_batch_bytes=1 << 30, payload_kinds=(), requires_keys=True)
    if isinstance(verdict, RefusedBatch):
        return verdict
    return check_create_times(batch, verdict, 1_700_000_000_123, before_max_ms=1, after_max_ms=1)

check(sys.argv[1])
before_kib = peak_kib()
verdict = check(sys.argv[2])
print(verdict.error.name if isinstance(verdict, RefusedBatch) else "none", peak_kib() - before_kib)
"""
"""Checks a small batch, which loads all modules, then a bomb; prints the error and the rise in KiB."""


def record_of(value_bytes: int) -> bytes:
    return build_records_batch([Record(key=b"k", value=bytes(value_bytes))], now_ms=NOW_MS)[ENVELOPE_BYTES:]


def bomb(codec: Compression, *, beyond_the_bound: bool) -> bytes:
    """One valid record: more than may be decompressed, or just below that."""
    value_bytes = DECOMPRESSED_BYTES_MAX + (1 if beyond_the_bound else -1_000)
    return compressed(codec, compress(codec, record_of(value_bytes)), 1)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from Linux's /proc")
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("beyond_the_bound", [True, False], ids=["too much", "just not too much"])
def test_a_bomb_is_judged_in_little_memory(
    tmp_path: Path, codec: Compression, beyond_the_bound: bool
) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    plain = build_records_batch([Record(key=b"k", value=bytes(2 * STEP_BYTES))], now_ms=NOW_MS)
    small.write_bytes(compressed(codec, compress(codec, plain[ENVELOPE_BYTES:]), 1))
    large.write_bytes(bomb(codec, beyond_the_bound=beyond_the_bound))
    command = [sys.executable, "-c", PEAK, str(small), str(large)]
    out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    error, rise_kib = out.split()
    assert error == ("invalid_record" if beyond_the_bound else "none")
    assert int(rise_kib) < 16 * 1024


@pytest.mark.parametrize("codec", list(Compression))
def test_rows_without_a_key_are_counted_over_all_steps_and_the_first_are_named(codec: Compression) -> None:
    some = [Record(key=None if n % 3 == 2 else b"k", value=bytes(900), timestamp_ms=n) for n in range(4_000)]
    plain = build_records_batch(some, now_ms=NOW_MS)
    header = parse_header(plain)
    batch = build_envelope(
        compress(codec, plain[ENVELOPE_BYTES:]),
        attributes=codec,
        record_count=4_000,
        last_offset_delta=3_999,
        base_timestamp_ms=header.base_timestamp_ms,
        max_timestamp_ms=header.max_timestamp_ms,
    )
    payload = payload_of(parse_header(batch))
    count, first_rows = payload.keyless_rows(batch, parse_header(batch), 1_000)
    assert (count, first_rows) == (1_333, list(range(2, 3_002, 3)))
    assert payload.least_timestamp_ms(batch, parse_header(batch)) == 0


def test_a_bare_snappy_block_may_not_claim_more_than_snappy_can_pack() -> None:
    block = bytes(cramjam.snappy.compress_raw(bytes(20_000_000)))
    assert len(block) * 22 > 20_000_000
    claims_100_mb = b"\x80\xc2\xd7\x2f" + bytes(1_000_000)
    batch = compressed(Compression.SNAPPY, claims_100_mb, 1)
    with pytest.raises(CorruptBatch, match="claims"):
        payload_of(parse_header(batch)).validate(batch, parse_header(batch))
