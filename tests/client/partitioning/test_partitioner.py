"""Keys go where Kafka's Java clients send them, whatever shape the column has."""

import numpy as np
import pyarrow as pa
import pytest

from sparklog.client.partitioning.murmur2 import murmur2
from sparklog.client.partitioning.partitioner import (
    Partitioner,
    partition_for_key,
    positive_hashes,
    split_by_partition,
)

# From Apache Kafka's UtilsTest.testMurmur2, as signed ints.
JAVA_VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "signed"), JAVA_VECTORS.items())
def test_the_hash_is_the_one_of_the_java_client(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


def test_the_partition_is_the_hash_without_its_sign_modulo_the_count() -> None:
    assert partition_for_key(b"foobar", 7) == (-790332482 & 0x7FFFFFFF) % 7


def keys_of_all_lengths() -> list[bytes]:
    dice = np.random.default_rng(7)
    return [dice.bytes(length % 41) for length in range(1_000)]


def test_a_column_hashes_as_its_keys_do() -> None:
    keys = keys_of_all_lengths()
    expected = [murmur2(key) & 0x7FFFFFFF for key in keys]
    assert positive_hashes(pa.array(keys, pa.binary())).tolist() == expected
    assert positive_hashes(pa.array(keys, pa.large_binary())).tolist() == expected


def test_a_slice_of_a_column_hashes_its_own_keys() -> None:
    keys = keys_of_all_lengths()
    sliced = pa.array(keys, pa.binary()).slice(100, 333)
    assert positive_hashes(sliced).tolist() == [murmur2(key) & 0x7FFFFFFF for key in keys[100:433]]


def test_giant_keys_among_small_ones_are_hashed_right() -> None:
    keys = [b"x" * 100_001, *keys_of_all_lengths(), b"y" * 70_002, b"z" * 65_539]
    expected = [murmur2(key) & 0x7FFFFFFF for key in keys]
    assert positive_hashes(pa.array(keys, pa.binary())).tolist() == expected


def test_strings_chunks_fixed_sizes_and_nothing_at_all_are_hashed_too() -> None:
    words = ["a", "", "longer than that", "é"]
    expected = [murmur2(word.encode()) & 0x7FFFFFFF for word in words]
    assert positive_hashes(pa.array(words)).tolist() == expected
    assert positive_hashes(pa.chunked_array([words[:1], words[1:]])).tolist() == expected
    fixed = pa.array([b"abcd", b"efgh"], pa.binary(4))
    assert positive_hashes(fixed).tolist() == [murmur2(b"abcd") & 0x7FFFFFFF, murmur2(b"efgh") & 0x7FFFFFFF]
    assert positive_hashes(pa.array([], pa.binary())).tolist() == []
    assert positive_hashes(pa.chunked_array([], pa.binary())).tolist() == []
    assert len(positive_hashes(pa.nulls(3))) == 3


def test_records_without_a_key_stick_to_one_partition_until_the_next_batch() -> None:
    partitioner = Partitioner(3, start=2)
    keys = [None, b"foobar", None]
    assert [partitioner.for_key(key) for key in keys] == [2, partition_for_key(b"foobar", 3), 2]
    partitioner.next_batch()
    assert [partitioner.for_key(key) for key in keys] == [0, partition_for_key(b"foobar", 3), 0]


def test_a_table_is_split_into_the_rows_of_each_partition_in_their_order() -> None:
    table = pa.table({"value": [b"0", b"1", b"2", b"3", b"4"]})
    parts = split_by_partition(table, np.array([2, 0, 2, 1, 0], np.int32))
    assert {partition: batch.column("value").to_pylist() for partition, batch in parts.items()} == {
        0: [b"1", b"4"],
        1: [b"3"],
        2: [b"0", b"2"],
    }


def test_rows_of_one_partition_are_not_copied() -> None:
    batch = pa.record_batch({"value": [b"0", b"1"]})
    parts = split_by_partition(batch, np.array([4, 4], np.int32))
    assert list(parts) == [4]
    assert parts[4] is batch


def test_no_rows_make_no_parts() -> None:
    assert split_by_partition(pa.table({"value": pa.array([], pa.binary())}), np.array([], np.int32)) == {}
