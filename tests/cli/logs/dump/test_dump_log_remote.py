"""The two objects of a remote segment: what is in them, and any damage."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparklog.cli.command import DONE, FAILED
from sparklog.records.envelope import Compression
from tests.records.remote_segment.segments import IDENTITY, PLAIN, Built, build, make

Dump = Callable[..., Any]


@pytest.fixture
def built() -> Built:
    return build(
        [make("arrow", Compression.NONE, PLAIN, 100), make("records", Compression.NONE, PLAIN[:2], 200)]
    )


def write(folder: Path, built: Built) -> tuple[Path, Path]:
    arrow, rest = folder / "100.arrow", folder / "100.rest"
    arrow.write_bytes(built.arrow)
    rest.write_bytes(built.rest)
    return arrow, rest


def test_the_rows_file_is_shown_by_record_batch(dump: Dump, built: Built, tmp_path: Path) -> None:
    arrow, _ = write(tmp_path, built)
    ran = dump(arrow)
    assert (ran.status, ran.err) == (DONE, "")
    assert f"segment_id: {IDENTITY.segment_id}" in ran.lines
    assert ran.lines[-2].startswith(
        "firstOffset: 100 lastOffset: 104 count: 5 leastTimestamp: 1000 greatestTimestamp: 1004 "
        "nullKeys: 0 leastKey: 6b30 greatestKey: 6b34 position: 472 size: "
    )
    (file,) = dump(arrow, "--json").json["files"]
    assert [batch["first_offset"] for batch in file["record_batches"]] == [100, 200]
    assert (file["topic"], file["partition"], file["base_offset"]) == ("orders", 3, 100)


def test_the_rest_is_shown_by_batch_and_checked_with_the_bodies_beside_it(
    dump: Dump, built: Built, tmp_path: Path
) -> None:
    _, rest = write(tmp_path, built)
    ran = dump(rest)
    assert (ran.status, ran.err) == (DONE, "")
    assert ran.lines[-1].startswith(
        "baseOffset: 200 lastOffset: 201 partitionLeaderEpoch: 7 maxTimestamp: 1001 "
    )
    (file,) = dump(rest, "--json").json["files"]
    assert [batch["place"] for batch in file["batches"]] == ["split", "whole"]


def test_without_the_rows_file_bodies_are_not_checked_and_that_is_said(
    dump: Dump, built: Built, tmp_path: Path
) -> None:
    arrow, rest = write(tmp_path, built)
    arrow.unlink()
    ran = dump(rest)
    assert ran.status == DONE
    assert "100.arrow is not beside it: bodies there are not checked" in ran.lines


def test_a_raw_object_is_checked_alone_as_it_has_every_batch_whole(dump: Dump, tmp_path: Path) -> None:
    batches = [make(kind, Compression.NONE, PLAIN, 100 * nth) for nth, kind in ((1, "arrow"), (2, "records"))]
    _, rest = write(tmp_path, raw := build(batches, is_raw=True))
    (tmp_path / "100.arrow").unlink()
    ran = dump(rest)
    assert (ran.status, ran.err, "layout: raw" in ran.lines) == (DONE, "", True)
    assert not any("is not beside it" in line for line in ran.lines)
    (file,) = dump(rest, "--json").json["files"]
    assert [batch["place"] for batch in file["batches"]] == ["whole", "whole"]
    damaged = bytearray(raw.rest)
    damaged[300] ^= 4
    rest.write_bytes(damaged)
    ran = dump(rest)
    assert (ran.status, "the part of offset 100 does not match" in ran.err) == (FAILED, True)


def test_damage_is_told_with_its_place(dump: Dump, built: Built, tmp_path: Path) -> None:
    arrow, rest = write(tmp_path, built)
    data = bytearray(built.arrow)
    data[1_000] ^= 4
    arrow.write_bytes(data)
    ran = dump([arrow, rest])
    assert ran.status == FAILED
    assert "of offsets 100 to 104 does not match" in ran.err
    assert "the batch at offset 100 is not the one that was written" in ran.err


def test_objects_that_are_cut_or_of_two_segments_are_refused(
    dump: Dump, built: Built, tmp_path: Path
) -> None:
    arrow, rest = write(tmp_path, built)
    rest.write_bytes(built.rest[:-1])
    ran = dump(rest)
    assert (ran.status, "it is cut, or no .rest object" in ran.err) == (FAILED, True)
    write(tmp_path, built)
    arrow.write_bytes(build([make("arrow", Compression.NONE, PLAIN[:1], 100)]).arrow)
    ran = dump(rest)
    assert (ran.status, "the one beside it is of segment" in ran.err) == (FAILED, True)
