"""The offset map against a dictionary."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.storage.cleaner.offset_map import OffsetMap


def keys_of(keys: list[bytes]):
    return pa.array(keys, pa.binary())


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 900), max_size=300), max_size=12), st.integers(0, 5))
def test_it_answers_as_a_dictionary_does(batches: list[list[int]], seed: int):
    offset_map = OffsetMap(0, 1.0, 1, seed)
    expected: dict[bytes, int] = {}
    offset = 0
    for batch in batches:
        keys = [b"key-%d" % number for number in batch]
        assert offset_map.put(keys_of(keys), np.arange(offset, offset + len(keys)))
        expected |= {key: offset + nth for nth, key in enumerate(keys)}
        offset += len(keys)
    asked = [b"key-%d" % number for number in range(1_000)]
    assert offset_map.latest(keys_of(asked)).tolist() == [expected.get(key, -1) for key in asked]
    assert offset_map.entries == len(expected)


def test_it_takes_no_more_keys_than_it_has_room_for():
    offset_map = OffsetMap(0, 0.5, 1 << 30, 1)
    assert offset_map.room == 512
    assert offset_map.put(keys_of([b"%d" % n for n in range(500)]), np.arange(500))
    assert not offset_map.put(keys_of([b"%d" % n for n in range(480, 520)]), np.arange(500, 540))
    assert offset_map.latest(keys_of([b"499", b"519"])).tolist() == [499, -1]
    assert offset_map.put(keys_of([b"%d" % n for n in range(480, 510)] * 20), np.arange(500, 1_100))
    assert offset_map.latest(keys_of([b"480", b"509"])).tolist() == [1_070, 1_099]


def test_a_nearly_full_map_still_finds_everything():
    offset_map = OffsetMap(0, 1.0, 1 << 30, 1)
    keys = [b"%d" % n for n in range(1_023)]
    assert offset_map.put(keys_of(keys), np.arange(1_023))
    assert offset_map.room == 0
    assert offset_map.latest(keys_of(keys)).tolist() == list(range(1_023))


def test_its_size_follows_memory_and_need():
    assert OffsetMap(1 << 30, 0.9, 100, 1).room < 1_024
    assert OffsetMap(24 * 5_000, 0.5, 1 << 30, 1).room == 2_048
