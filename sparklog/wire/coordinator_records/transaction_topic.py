"""The codec of ``__transaction_state``: Kafka's records of transactional ids, and ours of atomic
writes and agreements."""

import struct
from typing import Any, Final

from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.transaction_coordinator.records import TransactionKey
from sparklog.core.write_coordinator.records import AgreementKey
from sparklog.model.errors import WireError
from sparklog.wire.coordinator_records import agreement_records, write_state
from sparklog.wire.coordinator_records.record_codec import EncodedRecord, UnreadableRecord
from sparklog.wire.coordinator_records.record_layout import VERSION_BYTES
from sparklog.wire.coordinator_records.transaction_state import TransactionStateCodec
from sparklog.wire.primitives import Cursor

_TRANSACTIONS: Final = TransactionStateCodec()
_MALFORMED: Final = (WireError, ValueError, struct.error, IndexError)
"""All that a reader can raise over bytes that are not a record."""


_OWN_KEY_VERSIONS: Final = write_state.KEY_VERSIONS | {agreement_records.AGREEMENT_KEY_VERSION}


class TransactionTopicCodec:
    """A ``RecordCodec``: the version of a key says whose record it is."""

    def encode(self, record: StateRecord) -> EncodedRecord:
        if isinstance(record.key, TransactionKey):
            return _TRANSACTIONS.encode(record)
        if isinstance(record.key, AgreementKey):
            return agreement_records.encode(record)
        return write_state.encode(record)

    def decode(
        self, key: bytes | memoryview | None, value: bytes | memoryview | None
    ) -> StateRecord | UnreadableRecord:
        key_version = None if key is None else _version_of(key)
        if key is None or key_version not in _OWN_KEY_VERSIONS:
            return _TRANSACTIONS.decode(key, value)
        try:
            decoded = _read_key(Cursor(memoryview(key), VERSION_BYTES), key_version)
        except _MALFORMED:
            return UnreadableRecord(f"a malformed key of version {key_version}")
        if value is None:
            return StateRecord(decoded, None)
        if (version := _version_of(value)) != write_state.VALUE_VERSION:
            return UnreadableRecord(f"{_what(decoded)} of version {version}")
        try:
            return StateRecord(decoded, _read_value(Cursor(memoryview(value), VERSION_BYTES), decoded))
        except _MALFORMED:
            return UnreadableRecord(f"{_what(decoded)} of version {version} that is malformed")


def _read_key(cursor: Cursor, version: int) -> Any:
    if version == agreement_records.AGREEMENT_KEY_VERSION:
        return agreement_records.read_key(cursor)
    return write_state.read_key(cursor, version)


def _read_value(cursor: Cursor, key: Any) -> Any:
    if isinstance(key, AgreementKey):
        return agreement_records.read_value(cursor, key)
    return write_state.read_value(cursor, key)


def _what(key: Any) -> str:
    return "an agreement" if isinstance(key, AgreementKey) else "a write's state"


def _version_of(record_part: bytes | memoryview) -> int:
    """The version with which a key or a value begins; -1 if it is too short to have one."""
    if len(record_part) < VERSION_BYTES:
        return -1
    return int.from_bytes(record_part[:VERSION_BYTES], "big", signed=True)
