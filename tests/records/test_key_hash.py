"""Hashes of keys: the same for the same key wherever it stands, different for all others."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.records.key_hash import KeyHasher


def hashes(keys: list[bytes], seed: int = 1) -> list[tuple[int, int]]:
    upper, lower = KeyHasher(seed).hashes(pa.array(keys, pa.binary()))
    return list(zip(upper.tolist(), lower.tolist(), strict=True))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=30))
def test_a_keys_hash_does_not_depend_on_its_neighbours(keys: list[bytes]):
    assert hashes(keys) == [hashes([key])[0] for key in keys]


@settings(max_examples=100, deadline=None)
@given(st.sets(st.binary(max_size=40), max_size=30))
def test_different_keys_have_different_hashes(keys: set[bytes]):
    assert len(set(hashes(sorted(keys)))) == len(keys)


def test_zeros_at_the_end_of_a_key_count():
    keys = [b"", b"\0", b"\0\0", b"a" * 8, b"a" * 8 + b"\0", b"a" * 7]
    for half in zip(*hashes(keys), strict=True):
        assert len(set(half)) == len(keys)


def test_a_slice_of_an_array_is_hashed_as_such():
    keys = pa.array([b"one", b"two", b"three"], pa.binary())
    assert KeyHasher(3).hashes(keys.slice(1, 1))[0][0] == KeyHasher(3).hashes(keys)[0][1]


def test_another_seed_gives_other_hashes():
    assert hashes([b"key"], 1) != hashes([b"key"], 2)
    assert hashes([b"key"], 1) == hashes([b"key"], 1)


def test_every_bit_of_a_hash_is_used():
    upper, lower = zip(*hashes([b"%d" % n for n in range(4_000)]), strict=True)
    for half in (upper, lower):
        for bit in range(64):
            assert 1_600 < sum(value >> bit & 1 for value in half) < 2_400
