"""What a produce has in its records field: whole batches of both payloads, damaged ones, other bytes."""

import gzip
import random
import struct
from functools import cache
from typing import Final

import crc32c
import pyarrow as pa

from sparklog.records.arrow import ArrowPayload
from sparklog.records.envelope import ENVELOPE_BYTES, Compression
from sparklog.records.kafka_encode import Record, build_records_batch

NOW_MS: Final = 1_700_000_000_000
ROWS: Final = 5
BOMB_BYTES: Final = 256 * 1024 * 1024
BOMB_SHARE: Final = 0.1

_LENGTH_AT: Final = 8
_LENGTH_FROM: Final = 12
_CRC_AT: Final = 17
_ATTRIBUTES_AT: Final = 21


@cache
def whole_batches() -> tuple[bytes, ...]:
    """Batches that a leader appends."""
    records = [Record(key=b"%d" % row, value=b"value", timestamp_ms=NOW_MS) for row in range(ROWS)]
    plain = [
        build_records_batch(records, now_ms=NOW_MS, compression=compression) for compression in Compression
    ]
    idempotent = build_records_batch(
        records, now_ms=NOW_MS, producer_id=1_000, producer_epoch=0, base_sequence=0
    )
    transactional = build_records_batch(
        records, now_ms=NOW_MS, producer_id=1_000, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    table = pa.table({"value": pa.array([b"value"] * ROWS, pa.binary())})
    return (*plain, idempotent, transactional, ArrowPayload().from_columns(table, now_ms=NOW_MS))


MESSAGE_OF_FORMAT_0: Final = bytes.fromhex(
    "0000000000000000 00000013 5f5f5f5f 00 00 ffffffff 00000005 76616c7565"
)


def draw_records(dice: random.Random, *, is_odd: bool) -> bytes:
    """A whole batch, or something that a leader must refuse."""
    batch = dice.choice(whole_batches())
    if not is_odd:
        return batch
    kind = dice.randrange(8)
    if kind == 0:
        return dice.randbytes(dice.randrange(200))
    if kind == 1:
        return batch[: dice.randrange(len(batch))]
    if kind == 2:
        return batch + dice.choice(whole_batches())
    if kind == 3:
        return MESSAGE_OF_FORMAT_0
    if kind == 4:
        return b""
    if kind == 5:
        return bomb() if dice.random() < BOMB_SHARE else b"\x00" * len(batch)
    damaged = bytearray(batch)
    for _ in range(dice.choice((1, 1, 3))):
        damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
    return bytes(damaged) if kind == 6 else _with_true_crc(damaged)


@cache
def bomb() -> bytes:
    """A small batch whose one record has a value of ``BOMB_BYTES``, compressed."""
    record = [Record(value=bytes(BOMB_BYTES), timestamp_ms=NOW_MS)]
    whole = build_records_batch(record, now_ms=NOW_MS)
    head = bytearray(whole[:ENVELOPE_BYTES])
    squeezed = gzip.compress(whole[ENVELOPE_BYTES:], 1)
    struct.pack_into(">i", head, _LENGTH_AT, ENVELOPE_BYTES - _LENGTH_FROM + len(squeezed))
    struct.pack_into(">h", head, _ATTRIBUTES_AT, Compression.GZIP)
    return _with_true_crc(head + squeezed)


def _with_true_crc(batch: bytearray) -> bytes:
    """The batch with a CRC that fits, so that what follows the check of the CRC meets the damage."""
    struct.pack_into(">I", batch, _CRC_AT, crc32c.crc32c(batch[_ATTRIBUTES_AT:]))
    return bytes(batch)
