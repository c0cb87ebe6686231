"""A dialogue with one broker: requests by their fields' names, answers as trees."""

import itertools
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Self

from fuzz.connection import Wire
from fuzz.layout import FIXED, UUID_BYTES, LayoutError, Tree, Written, read_tree, uvarint, write_tree
from sparklog.wire.schema import Schema, SchemaField, load_schema
from sparklog.wire.versions import API_VERSIONS, API_VERSIONS_KEY

Address = tuple[str, int]
Answer = Tree | str
"""Fields, or what happened instead: ``CLOSED``, ``SILENT``, or why the bytes are no answer."""

CLOSED: Final = "the connection is closed"
SILENT: Final = "no answer"
ANSWER_S: Final = 5.0
UNTIL_S: Final = 20.0
CLIENT_ID: Final = b"differ"
UNSUPPORTED_VERSION: Final = 35

KEYS: Final = {api.name: key for key, api in API_VERSIONS.items()}

FIRST: Final = {"Produce": 3, "Fetch": 4, "ListOffsets": 2, "OffsetCommit": 1, "OffsetFetch": 1}
"""Versions that dialogues begin with: Kafka keeps offsets of version 0 in ZooKeeper, not in the group, and
there are no transactions in older messages.
"""

DEFAULTS: Final[dict[str, Any]] = {
    "acks": -1,
    "commit_timestamp": -1,
    "committed_leader_epoch": -1,
    "current_leader_epoch": -1,
    "generation_id": -1,
    "generation_id_or_member_epoch": -1,
    "leader_epoch": -1,
    "replica_id": -1,
    "retention_time_ms": -1,
    "session_epoch": -1,
    "validate_only": 0,
}
"""Values of fields that a dialogue does not name; other numbers are 0, other fields null or empty."""


@dataclass(slots=True)
class Said:
    """One request, and what came back."""

    request: str
    answer: Answer


@dataclass(slots=True)
class Pending:
    """A request that was sent."""

    said: Said
    wire: Wire
    api_key: int
    version: int
    correlation_id: int

    def answer(self, wait_s: float = ANSWER_S) -> Any:
        """The answer, waited for."""
        frame = self.wire.frame(wait_s)
        if frame is None:
            self.said.answer = CLOSED if self.wire.is_closed else SILENT
            self.wire.close()
            self.wire.is_closed = True
        else:
            self.said.answer = _read(self.api_key, self.version, self.correlation_id, frame)
        return self.said.answer


@dataclass(slots=True)
class Talk:
    """A context manager. ``level`` is the version of each API, as far as there is one."""

    address: Address
    level: int = 99
    said: list[Said] = field(default_factory=list)
    _wires: dict[str, Wire] = field(default_factory=dict)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    def send(self, api: str, *, by: str = "", version: int | None = None, **fields: Any) -> Pending:
        """Send over the connection of ``by``; others go on meanwhile."""
        api_key = KEYS[api]
        served = API_VERSIONS[api_key]
        if version is None:
            version = min(served.max, max(FIRST.get(api, served.min), self.level))
        schema = load_schema(api_key, version, "request")
        return self.send_tree(api_key, version, filled(schema, fields), by=by)

    def send_tree(self, api_key: int, version: int, tree: Tree, *, by: str = "") -> Pending:
        """Send a whole tree."""
        number = next(self._numbers)
        wire = self.wire(by)
        wire.send(frame_of(api_key, version, number, tree))
        said = Said(f"{API_VERSIONS[api_key].name} {version}{f' by {by}' if by else ''}", SILENT)
        self.said.append(said)
        return Pending(said, wire, api_key, version, number)

    def wire(self, by: str) -> Wire:
        """The connection of ``by``, a new one if it has none or the last one has ended."""
        wire = self._wires.get(by)
        if wire is None or wire.is_closed:
            wire = self._wires[by] = self._opened(by)
        return wire

    def _opened(self, by: str) -> Wire:
        """A new connection; ``by`` is only its name here."""
        return Wire(self.address)

    def ask(self, api: str, *, by: str = "", version: int | None = None, **fields: Any) -> Any:
        """Send, and wait for the answer."""
        return self.send(api, by=by, version=version, **fields).answer()

    def until(
        self, api: str, is_so: Callable[[Any], bool], *, version: int | None = None, **fields: Any
    ) -> Any:
        """Ask until the answer is as wanted; only the last answer counts as said."""
        deadline = time.monotonic() + UNTIL_S
        while True:
            before = len(self.said)
            answer = self.ask(api, version=version, **fields)
            if not isinstance(answer, str) and is_so(answer):
                return answer
            if time.monotonic() > deadline:
                raise TimeoutError(f"{api} at {self.address} still says {answer}")
            del self.said[before:]
            time.sleep(0.02)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        for wire in self._wires.values():
            wire.close()


def filled(schema: Schema, fields: dict[str, Any]) -> Tree:
    """A whole tree of the named fields that this version has, texts encoded."""
    return {
        one.name: _value(one, fields.get(one.name))
        for one in schema.fields
        if one.tag is None or one.name in fields
    }


def _value(one: SchemaField, given: Any) -> Any:
    if given is None:
        return _default(one)
    if one.is_array:
        return [_item(one, item) for item in given]
    return _item(one, given)


def _item(one: SchemaField, given: Any) -> Any:
    if one.entity is not None:
        return filled(one.entity, given)
    return given.encode() if isinstance(given, str) else given


def _default(one: SchemaField) -> Any:
    if one.name in DEFAULTS:
        return DEFAULTS[one.name]
    if one.is_array:
        return None if one.nullable else []
    if one.entity is not None:
        return filled(one.entity, {})
    if one.kafka_type in FIXED:
        return 0
    if one.kafka_type == "uuid":
        return bytes(UUID_BYTES)
    return None if one.nullable else b""


def frame_of(api_key: int, version: int, correlation_id: int, tree: Tree) -> bytes:
    """A request with its size prefix."""
    schema = load_schema(api_key, version, "request")
    written = Written()
    written.octets += struct.pack(">hhi", api_key, version, correlation_id)
    written.octets += struct.pack(">h", len(CLIENT_ID)) + CLIENT_ID
    if schema.flexible:
        written.octets += uvarint(0)
    write_tree(schema, tree, written)
    return struct.pack(">i", len(written.octets)) + bytes(written.octets)


def _read(api_key: int, version: int, correlation_id: int, frame: bytes) -> Answer:
    is_versions = api_key == API_VERSIONS_KEY
    if is_versions and int.from_bytes(frame[4:6], "big", signed=True) == UNSUPPORTED_VERSION:
        version = 0
    schema = load_schema(api_key, version, "response")
    has_tags = schema.flexible and not is_versions
    if int.from_bytes(frame[:4], "big", signed=True) != correlation_id or (
        has_tags and frame[4:5] != b"\x00"
    ):
        return f"a header that is none of this answer: {frame[:8].hex()}"
    try:
        return read_tree(schema, frame[4 + has_tags :])
    except LayoutError as error:
        return f"not an answer: {error}"
