"""Pieces of an object, joined to blocks: each block is a call of the store, in a thread of its own."""

from collections.abc import Iterable, Iterator
from typing import Final

BLOCK_BYTES: Final = 8 * 1024 * 1024
"""A multipart upload of S3 takes 5 MiB to 5 GiB, and 10,000 of them: 80 GB in one object."""


def blocks_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces' bytes in blocks of BLOCK_BYTES, the last one shorter; one empty block if there are none."""
    block = bytearray()
    is_any = False
    for piece in pieces:
        rest = memoryview(piece)
        while len(block) + len(rest) > BLOCK_BYTES:
            fits = BLOCK_BYTES - len(block)
            yield bytes(block + rest[:fits])
            is_any, rest = True, rest[fits:]
            block.clear()
        block += rest
    if block or not is_any:
        yield bytes(block)
