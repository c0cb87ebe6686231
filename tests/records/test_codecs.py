import contextlib
import gzip
import tracemalloc
from types import ModuleType

import cramjam
import pytest
from aiokafka import codec as aiokafka_codec
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import codec as kafka_codec

from sparklog.model.errors import CorruptBatch
from sparklog.records.codecs import XERIAL_HEADER, compress, decompress
from sparklog.records.envelope import Compression

CODECS = [codec for codec in Compression if codec is not Compression.NONE]
NAMES = {codec: codec.name.lower() for codec in CODECS}


def libraries_with(codec: Compression) -> list[ModuleType]:
    """aiokafka always; kafka-python where its optional codec is installed."""
    libraries = [aiokafka_codec, kafka_codec]
    return [library for library in libraries if getattr(library, f"has_{NAMES[codec]}")()]


@settings(deadline=None, max_examples=40)
@given(data=st.binary(max_size=4_096), repeat=st.integers(1, 60))
def test_every_codec_gives_back_what_it_took(data: bytes, repeat: int):
    for codec in Compression:
        assert decompress(codec, compress(codec, data * repeat)) == data * repeat
        assert decompress(codec, memoryview(compress(codec, data))) == data


@pytest.mark.parametrize("codec", CODECS)
def test_kafka_python_and_aiokafka_read_what_we_compress(codec: Compression):
    data = b"0123456789abcdef" * 20_000
    for library in libraries_with(codec):
        decode = getattr(library, f"{NAMES[codec]}_decode")
        assert bytes(decode(compress(codec, data))) == data


@pytest.mark.parametrize("codec", CODECS)
def test_we_read_what_kafka_python_and_aiokafka_compress(codec: Compression):
    data = b"0123456789abcdef" * 20_000
    for library in libraries_with(codec):
        encode = getattr(library, f"{NAMES[codec]}_encode")
        assert decompress(codec, bytes(encode(data))) == data


def test_lz4_frames_have_independent_blocks_because_java_refuses_linked_ones():
    flags = compress(Compression.LZ4, b"x" * 300_000)[4]
    assert flags >> 6 == 1
    assert flags & 0x20


def test_snappy_is_framed_like_xerial_and_a_bare_block_is_read_too():
    data = b"snappy" * 20_000
    framed = compress(Compression.SNAPPY, data)
    assert framed.startswith(XERIAL_HEADER)
    assert XERIAL_HEADER == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data


def test_several_gzip_members_are_one_payload():
    assert decompress(Compression.GZIP, gzip.compress(b"a") + gzip.compress(b"b")) == b"ab"


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused_within_bounded_memory(codec: Compression):
    bomb = compress(codec, b"\0" * 30_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptBatch, match="more than 1000000 bytes"):
            decompress(codec, bomb, 1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 6_000_000
    finally:
        tracemalloc.stop()


def test_a_snappy_block_that_claims_gigabytes_is_refused_before_they_are_taken():
    with pytest.raises(CorruptBatch, match="more than"):
        decompress(Compression.SNAPPY, b"\xff\xff\xff\xff\x0f" + b"x" * 10)


@pytest.mark.parametrize("codec", CODECS)
def test_exactly_the_bound_is_allowed(codec: Compression):
    assert decompress(codec, compress(codec, b"x" * 5_000), 5_000) == b"x" * 5_000
    with pytest.raises(CorruptBatch):
        decompress(codec, compress(codec, b"x" * 5_001), 5_000)


@pytest.mark.parametrize("codec", CODECS)
def test_truncated_and_foreign_bytes_are_refused(codec: Compression):
    whole = compress(codec, b"hello, world " * 100)
    for damaged in (whole[:-1], whole[: len(whole) // 2], b"\x01garbage", whole[:18]):
        with pytest.raises(CorruptBatch):
            decompress(codec, damaged)


@settings(deadline=None, max_examples=150)
@given(codec=st.sampled_from(CODECS), position=st.integers(0, 10_000), byte=st.integers(1, 255))
def test_a_damaged_payload_is_refused_or_decompressed_and_raises_nothing_else(
    codec: Compression, position: int, byte: int
):
    damaged = bytearray(compress(codec, b"the quick brown fox " * 50))
    damaged[position % len(damaged)] ^= byte
    with contextlib.suppress(CorruptBatch):
        assert len(decompress(codec, damaged, 100_000)) <= 100_000
