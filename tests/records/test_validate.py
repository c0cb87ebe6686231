import struct

import pyarrow as pa
import pytest

from sparklog.model.errors import CorruptBatch, ErrorCode
from sparklog.records.arrow.arrow_payload import ArrowPayload
from sparklog.records.envelope import CONTROL_BIT, Compression, build_envelope, parse_header, stamp
from sparklog.records.filtering.filter import restamped
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.payload import payload
from sparklog.records.payload_kinds import SUPPORTED_PAYLOADS, PayloadKind
from sparklog.records.validate import Accepted, RefusedBatch, check_produced, check_replicated

MAX_BATCH_BYTES = 1_000_000
ARROW = ArrowPayload().from_columns(pa.record_batch({"value": pa.array([b"v", b"w"])}), now_ms=5)


def batch(count: int = 3, compression: Compression = Compression.NONE, **fields: int) -> bytes:
    return build_records_batch([Record(b"k", b"v" * 40)] * count, now_ms=5, compression=compression, **fields)


def rebuilt(payload: bytes, **fields: int) -> bytes:
    values = {
        "attributes": 0,
        "record_count": 3,
        "last_offset_delta": 2,
        "base_timestamp_ms": 5,
        "max_timestamp_ms": 5,
    }
    return build_envelope(payload, **(values | fields))


def judge(buffer: bytes | bytearray | memoryview | None, **options: bool) -> Accepted | RefusedBatch:
    return check_produced(
        buffer, max_batch_bytes=MAX_BATCH_BYTES, **({"payload_kinds": SUPPORTED_PAYLOADS} | options)
    )


def refused(buffer: bytes | bytearray | None, error: ErrorCode, **options: bool) -> str:
    verdict = judge(buffer, **options)
    assert isinstance(verdict, RefusedBatch)
    assert verdict.error is error
    return verdict.message


@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize("count", [1, 3, 200])
def test_what_a_client_may_send_is_accepted(compression: Compression, count: int):
    sent = batch(count, compression)
    assert judge(sent) == judge(memoryview(sent)) == Accepted([(0, parse_header(sent))])


def test_an_arrow_batch_needs_a_client_that_knows_them():
    assert judge(ARROW) == Accepted([(0, parse_header(ARROW))])
    message = refused(ARROW, ErrorCode.unsupported_for_message_format, payload_kinds=())
    assert "payload_kinds" in message


def test_every_damaged_byte_is_refused_but_for_the_leader_epoch_which_brokers_overwrite():
    for intact in (batch(), ARROW):
        for position in set(range(len(intact))) - set(range(12, 16)):
            damaged = bytearray(intact)
            damaged[position] ^= 0x20
            assert isinstance(judge(damaged), RefusedBatch), position


def test_a_batch_cut_anywhere_is_refused():
    for length in range(len(batch())):
        assert isinstance(judge(batch()[:length]), RefusedBatch), length


def test_nothing_is_not_a_batch():
    assert "0 bytes" in refused(None, ErrorCode.invalid_record)
    assert "0 bytes" in refused(b"", ErrorCode.invalid_record)


@pytest.mark.parametrize(
    ("magic", "error"),
    [
        (0, ErrorCode.invalid_record),
        (1, ErrorCode.invalid_record),
        (3, ErrorCode.corrupt_message),
        (255, ErrorCode.corrupt_message),
    ],
)
def test_other_message_formats_are_refused_with_kafkas_codes(magic: int, error: ErrorCode):
    sent = bytearray(batch())
    sent[16] = magic
    assert f"message format {magic}" in refused(sent, error)


def test_a_wrong_crc_is_corruption():
    sent = bytearray(batch())
    sent[-1] ^= 1
    assert "CRC" in refused(sent, ErrorCode.corrupt_message)


def test_a_batch_too_large_is_refused_before_anything_is_read():
    sent = batch(30_000)
    assert "max.message.bytes=1000000" in refused(sent[:100], ErrorCode.message_too_large)


