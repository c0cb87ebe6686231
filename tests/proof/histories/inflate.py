"""Decompresses payloads of records. Snappy, whose frames are Java's own, is refused by name."""

import zlib
from typing import Final

import pyarrow as pa

from histories.soundness import DamagedBatchError

CODECS: Final = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
INFLATED_MAX: Final = 128 << 20


def inflated(payload: bytes, codec: int) -> bytes:
    name = CODECS.get(codec, str(codec))
    if name == "none":
        return payload
    if name == "gzip":
        return _gunzipped(payload)
    if name not in ("lz4", "zstd"):
        raise DamagedBatchError(f"its codec is {name}, which this decoder does not know")
    try:
        with pa.CompressedInputStream(pa.BufferReader(payload), name) as stream:
            found: bytes = stream.read(INFLATED_MAX + 1)
    except (pa.ArrowException, OSError) as error:
        raise DamagedBatchError(f"its {name} payload cannot be read: {error}") from error
    if len(found) > INFLATED_MAX:
        raise DamagedBatchError(f"its {name} payload is too long")
    return found


def _gunzipped(payload: bytes) -> bytes:
    inflater = zlib.decompressobj(wbits=31)
    found = inflater.decompress(payload, INFLATED_MAX)
    if not inflater.eof:
        raise DamagedBatchError("its gzip stream is not whole, or too long")
    if inflater.unused_data:
        raise DamagedBatchError(f"{len(inflater.unused_data)} bytes behind its gzip stream")
    return found
