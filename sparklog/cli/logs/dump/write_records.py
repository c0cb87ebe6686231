"""Records of atomic writes and agreements in words. Kafka's tool knows nothing of them; they look as those
of groups do.
"""

import json
from collections.abc import Mapping
from typing import Any

from sparklog.cli.logs.dump.decoded import DELETED, DecodedRecord
from sparklog.core.transaction_coordinator.records import TransactionTopic
from sparklog.core.write_coordinator.records import (
    Agreement,
    AgreementKey,
    Head,
    HeadKey,
    Member,
    MemberKey,
)
from sparklog.model.write_ids import producer_id_of


def shown(
    key: HeadKey | MemberKey | AgreementKey,
    value: Head | Member | Agreement | None,
    key_version: str,
    value_version: str,
) -> DecodedRecord:
    """Key and value, as objects and as JSON in one line."""
    shown_key = {"type": key_version, "data": _key(key)}
    if value is None:
        return DecodedRecord(shown_key, None, _json(shown_key), DELETED)
    data = _value(value)
    shown_value = {"version": value_version, "data": data}
    return DecodedRecord(shown_key, shown_value, _json(shown_key), _json(shown_value))


def _value(value: Head | Member | Agreement) -> dict[str, Any]:
    match value:
        case Head():
            return _head(value)
        case Member():
            return _member(value)
        case Agreement():
            return {"agreedMs": value.agreed_ms, "value": value.value.hex()}


def _key(key: HeadKey | MemberKey | AgreementKey) -> dict[str, Any]:
    if isinstance(key, AgreementKey):
        return {"name": key.name}
    if isinstance(key, HeadKey):
        return {"appId": key.app}
    return {
        "appId": key.app,
        "writeNumber": key.write_number,
        "memberNumber": key.member_number,
        "producerId": producer_id_of(key.write_number, key.member_number),
    }


def _head(head: Head) -> dict[str, Any]:
    return {
        "state": head.state.name,
        "version": head.version,
        "writeNumber": head.write_number,
        "committedVersion": head.committed_version,
        "timeoutMs": head.timeout_ms,
        "isPlain": head.is_plain,
        "startMs": head.start_ms,
        "lastUpdateMs": head.last_update_ms,
        "winners": sorted(head.winners),
        "abortedRuns": list(head.aborted_runs),
        "openedIn": head.opened_in,
    }


def _member(member: Member) -> dict[str, Any]:
    return {
        "state": member.state.name,
        "run": member.run,
        "attempt": member.attempt,
        "topics": [_topic(topic) for topic in member.topics],
    }


def _topic(topic: TransactionTopic) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topicId": str(topic.topic_id),
        "partitions": list(topic.partitions),
    }


def _json(data: Mapping[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
