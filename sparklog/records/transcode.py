"""Transcoding from *arrow* to *records*, for readers that support only those.

The broker transcodes when a plain Kafka client fetches. Such a client must get the same records at the same
offsets as other clients. Producer id, epoch, sequence and transactional bit must stay too, because
read-committed consumers depend on them. So only the envelope's fields about the payload change.
"""

from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.arrow_payload import read_rows
from sparklog.records.envelope import (
    ARROW_BIT,
    DELETE_HORIZON_BIT,
    BatchHeader,
    Bytes,
    build_envelope,
    crc_matches,
    parse_header,
)
from sparklog.records.kafka.encode import encode, header_lists


def arrow_to_records(batch: Bytes) -> bytes:
    """The batch with an uncompressed *records* payload; CorruptBatch if it is not an intact arrow batch."""
    header = parse_header(batch)
    if not header.is_arrow:
        raise CorruptBatch(f"the batch at offset {header.base_offset} has no arrow payload to transcode")
    if not crc_matches(batch, 0, header):  # the new CRC would hide the damage
        raise CorruptBatch(f"the batch at offset {header.base_offset} does not match its CRC")
    rows = read_rows(batch, header)
    count = header.record_count
    payload = encode(
        rows.offset_deltas,
        rows.timestamps_ms,
        [None] * count if rows.key is None else rows.key.to_pylist(),
        rows.value.to_pylist(),
        header_lists(rows.headers, count),
    )
    base_timestamp_ms = int(rows.timestamps_ms[0]) if count else header.base_timestamp_ms
    # The new base timestamp is not the delete horizon, which a reader does not need.
    attributes = header.attributes & ~(ARROW_BIT | DELETE_HORIZON_BIT)
    return _rebuilt(header, (payload,), attributes, base_timestamp_ms)


def _rebuilt(
    header: BatchHeader, pieces: tuple[Bytes, ...], attributes: int, base_timestamp_ms: int
) -> bytes:
    return build_envelope(
        pieces,
        attributes=attributes,
        record_count=header.record_count,
        last_offset_delta=header.last_offset_delta,
        base_timestamp_ms=base_timestamp_ms,
        max_timestamp_ms=header.max_timestamp_ms,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
