"""The records of agreements in ``__transaction_state``, in the layout of those of atomic writes.

``docs/format/write-state.md`` has the layout.
"""

from typing import Any, Final

from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.security.requester import ANONYMOUS
from sparklog.core.write_coordinator.records import Agreement, AgreementKey
from sparklog.model.parts import read_parts
from sparklog.wire.coordinator_records.record_codec import EncodedRecord
from sparklog.wire.coordinator_records.record_layout import FLEXIBLE, read_int64, write_int16, write_int64
from sparklog.wire.primitives import (
    Cursor,
    Output,
    append_compact_length,
    append_uvarint,
    bytes_writer,
    read_uvarint,
    string_writer,
)

AGREEMENT_KEY_VERSION: Final = 10_002
VALUE_VERSION: Final = 0
PRINCIPAL_TAG: Final = 0
"""A tag of keys."""

_write_string: Final = string_writer(append_compact_length, nullable=False)
_write_bytes: Final = bytes_writer(append_compact_length, nullable=False)


def encode(record: StateRecord) -> EncodedRecord:
    """Raises WireError if a name is longer than its format has room for."""
    key = Output()
    write_int16(AGREEMENT_KEY_VERSION, key)
    _write_string(record.key.name, key)
    _write_principal(record.key.principal, key)
    return EncodedRecord(read_parts(key.finish()), None if record.value is None else _value(record.value))


def _write_principal(principal: str, output: Output) -> None:
    """The tagged fields of a key; one without any is of those who have not logged in."""
    if principal == ANONYMOUS:
        append_uvarint(output.buffer, 0)
        return
    encoded = principal.encode()
    for number in (1, PRINCIPAL_TAG, len(encoded)):
        append_uvarint(output.buffer, number)
    output.buffer += encoded


def _value(agreement: Agreement) -> bytes:
    output = Output()
    write_int16(VALUE_VERSION, output)
    write_int64(agreement.agreed_ms, output)
    _write_bytes(agreement.value, output)
    append_uvarint(output.buffer, 0)
    return read_parts(output.finish())


def read_key(cursor: Cursor) -> AgreementKey:
    """Raises all that a reader raises over damage."""
    name, principal = FLEXIBLE.string(cursor), ANONYMOUS
    for _ in range(read_uvarint(cursor)):
        tag, size_bytes = read_uvarint(cursor), read_uvarint(cursor)
        field = bytes(cursor.take(size_bytes))
        if tag == PRINCIPAL_TAG:
            principal = field.decode()
    return AgreementKey(name, principal)


def read_value(cursor: Cursor, _key: Any) -> Agreement:
    """As ``read_key``."""
    agreed_ms, value = read_int64(cursor), bytes(FLEXIBLE.bytes_(cursor))
    FLEXIBLE.end(cursor)
    return Agreement(value, agreed_ms)
