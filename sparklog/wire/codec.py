"""Messages to frames and back: headers, bodies, and the errors for what is neither.

A request on the wire is its size, a header (api key, version, correlation id, client id, and tags if the
version is flexible) and a body. A response is its size, the correlation id (and tags, except for
ApiVersions, whose reader may not know the version yet), and a body. Requests are decoded without their size
prefix, as ``framing`` cuts them. Bytes after a body are ignored, as Kafka does.
"""

import importlib
import struct
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeVar, overload

from sparklog.model.errors import ErrorCode, WireError
from sparklog.model.parts import Part, parts_length, read_parts
from sparklog.wire.compiler import Entity, compile_entity
from sparklog.wire.extensions import Direction
from sparklog.wire.framing import FRAME_PREFIX
from sparklog.wire.primitives import (
    Cursor,
    Output,
    append_int16_length,
    read_int16_length,
    skip_tags,
    string_reader,
    string_writer,
)
from sparklog.wire.schema import load_schema
from sparklog.wire.versions import API_VERSIONS_KEY, KNOWN_VERSIONS

__all__ = [
    "Message",
    "Request",
    "RequestHeader",
    "UnsupportedVersion",
    "decode_body",
    "decode_request",
    "decode_response",
    "encode_body",
    "encode_request",
    "encode_response",
    "message_class",
    "parse_request_header",
]

REQUEST_HEADER: Final = struct.Struct(">hhi")
"""API key, API version, correlation id; the client id and the tags follow."""
CORRELATION_ID: Final = struct.Struct(">i")
CORRELATION_ID_AT: Final = 4
"""Its place in a request."""

_read_client_id: Final = string_reader(read_int16_length, nullable=True)
_write_client_id: Final = string_writer(append_int16_length, nullable=True)


class Message(Protocol):
    """Any request or response of ``sparklog.wire.messages``."""

    API_KEY: ClassVar[int]


M = TypeVar("M", bound=Message)
Frame = bytes | bytearray | memoryview


class RequestHeader(NamedTuple):
    """What stands before every request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


class Request(NamedTuple):
    """A decoded request; ``body`` is the request class of the header's API."""

    header: RequestHeader
    body: Any


class UnsupportedVersion(WireError):  # noqa: N818 (Kafka's name for it)
    """An API or a version that is not served here.

    For ApiVersions the answer is error 35 in the layout of version 0; for all else the connection closes.
    """

    def __init__(self, header: RequestHeader) -> None:
        api = KNOWN_VERSIONS.get(header.api_key)
        served = (
            f"{api.name} is served in versions {api.min} to {api.max}" if api else "no such API is served"
        )
        super().__init__(f"request of API key {header.api_key} version {header.api_version}: {served}")
        self.header = header


@cache
def message_class(api_key: int, direction: Direction) -> type:
    """The request or response class of an API; its module is imported on first use."""
    api = KNOWN_VERSIONS[api_key]
    module = importlib.import_module(f"sparklog.wire.messages.{api.family}.{api.module}")
    found: type = getattr(module, api.name + direction.capitalize())
    return found


# Requests


