"""A leader changes the codec of a batch, and nothing else of it."""

import itertools
import tracemalloc

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.records.codecs import compress, compressed_pieces, decompress
from sparklog.records.envelope import Compression, crc_matches, parse_header
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.kafka.kafka_payload import records_of
from sparklog.records.recompress import Codec, recompress
from sparklog.records.validate import Accepted, RefusedBatch, check_produced

MAX_BYTES = 1_000_000
PAIRS = list(itertools.permutations(Compression, 2))


def batch_in(compression, records=None, **producer):
    records = records or [
        Record(b"key %d" % n, None if n % 7 == 0 else b"value" * n, 1_000 + n, [("h", b"x"), ("n", None)])
        for n in range(60)
    ]
    batch = bytearray(build_records_batch(records, now_ms=1, compression=compression, **producer))
    assert parse_header(batch).compression is compression
    return batch, Accepted([(0, parse_header(batch))])


@pytest.mark.parametrize(("sent", "wanted"), PAIRS, ids=lambda codec: codec.name)
def test_only_the_codec_changes(sent, wanted):
    batch, accepted = batch_in(sent, producer_id=9, producer_epoch=3, base_sequence=77, is_transactional=True)
    before = parse_header(batch)
    records, changed = recompress(batch, accepted, Codec(wanted), max_batch_bytes=MAX_BYTES)
    header = parse_header(records)
    assert changed.batches == [(0, header)]
    assert header.compression is wanted
    assert crc_matches(records, 0, header)
    assert records_of(records, header) == records_of(batch, before)
    assert header._replace(length=0, crc=0, attributes=0) == before._replace(length=0, crc=0, attributes=0)
    assert header.attributes & ~7 == before.attributes & ~7
    assert isinstance(check_produced(records, max_batch_bytes=MAX_BYTES, payload_kinds=()), Accepted)


@pytest.mark.parametrize("codec", [None, Codec(Compression.LZ4), Codec(Compression.LZ4, 12)])
def test_a_batch_that_has_the_codec_keeps_its_bytes(codec):
    batch, accepted = batch_in(Compression.LZ4)
    records, changed = recompress(batch, accepted, codec, max_batch_bytes=10)
    assert records is batch
    assert changed is accepted


def test_an_arrow_batch_stays_as_it_is():
    batch = bytearray(batch_in(Compression.NONE)[0])
    batch[21] |= 0x40  # bit 14
    accepted = Accepted([(0, parse_header(batch))])
    records, _ = recompress(batch, accepted, Codec(Compression.ZSTD), max_batch_bytes=MAX_BYTES)
    assert records is batch


def test_a_batch_that_grows_too_large_is_refused_within_bounded_memory():
    batch, accepted = batch_in(Compression.ZSTD, [Record(value=bytes(30_000_000))])
    tracemalloc.start()
    try:
        refused = recompress(batch, accepted, Codec(Compression.NONE), max_batch_bytes=MAX_BYTES)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()
    assert isinstance(refused, RefusedBatch)
    assert refused.error is ErrorCode.message_too_large
    assert "max.message.bytes=1000000" in refused.message


@pytest.mark.parametrize("codec", Compression)
def test_pieces_are_compressed_to_one_payload(codec):
    pieces = [b"first" * 1_000, b"", b"second" * 50_000, b"x"]
    payload = b"".join(compressed_pieces(codec, iter(pieces)))
    assert decompress(codec, payload) == b"".join(pieces)
    assert decompress(codec, b"".join(compressed_pieces(codec, iter(())))) == b""


@pytest.mark.parametrize(
    ("codec", "levels"),
    [
        (Compression.GZIP, (-1, 0, 1, 9)),
        (Compression.LZ4, (1, 2, 9, 12, 17)),
        (Compression.ZSTD, (-131_072, -1, 1, 22)),
    ],
)
def test_every_level_that_kafka_has_is_taken(codec, levels):
    data = b"".join(b"%d" % (n * n) for n in range(20_000))
    sizes = []
    for level in levels:
        payload = b"".join(compressed_pieces(codec, iter([data]), level))
        assert decompress(codec, payload) == data
        sizes.append(len(payload))
    assert len(set(sizes)) > 1


def test_lz4_frames_of_a_leader_have_independent_blocks_because_java_refuses_linked_ones():
    payload = b"".join(compressed_pieces(Compression.LZ4, iter([b"x" * 300_000] * 2)))
    assert payload[4] & 0x20
    assert payload[:7] == compress(Compression.LZ4, b"x" * 300_000)[:7]
