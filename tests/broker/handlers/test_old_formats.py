"""Message formats 0 and 1 at a running broker: Produce 0 to 2, Fetch 0 to 3."""

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.model.parts import read_parts
from sparklog.records.envelope import Compression, parse_header
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.legacy.message import build, messages_of
from sparklog.wire.messages.data.fetch import FetchPartition, FetchRequest, FetchTopic
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from sparklog.wire.messages.discovery.api_versions import ApiVersionsRequest

TIME_MS = 1_500_000_000_000
ROWS = [(TIME_MS, b"k", b"v"), (TIME_MS + 1, None, b"w"), (TIME_MS + 2, b"l", None)]


@pytest.fixture
def leading(broker):
    broker.lead()
    return broker


def message_set(form, rows=ROWS):
    return b"".join(build(form, n, time, key, value) for n, (time, key, value) in enumerate(rows))


def produce(broker, records, version, acks=-1):
    topic = ProduceTopic(name="quakes", partition_data=[ProducePartition(index=0, records=records)])
    response = broker.call(ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=[topic]), version)
    return response.responses[0].partition_responses[0]


def fetch(broker, version, offset=0, bytes_max=1 << 20):
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=bytes_max)
    topic = FetchTopic(topic="quakes", partitions=[partition])
    response = broker.call(FetchRequest(max_wait_ms=0, topics=[topic]), version)
    return response.responses[0].partitions[0]


def read(answer):
    assert answer.error_code is ErrorCode.none
    return [
        (message.format, message.offset, message.timestamp_ms, message.key, message.value)
        for message in messages_of(memoryview(read_parts(answer.records)))
    ]


def as_read(form, rows=ROWS, first=0):
    return [(form, first + n, time if form else -1, key, value) for n, (time, key, value) in enumerate(rows)]


def stored(broker):
    """What a reader of today gets."""
    answer = fetch(broker, 11)
    assert answer.error_code is ErrorCode.none
    return read_parts(answer.records)


def test_the_old_versions_are_advertised(broker):
    served = {key.api_key: key for key in broker.call(ApiVersionsRequest(), 0).api_keys}
    assert (served[0].min_version, served[1].min_version) == (0, 0)


@pytest.mark.parametrize("version", range(3))
def test_produce_0_to_2_takes_both_formats_and_stores_one_batch_of_today(leading, version):
    for form in (0, 1):
        answer = produce(leading, message_set(form), version)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.none, 3 * form)
    records = stored(leading)
    first = parse_header(records)
    second = parse_header(records, first.size_bytes)
    assert [(header.base_offset, header.record_count) for header in (first, second)] == [(0, 3), (3, 3)]
    assert (first.max_timestamp_ms, second.max_timestamp_ms) == (-1, TIME_MS + 2)


@pytest.mark.parametrize(("version", "form"), [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_fetch_0_to_3_gives_the_format_of_its_time(leading, version, form):
    leading.produce(batch=build_records_batch([Record(*row[1:], row[0]) for row in ROWS], now_ms=0))
    assert read(fetch(leading, version)) == as_read(form)
    assert read(fetch(leading, version, offset=1)) == as_read(form)[1:]
    assert read(fetch(leading, version, offset=3)) == []
    assert fetch(leading, version, offset=4).error_code is ErrorCode.offset_out_of_range
    assert len(stored(leading)) > 0


def test_a_batch_of_today_is_taken_in_every_version(leading):
    for version in range(10):
        batch = build_records_batch([Record(value=b"v")], now_ms=1)
        assert produce(leading, batch, version).error_code is ErrorCode.none


@pytest.mark.parametrize("form", [0, 1])
def test_from_produce_3_on_messages_are_refused_as_in_kafka(leading, form):
    for version in range(3, 10):
        assert produce(leading, message_set(form), version).error_code is ErrorCode.invalid_record
    assert stored(leading) == b""


@pytest.mark.parametrize("version", range(3))
def test_nothing_of_a_refused_set_is_appended(leading, version):
    good = message_set(1)
    bad = [
        (good[:-1], ErrorCode.corrupt_message),
        (good[:-1] + b"\x01", ErrorCode.corrupt_message),
        (message_set(0) + good, ErrorCode.invalid_record),
        (good + build(1, 0, TIME_MS, None, b"?", Compression.GZIP), ErrorCode.invalid_record),
        (build(1, 0, TIME_MS, None, b"?", Compression.ZSTD), ErrorCode.invalid_record),
        (build(0, 0, -1, None, b"?", 7), ErrorCode.unsupported_compression_type),
        (build(1, 0, TIME_MS, None, b"?", 8), ErrorCode.invalid_timestamp),
        (build(1, 0, TIME_MS, None, bytes(1_100_000)), ErrorCode.message_too_large),
        (bytes(16) + b"\x07" + bytes(40), ErrorCode.corrupt_message),
        (b"", ErrorCode.invalid_record),
    ]
    for records, error in bad:
        assert produce(leading, records, version).error_code is error, records[:60]
    assert stored(leading) == b""


def test_a_refused_set_with_acks_0_closes_the_connection(leading):
    topic = ProduceTopic(
        name="quakes", partition_data=[ProducePartition(index=0, records=message_set(1)[:-1])]
    )
    leading.connection.send_one_way(ProduceRequest(acks=0, topic_data=[topic]), 1)
    with pytest.raises(ConnectionError):
        leading.call(ApiVersionsRequest(), 0)


def test_conversions_are_counted(leading):
    conversions = leading.server.body.context.conversions
    produce(leading, message_set(0), 1)
    produce(leading, build_records_batch([Record(value=b"v")], now_ms=1), 1)
    produce(leading, message_set(0)[:-1], 1)
    assert (conversions.produced, conversions.fetched) == (3, 0)
    fetch(leading, 1)
    fetch(leading, 11)
    assert (conversions.produced, conversions.fetched) == (3, 4)
