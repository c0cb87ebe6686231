"""LeanFetch (key 10009, sparklog's own, between brokers): a fetch of a follower's session, in few bytes.

It belongs to a session that Fetch has opened, and says only what has changed. Positions and answers are
structs of fixed width, packed one after the other: a follower asks once or twice for each batch that is
produced, and coding an entity for each partition was a large part of that. ``core.replication.session_slots``
says what slots are.

    position    slot int64, leader epoch int32, fetch offset int64, last fetched epoch int32, log start int64
    answer      slot int64, error int16, high watermark int64, log start int64, size int32

``records`` has the batches of all answers in their order, each as long as its answer's ``size``.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from sparklog.core.replication.session_slots import LeanAnswer, LeanPosition
from sparklog.model.errors import ErrorCode, WireError
from sparklog.model.parts import Part
from sparklog.wire.codec_steps import ERROR_CODES, UNKNOWN_ERROR

_POSITION: Final = struct.Struct(">qiqiq")
_ANSWER: Final = struct.Struct(">qhqqi")


@dataclass(slots=True, kw_only=True)
class LeanFetchRequest:
    """``session_id`` and ``session_epoch`` as in Fetch (KIP-227), which shares the session; ``broker_epoch``
    as Fetch's ``replica_epoch`` (KIP-903). ``positions``: by ``packed_positions``.
    """

    API_KEY: ClassVar[int] = 10_009

    session_id: int
    session_epoch: int
    broker_epoch: int = -1
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 0x7FFFFFFF
    positions: bytes | memoryview = b""


@dataclass(slots=True, kw_only=True)
class LeanFetchResponse:
    """``error_code``: of the session, as in Fetch. ``asks_by_fetch``: the next fetch must be a Fetch, in the
    same session, because the answer does not fit into this form; this one has no news then.
    """

    API_KEY: ClassVar[int] = 10_009

    error_code: ErrorCode = ErrorCode.none
    asks_by_fetch: bool = False
    answers: bytes | memoryview = b""
    records: Sequence[Part] = ()


def packed_positions(positions: Iterable[LeanPosition]) -> bytes:
    return b"".join([_POSITION.pack(*position) for position in positions])


def unpacked_positions(packed: bytes | memoryview) -> list[LeanPosition]:
    """Raises WireError unless ``packed`` is whole positions."""
    if len(packed) % _POSITION.size:
        raise WireError(f"{len(packed)} bytes of positions are not a multiple of {_POSITION.size}")
    return [LeanPosition(*fields) for fields in _POSITION.iter_unpack(packed)]


def packed_answers(answers: Iterable[LeanAnswer]) -> bytes:
    return b"".join([_ANSWER.pack(*answer) for answer in answers])


def unpacked_answers(packed: bytes | memoryview, records_bytes: int) -> list[LeanAnswer]:
    """Raises WireError unless ``packed`` is whole answers, whose batches have ``records_bytes`` together."""
    if len(packed) % _ANSWER.size:
        raise WireError(f"{len(packed)} bytes of answers are not a multiple of {_ANSWER.size}")
    answers = []
    left = records_bytes
    for slot, code, high_watermark, log_start_offset, size_bytes in _ANSWER.iter_unpack(packed):
        if not 0 <= size_bytes <= left:
            raise WireError(f"an answer claims {size_bytes} bytes of batches, and {left} are left")
        left -= size_bytes
        error = ERROR_CODES.get(code, UNKNOWN_ERROR)
        answers.append(LeanAnswer(slot, error, high_watermark, log_start_offset, size_bytes))
    if left:
        raise WireError(f"{left} bytes of batches belong to no answer")
    return answers
