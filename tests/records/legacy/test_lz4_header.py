"""The checksum of LZ4 frames, which format 0 has wrong."""

import pytest

from sparklog.records.codecs import compress, decompress
from sparklog.records.envelope import Compression
from sparklog.records.legacy.lz4_header import (
    with_checksum_of_format_0,
    with_right_checksum,
    xxh32_of_few,
)

FRAME = compress(Compression.LZ4, b"value" * 100)


def test_the_hash_is_xxh32() -> None:
    """The published values."""
    assert xxh32_of_few(b"") == 0x02CC5D05
    assert xxh32_of_few(b"a") == 0x550D7456
    assert xxh32_of_few(b"abc") == 0x32D153FF
    with pytest.raises(ValueError, match="16 bytes"):
        xxh32_of_few(bytes(16))


def test_a_right_frame_stays_as_it_is() -> None:
    assert with_right_checksum(FRAME) == FRAME


def test_only_the_checksum_is_another_in_format_0() -> None:
    old = with_checksum_of_format_0(FRAME)
    assert [n for n in range(len(FRAME)) if old[n] != FRAME[n]] == [6]
    assert old[6] == xxh32_of_few(FRAME[:6]) >> 8 & 0xFF  # magic and all
    assert with_right_checksum(old) == FRAME


def test_a_frame_that_names_its_size_has_its_checksum_behind_it() -> None:
    size = len(b"value" * 100).to_bytes(8, "little")
    named = bytearray(FRAME[:4] + bytes([FRAME[4] | 8]) + FRAME[5:6] + size + b"?" + FRAME[7:])
    assert decompress(Compression.LZ4, with_right_checksum(named)) == b"value" * 100
    assert with_right_checksum(with_checksum_of_format_0(named)) == with_right_checksum(named)


@pytest.mark.parametrize(
    "no_frame", [b"", b"\x04\x22\x4d\x18", FRAME[:6], bytes(40), b"text that is no frame"]
)
def test_what_is_no_frame_is_left_to_the_decoder(no_frame: bytes) -> None:
    assert with_right_checksum(no_frame) == no_frame
