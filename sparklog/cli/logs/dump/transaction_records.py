"""Records of ``__transaction_state`` in words: the lines that Kafka's ``--transaction-log-decoder`` shows.

As objects they have the fields of Kafka's schema, with Kafka's names. What sparklog adds to a record is there
too, if the record has it. Records of atomic writes are in the same topic (``write_records``).
"""

from typing import Any, Final

from sparklog.cli.logs.dump import write_records
from sparklog.cli.logs.dump.decoded import DELETED, DecodedRecord
from sparklog.core.transaction_coordinator.records import TransactionKey, TransactionTopic, TransactionValue
from sparklog.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TOPIC_ID
from sparklog.wire.coordinator_records.record_codec import UnreadableRecord
from sparklog.wire.coordinator_records.transaction_topic import TransactionTopicCodec

_CODEC: Final = TransactionTopicCodec()
_VERSION_BYTES: Final = 2


def decoded(key: bytes | None, value: bytes | None) -> DecodedRecord | UnreadableRecord:
    record = _CODEC.decode(key, value)
    if isinstance(record, UnreadableRecord):
        return record
    assert key is not None
    if not isinstance(record.key, TransactionKey):
        value_version = "" if value is None else _version(value)
        return write_records.shown(record.key, record.value, _version(key), value_version)
    transactional_id = record.key.transactional_id
    shown_key = {"type": _version(key), "data": {"transactionalId": transactional_id}}
    key_text = f"transaction_metadata::transactionalId={transactional_id}"
    if value is None or record.value is None:
        return DecodedRecord(shown_key, None, key_text, DELETED)
    shown = {"version": _version(value), "data": _data(record.value)}
    return DecodedRecord(shown_key, shown, key_text, _text(record.value))


def _version(record_part: bytes) -> str:
    return str(int.from_bytes(record_part[:_VERSION_BYTES], "big"))


def _text(value: TransactionValue) -> str:
    partitions = ",".join(f"{topic.name}-{number}" for topic in value.topics for number in topic.partitions)
    return (
        f"producerId:{value.producer_id},producerEpoch:{value.producer_epoch},state={value.state.label},"
        f"partitions=[{partitions}],txnLastUpdateTimestamp={value.last_update_ms},"
        f"txnTimeoutMs={value.timeout_ms}"
    )


def _data(value: TransactionValue) -> dict[str, Any]:
    data: dict[str, Any] = {
        "producerId": value.producer_id,
        "producerEpoch": value.producer_epoch,
        "transactionTimeoutMs": value.timeout_ms,
        "transactionStatus": int(value.state),
        "transactionPartitions": [_topic(topic) for topic in value.topics],
        "transactionLastUpdateTimestampMs": value.last_update_ms,
        "transactionStartTimestampMs": value.start_ms,
    }
    if value.previous_producer_id != NO_PRODUCER_ID:
        data["previousProducerId"] = value.previous_producer_id
    if value.last_producer_epoch != NO_PRODUCER_EPOCH:
        data["lastProducerEpoch"] = value.last_producer_epoch
    return data


def _topic(topic: TransactionTopic) -> dict[str, Any]:
    shown: dict[str, Any] = {"topic": topic.name, "partitionIds": list(topic.partitions)}
    return shown if topic.topic_id == NO_TOPIC_ID else {**shown, "topicId": str(topic.topic_id)}
