"""Pages of a manifest: to bytes and back, and what is refused."""

from uuid import UUID

import pytest
from crc32c import crc32c

from sparklog.core.remote_log.page import CRC, HEAD, ManifestError, PageRef, build_page, parse_page
from sparklog.core.remote_log.remote_segment import RemotePartition
from tests.core.remote_log.manifests import ORDERS, segment

SEGMENTS = [segment(0, 10), segment(10, 25, time=-5), segment(30, 31)]
REF, DATA = build_page(ORDERS, f"{9:032x}", SEGMENTS)


def resealed(data: bytes) -> tuple[PageRef, bytes]:
    """The bytes with CRCs that hold, as no accident makes them."""
    before_crc = data[: -CRC.size]
    sealed = before_crc + CRC.pack(crc32c(before_crc))
    return PageRef(REF.page_id, 0, 31, 30, 260, 3, crc32c(sealed)), sealed


def test_a_page_gives_its_segments_back() -> None:
    assert list(parse_page(ORDERS, REF, DATA)) == SEGMENTS


def test_the_reference_sums_its_segments_up() -> None:
    assert (REF.base_offset, REF.end_offset, REF.max_timestamp_ms) == (0, 31, 30)
    assert (REF.size_bytes, REF.segment_count, REF.object_bytes) == (260, 3, len(DATA))


def test_a_page_that_is_cut_at_any_byte_is_refused() -> None:
    for length in range(len(DATA)):
        with pytest.raises(ManifestError, match="it is damaged"):
            parse_page(ORDERS, REF, DATA[:length])


def test_a_flipped_bit_is_found() -> None:
    for position in range(len(DATA)):
        rotten = bytearray(DATA)
        rotten[position] ^= 1 << position % 8
        with pytest.raises(ManifestError, match="it is damaged"):
            parse_page(ORDERS, REF, bytes(rotten))


@pytest.mark.parametrize("other", [("orders", UUID(int=8), 3), ("orders", UUID(int=7), 4)])
def test_the_page_of_another_partition_is_refused(other: tuple[str, UUID, int]) -> None:
    with pytest.raises(ManifestError, match="another one"):
        parse_page(RemotePartition(*other), REF, DATA)


def test_a_page_of_a_newer_version_is_refused() -> None:
    newer = DATA[:8] + b"\x02" + DATA[9:]
    with pytest.raises(ManifestError, match="version 2: this release reads 1"):
        parse_page(ORDERS, *resealed(newer))


def test_segments_that_overlap_are_refused() -> None:
    entries = DATA[HEAD.size : -CRC.size]
    swapped = entries[80:160] + entries[:80] + entries[160:]
    with pytest.raises(ManifestError, match="has 0 behind 25"):
        parse_page(ORDERS, *resealed(DATA[: HEAD.size] + swapped + DATA[-CRC.size :]))


def test_a_segment_without_offsets_is_refused() -> None:
    at = HEAD.size + 24
    empty = DATA[:at] + bytes(8) + DATA[at + 8 :]
    with pytest.raises(ManifestError, match="a segment that cannot be"):
        parse_page(ORDERS, *resealed(empty))
