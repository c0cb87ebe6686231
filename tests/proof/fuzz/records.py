"""What a produce has in its records field: whole batches of both payloads, sets of messages of formats 0
and 1, damaged ones, other bytes.
"""

import gzip
import random
import struct
import zlib
from functools import cache
from typing import Final

import crc32c
import pyarrow as pa

from sparklog.records.arrow.arrow_payload import ArrowPayload
from sparklog.records.envelope import ENVELOPE_BYTES, Compression
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.legacy.message import build

NOW_MS: Final = 1_700_000_000_000
ROWS: Final = 5
BOMB_BYTES: Final = 256 * 1024 * 1024
BOMB_SHARE: Final = 0.1
SETS_SHARE: Final = 0.25

_LENGTH_AT: Final = 8
_LENGTH_FROM: Final = 12
_CRC_AT: Final = 17
_MESSAGE_CRC_AT: Final = 12
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


@cache
def whole_sets() -> tuple[bytes, ...]:
    """Sets of messages that Produce 0 to 2 carries: plain ones, and one message that wraps others."""
    sets = []
    for form in (0, 1):
        inner = b"".join(build(form, row, NOW_MS, b"%d" % row, b"value") for row in range(ROWS))
        wrapper = build(form, ROWS - 1, NOW_MS, None, gzip.compress(inner, 1), Compression.GZIP)
        sets += [build(form, 0, NOW_MS, None, b"value"), inner, wrapper]
    return tuple(sets)


def draw_records(dice: random.Random, *, is_odd: bool) -> bytes:
    """A whole batch, or something that a leader must refuse."""
    if dice.random() < SETS_SHARE:
        return _draw_set(dice, is_odd=is_odd)
    batch = dice.choice(whole_batches())
    if not is_odd:
        return batch
    kind = dice.randrange(7)
    if kind == 0:
        return dice.randbytes(dice.randrange(200))
    if kind == 1:
        return batch[: dice.randrange(len(batch))]
    if kind == 2:
        return batch + dice.choice(whole_batches())
    if kind == 3:
        return b""
    if kind == 4:
        return bomb() if dice.random() < BOMB_SHARE else b"\x00" * len(batch)
    damaged = _damaged(dice, batch)
    return bytes(damaged) if kind == 5 else _with_true_crc(damaged)


def _draw_set(dice: random.Random, *, is_odd: bool) -> bytes:
    """A set of messages, or one that a leader must refuse."""
    whole = dice.choice(whole_sets())
    if not is_odd:
        return whole
    kind = dice.randrange(5)
    if kind == 0:
        return whole[: dice.randrange(len(whole))]
    if kind == 1:
        return whole + dice.choice(whole_sets())
    if kind == 2:
        return whole + dice.choice(whole_batches())
    damaged = _damaged(dice, whole)
    return bytes(damaged) if kind == 3 else _with_true_crc_of_message(damaged)


def _damaged(dice: random.Random, whole: bytes) -> bytearray:
    """One to three bits flipped."""
    damaged = bytearray(whole)
    for _ in range(dice.choice((1, 1, 3))):
        damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
    return damaged


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


def _with_true_crc_of_message(messages: bytearray) -> bytes:
    """The set with a CRC that fits its first message, as far as that says how long it is."""
    (length,) = struct.unpack_from(">i", messages, _LENGTH_AT)
    covered = messages[_MESSAGE_CRC_AT + 4 : _LENGTH_FROM + max(length, 0)]
    struct.pack_into(">I", messages, _MESSAGE_CRC_AT, zlib.crc32(covered))
    return bytes(messages)
