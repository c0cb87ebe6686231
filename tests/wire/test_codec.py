"""Headers, bodies and errors of whole frames; the unhappy paths by hand, bytes spelled out."""

import struct
import subprocess
import sys
import tracemalloc
from uuid import UUID

import pytest

from sparklog.model.errors import ErrorCode, WireError
from sparklog.model.ids import NO_TOPIC_ID
from sparklog.model.parts import FileSlice, parts_length, read_parts
from sparklog.wire.codec import (
    RequestHeader,
    UnsupportedVersion,
    decode_body,
    decode_request,
    decode_response,
    encode_body,
    encode_request,
    encode_response,
    parse_request_header,
)
from sparklog.wire.messages.admin.create_partitions import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from sparklog.wire.messages.admin.delete_topics import DeleteTopicsRequest, DeleteTopicState
from sparklog.wire.messages.control.envelope import EnvelopeRequest
from sparklog.wire.messages.data.fetch import (
    FetchableTopicResponse,
    FetchEpochEndOffset,
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from sparklog.wire.messages.data.list_offsets import ListOffsetsRequest
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from sparklog.wire.messages.discovery.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from sparklog.wire.messages.discovery.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from sparklog.wire.primitives import (
    ENTITIES_MAX,
    NUMBERS_OF_AN_ENTITY,
    PART_COPY_BYTES_MAX,
    append_uvarint,
)


class MemoryFile:
    """A file whose bytes are in memory."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def fileno(self) -> int:
        raise OSError("not a file of the kernel's")

    def pread(self, length: int, position: int) -> bytes:
        return self.content[position : position + length]


# Request headers


def test_an_old_request_has_the_short_header_and_nothing_else_in_front() -> None:
    frame = encode_request(MetadataRequest(topics=[]), 1, 7, "me")
    assert frame == b"\x00\x00\x00\x10\x00\x03\x00\x01\x00\x00\x00\x07\x00\x02me\x00\x00\x00\x00"


def test_a_flexible_request_has_tags_after_a_client_id_with_a_two_byte_length() -> None:
    frame = encode_request(ApiVersionsRequest(client_software_name="a"), 3, 7, "me")
    assert frame[4:] == b"\x00\x12\x00\x03\x00\x00\x00\x07\x00\x02me\x00\x02a\x01\x00"


def test_a_client_may_have_no_id() -> None:
    frame = encode_request(MetadataRequest(), 12, 1, None)
    assert decode_request(frame[4:]).header == RequestHeader(3, 12, 1, None)


def test_unknown_tags_of_a_request_header_are_skipped() -> None:
    header = b"\x00\x12\x00\x03\x00\x00\x00\x07\x00\x02me\x02\x00\x03abc\x88\x27\x00"
    request = decode_request(header + b"\x02a\x02b\x00")
    assert request.header == RequestHeader(18, 3, 7, "me")
    assert request.body == ApiVersionsRequest(client_software_name="a", client_software_version="b")


def test_a_header_tells_where_the_body_begins() -> None:
    frame = encode_request(ApiVersionsRequest(), 3, 7, "me")[4:]
    header, position = parse_request_header(frame)
    assert header.client_id == "me"
    assert decode_body(ApiVersionsRequest, 3, frame[position:]) == ApiVersionsRequest()


@pytest.mark.parametrize("length", range(11))
def test_a_header_that_is_cut_short_is_malformed(length: int) -> None:
    frame = encode_request(MetadataRequest(), 1, 7, "me")[4:]
    with pytest.raises(WireError, match="malformed request header"):
        parse_request_header(frame[:length])


# Versions that are not served


@pytest.mark.parametrize(("api_key", "version"), [(18, 4), (1, 16), (4, 6), (3, -1), (999, 0)])
def test_a_version_that_is_not_served_is_named_with_its_header(api_key: int, version: int) -> None:
    frame = struct.pack(">hhih", api_key, version, 55, 1) + b"x" + b"\x00unknowable"
    with pytest.raises(UnsupportedVersion, match=f"API key {api_key} version {version}") as raised:
        decode_request(frame)
    assert raised.value.header == RequestHeader(api_key, version, 55, "x")


def test_a_version_that_nobody_has_cannot_be_encoded() -> None:
    with pytest.raises(WireError, match="Fetch has versions 0 to 15"):
        encode_request(FetchRequest(), 16, 1, None)


@pytest.mark.scenario("S20")
def test_a_broker_that_refuses_our_api_versions_answers_in_version_0_and_is_understood() -> None:
    refusal = ApiVersionsResponse(
        error_code=ErrorCode.unsupported_version,
        api_keys=[ApiVersion(api_key=18, min_version=0, max_version=2)],
    )
    frame = read_parts(encode_response(refusal, 0, 9))
    assert decode_response(ApiVersionsResponse, 3, frame[4:]) == (9, refusal)


# Response headers


def test_api_versions_responses_never_have_header_tags() -> None:
    frame = read_parts(encode_response(ApiVersionsResponse(), 3, 7))
    assert frame == b"\x00\x00\x00\x0c\x00\x00\x00\x07\x00\x00\x01\x00\x00\x00\x00\x00"


def test_other_flexible_responses_do_and_unknown_ones_are_skipped() -> None:
    frame = read_parts(encode_response(MetadataResponse(), 12, 7))[4:]
    assert frame[:5] == b"\x00\x00\x00\x07\x00"
    tagged = frame[:4] + b"\x01\x05\x02hi" + frame[5:]
    assert decode_response(MetadataResponse, 12, tagged) == (7, MetadataResponse())


def test_old_responses_have_the_correlation_id_only() -> None:
    frame = read_parts(encode_response(MetadataResponse(), 8, 7))[4:]
    assert decode_response(3, 8, frame) == (7, MetadataResponse())
    assert len(frame) == 4 + 4 + 4 + 2 + 4 + 4 + 4


# Records


def fetch_response(*records: bytes | memoryview | FileSlice) -> FetchResponse:
    partition = FetchPartitionData(partition_index=1, high_watermark=5, records=records)
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])


def test_file_slices_of_a_fetch_response_stay_what_they_are() -> None:
    first, second = (FileSlice(MemoryFile(bytes(100)), position, 40) for position in (0, 50))
    parts = encode_response(fetch_response(first, b"between", second), 12, 3)
    assert [part for part in parts if isinstance(part, FileSlice)] == [first, second]
    assert struct.unpack(">i", read_parts(parts)[:4]) == (parts_length(parts) - 4,)
    _, decoded = decode_response(FetchResponse, 12, read_parts(parts)[4:])
    assert decoded == fetch_response(bytes(40) + b"between" + bytes(40))


def test_large_records_in_memory_are_not_copied() -> None:
    records = bytes(PART_COPY_BYTES_MAX + 1)
    parts = encode_response(fetch_response(records), 12, 3)
    assert any(part is records for part in parts)


def test_null_records_are_read_as_no_parts() -> None:
    body = b"\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01" + struct.pack(">ihqi", 1, 0, 5, -1)
    assert decode_body(FetchResponse, 0, body) == fetch_response()


def test_produced_records_are_views_into_the_frame() -> None:
    request = ProduceRequest(
        topic_data=[ProduceTopic(name="t", partition_data=[ProducePartition(index=1, records=b"abc")])]
    )
    frame = encode_request(request, 9, 1, "c")[4:]
    records = decode_request(frame).body.topic_data[0].partition_data[0].records
    assert records == b"abc"
    assert records.obj is frame


def test_an_envelope_carries_a_request_whole() -> None:
    inner = encode_request(MetadataRequest(), 12, 4, "inner")[4:]
    frame = encode_request(EnvelopeRequest(request_data=inner, request_principal=b"me"), 0, 9, "broker-1")[4:]
    body = decode_request(frame).body
    assert decode_request(body.request_data).body == MetadataRequest()
    assert body.request_principal == b"me"


# Differences between versions


def test_follower_id_and_epoch_are_in_the_same_place_in_every_version() -> None:
    request = FetchRequest(replica_id=3, replica_epoch=77)
    assert decode_body(FetchRequest, 15, read_parts(encode_body(request, 15))) == request
    assert decode_body(FetchRequest, 14, read_parts(encode_body(request, 14))).replica_id == 3


def test_a_consumer_s_fetch_says_nothing_about_replicas_in_version_15() -> None:
    (with_default,) = encode_body(FetchRequest(), 15)
    assert len(with_default) == len(read_parts(encode_body(FetchRequest(), 14))) - 4


def test_a_request_refuses_to_lose_what_its_version_cannot_carry() -> None:
    by_id = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=UUID(int=1))])
    with pytest.raises(WireError, match=r"DeleteTopicsRequest\.topics is .* which this version cannot carry"):
        encode_request(by_id, 5, 1, None)
    with pytest.raises(WireError, match="isolation_level is 1"):
        encode_request(ListOffsetsRequest(isolation_level=1), 1, 1, None)


def test_a_request_drops_what_may_be_dropped() -> None:
    topic = FetchTopic(
        topic="t",
        topic_id=UUID(int=1),
        partitions=[FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=2)],
    )
    request = FetchRequest(topics=[topic], rack_id="r")
    by_name = decode_body(FetchRequest, 4, read_parts(encode_body(request, 4))).topics[0]
    by_id = decode_body(FetchRequest, 13, read_parts(encode_body(request, 13))).topics[0]
    assert (by_name.topic, by_name.topic_id) == ("t", NO_TOPIC_ID)
    assert (by_id.topic, by_id.topic_id) == ("", UUID(int=1))


def test_a_response_drops_what_its_version_cannot_carry() -> None:
    response = MetadataResponse(cluster_id="c", controller_id=4)
    assert decode_body(MetadataResponse, 1, read_parts(encode_body(response, 1))) == MetadataResponse(
        controller_id=4
    )


def test_metadata_for_all_topics_is_null_and_for_none_is_empty() -> None:
    assert read_parts(encode_body(MetadataRequest(topics=None), 1)) == b"\xff\xff\xff\xff"
    assert read_parts(encode_body(MetadataRequest(topics=[]), 1)) == b"\x00\x00\x00\x00"
    with pytest.raises(WireError, match=r"MetadataRequest\.topics: null"):
        encode_body(MetadataRequest(topics=None), 0)


def test_a_tagged_entity_is_none_unless_it_was_sent() -> None:
    with_epoch = FetchPartitionData(
        partition_index=0, diverging_epoch=FetchEpochEndOffset(epoch=2, end_offset=9)
    )
    for partition in (with_epoch, FetchPartitionData(partition_index=0)):
        response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
        assert decode_body(FetchResponse, 12, read_parts(encode_body(response, 12))) == response


def test_an_error_code_from_the_future_is_an_unknown_error() -> None:
    body = bytearray(read_parts(encode_body(ApiVersionsResponse(), 0)))
    body[0:2] = struct.pack(">h", 31_000)
    assert decode_body(ApiVersionsResponse, 0, body).error_code is ErrorCode.unknown_server_error


def test_bytes_after_the_body_are_ignored_as_kafka_does() -> None:
    assert decode_body(MetadataRequest, 1, b"\xff\xff\xff\xffmore") == MetadataRequest()


# Tags that nobody knows


def test_unknown_tags_are_skipped_on_every_level() -> None:
    tags = b"\x02\x63\x00\x88\x27\x04junk"
    partition = b"\x00\x00\x00\x05\x04abc" + tags
    topic = b"\x02t\x02" + partition + tags
    body = b"\x00\xff\xff\x00\x00\x00\x01\x02" + topic + b"\x01\x63\x01x"
    assert decode_body(ProduceRequest, 9, body) == ProduceRequest(
        timeout_ms=1,
        topic_data=[ProduceTopic(name="t", partition_data=[ProducePartition(index=5, records=b"abc")])],
    )


def test_a_known_tag_of_the_wrong_length_is_malformed() -> None:
    body = bytearray(read_parts(encode_body(FetchRequest(cluster_id="c"), 12)))
    assert body.endswith(b"\x01\x00\x02\x02c")
    with pytest.raises(WireError, match="tag 0 says 3 bytes but takes 2"):
        decode_body(FetchRequest, 12, bytes(body[:-3]) + b"\x03\x02cc")


# Hostile frames

ONE = b"\x00\x00\x00\x01"


@pytest.mark.parametrize(
    ("message_type", "version", "body"),
    [
        (MetadataRequest, 1, b"\x7f\xff\xff\xff"),
        (MetadataRequest, 1, b"\x80\x00\x00\x00"),
        (MetadataRequest, 1, b"\xff\xff\xff\xfe"),
        (MetadataRequest, 0, b"\xff\xff\xff\xff"),
        (MetadataRequest, 9, b"\xff\xff\xff\xff\x0f"),
        (MetadataRequest, 9, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        (MetadataRequest, 9, b"\x02\x00\x00"),
        (MetadataRequest, 9, b"\x02\xff\xff\xff\xff\x0f"),
        (MetadataRequest, 1, b"\x00\x00\x00\x01\xff\xfe"),
        (MetadataRequest, 1, b"\x00\x00\x00\x01\x00\x02\xff\xff"),
        (MetadataRequest, 9, b"\x00\x00\x00\x00\xff\xff\xff\xff\x0f"),
        (MetadataRequest, 9, b"\x00\x00\x00\x00\x01\x05\xff\xff\xff\xff\x0f"),
        (ProduceRequest, 3, b"\xff\xff\x00\x01" + bytes(4) + b"\x7f\xff\xff\xff"),
        (MetadataResponse, 1, bytes(8) + b"\x7f\xff\xff\xff"),
        (MetadataResponse, 1, bytes(8) + ONE + bytes(5) + ONE + bytes(10) + b"\x7f\xff\xff\xff"),
        (FetchRequest, 12, b""),
    ],
)
def test_a_hostile_body_is_refused_and_takes_no_memory(
    message_type: type[MetadataRequest], version: int, body: bytes
) -> None:
    with pytest.raises(WireError, match="malformed"):
        decode_body(message_type, version, body)
    tracemalloc.start()  # only now: what is compiled on first use is not the frame's fault
    try:
        with pytest.raises(WireError, match="malformed"):
            decode_body(message_type, version, body)
        assert tracemalloc.get_traced_memory()[1] < 64 * 1024
    finally:
        tracemalloc.stop()


def test_a_frame_of_nothing_but_entities_is_refused_before_they_fill_the_memory() -> None:
    count = 2_000_000
    topics = bytearray()
    value = count + 1
    while value > 0x7F:
        topics.append(value & 0x7F | 0x80)
        value >>= 7
    topics.append(value)
    body = b"\x00\xff\xff\x00\x00\x00\x00" + topics + b"\x01\x01\x00" * count
    with pytest.raises(WireError, match="more than 1000000 entities"):
        decode_body(ProduceRequest, 9, body)


def test_a_frame_of_nothing_but_numbers_is_refused_before_they_fill_the_memory() -> None:
    count = (ENTITIES_MAX + 1) * NUMBERS_OF_AN_ENTITY
    kinds = bytearray()
    append_uvarint(kinds, count + 1)
    kinds += bytes(2 * count)
    body = bytearray(encode_body(ProduceRequest(), 9)[0][:-1]) + b"\x01"
    append_uvarint(body, 5_000)
    append_uvarint(body, len(kinds))
    body += kinds
    tracemalloc.start()
    try:
        with pytest.raises(WireError, match="more than 1000000 entities"):
            decode_body(ProduceRequest, 9, body)
        assert tracemalloc.get_traced_memory()[1] < 64 * 1024
    finally:
        tracemalloc.stop()


# Values that do not fit


def test_a_number_out_of_range_is_named() -> None:
    with pytest.raises(WireError, match=r"FetchRequest\.max_wait_ms is 4294967296"):
        encode_body(FetchRequest(max_wait_ms=2**32), 12)


def test_a_value_of_the_wrong_type_is_named_with_its_path() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=5)])  # type: ignore[arg-type]
    with pytest.raises(WireError, match=r"MetadataRequest\.topics: MetadataRequestTopic\.name"):
        encode_body(request, 9)


def test_a_string_too_long_for_an_old_version_is_refused() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="x" * 40_000)])
    with pytest.raises(WireError, match="longer than 32767"):
        encode_body(request, 8)
    assert decode_body(MetadataRequest, 9, read_parts(encode_body(request, 9))) == request


def test_null_where_a_name_must_be_is_refused() -> None:
    response = MetadataResponse(topics=[MetadataResponseTopic(name=None)])
    with pytest.raises(WireError, match=r"MetadataResponseTopic\.name: null for a string"):
        encode_body(response, 11)
    assert decode_body(MetadataResponse, 12, read_parts(encode_body(response, 12))) == response


def test_a_response_is_not_taken_for_a_request() -> None:
    with pytest.raises(TypeError, match="MetadataResponse is not a MetadataRequest"):
        encode_request(MetadataResponse(), 9, 1, None)


# Cost


def test_importing_the_codec_loads_no_schema_and_no_kio() -> None:
    script = (
        "import sys, sparklog.wire.codec, sparklog.wire.schema\n"
        "assert sparklog.wire.schema._schemas.cache_info().currsize == 0\n"
        "assert not [name for name in sys.modules if name.partition('.')[0] == 'kio']\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("version", [0, 3])
def test_an_error_message_that_is_too_long_for_its_version_is_cut(version: int) -> None:
    """It may quote a name of 32,767 bytes that a client sent."""
    result = CreatePartitionsTopicResult(name="t", error_message="é" * 40_000)
    frame = read_parts(encode_response(CreatePartitionsResponse(results=[result]), version, 1))[4:]
    message = decode_response(CreatePartitionsResponse, version, frame)[1].results[0].error_message
    assert message == "é" * 1_999 + "…"
