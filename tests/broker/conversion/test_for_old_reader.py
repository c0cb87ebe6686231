"""What old readers are given of a log: bounds, damage, and batches without messages."""

import pyarrow as pa
import pytest

from sparklog.broker.conversion.converting_reader import ConvertingReader
from sparklog.broker.conversion.for_old_reader import format_of_fetch, messages_taken
from sparklog.broker.partition.answers import ReadRequest, ReadResult
from sparklog.model.errors import CorruptBatch, ErrorCode
from sparklog.model.parts import FileSlice, read_parts
from sparklog.records.arrow.arrow_payload import ArrowPayload
from sparklog.records.envelope import Compression, build_envelope, parse_header, stamp
from sparklog.records.filtering.filter import emptied
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.legacy.message import messages_of
from sparklog.storage.disk import LocalDisk

LARGE = 1 << 20


def stamped(batch, offset):
    batch = bytearray(batch)
    stamp(batch, 0, offset, 1)
    return bytes(batch)


def records(offset, *values, compression=Compression.NONE):
    batch = build_records_batch([Record(value=value) for value in values], now_ms=5, compression=compression)
    return stamped(batch, offset)


def arrow(offset, *values):
    table = pa.table({"value": pa.array(values, pa.binary())})
    return stamped(ArrowPayload().from_columns(table, now_ms=5), offset)


def without_messages(offset, count=1):
    return emptied(parse_header(records(offset, *[b"x"] * count)))


def control(offset):
    payload = records(offset, b"x")[61:]
    batch = build_envelope(
        payload, attributes=32, record_count=1, last_offset_delta=0, base_timestamp_ms=5, max_timestamp_ms=5
    )
    return stamped(batch, offset)


class Log:
    """A partition that is read batch by batch, up to a limit."""

    is_typed = False

    def __init__(self, *batches, error=ErrorCode.none):
        self.batches = batches
        self.error = error
        self.offsets_read = []

    @property
    def reads(self):
        return self

    def read(self, request, *, at_least_one_batch, is_retry=False):
        self.offsets_read.append(request.fetch_offset)
        if self.error is not ErrorCode.none and len(self.offsets_read) > 1:
            return ReadResult(self.error)
        given, size = [], 0
        for batch in self.batches:
            if parse_header(batch).last_offset < request.fetch_offset:
                continue
            if size + len(batch) > request.max_bytes and not (at_least_one_batch and not given):
                break
            given.append(batch)
            size += len(batch)
        return ReadResult(ErrorCode.none, tuple(given), size, high_watermark=99)


def take(reader, log, offset=0, max_bytes=LARGE):
    request = ReadRequest(offset, max_bytes)
    return reader.take(log, request, log.read(request, at_least_one_batch=True))


class OldReader:
    """One fetch of an old reader."""

    def __init__(self, form, bytes_max):
        self.form = form
        self.converter = ConvertingReader(bytes_max)

    def take(self, log, request, result):
        return messages_taken(self.form, self.converter, log, request, result)


def rows_of(result):
    data = read_parts(result.parts)
    assert result.size_bytes == len(data)
    return [(message.offset, bytes(message.value)) for message in messages_of(memoryview(data))]


def test_each_fetch_has_the_format_of_its_time():
    assert [format_of_fetch(version) for version in range(6)] == [0, 0, 1, 1, None, None]


@pytest.mark.parametrize("form", [0, 1])
def test_batches_of_every_kind_become_messages(form):
    reader = OldReader(form, LARGE)
    log = Log(
        records(0, b"a", b"b"), control(2), arrow(3, b"d", b"e"), without_messages(5, 4), records(9, b"j")
    )
    result = take(reader, log)
    assert rows_of(result) == [(0, b"a"), (1, b"b"), (3, b"d"), (4, b"e"), (9, b"j")]
    assert (reader.converter.converted, result.high_watermark, result.error) == (5, 99, ErrorCode.none)
    assert rows_of(take(OldReader(form, LARGE), log, offset=4)) == [(4, b"e"), (9, b"j")]


