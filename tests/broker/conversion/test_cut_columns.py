"""What a reader that names columns is given: cut batches, up to its limit and a stretch of the log."""

import threading

import pytest

from sparklog.broker.conversion import cut_columns
from sparklog.broker.conversion.conversion_statistics import ConversionStatistics
from sparklog.broker.conversion.readers import Reader
from sparklog.broker.partition.answers import ReadRequest
from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.model.errors import CorruptBatch
from sparklog.model.parts import FileSlice, part_length, parts_length, read_parts
from sparklog.records.arrow.cut_batch import HEAD_BYTES_MIN, cut_crc_matches, head_bytes
from sparklog.records.envelope import parse_header, split
from sparklog.records.payload_kinds import ALL_PAYLOADS, SUPPORTED_PAYLOADS
from sparklog.records.typed_decoding import TypedReading
from sparklog.storage.disk import LocalDisk
from tests.broker.conversion.test_for_old_reader import control
from tests.broker.conversion.test_readers import LARGE, MODERN, TypedLog, typed
from tests.records.arrow.test_typed_payload import written as uncompressed
from tests.records.json.test_json_batches import TOPIC, rows_of

ID, NAME = 1, 2
READING = TypedReading(TOPIC, TOPIC.newest.columns[:1], with_times=False)


def take(log, columns=(ID,), offset=0, max_bytes=LARGE, reader=None, kinds=ALL_PAYLOADS):
    request = ReadRequest(offset, max_bytes, columns=columns)
    reader = reader or Reader(MODERN, kinds, LARGE)
    return reader.take(log, request, log.read(request, at_least_one_batch=True))


def headers_of(result):
    data = read_parts(result.parts)
    assert result.size_bytes == len(data) == parts_length(result.parts)
    return [(header, data[position : position + header.size_bytes]) for position, header in split(data)]


def ids_of(result, reading=READING):
    return [
        (row["_offset"], row["id"])
        for header, batch in headers_of(result)
        for rows in reading.read(batch, [(0, header)])
        for row in rows.to_pylist()
    ]


def cut_bytes(batch, columns=(ID,)):
    return take(TypedLog(batch), columns).size_bytes


def test_batches_are_cut_and_markers_go_as_they_are():
    log = TypedLog(typed(0, 2), control(2), typed(3, 2))
    result = take(log)
    first, marker, second = headers_of(result)
    assert ids_of(result) == [(0, 0), (1, 1), (3, 0), (4, 1)]
    assert marker[1] == log.batches[1]
    assert first[0].is_cut
    assert cut_crc_matches(first[1], first[0])
    assert cut_crc_matches(second[1], second[0])
    assert result.size_bytes < sum(map(len, log.batches)) - 100


def test_no_column_and_those_of_other_versions_are_just_absent():
    for columns in [(), (9,)]:
        (header, batch), *_ = headers_of(take(TypedLog(typed(0, 2)), columns))
        assert len(batch) == head_bytes(batch, header)


def test_who_does_not_know_the_payload_gets_json_all_the_same():
    (header, _), *_ = headers_of(take(TypedLog(typed(0, 2)), kinds=SUPPORTED_PAYLOADS))
    assert not header.is_arrow


def test_limits_count_what_is_sent_and_the_log_is_read_on_up_to_them():
    log = TypedLog(*(typed(3 * nth, 3, "x" * 999) for nth in range(30)))
    one, size = len(log.batches[0]), cut_bytes(log.batches[0])
    result = take(log, max_bytes=5 * size + 7)
    assert [header.base_offset for header, _ in headers_of(result)] == [0, 3, 6, 9, 12]
    assert len(log.offsets_read) > 1, "less than five batches are within that limit on disk"
    assert 5 * size + 7 < 5 * one
    again = take(log, offset=4, max_bytes=1)
    assert [header.base_offset for header, _ in headers_of(again)] == [3], "one batch, whatever its size"


