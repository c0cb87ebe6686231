"""Indexes: their entries, and where they contradict the segment, in Kafka's words."""

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparklog.cli.command import DONE, FAILED

Dump = Callable[..., Any]
FIRST = "00000000000000000000"


@pytest.fixture
def segment(make: Any, batches: Any) -> Path:
    """A segment whose batches are stored as they were made: their positions do not depend on a codec."""
    log = make.log()
    sizes = (5, 40, 60, 60, 60)
    for count in sizes:
        make.append(log, batches.records(count, log.log_end_offset))
    log.close()
    return Path(make.root) / "orders-0"


def entries(path: Path, form: str) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack(form, path.read_bytes()))


def store(path: Path, form: str, changed: list[tuple[int, ...]]) -> None:
    path.write_bytes(b"".join(struct.pack(form, *entry) for entry in changed))


def test_sound_indexes_are_shown_entry_by_entry(dump: Dump, segment: Path) -> None:
    index, times = segment / f"{FIRST}.index", segment / f"{FIRST}.timeindex"
    ran = dump([index, times])
    assert (ran.status, ran.err) == (DONE, "")
    assert ran.lines == [
        f"Dumping {index}",
        "offset: 104 position: 1050",
        "offset: 164 position: 2388",
        "offset: 224 position: 3806",
        f"Dumping {times}",
        "timestamp: 1700000000104 offset: 104",
        "timestamp: 1700000000164 offset: 164",
        "timestamp: 1700000000224 offset: 224",
    ]
    shown = dump([index, times], "--json").json["files"]
    assert shown[0]["entries"][0] == {"offset": 104, "position": 1050}
    assert shown[1]["entries"][0] == {"timestamp": 1700000000104, "offset": 104}


def test_verify_only_shows_nothing_but_what_is_wrong(dump: Dump, segment: Path) -> None:
    index = segment / f"{FIRST}.index"
    assert dump(index, "--verify-index-only").lines == [f"Dumping {index}"]


def test_sanity_check_says_that_it_passed(dump: Dump, segment: Path) -> None:
    paths = [segment / f"{FIRST}.index", segment / f"{FIRST}.timeindex"]
    ran = dump(paths, "--index-sanity-check")
    assert ran.status == DONE
    assert ran.lines == [
        text for path in paths for text in (f"Dumping {path}", f"{path} passed sanity check.")
    ]
    assert [file["sanity_check"] for file in dump(paths, "--index-sanity-check", "--json").json["files"]] == [
        "passed",
        "passed",
    ]


def test_sanity_check_fails_for_torn_and_for_shuffled_indexes(dump: Dump, segment: Path) -> None:
    index, times = segment / f"{FIRST}.index", segment / f"{FIRST}.timeindex"
    index.write_bytes(index.read_bytes()[:-3])
    store(times, ">qI", entries(times, ">qI")[::-1])
    ran = dump([index, times], "--index-sanity-check")
    assert ran.status == FAILED
    assert ran.lines == [f"Dumping {index}", f"Dumping {times}"]
    assert ran.err == (
        f"Corruption in {index}\n  failed the sanity check: 21 bytes are not a multiple of 8\n"
        f"Corruption in {times}\n  failed the sanity check: entry (1700000000164, 164) follows "
        "(1700000000224, 224); both numbers must grow\n"
    )


def test_an_index_that_names_another_offset_is_a_mismatch(dump: Dump, segment: Path) -> None:
    index = segment / f"{FIRST}.index"
    first, second, third = entries(index, ">II")
    store(index, ">II", [(first[0] - 1, first[1]), second, (third[0] + 3, third[1])])
    ran = dump(index)
    assert ran.status == FAILED
    assert ran.err == (
        f"Mismatches in :{index}\n"
        "  Index offset: 103, log offset: 104\n"
        "  Index offset: 227, log offset: 224\n"
    )
    assert "offset: 103 position: 1050" in ran.lines
    assert dump(index, "--json").json["problems"][0] == {
        "file": str(index),
        "kind": "index_mismatch",
        "index_offset": 103,
        "log_offset": 104,
    }


