"""Records of ``__consumer_offsets`` in words, as Kafka's ``--offsets-decoder`` shows them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparklog.cli.command import DONE
from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.group.records import GroupKey, GroupValue, MemberValue, OffsetKey, OffsetValue
from sparklog.model.ids import TopicPartition
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.wire.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from sparklog.wire.coordinator_records.group_offsets import GroupOffsetsCodec

Dump = Callable[..., Any]
FIRST = "00000000000000000000"
A0 = TopicPartition("a", 0)
OFFSET = OffsetKey("grp", A0)
SUBSCRIPTION = encode_subscription(Subscription(("a",), None, (A0,), 2, "r1"))
ASSIGNMENT = encode_assignment(Assignment((A0,), b"\x07"))


def member(subscription: bytes = SUBSCRIPTION, assignment: bytes = ASSIGNMENT) -> MemberValue:
    return MemberValue("m1", "inst", "ci", "/host", 60_000, 10_000, subscription, assignment)


def group(protocol_type: str, *members: MemberValue) -> StateRecord:
    return StateRecord(GroupKey("grp"), GroupValue(protocol_type, 3, "range", "m1", 768, members))


def batch(*records: StateRecord | tuple[bytes | None, bytes]) -> bytes:
    encoded = (GroupOffsetsCodec().encode(one) if isinstance(one, StateRecord) else one for one in records)
    return build_records_batch([Record(key, value) for key, value in encoded], now_ms=1)


def segment(make: Any, *records: StateRecord | tuple[bytes | None, bytes], topic: str) -> Path:
    log = make.log(f"{topic}-7")
    make.append(log, batch(*records))
    log.close()
    path: Path = make.root / f"{topic}-7" / f"{FIRST}.log"
    return path


RECORDS = (
    StateRecord(OFFSET, OffsetValue(42, 5, "é", 256)),
    StateRecord(OFFSET, OffsetValue(42, 5, "", 256, 512)),
    StateRecord(OFFSET, None),
    group("consumer", member()),
    StateRecord(GroupKey("grp"), None),
)
OFFSET_TEXT = '{"type":"1","data":{"group":"grp","topic":"a","partition":0}}'
GROUP_TEXT = '{"type":"2","data":{"group":"grp"}}'
LINES = [
    f'key: {OFFSET_TEXT} payload: {{"version":"3","data":'
    '{"offset":42,"leaderEpoch":5,"metadata":"é","commitTimestamp":256}}',
    f'key: {OFFSET_TEXT} payload: {{"version":"1","data":'
    '{"offset":42,"metadata":"","commitTimestamp":256,"expireTimestamp":512}}',
    f"key: {OFFSET_TEXT} payload: <DELETE>",
    f'key: {GROUP_TEXT} payload: {{"version":"3","data":{{"protocolType":"consumer","generation":3,'
    '"protocol":"range","leader":"m1","currentStateTimestamp":768,"members":[{"memberId":"m1",'
    '"groupInstanceId":"inst","clientId":"ci","clientHost":"/host","rebalanceTimeout":60000,'
    '"sessionTimeout":10000,"subscription":{"topics":["a"],"userData":null,'
    '"ownedPartitions":[{"topic":"a","partitions":[0]}],"generationId":2,"rackId":"r1"},'
    '"assignment":{"assignedPartitions":[{"topic":"a","partitions":[0]}],"userData":"Bw=="}}]}}',
    f"key: {GROUP_TEXT} payload: <DELETE>",
]


def test_the_directory_s_name_says_that_records_are_to_be_decoded(dump: Dump, make: Any) -> None:
    ran = dump(segment(make, *RECORDS, topic="__consumer_offsets"), "--print-data-log")
    assert ran.status == DONE
    assert [line.partition("headerKeys: [] ")[2] for line in ran.lines[3:]] == LINES


def test_the_decoder_decodes_whatever_the_directory_is_named(dump: Dump, make: Any) -> None:
    path = segment(make, *RECORDS, topic="copied")
    ran = dump(path, "--offsets-decoder", "--skip-record-metadata")
    assert (ran.lines[3:], ran.err) == ([f"| {line}" for line in LINES], "")
    assert OFFSET_TEXT not in dump(path, "--print-data-log").out


def test_without_a_request_for_contents_only_batches_are_shown(dump: Dump, make: Any) -> None:
    path = segment(make, *RECORDS, topic="__consumer_offsets")
    assert len(dump(path).lines) == 3
    assert "group" not in dump(path, "--deep-iteration").out


def test_json_has_the_decoded_records_as_objects(dump: Dump, make: Any) -> None:
    path = segment(make, *RECORDS, topic="__consumer_offsets")
    ran = dump(path, "--print-data-log", "--json")
    offset, _, tombstone, _, _ = ran.json["files"][0]["batches"][0]["records"]
    assert offset["key"] == json.loads(OFFSET_TEXT)
    assert offset["payload"]["data"]["offset"] == 42
    assert tombstone["payload"] is None


@pytest.mark.parametrize(
    ("protocol_type", "subscription", "assignment"),
    [("connect", SUBSCRIPTION, ASSIGNMENT), ("consumer", b"\x00\x03\x00", b"\x00"), ("consumer", b"", b"")],
)
def test_bytes_that_are_no_subscription_of_a_consumer_are_shown_in_base64(
    protocol_type: str, subscription: bytes, assignment: bytes, dump: Dump, make: Any
) -> None:
    path = segment(make, group(protocol_type, member(subscription, assignment)), topic="__consumer_offsets")
    (record,) = dump(path, "--print-data-log", "--json").json["files"][0]["batches"][0]["records"]
    (shown,) = record["payload"]["data"]["members"]
    assert isinstance(shown["subscription"], str)
    assert isinstance(shown["assignment"], str)


def test_records_that_nobody_understands_are_named_and_the_others_shown(dump: Dump, make: Any) -> None:
    strange = ((b"\x00\x09key", b"v"), (None, b"v"), RECORDS[0])
    path = segment(make, *strange, topic="__consumer_offsets")
    ran = dump(path, "--print-data-log", "--skip-record-metadata")
    assert ran.status == DONE
    assert ran.lines[3:] == [
        "| key: Error at offset 0, skipping. a key of version 9",
        "| key: Error at offset 1, skipping. a record without a key",
        f"| {LINES[0]}",
    ]
    first, _, _ = dump(path, "--print-data-log", "--json").json["files"][0]["batches"][0]["records"]
    assert (first["key"], first["payload"], first["undecoded"]) == ("\x00\tkey", "v", "a key of version 9")


def test_markers_of_transactions_are_shown_as_markers(dump: Dump, make: Any, batches: Any) -> None:
    log = make.log("__consumer_offsets-7")
    make.append(log, batches.marker(1, 11))
    log.close()
    ran = dump(make.root / "__consumer_offsets-7" / f"{FIRST}.log", "--print-data-log")
    assert ran.lines[-1].endswith("endTxnMarker: COMMIT coordinatorEpoch: 3")
