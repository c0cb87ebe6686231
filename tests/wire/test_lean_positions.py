"""The packed positions and answers of LeanFetch."""

import pytest

from sparklog.core.replication.session_slots import LeanAnswer, LeanPosition
from sparklog.model.errors import ErrorCode, WireError
from sparklog.wire.messages.data.lean_fetch import (
    packed_answers,
    packed_positions,
    unpacked_answers,
    unpacked_positions,
)

POSITIONS = [LeanPosition(0, 3, 2**40, 2, 7), LeanPosition(2**33, -1, 0, -1, -1)]
ANSWERS = [
    LeanAnswer(5, ErrorCode.none, 2**40, 7, 100),
    LeanAnswer(6, ErrorCode.fenced_leader_epoch, -1, -1, 0),
]


def test_what_is_packed_comes_back() -> None:
    assert unpacked_positions(packed_positions(POSITIONS)) == POSITIONS
    assert unpacked_answers(packed_answers(ANSWERS), 100) == ANSWERS


def test_nothing_is_packed_as_no_bytes() -> None:
    assert packed_positions([]) == packed_answers([]) == b""
    assert unpacked_positions(b"") == unpacked_answers(b"", 0) == []


@pytest.mark.parametrize("packed", [packed_positions(POSITIONS)[:-1], b"\0"])
def test_a_part_of_a_position_is_refused(packed) -> None:
    with pytest.raises(WireError, match="bytes of positions are not a multiple of 32"):
        unpacked_positions(packed)


@pytest.mark.parametrize(
    ("packed", "records_bytes", "why"),
    [
        (b"\0" * 29, 0, "29 bytes of answers are not a multiple of 30"),
        (packed_answers(ANSWERS), 99, "claims 100 bytes of batches, and 99 are left"),
        (packed_answers(ANSWERS), 101, "1 bytes of batches belong to no answer"),
        (packed_answers([LeanAnswer(0, ErrorCode.none, 0, 0, -1)]), 0, "claims -1 bytes"),
    ],
)
def test_answers_that_do_not_fit_their_batches_are_refused(packed, records_bytes, why) -> None:
    with pytest.raises(WireError, match=why):
        unpacked_answers(packed, records_bytes)


def test_an_error_that_this_release_does_not_know_is_read_as_an_unknown_one() -> None:
    packed = bytearray(packed_answers(ANSWERS[:1]))
    packed[8:10] = b"\x7f\xff"
    (answer,) = unpacked_answers(bytes(packed), 100)
    assert answer.error_code is ErrorCode.unknown_server_error
