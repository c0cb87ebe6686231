"""Our own tags: their numbers, their bytes, and what happens to them in versions without tags."""

from uuid import UUID

import pytest

from sparklog.model.errors import WireError
from sparklog.model.parts import read_parts
from sparklog.wire.codec import decode_body, encode_body
from sparklog.wire.extensions import EXTENSION_TAG_MIN, EXTENSIONS
from sparklog.wire.messages.control.stop_replica import StopReplicaRequest, StopReplicaTopicState
from sparklog.wire.messages.control.update_metadata import UpdateMetadataBroker, UpdateMetadataRequest
from sparklog.wire.messages.data.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from sparklog.wire.messages.data.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from sparklog.wire.messages.data.produce import ProduceRequest
from sparklog.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)


def test_our_tags_are_far_from_kafka_s_and_each_means_one_thing() -> None:
    meanings: dict[int, tuple[str, str]] = {}
    for extension in (extension for group in EXTENSIONS.values() for extension in group):
        assert extension.tag >= EXTENSION_TAG_MIN
        assert meanings.setdefault(extension.tag, (extension.field, extension.type)) == (
            extension.field,
            extension.type,
        )


def test_payload_kinds_are_a_compact_array_of_int16_under_tag_5000() -> None:
    body = read_parts(encode_body(ProduceRequest(payload_kinds=(1, 0x0101)), 9))
    assert body.endswith(b"\x01\x88\x27\x05\x03\x00\x01\x01\x01")
    assert decode_body(ProduceRequest, 9, body).payload_kinds == (1, 0x0101)


@pytest.mark.parametrize("columns", [None, (), (2, 7)])
def test_wanted_columns_are_under_tag_5032_and_none_of_them_is_not_all(
    columns: tuple[int, ...] | None,
) -> None:
    asked = FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=9, columns=columns)
    request = FetchRequest(topics=[FetchTopic(topic="t", partitions=[asked])])
    body = read_parts(encode_body(request, 12))
    ids = b"".join(number.to_bytes(8, "big") for number in columns or ())
    tag = b"\xa8\x27" + bytes([len(ids) + 1, len(ids) // 8 + 1]) + ids
    assert (tag in body) == (columns is not None)
    assert decode_body(FetchRequest, 12, body) == request
    encode_body(request, 11)  # older brokers answer with whole batches


def test_a_condition_and_how_far_it_was_looked_for_are_under_tags_5033_and_5034() -> None:
    asked = FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=9, columns=(), condition=b"abc")
    request = FetchRequest(topics=[FetchTopic(topic="t", partitions=[asked])])
    body = read_parts(encode_body(request, 12))
    assert b"\xa9\x27\x04\x04abc" in body
    assert decode_body(FetchRequest, 12, body) == request
    answer = FetchPartitionData(partition_index=0, looked_to=7)
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[answer])])
    body = read_parts(encode_body(response, 12))
    assert b"\xaa\x27\x08" + bytes(7) + b"\x07" in body
    assert decode_body(FetchResponse, 12, body).responses[0].partitions[0].looked_to == 7
    encode_body(response, 11)


def test_the_topic_of_a_stop_is_sixteen_bytes_under_tag_5009() -> None:
    topic = StopReplicaTopicState(topic_name="t", topic_id=UUID(int=7))
    request = StopReplicaRequest(controller_id=0, controller_epoch=1, topic_states=[topic])
    body = read_parts(encode_body(request, 4))
    assert b"\x91\x27\x10" + UUID(int=7).bytes in body
    assert decode_body(StopReplicaRequest, 4, body) == request


def test_the_topic_of_a_verification_is_sixteen_bytes_under_tag_5009_from_version_4_on() -> None:
    topic = AddPartitionsToTxnTopic(name="t", partitions=[3], topic_id=UUID(int=7))
    transaction = AddPartitionsToTxnTransaction(
        transactional_id="x", producer_id=1, producer_epoch=0, verify_only=True, topics=[topic]
    )
    request = AddPartitionsToTxnRequest(transactions=[transaction])
    body = read_parts(encode_body(request, 4))
    assert b"\x91\x27\x10" + UUID(int=7).bytes in body
    assert decode_body(AddPartitionsToTxnRequest, 4, body) == request


def test_producers_of_before_a_log_travel_as_bytes_under_tag_5011() -> None:
    answer = ListOffsetsPartitionResponse(partition_index=0, offset=7, producers=b"abc")
    response = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[answer])])
    body = read_parts(encode_body(response, 8))
    assert b"\x93\x27\x04\x04abc" in body
    assert decode_body(ListOffsetsResponse, 8, body) == response
    answer.producers = b"abc" * 5_000
    large = read_parts(encode_body(response, 8))
    assert decode_body(ListOffsetsResponse, 8, large) == response
    plain = read_parts(encode_body(response, 5))
    assert decode_body(ListOffsetsResponse, 5, plain).topics[0].partitions[0].producers == b""


def test_a_default_extension_is_not_written() -> None:
    assert read_parts(encode_body(ProduceRequest(), 9)).endswith(b"\x01\x00")


def test_a_fetch_in_an_old_version_asks_for_plain_records() -> None:
    body = read_parts(encode_body(FetchRequest(payload_kinds=(1,)), 11))
    assert decode_body(FetchRequest, 11, body).payload_kinds == ()


def test_a_produce_in_an_old_version_cannot_vouch_for_its_payload() -> None:
    with pytest.raises(WireError, match="payload_kinds"):
        encode_body(ProduceRequest(payload_kinds=(1,)), 8)


def test_a_broker_s_epoch_travels_with_it() -> None:
    brokers = [UpdateMetadataBroker(id_=1, epoch=2**40), UpdateMetadataBroker(id_=2)]
    request = UpdateMetadataRequest(controller_id=1, controller_epoch=1, live_brokers=brokers)
    assert decode_body(UpdateMetadataRequest, 8, read_parts(encode_body(request, 8))) == request


def test_an_epoch_that_does_not_fit_is_named() -> None:
    brokers = [UpdateMetadataBroker(id_=1, epoch=2**63)]
    request = UpdateMetadataRequest(controller_id=1, controller_epoch=1, live_brokers=brokers)
    with pytest.raises(WireError, match=r"UpdateMetadataBroker\.epoch"):
        encode_body(request, 8)
