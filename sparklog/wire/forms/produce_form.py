"""A produce to one partition by its *form*: what a connection's produces to one topic have in common.

    api, version | correlation id | client, acks, topic ... | partition | length | batch | rest
    same         | its own        | same                    | its own   | its own| its own| same

A frame of the form is read by comparing the bytes that are the same, and taking out the others. Its answer
without an error has a form, too. The codec makes both: no layout is written down here. A place is found by
encoding twice, with different values of its field.

The form reads what the codec reads, or nothing. A frame that is not byte for byte what the codec writes
(tags of others, long varints, bytes after the body) has no form.
"""

import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple, Self

from sparklog.model.ids import TOPIC_NAME_LENGTH_MAX
from sparklog.model.parts import read_parts
from sparklog.wire.codec import Request, RequestHeader, encode_request, encode_response
from sparklog.wire.framing import FRAME_PREFIX
from sparklog.wire.messages.data.produce import (
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResponse,
)
from sparklog.wire.versions import KNOWN_VERSIONS

FIRST_VERSION: Final = 5
"""From it on answers have all the fields of ``AnswerForm``."""

FORM_BYTES_MAX: Final = 1024
"""What a request may have beside its batch. A connection keeps it decoded, where payload kinds take forty
times their bytes.
"""

ANSWERS_KEPT: Final = 1024
"""Forms of answers, by version and topic."""

_NUMBERS: Final = ("index", "base_offset", "log_append_time_ms", "log_start_offset", "throttle_time_ms")
"""What differs between answers, besides the correlation id before them; in the order of the layout."""

_LETTERS: Final = {4: "i", 8: "q"}
"""The letters of ``struct``, by width in bytes."""

_CORRELATION_AT: Final = 4
_FRONT_AT: Final = 8
"""Where a request goes on after its correlation id."""

_INT32: Final = struct.Struct(">i")
_PARTITION_AND_LENGTH: Final = struct.Struct(">ii")


class Shape(NamedTuple):
    """What the requests of one form have in common, decoded."""

    version: int
    client_id: str | None
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topic: str
    payload_kinds: tuple[int, ...]


def shape_of(request: Request, frame_bytes: int) -> Shape | None:
    """None of a produce to more than one partition, without a batch, or with much beside it."""
    header, body = request.header, request.body
    if header.api_version < FIRST_VERSION or len(body.topic_data) != 1:
        return None
    (topic,) = body.topic_data
    if len(topic.partition_data) != 1 or not 0 < len(topic.name) <= TOPIC_NAME_LENGTH_MAX:
        return None
    records = topic.partition_data[0].records
    if records is None or frame_bytes - len(records) > FORM_BYTES_MAX:
        return None
    return Shape(
        header.api_version,
        header.client_id,
        body.transactional_id,
        body.acks,
        body.timeout_ms,
        topic.name,
        tuple(body.payload_kinds),
    )


class AnswerForm:
    """The answer to a produce to one partition of ``topic``, when it succeeds."""

    def __init__(self, version: int, topic: str) -> None:
        frame = _answer(version, topic, 0, {})
        others = [_answer(version, topic, -1, {})]
        others += [_answer(version, topic, 0, {name: -1}) for name in _NUMBERS]
        layout, between, end = ">", [], 0
        for other in others:
            start = _first_difference(frame, other)
            assert start >= end, "the numbers follow each other in their order"
            width = sum(1 for octet, another in zip(frame, other, strict=True) if octet != another)
            between.append(frame[end:start])
            layout += f"{start - end}s{_LETTERS[width]}"
            end = start + width
        between.append(frame[end:])
        self._between = tuple(between)
        self._struct = struct.Struct(f"{layout}{len(between[-1])}s")

    def write(
        self,
        correlation_id: int,
        partition: int,
        base_offset: int,
        log_append_time_ms: int,
        log_start_offset: int,
        throttle_ms: int,
    ) -> bytes:
        """The frame of the answer, size included."""
        size, topic, error, time, start, throttle, rest = self._between
        return self._struct.pack(
            size, correlation_id, topic, partition, error, base_offset, time, log_append_time_ms, start,
            log_start_offset, throttle, throttle_ms, rest,
        )  # fmt: skip


answer_form: Final = lru_cache(ANSWERS_KEPT)(AnswerForm)


