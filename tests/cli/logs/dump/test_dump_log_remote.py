"""The two objects of a remote segment: what is in them, and any damage."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sparklog.cli.command import DONE, FAILED
from sparklog.cli.logs.dump.stored_columns import stored_columns
from sparklog.records.envelope import Compression
from sparklog.records.remote_segment.column_statistics import OneColumn
from sparklog.records.remote_segment.typed_message import ID_KEY
from tests.records.remote_segment.segments import IDENTITY, PLAIN, Built, build, make
from tests.records.remote_segment.typed_segments import QUAKES, build_typed, typed

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


def test_the_columns_of_a_typed_topic_are_shown_with_their_bounds(dump: Dump, tmp_path: Path) -> None:
    batches = [typed(QUAKES, 100), typed(QUAKES.select(["id"]).slice(0, 1), 200)]
    arrow, _ = write(tmp_path, build_typed(batches))
    ran = dump(arrow)
    assert (ran.status, ran.err, "schema_version: 1" in ran.lines) == (DONE, "", True)
    shown = [line for line in ran.lines if line.startswith("+ ")]
    assert shown[:5] == [
        "+ column: id id: 1 nulls: 0 min: 1 max: 5",
        "+ column: place id: 2 nulls: 1 min: Etna max: Oslo",
        "+ column: mag id: 3 nulls: 1 min: 2.5 max: 6.25",
        "+ column: at id: 4 nulls: 1 min: -1 max: 5000000",
        "+ column: depth id: 5 nulls: 2 min: none max: none",
    ]
    assert shown[6] == "+ column: place id: 2 nulls: 1 min: none max: none"
    (file,) = dump(arrow, "--json").json["files"]
    columns = file["record_batches"][0]["columns"]
    assert columns[2] == {"column": "mag", "id": 3, "nulls": 1, "min": 2.5, "max": 6.25}


def test_bounds_are_shown_as_values_of_their_types() -> None:
    types = [pa.decimal128(38, 2), pa.binary(), pa.string(), pa.float64(), pa.bool_(), pa.int8()]
    bounds = [
        (-(10**37)).to_bytes(16, "little", signed=True),
        b"\xffab",
        b"a\xc3",  # the first byte of a letter, rounded up
        struct.pack("<d", float("-inf")),
        (1).to_bytes(8, "little"),
        (-7).to_bytes(8, "little", signed=True),
    ]
    ids = range(1, len(types) + 1)
    schema = pa.schema(
        [pa.field(f"c{nth}", kind, metadata={ID_KEY: str(nth)}) for nth, kind in zip(ids, types, strict=True)]
    )
    columns = {nth: OneColumn(0, bound, None) for nth, bound in zip(ids, bounds, strict=True)}
    assert [row.least for row in stored_columns(schema, 3, columns)] == [
        f"-{10**35}.00",
        "0xff6162",
        "0x61c3",
        "-inf",
        1,
        -7,
    ]
    assert list(stored_columns(schema, 3, None)) == []


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
