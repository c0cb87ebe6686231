"""Kafka's four codecs, with a bound on what a payload may grow to.

A few kilobytes of zstd can stand for gigabytes of zeros. Decompression therefore runs in steps and stops
with CorruptBatch once ``DECOMPRESSED_BYTES_MAX`` is passed; memory stays within that bound plus one step.

Framing, as the Java clients have it:
- gzip: RFC 1952, several members allowed;
- snappy: xerial's frames (16 bytes of magic and versions, then blocks with a big-endian length each), or one
  bare block, which some older clients send;
- lz4: the LZ4 frame format with independent blocks (Java refuses linked ones, KIP-57);
- zstd: plain frames.
"""

import struct
import zlib
from typing import Final

import cramjam
import pyarrow as pa

from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import Bytes, Compression

DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
"""More than the largest frame a broker reads: whatever is legal compressed is legal uncompressed, too."""

_STEP_BYTES: Final = 1 << 20
_GZIP_WINDOW_BITS: Final = 31
_GZIP_LEVEL: Final = 6
_LZ4_LEVEL: Final = 1
_ZSTD_LEVEL: Final = 3

XERIAL_HEADER: Final = struct.pack(">8sii", b"\x82SNAPPY\x00", 1, 1)
_XERIAL_MAGIC: Final = XERIAL_HEADER[:8]
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_BLOCK_LENGTH: Final = struct.Struct(">i")
assert len(XERIAL_HEADER) == 16

_ARROW_NAMES: Final = {Compression.LZ4: "lz4", Compression.ZSTD: "zstd"}


def compress(compression: Compression, data: Bytes) -> bytes:
    """``data`` as the payload of a batch with that codec."""
    match compression:
        case Compression.NONE:
            return bytes(data)
        case Compression.GZIP:
            deflater = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW_BITS)
            return deflater.compress(data) + deflater.flush()
        case Compression.SNAPPY:
            return _compress_snappy(memoryview(data))
        case Compression.LZ4:
            encoder = cramjam.lz4.Compressor(level=_LZ4_LEVEL, content_checksum=False, block_linked=False)
            encoder.compress(bytes(data))  # it takes nothing but bytes
            return bytes(encoder.finish())
        case Compression.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))


def decompress(
    compression: Compression, data: Bytes, output_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> bytes:
    """The bytes that ``data`` stands for; CorruptBatch if it is damaged or stands for too many."""
    match compression:
        case Compression.NONE:
            return bytes(data)
        case Compression.GZIP:
            return _decompress_gzip(data, output_bytes_max)
        case Compression.SNAPPY:
            return _decompress_snappy(memoryview(data), output_bytes_max)
        case Compression.LZ4 | Compression.ZSTD:
            return _decompress_stream(compression, data, output_bytes_max)


def _too_large(compression: Compression, output_bytes_max: int) -> CorruptBatch:
    return CorruptBatch(f"{compression.name} payload decompresses to more than {output_bytes_max} bytes")


def _damaged(compression: Compression, why: object) -> CorruptBatch:
    return CorruptBatch(f"{compression.name} payload cannot be decompressed: {why}")


def _decompress_gzip(data: Bytes, output_bytes_max: int) -> bytes:
    pieces: list[bytes] = []
    size_bytes, rest = 0, bytes(data)
    while rest:
        inflater = zlib.decompressobj(_GZIP_WINDOW_BITS)
        try:
            piece = inflater.decompress(rest, output_bytes_max - size_bytes + 1)
        except zlib.error as error:
            raise _damaged(Compression.GZIP, error) from None
        size_bytes += len(piece)
        if size_bytes > output_bytes_max:
            raise _too_large(Compression.GZIP, output_bytes_max)
        if not inflater.eof:
            raise _damaged(Compression.GZIP, "it ends in the middle of a member")
        pieces.append(piece)
        rest = inflater.unused_data
    return b"".join(pieces)


def _decompress_stream(compression: Compression, data: Bytes, output_bytes_max: int) -> bytes:
    """Arrow's streams decompress step by step, which cramjam's one-shot functions cannot."""
    pieces: list[bytes] = []
    size_bytes = 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), _ARROW_NAMES[compression]) as stream:
            while piece := stream.read(min(_STEP_BYTES, output_bytes_max - size_bytes + 1)):
                size_bytes += len(piece)
                if size_bytes > output_bytes_max:
                    raise _too_large(compression, output_bytes_max)
                pieces.append(piece)
    except (OSError, pa.ArrowException) as error:
        raise _damaged(compression, error) from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _compress_snappy(data: memoryview) -> bytes:
    pieces: list[bytes] = [XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        pieces += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(pieces)


def _decompress_snappy(data: memoryview, output_bytes_max: int) -> bytes:
    if bytes(data[:8]) != _XERIAL_MAGIC:
        return _decompress_snappy_block(data, output_bytes_max, output_bytes_max)
    pieces: list[bytes] = []
    position, left = len(XERIAL_HEADER), output_bytes_max
    while position < len(data):
        if len(data) - position < _BLOCK_LENGTH.size:
            raise _damaged(Compression.SNAPPY, "it ends in the middle of a block's length")
        (length,) = _BLOCK_LENGTH.unpack_from(data, position)
        position += _BLOCK_LENGTH.size
        if not 0 <= length <= len(data) - position:
            raise _damaged(Compression.SNAPPY, f"a block of {length} bytes in {len(data) - position}")
        piece = _decompress_snappy_block(data[position : position + length], left, output_bytes_max)
        pieces.append(piece)
        left -= len(piece)
        position += length
    return b"".join(pieces)


def _decompress_snappy_block(block: memoryview, left: int, output_bytes_max: int) -> bytes:
    if not block:
        return b""
    try:
        if cramjam.snappy.decompress_raw_len(block) > left:
            raise _too_large(Compression.SNAPPY, output_bytes_max)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise _damaged(Compression.SNAPPY, error) from None
