"""What a reader with a condition is given: no batch without a row that it wants, and how far that holds."""

import threading

import pyarrow as pa
import pytest

from sparklog.broker.conversion import cut_columns
from sparklog.broker.conversion.conversion_statistics import ConversionStatistics
from sparklog.broker.conversion.readers import Reader
from sparklog.broker.partition.answers import ReadRequest
from sparklog.model.errors import CorruptBatch
from sparklog.model.parts import read_parts
from sparklog.model.schema.predicates.packed import pack
from sparklog.model.schema.predicates.parser import parse_condition
from sparklog.records.envelope import split, stamp
from sparklog.records.payload_kinds import ALL_PAYLOADS
from tests.broker.conversion.test_for_old_reader import control
from tests.broker.conversion.test_readers import LARGE, MODERN, TypedLog
from tests.records.arrow.test_typed_payload import written
from tests.records.json.test_json_batches import TOPIC

ROWS = 50


def batch_of(offset: int, first_id: int) -> bytes:
    """Of rows with fifty ids from ``first_id`` on."""
    ids = pa.array(range(first_id, first_id + ROWS), pa.int64())
    batch = bytearray(written(pa.record_batch({"id": ids, "name": ["x" * 20] * ROWS}), TOPIC))
    stamp(batch, 0, offset, 1)
    return bytes(batch)


def take(log, condition, offset=0, max_bytes=LARGE, version=1, reader=None):
    packed = pack(parse_condition(condition, TOPIC.newest.columns), version)
    request = ReadRequest(offset, max_bytes, columns=(1,), condition=packed)
    reader = reader or Reader(MODERN, ALL_PAYLOADS, LARGE)
    return reader.take(log, request, log.read(request, at_least_one_batch=True))


def given(result):
    """The base offsets of the batches in an answer, and how far its replica has looked."""
    data = read_parts(result.parts)
    assert result.size_bytes == len(data)
    return [header.base_offset for _, header in split(data)], result.looked_to


def log_of(*first_ids):
    """A batch for each, with a marker of a transaction after it."""
    found = []
    for nth, first_id in enumerate(first_ids):
        offset = nth * (ROWS + 1)
        found += [batch_of(offset, first_id), control(offset + ROWS)]
    return TypedLog(*found)


def test_batches_are_passed_over_and_markers_never():
    result = take(log_of(0, 100, 200), "id >= 100 and id < 150")
    assert given(result) == ([50, 51, 101, 152], 153)
    assert given(take(log_of(0, 100, 200), "id is not null"))[0] == [0, 50, 51, 101, 102, 152]


def test_an_answer_without_a_batch_says_how_far_it_looked():
    log = TypedLog(*(batch_of(nth * ROWS, nth * ROWS) for nth in range(4)))
    assert given(take(log, "id < 0")) == ([], 4 * ROWS)
    assert given(take(log, "name is null", offset=2 * ROWS + 3)) == ([], 4 * ROWS)


def test_an_answer_ends_where_its_limit_does():
    log = TypedLog(*(batch_of(nth * ROWS, nth * ROWS) for nth in range(4)))
    assert given(take(log, "id >= 50", max_bytes=1)) == ([50], 2 * ROWS)
    size = take(log, "id >= 50", max_bytes=1).size_bytes
    assert given(take(log, "id >= 50", max_bytes=size + 1)) == ([50], 2 * ROWS), "two do not fit"


def test_one_fetch_looks_at_a_bounded_stretch_also_if_nothing_is_wanted(monkeypatch):
    batches = [batch_of(nth * ROWS, nth * ROWS) for nth in range(30)]
    monkeypatch.setattr(cut_columns, "STRETCH_BYTES", 4 * len(batches[0]))
    found, looked_to = given(take(TypedLog(*batches), "id < 0", max_bytes=len(batches[0])))
    assert found == []
    assert 4 * ROWS <= looked_to < 8 * ROWS
    monkeypatch.setattr(cut_columns, "BATCHES_MAX", 7)
    monkeypatch.setattr(cut_columns, "STRETCH_BYTES", LARGE)
    assert given(take(TypedLog(*batches), "id < 0")) == ([], 7 * ROWS)


def test_one_fetch_compares_a_bounded_number_of_terms_and_goes_on_at_the_next(monkeypatch):
    log = TypedLog(*(batch_of(nth * ROWS, nth * ROWS) for nth in range(6)))
    monkeypatch.setattr(cut_columns, "TERMS_MAX", 10)
    condition = "id < 0 or id in (-1, -2, -3) or id = 201"
    assert given(take(log, condition)) == ([], 2 * ROWS), "five terms and values for each of two batches"
    assert given(take(log, condition, offset=4 * ROWS)) == ([4 * ROWS], 6 * ROWS)


def test_a_batch_of_another_version_goes_in_any_case():
    assert given(take(TypedLog(batch_of(0, 0)), "id < 0", version=2)) == ([0], ROWS)


def test_damaged_bounds_hide_no_batch():
    damaged = bytearray(batch_of(ROWS, 0))
    damaged[200] ^= 1
    log = TypedLog(batch_of(0, 0), bytes(damaged))
    assert given(take(log, "id = 3")) == ([0], ROWS)
    with pytest.raises(CorruptBatch):
        take(log, "id < 0", offset=ROWS)


def test_who_has_no_condition_learns_no_offset_and_what_was_passed_over_is_counted():
    reader, log = Reader(MODERN, ALL_PAYLOADS, LARGE), TypedLog(batch_of(0, 0))
    request = ReadRequest(0, LARGE, columns=(1,))
    assert reader.take(log, request, log.read(request, at_least_one_batch=True)).looked_to == -1
    take(log_of(0, 100), "id = 7", reader=(other := Reader(MODERN, ALL_PAYLOADS, LARGE)))
    statistics = ConversionStatistics(threading.Lock())
    other.count_in(statistics)
    assert (statistics.cut_batches, statistics.passed_over) == (1, 1)