def test_an_index_that_leads_to_no_batch_is_told_and_shown_on(dump: Dump, segment: Path) -> None:
    index = segment / f"{FIRST}.index"
    first, second, third = entries(index, ">II")
    store(index, ">II", [(first[0], first[1] + 1), second, (third[0], 1 << 30)])
    ran = dump(index)
    assert ran.status == FAILED
    assert len(ran.lines) == 4
    lines = ran.err.splitlines()
    assert lines[0] == f"Corruption in {index}"
    assert re.fullmatch(r"  offset 104, position 1051: no batch is there: magic -?\d+, length \d+", lines[1])
    assert lines[2] == (
        "  offset 224, position 1073741824: no batch is there: 0 bytes are less than an envelope's 61"
    )


def test_entries_that_go_back_are_told(dump: Dump, segment: Path) -> None:
    index = segment / f"{FIRST}.index"
    store(index, ">II", entries(index, ">II")[::-1])
    ran = dump(index)
    assert ran.status == FAILED
    assert "entry (164, 2388) follows (224, 3806); both numbers must grow" in ran.err


def test_zeros_behind_the_last_entry_are_kafkas_way_of_laying_files_out(dump: Dump, segment: Path) -> None:
    index, times = segment / f"{FIRST}.index", segment / f"{FIRST}.timeindex"
    index.write_bytes(index.read_bytes() + bytes(8 * 5_000))
    times.write_bytes(times.read_bytes() + bytes(12 * 5_000))
    ran = dump([index, times])
    assert (ran.status, len(ran.lines)) == (DONE, 8)


def test_bytes_that_are_no_whole_entry_are_told(dump: Dump, segment: Path) -> None:
    times = segment / f"{FIRST}.timeindex"
    times.write_bytes(times.read_bytes() + b"\x01")
    ran = dump(times)
    assert ran.status == FAILED
    assert f"Found 1 invalid bytes at the end of {FIRST}.timeindex" in ran.lines
    assert ran.err == (f"Corrupt bytes in {times}\n  position: 36 size: 1: less than an entry of 12 bytes\n")


def test_a_time_index_is_compared_with_the_records_themselves(dump: Dump, segment: Path) -> None:
    times = segment / f"{FIRST}.timeindex"
    first, second, third = entries(times, ">qI")
    store(times, ">qI", [(first[0] + 5, first[1]), (first[0] + 5, second[1]), (third[0], third[1] - 1)])
    ran = dump(times, "--verify-index-only")
    assert ran.status == FAILED
    assert ran.lines == [f"Dumping {times}"]
    assert ran.err == (
        f"Found timestamp mismatch in :{times}\n"
        "  Index timestamp: 1700000000109, log timestamp: 1700000000104\n"
        "  Index timestamp: 1700000000109, log timestamp: 1700000000164\n"
        f"Found out of order timestamp in :{times}\n"
        "  Index timestamp: 1700000000109, Previously indexed timestamp: 1700000000109\n"
        "The following indexed offsets are not found in the log.\n"
        "Indexed offset: 223, found log offset: 224\n"
    )


def test_an_offset_past_the_log_is_not_found(dump: Dump, segment: Path) -> None:
    times = segment / f"{FIRST}.timeindex"
    store(times, ">qI", [(1, 9_999)])
    assert "Indexed offset: 9999, found log offset: -1" in dump(times).err


def test_time_indexes_of_arrow_segments_are_compared_too(dump: Dump, make: Any, batches: Any) -> None:
    log = make.log("arrows-0")
    for _ in range(4):
        make.append(log, batches.arrow(30, log.log_end_offset))
    log.close()
    times = make.root / "arrows-0" / f"{FIRST}.timeindex"
    assert dump(times).status == DONE
    first, *rest = entries(times, ">qI")
    store(times, ">qI", [(first[0] - 1, first[1]), *rest])
    assert "Index timestamp: 1700000000058, log timestamp: 1700000000059" in dump(times).err


def test_a_batch_above_the_largest_message_is_told(dump: Dump, segment: Path) -> None:
    index = segment / f"{FIRST}.index"
    ran = dump(index, "--max-message-size", "1000")
    assert ran.status == FAILED
    assert "is larger than --max-message-size 1000" in ran.err


