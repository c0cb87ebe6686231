"""What a producer sent becomes what its topic wants, whatever its message format."""

import pytest

from sparklog.broker.conversion.intake import Intake, prepared
from sparklog.model.errors import ErrorCode
from sparklog.model.settings.config import BrokerConfig
from sparklog.records.envelope import Compression
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.legacy.message import build
from sparklog.records.validate import RefusedBatch

NOW_MS = 1_500_000_000_000
OLD_ROWS = [(b"k", NOW_MS - 5), (None, NOW_MS)]


def message_set(form):
    return b"".join(build(form, n, time, key, b"v") for n, (key, time) in enumerate(OLD_ROWS))


def batch():
    return build_records_batch([Record(key, b"v", time) for key, time in OLD_ROWS], now_ms=0)


SENT = [(message_set(0), 0), (message_set(1), 2), (batch(), 9)]


def intake(sent, version, **topic):
    config = BrokerConfig.parse({}).topic({name.replace("_", "."): value for name, value in topic.items()})
    return prepared(memoryview(bytearray(sent)), config, version=version, payload_kinds=(), now_ms=NOW_MS)


def taken(sent, version, **topic):
    found = intake(sent, version, **topic)
    assert isinstance(found, Intake), found
    [(_, header)] = found.accepted.batches
    return found, header


@pytest.mark.parametrize(("sent", "version"), SENT)
def test_a_compacted_topic_names_the_records_without_a_key(sent, version):
    refused = intake(sent, version, cleanup_policy="compact")
    assert isinstance(refused, RefusedBatch)
    assert (refused.error, [index for index, _ in refused.record_errors]) == (ErrorCode.invalid_record, [1])


@pytest.mark.parametrize(("sent", "version"), SENT)
def test_the_batch_has_the_codec_of_its_topic(sent, version):
    for name, codec in (("zstd", Compression.ZSTD), ("uncompressed", Compression.NONE)):
        assert taken(sent, version, compression_type=name)[1].compression is codec


@pytest.mark.parametrize(("sent", "version"), SENT)
def test_the_batch_has_the_leaders_time_where_the_topic_wants_it(sent, version):
    _, header = taken(sent, version, message_timestamp_type="LogAppendTime")
    assert (header.is_log_append_time, header.max_timestamp_ms) == (True, NOW_MS)


@pytest.mark.parametrize(("sent", "version"), SENT)
def test_records_that_are_too_old_are_refused_but_format_0_has_no_time(sent, version):
    found = intake(sent, version, message_timestamp_before_max_ms="4")
    if version == 0:
        assert isinstance(found, Intake)
    else:
        assert isinstance(found, RefusedBatch)
        assert found.error is ErrorCode.invalid_timestamp


def test_records_that_were_messages_are_counted():
    assert [taken(*sent)[0].converted for sent in SENT] == [2, 2, 0]


def test_messages_belong_to_produce_0_to_2_alone():
    for version in range(3, 10):
        refused = intake(message_set(1), version)
        assert isinstance(refused, RefusedBatch)
        assert refused.error is ErrorCode.invalid_record
    for version in range(3):
        assert isinstance(intake(message_set(1), version), Intake)
