"""Pieces of an object, joined to blocks: each block is a call of the store, in a thread of its own.

Pieces are kept as they are until a block is full. Joining exact ``bytes`` of a megabyte and more leaves the
interpreter to other threads; a growing ``bytearray`` would stop every thread of a broker for 10 ms a block.
"""

from collections.abc import Iterable, Iterator
from typing import Final

BLOCK_BYTES: Final = 8 * 1024 * 1024
"""A multipart upload of S3 takes 5 MiB to 5 GiB, and 10,000 of them: 80 GB in one object."""


def blocks_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces' bytes in blocks of BLOCK_BYTES, the last one shorter; one empty block if there are none."""
    block: list[bytes] = []
    size = 0
    is_any = False
    for piece in pieces:
        start = 0
        while size + len(piece) - start > BLOCK_BYTES:
            end = start + BLOCK_BYTES - size
            block.append(piece[start:end])
            yield b"".join(block)
            block, size, start, is_any = [], 0, end, True
        block.append(piece[start:] if start else piece)
        size += len(piece) - start
    if size or not is_any:
        yield b"".join(block)
