"""Records of ``__consumer_offsets`` in words: the JSON that Kafka's ``--offsets-decoder`` shows.

Kafka's JSON has the fields of the record's version, with Kafka's names. In groups of consumers, subscriptions
and assignments are decoded too. Bytes that cannot be decoded are shown in base64.
"""

import base64
import json
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Final

from sparklog.cli.logs.dump.decoded import DELETED, DecodedRecord
from sparklog.core.group.records import GroupKey, GroupValue, MemberValue, OffsetKey, OffsetValue
from sparklog.model.errors import WireError
from sparklog.model.ids import TopicPartition
from sparklog.wire import consumer_protocol
from sparklog.wire.coordinator_records.group_offsets import GroupOffsetsCodec
from sparklog.wire.coordinator_records.record_codec import UnreadableRecord

_CODEC: Final = GroupOffsetsCodec()


def decoded(key: bytes | None, value: bytes | None) -> DecodedRecord | UnreadableRecord:
    record = _CODEC.decode(key, value)
    if isinstance(record, UnreadableRecord):
        return record
    assert key is not None
    shown_key = {"type": str(_version(key)), "data": _key(record.key)}
    if value is None or record.value is None:
        return DecodedRecord(shown_key, None, _json(shown_key), DELETED)
    version = _version(value)
    shown = {"version": str(version), "data": _value(record.value, version)}
    return DecodedRecord(shown_key, shown, _json(shown_key), _json(shown))


def _key(key: OffsetKey | GroupKey) -> dict[str, Any]:
    if isinstance(key, GroupKey):
        return {"group": key.group_id}
    topic, partition = key.topic_partition
    return {"group": key.group_id, "topic": topic, "partition": partition}


def _value(value: OffsetValue | GroupValue, version: int) -> dict[str, Any]:
    return _offset(value, version) if isinstance(value, OffsetValue) else _group(value, version)


def _offset(value: OffsetValue, version: int) -> dict[str, Any]:
    fields: dict[str, Any] = {"offset": value.offset}
    if version >= 3:
        fields["leaderEpoch"] = value.leader_epoch
    fields |= {"metadata": value.metadata, "commitTimestamp": value.commit_timestamp_ms}
    if version == 1:
        fields["expireTimestamp"] = value.expire_timestamp_ms
    return fields


def _group(value: GroupValue, version: int) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "protocolType": value.protocol_type,
        "generation": value.generation_id,
        "protocol": value.protocol,
        "leader": value.leader,
    }
    if version >= 2:
        fields["currentStateTimestamp"] = value.state_timestamp_ms
    is_consumers = value.protocol_type == consumer_protocol.PROTOCOL_TYPE
    members = [_member(member, version, is_consumers=is_consumers) for member in value.members]
    return fields | {"members": members}


def _member(member: MemberValue, version: int, *, is_consumers: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"memberId": member.member_id}
    if version >= 3:
        fields["groupInstanceId"] = member.group_instance_id
    fields |= {"clientId": member.client_id, "clientHost": member.client_host}
    if version >= 1:
        fields["rebalanceTimeout"] = member.rebalance_timeout_ms
    return fields | {
        "sessionTimeout": member.session_timeout_ms,
        "subscription": _subscription(member.subscription) if is_consumers else _base64(member.subscription),
        "assignment": _assignment(member.assignment) if is_consumers else _base64(member.assignment),
    }


# What consumers tell each other


def _subscription(data: bytes) -> dict[str, Any] | str | None:
    try:
        subscription = consumer_protocol.decode_subscription(data)
    except WireError:
        return _base64(data)
    version = _version(data)
    fields: dict[str, Any] = {
        "topics": list(subscription.topics),
        "userData": _base64(subscription.user_data),
    }
    if version >= 1:
        fields["ownedPartitions"] = _by_topic(subscription.owned)
    if version >= 2:
        fields["generationId"] = subscription.generation_id
    if version >= 3:
        fields["rackId"] = subscription.rack
    return fields


def _assignment(data: bytes) -> dict[str, Any] | str | None:
    try:
        assignment = consumer_protocol.decode_assignment(data)
    except WireError:
        return _base64(data)
    if not data:
        return _base64(data)
    return {
        "assignedPartitions": _by_topic(assignment.partitions),
        "userData": _base64(assignment.user_data),
    }


def _by_topic(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [
        {"topic": topic, "partitions": [one.partition for one in group]}
        for topic, group in groupby(partitions, lambda one: one.topic)
    ]


def _version(data: bytes) -> int:
    return int.from_bytes(data[:2], "big", signed=True)


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")


def _json(shown: Mapping[str, Any]) -> str:
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
