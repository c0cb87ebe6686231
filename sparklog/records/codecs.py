"""Kafka's four codecs, with a bound on the decompressed size.

A few kilobytes of zstd can decompress to gigabytes. Therefore decompression runs in steps of about a megabyte
(``pieces_of``) and raises CorruptBatch beyond ``DECOMPRESSED_BYTES_MAX``. A caller that handles one piece
after the other holds at most two steps, with two exceptions: a bare snappy block is one piece, at most 22
times its compressed size, and a zstd decoder holds the window that the frame declares.

Framing, as in the Java clients:
- gzip: RFC 1952, several members allowed;
- snappy: xerial's frames (16 bytes of magic and versions, then blocks with a big-endian length each), or one
  bare block, as some older clients send;
- lz4: the LZ4 frame format with independent blocks (Java refuses linked ones, KIP-57);
- zstd: plain frames.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final

import cramjam
import pyarrow as pa

from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import Bytes, Compression

DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
"""More than the largest frame that a broker reads, so compression never makes a legal batch illegal."""

STEP_BYTES: Final = 1 << 20
"""Decompressed bytes per step."""

_GZIP_SLICE_BYTES: Final = 1 << 16
_GZIP_WINDOW_BITS: Final = 31
_GZIP_LEVEL: Final = 6
_LZ4_LEVEL: Final = 1
_ZSTD_LEVEL: Final = 3
_ZSTD_LEVEL_MAX: Final = 19
"""The highest level of a leader's compression: higher ones take hundreds of megabytes for a window."""

KAFKAS_LZ4_DEFAULT: Final = 9
_LZ4_HIGH_LEVEL_MIN: Final = 3
_LZ4_HIGH_LEVEL_MAX: Final = 12

XERIAL_HEADER: Final = struct.pack(">8sii", b"\x82SNAPPY\x00", 1, 1)
_XERIAL_MAGIC: Final = XERIAL_HEADER[:8]
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_SNAPPY_RATIO_MAX: Final = 22
"""The densest element of a block is a copy: 3 bytes for 64."""

_BLOCK_LENGTH: Final = struct.Struct(">i")
assert len(XERIAL_HEADER) == 16

_SNAPPY: Final = pa.Codec("snappy")
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
            encoder.compress(bytes(data))  # accepts only bytes
            return bytes(encoder.finish())
        case Compression.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))


def compressed_pieces(
    compression: Compression, pieces: Iterator[bytes], level: int | None = None
) -> Iterator[bytes]:
    """``pieces`` as the payload of a batch with that codec, one or more pieces for each.

    ``level`` is Kafka's for the codec (``compression.gzip.level``, ...), None the default; snappy has none.
    """
    match compression:
        case Compression.NONE:
            return pieces
        case Compression.GZIP:
            return _gzipped(pieces, _GZIP_LEVEL if level is None else level)
        case Compression.SNAPPY:
            return _snapped(pieces)
        case Compression.LZ4:
            return _squeezed(
                cramjam.lz4.Compressor(level=_lz4_level(level), content_checksum=False, block_linked=False),
                pieces,
            )
        case Compression.ZSTD:
            level = _ZSTD_LEVEL if level is None else min(level, _ZSTD_LEVEL_MAX)
            return _squeezed(cramjam.zstd.Compressor(level=level), pieces)


def _lz4_level(kafkas: int | None) -> int:
    """The library's level for one of Kafka, whose default, 9, means lz4's fast method."""
    if kafkas is None or kafkas == KAFKAS_LZ4_DEFAULT:
        return _LZ4_LEVEL
    return min(max(kafkas, _LZ4_HIGH_LEVEL_MIN), _LZ4_HIGH_LEVEL_MAX)


def _gzipped(pieces: Iterator[bytes], level: int) -> Iterator[bytes]:
    deflater = zlib.compressobj(level, zlib.DEFLATED, _GZIP_WINDOW_BITS)
    for piece in pieces:
        yield deflater.compress(piece)
    yield deflater.flush()


