"""What an answer to a frame must look like, whatever the frame is.

A broker answers in the layout of the request's API and version, or closes the connection. It may be silent
only about a produce with acks=0, and about a frame that is not complete. It may close the connection upon a
whole request only if the API is not served at that listener, if the request is a produce with acks=0, or if
it is one of a controller: a broker that does not know its own epoch yet answers nothing to it.
"""

import struct
from typing import Final

from fuzz.frames import Request
from fuzz.layout import LayoutError, Tree, read_tree
from fuzz.values import asked_wait_ms
from sparklog.wire.schema import load_schema
from sparklog.wire.versions import API_VERSIONS_KEY, INTERNAL_VERSIONS, KNOWN_VERSIONS

SIZE_BYTES: Final = 4
HEADER: Final = struct.Struct(">hhi")
PRODUCE: Final = 0
UNSUPPORTED_VERSION: Final = 35


class Asked:
    """A frame as a reader of the protocol understands it."""

    def __init__(self, request: Request) -> None:
        octets = request.octets
        self.request = request
        self.is_complete = len(octets) >= SIZE_BYTES and (
            len(octets) - SIZE_BYTES >= int.from_bytes(octets[:SIZE_BYTES], "big", signed=True)
        )
        self.api_key, self.version, self.correlation_id = (
            HEADER.unpack_from(octets, SIZE_BYTES)
            if len(octets) >= SIZE_BYTES + HEADER.size
            else (-1, -1, -1)
        )
        api = KNOWN_VERSIONS.get(self.api_key)
        self.is_known = api is not None and self.version in api
        self.tree: Tree | None = self._read() if self.is_known else None

    @property
    def wait_ms(self) -> int:
        """The longest wait that it asks for, as far as it can be read."""
        return 0 if self.tree is None else max(0, asked_wait_ms(self.tree))

    @property
    def may_be_refused(self) -> bool:
        """Whether the connection may be closed instead of an answer to this request."""
        return self.is_without_acks or self.api_key in INTERNAL_VERSIONS

    @property
    def is_without_acks(self) -> bool:
        return self.api_key == PRODUCE and self.tree is not None and self.tree["acks"] == 0

    def _read(self) -> Tree | None:
        """The fields, if it is a request; bytes behind the body are ignored, as brokers do."""
        schema = load_schema(self.api_key, self.version, "request")
        try:
            body = _behind_header(self.request.octets[SIZE_BYTES:], flexible=schema.flexible)
            return read_tree(schema, body, is_padded=True)
        except LayoutError:
            return None


def _behind_header(frame: bytes, *, flexible: bool) -> bytes:
    (length,) = struct.unpack_from(">h", frame, HEADER.size) if len(frame) >= HEADER.size + 2 else (-1,)
    start = HEADER.size + 2 + max(0, length)
    if flexible and frame[start : start + 1] != b"\x00":
        raise LayoutError("tags in the header")
    return frame[start + flexible :]


def read_answer(asked: Asked, frame: bytes) -> Tree:
    """The fields of the answer, without its size; LayoutError says why the answer is wrong."""
    if len(frame) < 4:
        raise LayoutError(f"an answer of {len(frame)} bytes")
    correlation_id = int.from_bytes(frame[:4], "big", signed=True)
    if correlation_id != asked.correlation_id:
        raise LayoutError(f"the answer is to request {correlation_id}, not to {asked.correlation_id}")
    is_versions = asked.api_key == API_VERSIONS_KEY
    if is_versions and int.from_bytes(frame[4:6], "big", signed=True) == UNSUPPORTED_VERSION:
        return read_tree(load_schema(API_VERSIONS_KEY, 0, "response"), frame[4:])
    if not asked.is_known:
        raise LayoutError(f"an answer to API {asked.api_key} version {asked.version}, which is not served")
    schema = load_schema(asked.api_key, asked.version, "response")
    has_tags = schema.flexible and not is_versions
    if has_tags and frame[4:5] != b"\x00":
        raise LayoutError("tags in the header of the answer")
    return read_tree(schema, frame[4 + has_tags :])
