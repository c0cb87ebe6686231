"""The last value of each key is what reading every batch finds; batches of other kinds end the walk."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.broker.coordination.last_values import is_plain, last_values, plain_batches
from sparklog.model.errors import CorruptBatch
from sparklog.records.decoding import read_columns
from sparklog.records.envelope import (
    ARROW_BIT,
    CONTROL_BIT,
    TRANSACTIONAL_BIT,
    Compression,
    parse_header,
    split,
)
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.restamp import set_append_time
from tests.records.runs import FIRST_OFFSET, run_of
from tests.records.to_arrow import records_to_arrow

KEYS = st.sampled_from([b"a", b"b", b"c", b"", None])
RECORDS = st.builds(Record, key=KEYS, value=st.none() | st.binary(max_size=300))
BATCHES = st.lists(RECORDS, min_size=1, max_size=3)


def bytes_of(*batches: bytes) -> bytes:
    return bytes(run_of(*batches))


def batch(*records: Record, compression: Compression = Compression.NONE) -> bytes:
    return build_records_batch(list(records), now_ms=5, compression=compression)


def appended(one: bytes) -> bytes:
    """With log-append time, which changes nothing here."""
    changed = bytearray(one)
    set_append_time(changed, 0, 9_000)
    return bytes(changed)


@settings(deadline=None, max_examples=100)
@given(st.lists(BATCHES, min_size=1, max_size=60), st.booleans())
def test_what_remains_is_the_last_value_of_each_key_in_the_order_of_the_last_records(batches, is_stamped):
    built = [batch(*records) for records in batches]
    run = bytes_of(*[appended(one) if is_stamped else one for one in built])
    expected: dict[bytes | None, bytes | None] = {}
    for rows in read_columns(run, split(run)):
        for key, value in zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True):
            expected.pop(key, None)
            expected[key] = value
    plain = plain_batches(run, 0)
    assert (plain.next_position, plain.next_offset) == (len(run), FIRST_OFFSET + sum(map(len, batches)))
    assert list(last_values(run, plain.begins).items()) == list(expected.items())


ONE = batch(Record(b"k", b"v"))
OTHERS = {
    "compressed": batch(Record(b"k", b"v" * 500), compression=Compression.LZ4),
    "arrow": records_to_arrow(ONE),
    "too large to measure at once": batch(*[Record(b"k", bytes(1 << 20))] * 5),
    "cut": ONE[:-1],
    "no envelope": ONE[:60],
}


@pytest.mark.parametrize("kind", OTHERS)
def test_the_walk_ends_before_a_batch_of_another_kind_and_one_that_is_not_whole(kind):
    run = bytes_of(ONE, ONE)
    found = plain_batches(run + OTHERS[kind], 0)
    assert (len(found.begins), found.next_position, found.next_offset) == (2, len(run), 79)
    nothing = plain_batches(OTHERS[kind], 0)
    assert nothing == ([], 0, -1)


@pytest.mark.parametrize("bit", [CONTROL_BIT, TRANSACTIONAL_BIT, ARROW_BIT])
def test_control_records_and_transactions_are_not_plain(bit):
    header = parse_header(ONE)
    assert is_plain(header)
    assert not is_plain(header._replace(attributes=bit))
    assert not is_plain(header._replace(record_count=0))


def test_a_single_record_of_any_size_is_plain():
    run = bytes_of(ONE, batch(Record(b"k", bytes(6 << 20))), ONE)
    assert plain_batches(run, 0).next_position == len(run)


def test_a_batch_that_does_not_match_its_crc_is_refused():
    run = bytearray(bytes_of(ONE, ONE))
    run[-2] ^= 1
    with pytest.raises(CorruptBatch, match="the batch at offset 78 does not match its CRC"):
        plain_batches(bytes(run), 0)