def test_without_its_segment_an_index_is_shown_and_not_compared(dump: Dump, segment: Path) -> None:
    (segment / f"{FIRST}.log").unlink()
    index, times = segment / f"{FIRST}.index", segment / f"{FIRST}.timeindex"
    ran = dump([index, times])
    assert (ran.status, len(ran.lines)) == (FAILED, 8)
    assert ran.err.count(f"not compared with {segment / FIRST}.log: No such file or directory") == 2


def test_without_its_offset_index_a_time_index_is_compared_by_a_walk(dump: Dump, segment: Path) -> None:
    index, times = segment / f"{FIRST}.index", segment / f"{FIRST}.timeindex"
    index.unlink()
    first, second, third = entries(times, ">qI")
    store(times, ">qI", [first, third, second])
    ran = dump(times)
    assert (ran.status, len(ran.lines)) == (FAILED, 4)
    assert ran.err == (
        f"Found out of order timestamp in :{times}\n"
        "  Index timestamp: 1700000000164, Previously indexed timestamp: 1700000000224\n"
        f"Corruption in {times}\n  not compared with {index}: No such file or directory\n"
    )


def test_an_index_must_be_named_by_its_base_offset(dump: Dump, tmp_path: Path) -> None:
    path = tmp_path / "copy.index"
    path.write_bytes(bytes(8))
    ran = dump(path)
    assert ran.status == FAILED
    assert "which its name does not tell" in ran.err


def test_offsets_count_from_the_base_offset(dump: Dump, tmp_path: Path) -> None:
    path = tmp_path / "00000000000000001000.index"
    store(path, ">II", [(5, 61)])
    assert dump(path).lines[1] == "offset: 1005 position: 61"


def aborted(*transactions: tuple[int, ...]) -> bytes:
    return b"".join(struct.pack(">hqqqq", *transaction) for transaction in transactions)


def test_the_transaction_index_lists_what_was_aborted(dump: Dump, tmp_path: Path) -> None:
    path = tmp_path / f"{FIRST}.txnindex"
    path.write_bytes(aborted((0, 9, 10, 20, 11), (0, 7, 15, 30, 21)))
    ran = dump(path)
    assert (ran.status, ran.err) == (DONE, "")
    assert ran.lines[1:] == [
        "version: 0 producerId: 9 firstOffset: 10 lastOffset: 20 lastStableOffset: 11",
        "version: 0 producerId: 7 firstOffset: 15 lastOffset: 30 lastStableOffset: 21",
    ]
    assert dump(path, "--json").json["files"][0]["entries"][1] == {
        "version": 0,
        "producer_id": 7,
        "first_offset": 15,
        "last_offset": 30,
        "last_stable_offset": 21,
    }


@pytest.mark.parametrize(
    ("transactions", "words"),
    [
        ([(1, 9, 10, 20, 11)], "version 1 of an aborted transaction; known is 0"),
        ([(0, 9, 10, 20, 11), (0, 9, 12, 20, 11)], "last offset 20 of an aborted transaction after 20"),
        ([(0, 9, 21, 20, 11)], "an aborted transaction from offset 21 to 20"),
    ],
)
def test_a_transaction_index_that_cannot_be_is_told(
    transactions: list[tuple[int, ...]], words: str, dump: Dump, tmp_path: Path
) -> None:
    path = tmp_path / f"{FIRST}.txnindex"
    path.write_bytes(aborted(*transactions))
    ran = dump(path)
    assert (ran.status, len(ran.lines)) == (FAILED, 1 + len(transactions))
    assert words in ran.err


def test_a_torn_transaction_index_is_shown_as_far_as_it_goes(dump: Dump, tmp_path: Path) -> None:
    path = tmp_path / f"{FIRST}.txnindex"
    path.write_bytes(aborted((0, 9, 10, 20, 11)) + b"\0" * 33)
    ran = dump(path)
    assert ran.status == FAILED
    assert ran.lines[-1] == f"Found 33 invalid bytes at the end of {FIRST}.txnindex"


def test_a_thousand_problems_are_told_and_the_rest_counted(dump: Dump, tmp_path: Path) -> None:
    path = tmp_path / f"{FIRST}.txnindex"
    path.write_bytes(aborted((0, 9, 30, 20, 11)) * 1_200)
    ran = dump(path)
    assert ran.err.splitlines()[-1] == "  and 1399 more"
    assert dump(path, "--json").json["problems"][-1]["more"] == 1_399
