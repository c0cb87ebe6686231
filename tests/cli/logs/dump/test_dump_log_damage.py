"""Damaged segments: what is wrong and where is told, and everything that is sound is still shown."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

from sparklog.cli.command import FAILED
from sparklog.records.envelope import parse_header, split

Dump = Callable[..., Any]
FIRST = "00000000000000000000"


@pytest.fixture
def segment(make: Any, batches: Any) -> Path:
    """Five batches of the same size."""
    log = make.log()
    for _ in range(5):
        make.append(log, batches.log_append_time(3))
    log.close()
    path: Path = make.root / "orders-0" / f"{FIRST}.log"
    assert path.stat().st_size == 5 * 85
    return path


def damage(path: Path, position: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(content)


def shown(ran: Any) -> list[tuple[int, bool]]:
    """Base offset and validity of each batch."""
    return [
        (int(text.split()[1]), text.endswith("isvalid: true")) for text in ran.lines if "baseOffset" in text
    ]


def test_a_flipped_bit_makes_one_batch_invalid(dump: Dump, segment: Path) -> None:
    damage(segment, 85 + 80, b"\xff")
    ran = dump(segment)
    assert ran.status == FAILED
    assert shown(ran) == [(0, True), (3, False), (6, True), (9, True), (12, True)]
    assert ran.err == (
        f"Corrupt bytes in {segment}\n  position: 85 size: 85: the batch at offset 3 does not match its CRC\n"
    )


def test_garbage_between_batches_is_passed_over(dump: Dump, segment: Path) -> None:
    damage(segment, 85, b"\xee" * 85)
    ran = dump(segment)
    assert ran.status == FAILED
    assert shown(ran) == [(0, True), (6, True), (9, True), (12, True)]
    assert f"Found 85 invalid bytes at position 85 of {FIRST}.log" in ran.lines
    assert "  position: 85 size: 85: magic -18, length -286331154\n" in ran.err


@pytest.mark.parametrize("length", [0, 30, 60, 74, 90, 158, 200, 328, 0x7FFFFFFF])
def test_a_damaged_length_takes_no_other_batch_along(length: int, dump: Dump, segment: Path) -> None:
    damage(segment, 85 + 8, length.to_bytes(4, "big"))
    ran = dump(segment)
    assert ran.status == FAILED
    assert [base for base, is_valid in shown(ran) if is_valid] == [0, 6, 9, 12]


def test_a_torn_tail_is_told_as_kafka_tells_it(dump: Dump, segment: Path) -> None:
    segment.write_bytes(segment.read_bytes()[:-10])
    ran = dump(segment, "--deep-iteration")
    assert ran.status == FAILED
    assert ran.lines[-1] == f"Found 75 invalid bytes at the end of {FIRST}.log"
    assert "position: 340 size: 75: 75 of the 85 bytes of the batch at offset 12" in ran.err
    assert dump(segment, "--json").json["problems"] == [
        {
            "file": str(segment),
            "kind": "corrupt_at",
            "position": 340,
            "size": 75,
            "reason": "75 of the 85 bytes of the batch at offset 12",
        }
    ]


@pytest.mark.parametrize("size", [1, 16, 17, 60])
def test_a_tail_of_a_few_bytes_is_told(size: int, dump: Dump, segment: Path) -> None:
    segment.write_bytes(segment.read_bytes()[: 85 + size])
    ran = dump(segment)
    assert ran.status == FAILED
    assert ran.lines[-1] == f"Found {size} invalid bytes at the end of {FIRST}.log"


def test_zeros_at_the_end_are_told(dump: Dump, segment: Path) -> None:
    segment.write_bytes(segment.read_bytes() + bytes(5_000_000))
    ran = dump(segment)
    assert (ran.status, len(shown(ran))) == (FAILED, 5)
    assert ran.lines[-1] == f"Found 5000000 invalid bytes at the end of {FIRST}.log"


def test_offsets_that_go_back_are_told(dump: Dump, segment: Path) -> None:
    damage(segment, 3 * 85, (1).to_bytes(8, "big"))
    ran = dump(segment)
    assert ran.status == FAILED
    assert "position: 255 size: 85: offset 1, expected 9 or more" in ran.err


def test_a_segment_that_begins_before_its_name_is_told(dump: Dump, segment: Path) -> None:
    renamed = segment.rename(segment.with_name("00000000000000000003.log"))
    ran = dump(renamed)
    assert ran.status == FAILED
    assert "position: 0 size: 85: offset 0, expected 3 or more" in ran.err
    assert len(shown(ran)) == 5


def test_a_copy_under_another_name_is_shown_too(dump: Dump, segment: Path) -> None:
    ran = dump(segment.rename(segment.with_name("copy.log")))
    assert (ran.status, len(shown(ran))) == (FAILED, 5)
    assert "its name is not its base offset" in ran.err


def reseal(path: Path, position: int) -> None:
    """Give a batch that was changed the CRC of what it now is."""
    content = path.read_bytes()
    header = parse_header(content, position)
    crc = crc32c(content[position + 21 : position + header.size_bytes])
    damage(path, position + 17, crc.to_bytes(4, "big"))


def test_records_that_cannot_be_read_are_shown_up_to_there(dump: Dump, segment: Path) -> None:
    damage(segment, 61 + 8 * 2, b"\x7e")  # the third record's length
    reseal(segment, 0)
    assert dump(segment).status == 0
    ran = dump(segment, "--deep-iteration")
    assert ran.status == FAILED
    assert [text.split()[2] for text in ran.lines if text.startswith("|")] == [
        *"01",
        *(str(n) for n in range(3, 15)),
    ]
    assert any(text.startswith("Found invalid records in the batch at position 0: ") for text in ran.lines)


def test_a_codec_that_is_none_is_told(dump: Dump, segment: Path) -> None:
    damage(segment, 22, b"\x0f")
    reseal(segment, 0)
    ran = dump(segment, "--deep-iteration")
    assert ran.status == FAILED
    assert "compresscodec: unknown(7)" in ran.lines[2]
    assert "there is no codec 7" in ran.err
    assert len(shown(ran)) == 5


def test_a_marker_that_says_nothing_is_told(dump: Dump, make: Any, batches: Any) -> None:
    log = make.log()
    make.append(log, batches.marker(1, 9))
    log.close()
    path = make.root / "orders-0" / f"{FIRST}.log"
    damage(path, 22, b"\x31")  # now it claims to be compressed
    reseal(path, 0)
    ran = dump(path, "--deep-iteration")
    assert ran.status == FAILED
    assert "cannot be decompressed" in ran.err


@pytest.fixture
def arrows(make: Any, batches: Any) -> Path:
    log = make.log("arrows-0")
    make.append(log, batches.arrow(5), batches.arrow(5))
    log.close()
    path: Path = make.root / "arrows-0" / f"{FIRST}.log"
    return path


def test_a_damaged_column_is_named(dump: Dump, arrows: Path) -> None:
    _, header = split(arrows.read_bytes())[0]
    end = header.size_bytes
    damage(arrows, end - 64 - 40, b"\xff")  # within the timestamps, before the headers
    reseal(arrows, 0)
    ran = dump(arrows, "--deep-iteration")
    assert ran.status == FAILED
    columns = [text for text in ran.lines if text.startswith("+ column")]
    assert [text.endswith("isvalid: true") for text in columns] == [True, True, False, True] + [True] * 4
    assert "of column timestamp does not match" in ran.err
    assert sum(text.startswith("| ") for text in ran.lines) == 5


def test_a_damaged_arrow_header_is_told(dump: Dump, arrows: Path) -> None:
    damage(arrows, 61 + 12, b"\x01")
    reseal(arrows, 0)
    ran = dump(arrows)
    assert ran.status == FAILED
    assert "of the arrow header does not match" in ran.err
    assert sum(text.startswith("+ arrow") for text in ran.lines) == 1


def test_damaged_arrow_metadata_is_told(dump: Dump, arrows: Path) -> None:
    damage(arrows, 61 + 243 + 20, b"\xff")
    reseal(arrows, 0)
    ran = dump(arrows)
    assert ran.status == FAILED
    assert "of the Arrow metadata does not match" in ran.err
