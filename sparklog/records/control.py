"""Transaction markers: control batches of one record, which end a producer's transaction in a partition.

    key     version i16, type i16      type 0: aborted, 1: committed
    value   version i16, epoch i32     the epoch of the coordinator that decided

Kafka's layout (ControlRecordType, EndTransactionMarker). Control batches of other types, which Kafka uses
elsewhere, end no transaction. Compaction may empty a marker's batch; then the transaction's records are gone.
"""

import struct
from typing import Final

from sparklog.model.errors import CorruptBatch
from sparklog.model.transaction_end import TransactionEnd
from sparklog.records.envelope import CONTROL_BIT, TRANSACTIONAL_BIT, BatchHeader, Bytes, build_envelope
from sparklog.records.kafka.encode import append_varint
from sparklog.records.kafka.kafka_payload import records_of
from sparklog.records.kafka.walk import walk

ABORT: Final = 0
COMMIT: Final = 1

_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")
_VERSION: Final = 0


def build_marker(end: TransactionEnd, *, producer_id: int, producer_epoch: int, now_ms: int) -> bytearray:
    """The batch of a marker, with base offset 0."""
    key = _KEY.pack(_VERSION, COMMIT if end.is_commit else ABORT)
    value = _VALUE.pack(_VERSION, end.coordinator_epoch)
    record = bytearray(3)  # attributes, timestamp delta, offset delta
    for field in (key, value):
        append_varint(record, len(field))
        record += field
    record.append(0)  # no headers
    payload = bytearray()
    append_varint(payload, len(record))
    return bytearray(
        build_envelope(
            payload + record,
            attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
            record_count=1,
            last_offset_delta=0,
            base_timestamp_ms=now_ms,
            max_timestamp_ms=now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )
    )


def end_of_transaction(batch: Bytes, header: BatchHeader) -> TransactionEnd | None:
    """What the control batch ``batch`` says of its producer's transaction.

    None for a batch that says nothing: it is empty, of another type, or not a control record at all.
    """
    if not header.record_count or header.is_arrow:
        return None
    try:
        record = next(walk(records_of(batch, header), header.record_count))
    except CorruptBatch:
        return None
    key, value = record.key, record.value
    if key is None or value is None or len(key) < _KEY.size or len(value) < _VALUE.size:
        return None
    kind = _KEY.unpack_from(key)[1]
    return TransactionEnd(kind == COMMIT, _VALUE.unpack_from(value)[1]) if kind in (ABORT, COMMIT) else None