def test_partitions_share_the_limit_of_the_fetch():
    batches = [typed(3 * nth, 3) for nth in range(4)]
    size = cut_bytes(batches[0])
    reader = Reader(MODERN, ALL_PAYLOADS, 3 * size)
    assert len(headers_of(take(TypedLog(*batches[:2]), reader=reader))) == 2
    assert len(headers_of(take(TypedLog(*batches), reader=reader))) == 1
    assert take(TypedLog(*batches), reader=reader).parts == ()


def test_a_fetch_looks_at_a_bounded_stretch_of_the_log(monkeypatch):
    batches = [typed(3 * nth, 3) for nth in range(30)]
    monkeypatch.setattr(cut_columns, "STRETCH_BYTES", 4 * len(batches[0]))
    result = take(TypedLog(*batches), max_bytes=len(batches[0]) - 1)
    assert len(headers_of(result)) == 1, "each read here is of one batch, and one is nearly the limit"
    monkeypatch.setattr(cut_columns, "BATCHES_MAX", 7)
    assert len(headers_of(take(TypedLog(*batches)))) == 7


def test_a_stretch_of_markers_ends_too(monkeypatch):
    monkeypatch.setattr(cut_columns, "BATCHES_MAX", 5)
    log = TypedLog(*map(control, range(20)))
    assert len(headers_of(take(log))) == 5


class LogWithAborted(TypedLog):
    """One that reads a batch at a time, and names the aborted transactions below its end."""

    def read(self, request, *, at_least_one_batch, is_retry=False):
        result = super().read(request._replace(max_bytes=1), at_least_one_batch=True)
        if not result.parts:
            return result
        end = parse_header(result.parts[0]).next_offset
        aborted = (AbortedTransaction(7, 0, 5, 0), AbortedTransaction(8, 3, 9, 3))
        return result._replace(aborted=tuple(one for one in aborted if one.first_offset < end))


def test_aborted_transactions_are_those_of_all_that_was_read_each_once():
    result = take(LogWithAborted(typed(0, 3), typed(3, 3), typed(6, 3)))
    assert [header.base_offset for header, _ in headers_of(result)] == [0, 3, 6]
    assert [one.producer_id for one in result.aborted] == [7, 8]


def test_what_lies_in_front_of_damage_is_given():
    damaged = bytearray(typed(3, 3))
    damaged[40] ^= 1
    log = TypedLog(typed(0, 3), bytes(damaged))
    assert len(headers_of(take(log))) == 1
    with pytest.raises(CorruptBatch, match="the envelope's fields does not match"):
        take(log, offset=3)


def test_large_columns_leave_as_slices_of_the_file_and_nothing_is_read_twice(tmp_path):
    batch = uncompressed(rows_of(3_000), TOPIC)
    file = LocalDisk().open(str(tmp_path / "log"), create=True)
    file.append(batch)
    log = TypedLog(batch)
    request = ReadRequest(0, LARGE, columns=(ID, NAME))
    stored = log.read(request, at_least_one_batch=True)._replace(parts=(FileSlice(file, 0, len(batch)),))
    result = Reader(MODERN, ALL_PAYLOADS, LARGE).take(log, request, stored)
    head, *columns = result.parts
    assert part_length(head) == head_bytes(batch[:HEAD_BYTES_MIN], parse_header(batch))
    assert all(isinstance(part, FileSlice) for part in columns)
    both = TypedReading(TOPIC, TOPIC.newest.columns[:2], with_times=False)
    assert ids_of(result, both)[-1] == (2_999, 2_999)
    small = take(TypedLog(typed(0, 3)), (ID, NAME))
    assert not any(isinstance(part, FileSlice) for part in small.parts)


def test_cut_batches_and_what_stayed_here_are_counted():
    reader, log = Reader(MODERN, ALL_PAYLOADS, LARGE), TypedLog(typed(0, 3), control(3), typed(4, 3))
    result = take(log, reader=reader)
    statistics = ConversionStatistics(threading.Lock())
    reader.count_in(statistics)
    assert (statistics.cut_batches, statistics.json_rows) == (2, 0)
    assert statistics.cut_bytes == sum(map(len, log.batches)) - result.size_bytes