def encode_request(message: Message, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """A whole request, size prefix included."""
    api_key = message.API_KEY
    entity = _entity(api_key, version, "request")
    output = Output()
    output.buffer += FRAME_PREFIX.pack(0) + REQUEST_HEADER.pack(api_key, version, correlation_id)
    _write_client_id(client_id, output)
    if KNOWN_VERSIONS[api_key].is_flexible(version):
        output.buffer.append(0)
    _write_body(entity, message, "request", output)
    return _whole_frame(output)


def parse_request_header(frame: Frame) -> tuple[RequestHeader, int]:
    """The header, and where the body begins; cheap, and does not ask whether the version is served."""
    if len(frame) < REQUEST_HEADER.size:
        raise WireError(
            f"malformed request header of {REQUEST_HEADER.size} bytes or more: the frame has {len(frame)}"
        )
    cursor = Cursor(memoryview(frame))
    try:
        return _read_header(cursor), cursor.position
    except _MALFORMED as error:
        raise _malformed("request header", cursor, error) from error


def decode_request(frame: Frame) -> Request:
    """A request from its frame without size prefix. Byte fields are views into the frame."""
    header, position = parse_request_header(frame)
    return Request(header, _body_reader(header)(Cursor(memoryview(frame), position)))


class HeaderForm:
    """The header that requests of one client, API and version have: all of it but the correlation id is the
    same, byte for byte, so it need not be read again.
    """

    __slots__ = ("_body_at", "_client", "_header", "_read_body", "api")

    def __init__(self, frame: memoryview) -> None:
        """The form of a request. Raises as ``decode_request``, but for what is wrong with the body."""
        header, self._body_at = parse_request_header(frame)
        self._read_body = _body_reader(header)
        self._header = header
        self.api = bytes(frame[:CORRELATION_ID_AT])
        """API and version, with which frames of this form begin."""
        self._client = bytes(frame[REQUEST_HEADER.size : self._body_at])

    @property
    def size_bytes(self) -> int:
        return self._body_at

    def decode(self, frame: memoryview) -> Request | None:
        """As ``decode_request``, of a frame that begins with ``api``; None if its header has another form."""
        body_at = self._body_at
        if frame[REQUEST_HEADER.size : body_at] != self._client:
            return None
        (correlation_id,) = CORRELATION_ID.unpack_from(frame, CORRELATION_ID_AT)
        key, version, _, client_id = self._header
        header = RequestHeader(key, version, correlation_id, client_id)
        return Request(header, self._read_body(Cursor(frame, body_at)))


def _body_reader(header: RequestHeader) -> Callable[[Cursor], Any]:
    """What reads the body of a request. Raises UnsupportedVersion."""
    api = KNOWN_VERSIONS.get(header.api_key)
    if api is None or header.api_version not in api:
        raise UnsupportedVersion(header)
    return partial(_read_body, _entity(header.api_key, header.api_version, "request"), f"{api.name} request")


def _read_header(cursor: Cursor) -> RequestHeader:
    api_key, version, correlation_id = REQUEST_HEADER.unpack_from(cursor.buffer)
    cursor.position = REQUEST_HEADER.size
    client_id = _read_client_id(cursor)
    api = KNOWN_VERSIONS.get(api_key)
    if api is not None and version in api and api.is_flexible(version):
        skip_tags(cursor)
    return RequestHeader(api_key, version, correlation_id, client_id)


# Responses


def encode_response(message: Message, version: int, correlation_id: int) -> list[Part]:
    """A whole response, size prefix included; file slices in it are parts of the result."""
    entity = _entity(message.API_KEY, version, "response")
    output = Output()
    output.buffer += FRAME_PREFIX.pack(0) + CORRELATION_ID.pack(correlation_id)
    if _has_response_tags(message.API_KEY, version):
        output.buffer.append(0)
    _write_body(entity, message, "response", output)
    return _finish_frame(output)


@overload
def decode_response(message_type: type[M], version: int, frame: Frame) -> tuple[int, M]: ...
@overload
def decode_response(message_type: int, version: int, frame: Frame) -> tuple[int, Any]: ...
def decode_response(message_type: type[M] | int, version: int, frame: Frame) -> tuple[int, Any]:
    """Correlation id and response, from a frame without size prefix; by response class or API key."""
    api_key = message_type if isinstance(message_type, int) else message_type.API_KEY
    cursor = Cursor(memoryview(frame))
    what = f"{KNOWN_VERSIONS[api_key].name} response"
    try:
        (correlation_id,) = CORRELATION_ID.unpack_from(cursor.buffer)
        cursor.position = CORRELATION_ID.size
        if _has_response_tags(api_key, version):
            skip_tags(cursor)
        if api_key == API_VERSIONS_KEY and _is_version_refusal(cursor):
            version = 0
    except _MALFORMED as error:
        raise _malformed(what, cursor, error) from error
    return correlation_id, _read_body(_entity(api_key, version, "response"), what, cursor)


def _has_response_tags(api_key: int, version: int) -> bool:
    return api_key != API_VERSIONS_KEY and KNOWN_VERSIONS[api_key].is_flexible(version)


def _is_version_refusal(cursor: Cursor) -> bool:
    """A broker that does not know our version of ApiVersions answers in the layout of version 0 (KIP-511)."""
    code = bytes(cursor.buffer[cursor.position : cursor.position + 2])
    return int.from_bytes(code, "big") == ErrorCode.unsupported_version


# Bodies


def encode_body(message: Message, version: int) -> list[Part]:
    """A request or response without size and header."""
    direction: Direction = "request" if type(message).__name__.endswith("Request") else "response"
    output = Output()
    _write_body(_entity(message.API_KEY, version, direction), message, direction, output)
    return output.finish()


def decode_body(message_type: type[M], version: int, body: Frame) -> M:
    """The reverse of ``encode_body``."""
    direction: Direction = "request" if message_type.__name__.endswith("Request") else "response"
    entity = _entity(message_type.API_KEY, version, direction)
    decoded: M = _read_body(entity, message_type.__name__, Cursor(memoryview(body)))
    return decoded


_MALFORMED: Final = (WireError, struct.error, IndexError, UnicodeDecodeError)
"""All that a reader can raise over bytes that are not a message."""


@cache
def _entity(api_key: int, version: int, direction: Direction) -> Entity:
    api = KNOWN_VERSIONS.get(api_key)
    if api is None or version not in api:
        known = f"{api.name} has versions {api.min} to {api.max}" if api else "no such API is known"
        raise WireError(f"cannot code API key {api_key} version {version}: {known}")
    schema = load_schema(api_key, version, direction)
    return compile_entity(schema, message_class(api_key, direction), api_key, direction)


def _read_body(entity: Entity, what: str, cursor: Cursor) -> Any:
    try:
        return entity.read(cursor)
    except _MALFORMED as error:
        raise _malformed(what, cursor, error) from error


def _write_body(entity: Entity, message: Message, direction: Direction, output: Output) -> None:
    expected = message_class(message.API_KEY, direction)
    if type(message) is not expected:
        raise TypeError(f"{type(message).__name__} is not a {expected.__name__}")
    entity.write(message, output)


def _whole_frame(output: Output) -> bytes:
    """The frame in memory, which most are already."""
    if output.parts:
        return read_parts(_finish_frame(output))
    FRAME_PREFIX.pack_into(output.buffer, 0, len(output.buffer) - FRAME_PREFIX.size)
    return bytes(output.buffer)


def _finish_frame(output: Output) -> list[Part]:
    parts: Sequence[Part] = output.finish()
    first = parts[0]
    assert isinstance(first, memoryview)
    FRAME_PREFIX.pack_into(first, 0, parts_length(parts) - FRAME_PREFIX.size)
    return list(parts)


def _malformed(what: str, cursor: Cursor, error: Exception) -> WireError:
    return WireError(f"malformed {what} near byte {cursor.position} of {len(cursor.buffer)}: {error}")