def test_slices_of_a_file_are_read(tmp_path):
    whole = records(0, b"a") + arrow(1, b"b")
    file = LocalDisk().open(str(tmp_path / "log"), create=True)
    file.append(b"in front" + whole + b"behind")
    part = FileSlice(file, len(b"in front"), len(whole))
    result = OldReader(1, LARGE).take(Log(), ReadRequest(0, LARGE), ReadResult(ErrorCode.none, (part,)))
    assert rows_of(result) == [(0, b"a"), (1, b"b")]


def test_messages_end_at_the_readers_limit_though_they_are_larger_than_records():
    log = Log(records(0, *[b"v" * 10] * 10), records(10, *[b"v" * 10] * 10))
    assert len(log.batches[0]) < 330
    result = take(OldReader(1, LARGE), log, max_bytes=330)
    assert (len(rows_of(result)), result.size_bytes) == (7, 7 * 44)


def test_a_limit_below_one_message_gives_that_message():
    log = Log(records(0, b"v" * 1_000, b"w"))
    assert rows_of(take(OldReader(1, LARGE), log, max_bytes=1)) == [(0, b"v" * 1_000)]
    assert rows_of(take(OldReader(1, LARGE), log, offset=1, max_bytes=1)) == [(1, b"w")]


def test_partitions_share_the_replys_limit_and_the_first_gets_at_least_a_message():
    reader = OldReader(1, 100)
    first = take(reader, Log(records(0, b"v" * 40, b"v" * 40)))
    assert (len(rows_of(first)), reader.converter.bytes_left) == (1, 26)
    second = take(reader, Log(records(0, b"w")))
    assert (second.parts, second.error) == ((), ErrorCode.none)
    assert reader.converter.converted == 1


@pytest.mark.parametrize("form", [0, 1])
def test_a_read_of_batches_without_messages_goes_on_behind_them(form):
    log = Log(without_messages(0, 10), control(10), without_messages(11, 9), records(20, b"u"))
    result = take(OldReader(form, LARGE), log, offset=3, max_bytes=61)
    assert rows_of(result) == [(20, b"u")]
    assert log.offsets_read == [3, 10, 11, 20]


def test_at_the_end_of_the_log_there_is_nothing():
    log = Log(control(0))
    result = take(OldReader(1, LARGE), log)
    assert (result.parts, result.error, log.offsets_read) == ((), ErrorCode.none, [0, 1])


def test_an_error_behind_batches_without_messages_is_told():
    log = Log(control(0), error=ErrorCode.kafka_storage_error)
    assert take(OldReader(1, LARGE), log).error is ErrorCode.kafka_storage_error


def test_what_lies_in_front_of_zstd_is_given_and_then_the_error_is_told():
    zstd = records(1, b"z" * 1_000, compression=Compression.ZSTD)
    log = Log(records(0, b"a"), zstd)
    assert rows_of(take(OldReader(1, LARGE), log)) == [(0, b"a")]
    result = take(OldReader(1, LARGE), log, offset=1)
    assert (result.error, result.parts) == (ErrorCode.unsupported_compression_type, ())


def rotten(batch):
    damaged = bytearray(batch)
    damaged[-1] ^= 1
    return bytes(damaged)


@pytest.mark.parametrize("damage", [rotten, lambda batch: batch[:-1], lambda batch: batch[:30]])
def test_what_lies_in_front_of_damage_is_given_and_then_the_damage_is_told(damage):
    damaged = damage(records(1, b"b"))
    parts = (records(0, b"a"), damaged)
    read = ReadRequest(0, LARGE)
    result = OldReader(0, LARGE).take(Log(), read, ReadResult(ErrorCode.none, parts))
    assert rows_of(result) == [(0, b"a")]
    with pytest.raises(CorruptBatch):
        OldReader(0, LARGE).take(Log(), read, ReadResult(ErrorCode.none, (damaged,)))