class ProduceForm:
    """Reads the frames of one form."""

    __slots__ = (
        "_api",
        "_front",
        "_is_compact",
        "_least_bytes",
        "_partition_at",
        "_rest",
        "_shape",
        "answer",
    )

    def __init__(self, shape: Shape) -> None:
        empty = _frame(shape, 0, b"")
        length_at = _first_difference(empty, _frame(shape, 0, None))
        self._shape = shape
        self._is_compact = KNOWN_VERSIONS[ProduceRequest.API_KEY].is_flexible(shape.version)
        self._api = empty[:_CORRELATION_AT]
        self._partition_at = _first_difference(empty, _frame(shape, -1, b""))
        assert self._partition_at == length_at - _INT32.size, "the batch follows the partition"
        self._front = empty[_FRONT_AT : self._partition_at]
        self._rest = empty[length_at + (1 if self._is_compact else _INT32.size) :]
        self._least_bytes = len(empty)
        self.answer = answer_form(shape.version, shape.topic)

    @property
    def topic(self) -> str:
        return self._shape.topic

    @classmethod
    def of(cls, frame: memoryview, shape: Shape) -> Self | None:
        """The form of ``frame``, which was decoded as of ``shape``; None if it has none."""
        form = cls(shape)
        return form if form.read(frame) is not None else None

    def read(self, frame: memoryview) -> Request | None:
        """The request in a frame without size prefix, as the codec decodes it; None if it has another form.
        The batch is a view into the frame.
        """
        at = self._partition_at
        if len(frame) < self._least_bytes or frame[:_CORRELATION_AT] != self._api:
            return None
        if frame[_FRONT_AT:at] != self._front:
            return None
        if self._is_compact:
            (partition,) = _INT32.unpack_from(frame, at)
            start, length = self._compact_length(frame, at + _INT32.size)
        else:
            partition, length = _PARTITION_AND_LENGTH.unpack_from(frame, at)
            start = at + _PARTITION_AND_LENGTH.size
        end, rest = start + length, self._rest
        if length < 0 or end + len(rest) != len(frame) or (rest and frame[end:] != rest):
            return None
        return self._request(frame, partition, frame[start:end])

    def _request(self, frame: memoryview, partition: int, records: memoryview) -> Request:
        shape = self._shape
        (correlation_id,) = _INT32.unpack_from(frame, _CORRELATION_AT)
        topic = ProduceTopic(
            name=shape.topic, partition_data=[ProducePartition(index=partition, records=records)]
        )
        return Request(
            RequestHeader(ProduceRequest.API_KEY, shape.version, correlation_id, shape.client_id),
            ProduceRequest(
                transactional_id=shape.transactional_id,
                acks=shape.acks,
                timeout_ms=shape.timeout_ms,
                topic_data=[topic],
                payload_kinds=shape.payload_kinds,
            ),
        )

    def _compact_length(self, frame: memoryview, at: int) -> tuple[int, int]:
        """Where the batch begins, and its length; -1 for one that the codec is to read."""
        first, second, third = frame[at : at + 3]  # at least so many are left: the rest has three
        if first < 0x80:
            return at + 1, first - 1
        if second < 0x80:
            return at + 2, (first & 0x7F | second << 7) - 1
        if third < 0x80:
            return at + 3, (first & 0x7F | (second & 0x7F) << 7 | third << 14) - 1
        return at, -1


def _first_difference(frame: bytes, other: bytes) -> int:
    return next(at for at, octet in enumerate(frame) if other[at] != octet)


def _frame(shape: Shape, partition: int, records: bytes | None) -> bytes:
    """A request of ``shape`` without its size."""
    topic = ProduceTopic(
        name=shape.topic, partition_data=[ProducePartition(index=partition, records=records)]
    )
    message = ProduceRequest(
        transactional_id=shape.transactional_id,
        acks=shape.acks,
        timeout_ms=shape.timeout_ms,
        topic_data=[topic],
        payload_kinds=shape.payload_kinds,
    )
    return encode_request(message, shape.version, 0, shape.client_id)[FRAME_PREFIX.size :]


def _answer(version: int, topic: str, correlation_id: int, numbers: Mapping[str, int]) -> bytes:
    """An answer whose numbers are 0, but for some."""
    partition = ProducePartitionResponse(index=0, base_offset=0, log_append_time_ms=0, log_start_offset=0)
    response = ProduceResponse(responses=[ProduceTopicResponse(name=topic, partition_responses=[partition])])
    for name, number in numbers.items():
        setattr(response if hasattr(response, name) else partition, name, number)
    return read_parts(encode_response(response, version, correlation_id))
