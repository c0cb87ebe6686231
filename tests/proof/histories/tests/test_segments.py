"""The checker's own decoder against what sparklog and Kafka write, and against damage."""

import struct

import pytest

from histories.batches import read_batches
from histories.segments import DamagedLogError, read_replica
from histories.soundness import DamagedBatchError, crc32c
from sparklog.records.envelope import Compression, stamp
from sparklog.records.kafka.encode import Record, build_records_batch


def batch_at(offset, *values, epoch=0, compression=Compression.NONE):
    records = [
        Record(value=value.encode(), key=b"k" * 70, headers=[("h", b"x"), ("n", None)]) for value in values
    ]
    batch = bytearray(build_records_batch(records, now_ms=1_000, compression=compression, producer_id=7))
    stamp(batch, 0, offset, epoch)
    return bytes(batch)


def log_directory(folder, segments, *, high_watermark=3, log_start=None):
    log = folder / "quakes-0"
    log.mkdir()
    for base_offset, data in segments.items():
        (log / f"{base_offset:020}.log").write_bytes(data)
    (folder / "replication-offset-checkpoint").write_text(f"0\n2\nother 0 8\nquakes 0 {high_watermark}\n")
    if log_start is not None:
        (folder / "log-start-offset-checkpoint").write_text(f"0\n1\nquakes 0 {log_start}\n")
    return folder


def test_crc32c_has_the_published_check_value():
    assert crc32c(b"123456789") == 0xE3069283


@pytest.mark.parametrize(
    "compression", [Compression.NONE, Compression.GZIP, Compression.LZ4, Compression.ZSTD]
)
def test_values_come_out_as_they_went_in(compression):
    values = [f"quakes/0/p/{number}" for number in range(300)]
    data = batch_at(5, *values, epoch=2, compression=compression) + batch_at(305, "ä")
    (_, first), (position, second) = read_batches(data)
    assert [value for _, value in first.records] == values
    assert [offset for offset, _ in first.records] == list(range(5, 305))
    assert (first.base_offset, first.last_offset, first.leader_epoch, first.producer_id) == (5, 304, 2, 7)
    assert second.records == ((305, "ä"),)
    assert position == len(data) - len(batch_at(305, "ä"))
    assert first.digest != second.digest


def test_a_tombstone_is_known_by_its_header():
    record = Record(key=b"k", value=None, headers=[("id", b"quakes/0/p/4")])
    ((_, batch),) = read_batches(build_records_batch([record], now_ms=0))
    assert batch.records == ((0, "quakes/0/p/4"),)


def test_other_codecs_are_refused_by_name():
    with pytest.raises(DamagedBatchError, match="codec is snappy"):
        list(read_batches(batch_at(0, "v", compression=Compression.SNAPPY)))


def test_every_flipped_bit_behind_the_length_shows():
    data = batch_at(0, "a", "b")
    for at in range(16, len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 4
        with pytest.raises(DamagedBatchError):
            list(read_batches(bytes(damaged)))


def test_a_replica_is_read_over_its_segments(tmp_path):
    segments = {0: batch_at(0, "a", "b", epoch=1), 2: batch_at(2, "c", epoch=2) + batch_at(3, "d", epoch=2)}
    replica = read_replica(log_directory(tmp_path, segments, high_watermark=4), "quakes", 0)
    assert replica.records == [(0, 1, "a"), (1, 1, "b"), (2, 2, "c"), (3, 2, "d")]
    assert (replica.start, replica.end, replica.high_watermark) == (0, 4, 4)
    assert [batch[:2] for batch in replica.batches] == [(0, 1), (2, 2), (3, 3)]


def test_what_is_below_the_log_start_is_left_out(tmp_path):
    segments = {4: batch_at(4, "a", "b") + batch_at(6, "c")}
    replica = read_replica(log_directory(tmp_path, segments, log_start=5), "quakes", 0)
    assert (replica.start, [offset for offset, _, _ in replica.records]) == (5, [5, 6])
    assert [batch[0] for batch in replica.batches] == [6]


def test_an_empty_segment_says_where_the_log_ends(tmp_path):
    replica = read_replica(log_directory(tmp_path, {7: b""}), "quakes", 0)
    assert (replica.start, replica.end, replica.records) == (7, 7, [])


@pytest.mark.parametrize(
    ("segments", "complaint"),
    [
        ({0: batch_at(0, "a")[:-1]}, "bytes at the end"),
        ({0: batch_at(0, "a") + batch_at(0, "a")}, "behind 0"),
        ({0: batch_at(0, "a", "b"), 1: batch_at(1, "b")}, "begins before 2"),
        ({0: batch_at(0, "a").replace(b"a", b"z")}, "CRC"),
        ({0: bytes(100)}, "length 0"),
        ({}, "no segment"),
    ],
)
def test_a_damaged_log_is_told_from_an_end(tmp_path, segments, complaint):
    with pytest.raises(DamagedLogError, match=complaint):
        read_replica(log_directory(tmp_path, segments), "quakes", 0)


def test_bytes_behind_a_gzip_stream_are_refused():
    batch = bytearray(batch_at(0, "v", compression=Compression.GZIP) + b"behind")
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    with pytest.raises(DamagedBatchError, match="6 bytes behind its gzip stream"):
        list(read_batches(bytes(batch)))
