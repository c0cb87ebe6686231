"""Which bytes a client is given, by what it says that it takes."""

import json
import threading

import pytest

from sparklog.broker.conversion.conversion_statistics import ConversionStatistics
from sparklog.broker.conversion.readers import Reader
from sparklog.broker.partition.answers import ReadRequest
from sparklog.model.errors import CorruptBatch, ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.parts import read_parts
from sparklog.records.decoding import read_columns
from sparklog.records.envelope import split, stamp
from sparklog.records.json import json_batches
from sparklog.records.legacy.message import messages_of
from sparklog.records.payload_kinds import ALL_PAYLOADS, SUPPORTED_PAYLOADS
from tests.broker.conversion.test_for_old_reader import Log, arrow, control
from tests.records.json.test_json_batches import TOPIC, of_version_9, rows_of, written

LARGE = 1 << 20
MODERN = 12


class TypedLog(Log):
    is_typed = True
    columns = TOPIC
    topic_partition = TopicPartition("quakes", 0)


def typed(offset, count, text="x"):
    batch = written(rows_of(count, text))
    stamp(batch, 0, offset, 1)
    return bytes(batch)


def take(reader, log, offset=0, max_bytes=LARGE):
    request = ReadRequest(offset, max_bytes)
    return reader.take(log, request, log.read(request, at_least_one_batch=True))


def records_of(result):
    """Offset and id of each row of a result."""
    data = read_parts(result.parts)
    assert result.size_bytes == len(data)
    return [
        (offset, json.loads(value)["id"])
        for rows in read_columns(data, split(data))
        for offset, value in zip(
            *(rows.column(name).to_pylist() for name in ("offset", "value")), strict=True
        )
    ]


@pytest.mark.parametrize(
    ("kinds", "log"),
    [
        (SUPPORTED_PAYLOADS, Log(arrow(0, b"d"))),
        (ALL_PAYLOADS, Log(arrow(0, b"d"))),
        (ALL_PAYLOADS, TypedLog(typed(0, 3), control(3))),
    ],
)
def test_a_client_that_knows_the_payload_is_given_the_very_bytes(kinds, log):
    assert take(Reader(MODERN, kinds, LARGE), log).parts == log.batches


@pytest.mark.parametrize("kinds", [(), SUPPORTED_PAYLOADS], ids=["Kafka's", "an older release's"])
def test_every_other_client_gets_typed_rows_as_json_and_markers_as_they_are(kinds):
    log = TypedLog(typed(0, 2), control(2), typed(3, 2))
    result = take(Reader(MODERN, kinds, LARGE), log)
    assert records_of(result) == [(0, 0), (1, 1), (3, 0), (4, 1)]
    assert (result.parts[1], result.high_watermark) == (log.batches[1], 99)


def test_untyped_rows_are_records_for_a_plain_client():
    (part,) = take(Reader(MODERN, (), LARGE), Log(arrow(3, b"d"))).parts
    assert [rows.column("value").to_pylist() for rows in read_columns(part, split(part))] == [[b"d"]]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_readers_of_old_formats_get_json_too_in_parts_up_to_their_limit(version):
    log, found, offset = TypedLog(typed(0, 60), control(60), typed(61, 2)), [], 0
    while offset < 63:
        result = take(Reader(version, (), LARGE), log, offset, 2_000)
        assert 0 < result.size_bytes <= 2_000
        messages = list(messages_of(memoryview(read_parts(result.parts))))
        found += [(one.offset, json.loads(bytes(one.value))["id"]) for one in messages]
        offset = found[-1][0] + 1
    assert found == [*((nth, nth) for nth in range(60)), (61, 0), (62, 1)]


def test_a_batch_is_given_in_parts_and_partitions_share_the_limit():
    reader = Reader(MODERN, (), 3_000)
    first = take(reader, TypedLog(typed(0, 100)), 10, 2_000)
    assert records_of(first)[0] == (10, 10)
    assert 1_800 < first.size_bytes <= 2_000
    second = take(reader, TypedLog(typed(0, 100)))
    assert 800 < second.size_bytes <= 3_000 - first.size_bytes
    assert take(reader, TypedLog(typed(0, 100))).size_bytes <= 200
    statistics = ConversionStatistics(threading.Lock())
    reader.count_in(statistics)
    assert statistics.json_rows >= len(records_of(first)) + len(records_of(second))
    assert (statistics.fetched, statistics.produced) == (0, 0)


def test_a_read_that_ends_with_its_batch_goes_on_behind_it():
    log = TypedLog(typed(0, 3), typed(3, 2))
    assert records_of(take(Reader(MODERN, (), LARGE), log, 2, 1)) == [(2, 2)]
    assert records_of(take(Reader(MODERN, (), LARGE), log, 3, 1)) == [(3, 0)]


def test_a_replica_without_the_columns_gives_what_it_can_and_then_an_error_that_passes():
    log = TypedLog(typed(0, 3), bytes(of_version_9(rows_of(2))))
    assert len(records_of(take(Reader(MODERN, (), LARGE), log))) == 3
    ahead = take(Reader(MODERN, (), LARGE), log, 1_000)
    assert (ahead.error, ahead.parts) == (ErrorCode.not_leader_or_follower, ())
    log.columns = None
    assert take(Reader(MODERN, (), LARGE), log).error is ErrorCode.not_leader_or_follower
    assert take(Reader(1, (), LARGE), log).error is ErrorCode.not_leader_or_follower


def test_a_row_that_no_reader_takes_is_an_error_and_those_in_front_are_given(monkeypatch, caplog):
    monkeypatch.setattr(json_batches, "ROW_BYTES_MAX", 500_000)
    monkeypatch.setattr(json_batches, "BYTES_AT_ONCE_MAX", 400_000)
    log = TypedLog(typed(0, 3), typed(3, 1, "\x01" * 100_000), typed(4, 1))
    assert len(records_of(take(Reader(MODERN, (), LARGE), log))) == 3
    assert take(Reader(MODERN, (), LARGE), log, 3).error is ErrorCode.message_too_large
    assert "quakes-0: a Kafka client cannot read on: the row at offset 3 may be 600" in caplog.text
    assert records_of(take(Reader(MODERN, (), LARGE), log, 4)) == [(4, 0)]


def test_damage_is_told_when_nothing_lies_in_front_of_it():
    damaged = bytearray(typed(3, 1))
    damaged[-1] ^= 1
    log = TypedLog(typed(0, 3), bytes(damaged))
    assert len(records_of(take(Reader(MODERN, (), LARGE), log))) == 3
    with pytest.raises(CorruptBatch, match="offset 3"):
        take(Reader(MODERN, (), LARGE), log, 3)
