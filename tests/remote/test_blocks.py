"""Pieces of an object are joined to blocks, so that a small piece is no call of the store."""

from pathlib import Path
from typing import Any

import pytest

from sparklog.remote import local
from sparklog.remote.blocks import BLOCK_BYTES, blocks_of
from sparklog.remote.open_store import open_store


def test_pieces_become_blocks_whatever_their_sizes() -> None:
    data = bytes(range(256)) * (3 * BLOCK_BYTES // 256) + b"end"
    for piece_bytes in (BLOCK_BYTES - 1, BLOCK_BYTES, 5 * BLOCK_BYTES):
        pieces = [data[at : at + piece_bytes] for at in range(0, len(data), piece_bytes)]
        blocks = list(blocks_of(pieces))
        assert b"".join(blocks) == data
        assert [len(block) for block in blocks] == [BLOCK_BYTES] * 3 + [3]
    assert list(blocks_of([])) == [b""]


def test_the_bytes_of_a_piece_are_not_copied_before_they_are_joined() -> None:
    """Copies of some megabytes would stop every thread of a broker."""
    piece = bytes(BLOCK_BYTES)
    (block,) = blocks_of([piece])
    assert block is piece


def test_a_thousand_small_pieces_are_one_write_of_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    create = local.LocalStore._create

    def seen(store: local.LocalStore, path: str) -> Any:
        file = create(store, path)
        write = file.write
        monkeypatch.setattr(file, "write", lambda block: (written.append(len(block)), write(block))[1])
        return file

    monkeypatch.setattr(local.LocalStore, "_create", seen)
    store = open_store(f"file://{tmp_path}")
    assert store.put("x", (bytes([number % 256]) * 10 for number in range(1_000))) == 10_000
    assert written == [10_000]
    assert store.read("x", 9_990, 10) == bytes([999 % 256]) * 10