def test_two_batches_in_one_partition_are_refused():
    assert "exactly one batch" in refused(batch() + batch(), ErrorCode.invalid_record)


def test_control_batches_are_not_for_clients():
    sent = rebuilt(batch()[61:], attributes=CONTROL_BIT)
    assert "control" in refused(sent, ErrorCode.invalid_record)


def test_unknown_attribute_bits_and_codecs_are_refused():
    assert "unknown bits" in refused(rebuilt(batch()[61:], attributes=1 << 9), ErrorCode.invalid_record)
    unknown = rebuilt(batch()[61:], attributes=7)
    assert "no codec 7" in refused(unknown, ErrorCode.unsupported_compression_type)


@pytest.mark.parametrize(
    "fields",
    [
        {"record_count": 2},
        {"record_count": 4},
        {"record_count": 0, "last_offset_delta": 0},
        {"last_offset_delta": 3},
        {"record_count": 4, "last_offset_delta": 3},
        {"base_offset": 1},
        {"producer_id": 5, "producer_epoch": 0},
        {"producer_id": 5, "base_sequence": 0},
    ],
)
def test_envelopes_that_contradict_their_records_are_refused(fields: dict[str, int]):
    assert refused(rebuilt(batch()[61:], **fields), ErrorCode.invalid_record)


def test_offset_deltas_must_count_up_from_zero():
    record = batch(1)[61:]
    assert "offset deltas" in refused(rebuilt(record * 3), ErrorCode.invalid_record)


def test_what_was_looked_into_before_need_not_be_again():
    assert isinstance(judge(rebuilt(batch(1)[61:] * 3), look_inside=False), Accepted)


def test_a_bomb_is_refused():
    bomb = build_records_batch([Record(value=bytes(140_000_000))], now_ms=0, compression=Compression.ZSTD)
    assert len(bomb) < MAX_BATCH_BYTES
    assert "decompresses to more than" in refused(bomb, ErrorCode.invalid_record)


def test_a_codec_that_does_not_match_its_bytes_is_refused():
    assert "cannot be decompressed" in refused(
        rebuilt(batch()[61:], attributes=Compression.LZ4), ErrorCode.invalid_record
    )


def test_followers_take_whole_batches_whose_crc_holds():
    first, second = bytearray(batch()), bytearray(ARROW)
    stamp(first, 0, 100, 3)
    stamp(second, 0, 103, 3)
    found = check_replicated(first + second + first[:-1])
    assert [(position, header.base_offset) for position, header in found] == [(0, 100), (len(first), 103)]
    assert check_replicated(b"") == []


def test_followers_refuse_the_first_batch_that_is_damaged():
    run = bytearray(batch() + batch())
    struct.pack_into(">q", run, len(batch()), 3)
    run[-1] ^= 1
    with pytest.raises(CorruptBatch, match="offset 3"):
        check_replicated(run)


@pytest.mark.parametrize("is_arrow", [True, False])
def test_a_compacted_topic_takes_no_record_without_a_key_and_says_which(is_arrow: bool):
    columns = pa.record_batch({"key": pa.array([b"k", None, b"", None]), "value": pa.array([b"v"] * 4)})
    kind = PayloadKind.ARROW if is_arrow else PayloadKind.RECORDS
    batch = payload(kind).from_columns(columns, now_ms=1)
    assert isinstance(judge(batch), Accepted)
    verdict = judge(batch, requires_keys=True)
    assert isinstance(verdict, RefusedBatch)
    assert verdict.error is ErrorCode.invalid_record
    assert "2 of 4 records have no key, the first at index 1" in verdict.message
    assert [index for index, _ in verdict.record_errors] == [1, 3]
    keyed = payload(kind).from_columns(columns.slice(2, 1), now_ms=1)
    assert isinstance(judge(keyed, requires_keys=True), Accepted)


def test_a_client_may_not_set_a_delete_horizon():
    batch = build_records_batch([Record(b"k", b"v")], now_ms=1)
    horizon = restamped(batch, parse_header(batch), 5)
    assert "only compaction" in refused(horizon, ErrorCode.invalid_record)
