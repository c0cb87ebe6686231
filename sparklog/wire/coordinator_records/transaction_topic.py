"""The codec of ``__transaction_state``: Kafka's records of transactional ids, and ours of atomic writes."""

import struct
from typing import Final

from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.transaction_coordinator.records import TransactionKey
from sparklog.model.errors import WireError
from sparklog.wire.coordinator_records import write_state
from sparklog.wire.coordinator_records.layout import VERSION_BYTES
from sparklog.wire.coordinator_records.record_codec import EncodedRecord, UnreadableRecord
from sparklog.wire.coordinator_records.transaction_state import TransactionStateCodec
from sparklog.wire.primitives import Cursor

_TRANSACTIONS: Final = TransactionStateCodec()
_MALFORMED: Final = (WireError, ValueError, struct.error, IndexError)
"""All that a reader can raise over bytes that are not a record."""


class TransactionTopicCodec:
    """A ``RecordCodec``: the version of a key says whose record it is."""

    def encode(self, record: StateRecord) -> EncodedRecord:
        if isinstance(record.key, TransactionKey):
            return _TRANSACTIONS.encode(record)
        return write_state.encode(record)

    def decode(
        self, key: bytes | memoryview | None, value: bytes | memoryview | None
    ) -> StateRecord | UnreadableRecord:
        key_version = None if key is None else _version_of(key)
        if key is None or key_version not in write_state.KEY_VERSIONS:
            return _TRANSACTIONS.decode(key, value)
        try:
            decoded = write_state.read_key(Cursor(memoryview(key), VERSION_BYTES), key_version)
        except _MALFORMED:
            return UnreadableRecord(f"a malformed key of version {key_version}")
        if value is None:
            return StateRecord(decoded, None)
        if (version := _version_of(value)) != write_state.VALUE_VERSION:
            return UnreadableRecord(f"a write's state of version {version}")
        try:
            return StateRecord(
                decoded, write_state.read_value(Cursor(memoryview(value), VERSION_BYTES), decoded)
            )
        except _MALFORMED:
            return UnreadableRecord(f"a write's state of version {version} that is malformed")


def _version_of(record_part: bytes | memoryview) -> int:
    """The version with which a key or a value begins; -1 if it is too short to have one."""
    if len(record_part) < VERSION_BYTES:
        return -1
    return int.from_bytes(record_part[:VERSION_BYTES], "big", signed=True)