def _snapped(pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield XERIAL_HEADER
    for piece in pieces:
        yield _compress_snappy(memoryview(piece))[len(XERIAL_HEADER) :]


def _squeezed(compressor: Any, pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        compressor.compress(piece)
        yield bytes(compressor.flush())
    yield bytes(compressor.finish())


def decompress(
    compression: Compression, data: Bytes, output_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> bytes:
    """``data`` decompressed; CorruptBatch if it is damaged or exceeds ``output_bytes_max``."""
    pieces = list(pieces_of(compression, data, output_bytes_max))
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def pieces_of(
    compression: Compression, data: Bytes, output_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[bytes]:
    """The result of ``decompress`` in pieces of one to two megabytes; the last may be smaller.

    CorruptBatch is raised at the damage, or at the first byte beyond ``output_bytes_max``. Uncompressed data
    is one piece.
    """
    match compression:
        case Compression.NONE:
            return iter((bytes(data),))
        case Compression.GZIP:
            small = _inflated(memoryview(data))
        case Compression.SNAPPY:
            small = _unsnapped(memoryview(data), output_bytes_max)
        case Compression.LZ4 | Compression.ZSTD:
            small = _streamed(compression, data)
    return _steps(compression, small, output_bytes_max)


def _steps(compression: Compression, small: Iterator[bytes], output_bytes_max: int) -> Iterator[bytes]:
    """``small`` pieces joined to steps, up to the bound. No step is empty, because each means more data."""
    waiting: list[bytes] = []
    waiting_bytes = total_bytes = 0
    for piece in small:
        total_bytes += len(piece)
        if total_bytes > output_bytes_max:
            raise _too_large(compression, output_bytes_max)
        if piece:
            waiting.append(piece)
            waiting_bytes += len(piece)
        if waiting_bytes >= STEP_BYTES:
            yield waiting[0] if len(waiting) == 1 else b"".join(waiting)
            waiting, waiting_bytes = [], 0
    if waiting:
        yield waiting[0] if len(waiting) == 1 else b"".join(waiting)


def _too_large(compression: Compression, output_bytes_max: int) -> CorruptBatch:
    return CorruptBatch(f"{compression.name} payload decompresses to more than {output_bytes_max} bytes")


def _damaged(compression: Compression, why: object) -> CorruptBatch:
    return CorruptBatch(f"{compression.name} payload cannot be decompressed: {why}")


def _inflated(data: memoryview) -> Iterator[bytes]:
    """The members of a gzip payload. Input is passed in slices, because zlib copies its unused input."""
    inflater = None
    for start in range(0, len(data), _GZIP_SLICE_BYTES):
        rest: Bytes = data[start : start + _GZIP_SLICE_BYTES]
        while rest:
            if inflater is None:
                inflater = zlib.decompressobj(_GZIP_WINDOW_BITS)
            yield _inflate(inflater, rest)
            rest = inflater.unconsumed_tail
            if inflater.eof:
                rest, inflater = inflater.unused_data, None
    while inflater is not None:
        # All input is consumed, but the inflater may hold output beyond the last step.
        piece = _inflate(inflater, b"")
        if inflater.eof:
            inflater = None
        elif not piece:
            raise _damaged(Compression.GZIP, "it ends in the middle of a member")
        yield piece


def _inflate(inflater: "zlib._Decompress", data: Bytes) -> bytes:
    try:
        return inflater.decompress(data, STEP_BYTES)
    except zlib.error as error:
        raise _damaged(Compression.GZIP, error) from None


def _streamed(compression: Compression, data: Bytes) -> Iterator[bytes]:
    """Decompress by Arrow's streams, because cramjam's functions cannot decompress in steps."""
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), _ARROW_NAMES[compression]) as stream:
            while piece := stream.read(STEP_BYTES):
                yield piece
    except (OSError, pa.ArrowException) as error:
        raise _damaged(compression, error) from None


def _compress_snappy(data: memoryview) -> bytes:
    pieces: list[bytes] = [XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        pieces += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(pieces)


def _unsnapped(data: memoryview, output_bytes_max: int) -> Iterator[bytes]:
    """The blocks of xerial's frames, or the one bare block."""
    if bytes(data[:8]) != _XERIAL_MAGIC:
        yield _unsnapped_block(data, output_bytes_max)
        return
    position = len(XERIAL_HEADER)
    while position < len(data):
        if len(data) - position < _BLOCK_LENGTH.size:
            raise _damaged(Compression.SNAPPY, "it ends in the middle of a block's length")
        (length,) = _BLOCK_LENGTH.unpack_from(data, position)
        position += _BLOCK_LENGTH.size
        if not 0 <= length <= len(data) - position:
            raise _damaged(Compression.SNAPPY, f"a block of {length} bytes in {len(data) - position}")
        yield _unsnapped_block(data[position : position + length], output_bytes_max)
        position += length


def _unsnapped_block(block: memoryview, output_bytes_max: int) -> bytes:
    """One block, whose length is checked before memory is allocated."""
    if not block:
        return b""
    try:
        size_bytes = cramjam.snappy.decompress_raw_len(block)
        if size_bytes > output_bytes_max:
            raise _too_large(Compression.SNAPPY, output_bytes_max)
        if size_bytes > _SNAPPY_RATIO_MAX * len(block):
            reason = f"a block of {len(block)} bytes claims {size_bytes}"
            raise _damaged(Compression.SNAPPY, reason)
        return bytes(_SNAPPY.decompress(block, decompressed_size=size_bytes, asbytes=True))
    except (cramjam.DecompressionError, OSError, pa.ArrowException) as error:
        raise _damaged(Compression.SNAPPY, error) from None
