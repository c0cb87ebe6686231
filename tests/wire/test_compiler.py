"""Every message in every version: round trips, agreement with kio's own serialisers, and damage."""

import dataclasses
import importlib
import io
import random
import uuid
from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest
from kio.serial import entity_reader, entity_writer

from sparklog.model.errors import ErrorCode, WireError
from sparklog.model.ids import NO_TOPIC_ID
from sparklog.model.parts import read_parts
from sparklog.wire import compiler
from sparklog.wire.codec import decode_body, encode_body, message_class
from sparklog.wire.compiler import _class_in, compile_entity
from sparklog.wire.extensions import EXTENSIONS, Direction
from sparklog.wire.messages.control.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrTopicState
from sparklog.wire.primitives import Cursor
from sparklog.wire.schema import Schema, SchemaField, load_schema
from sparklog.wire.versions import KNOWN_VERSIONS, OWN_VERSIONS

NUMBER_BITS = {
    "int8": 8,
    "int16": 16,
    "int32": 32,
    "int64": 64,
    "timedelta_i32": 32,
    "timedelta_i64": 48,
}
DIRECTIONS: tuple[Direction, ...] = ("request", "response")
CASES = [
    pytest.param(api_key, version, direction, id=f"{api.name}-{direction}-v{version}")
    for api_key, api in KNOWN_VERSIONS.items()
    for version in range(api.min, api.max + 1)
    for direction in DIRECTIONS
]
every_message = pytest.mark.parametrize(("api_key", "version", "direction"), CASES)


class Generator:
    """Random messages that a given version can carry whole."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)

    def message(self, schema: Schema, cls: type, inlined: frozenset[str] = frozenset()) -> Any:
        hints = get_type_hints(cls)
        values: dict[str, Any] = {}
        for field in schema.fields:
            if field.name in inlined:
                assert field.entity is not None
                values |= {inner.name: self.value(inner, None) for inner in field.entity.fields}
            else:
                values[field.name] = self.value(field, hints[field.name])
        return cls(**values)

    def value(self, field: SchemaField, hint: Any) -> Any:
        if (
            field.tag is not None
            and field.entity is not None
            and not field.is_array
            and self.random.random() < 0.3
        ):
            return None
        if field.nullable and field.kafka_type != "uuid" and self.random.random() < 0.3:
            return -1 if field.kafka_type == "datetime_i64" else () if "Sequence" in str(hint) else None
        if field.is_array:
            return [self.item(field, hint) for _ in range(self.random.choice((0, 1, 2, 5)))]
        return self.item(field, hint)

    def item(self, field: SchemaField, hint: Any) -> Any:
        if field.entity is not None:
            cls = _class_in(hint)
            return self.message(field.entity, cls, getattr(cls, "INLINED", frozenset()))
        return self.primitive(field.kafka_type or "", hint)

    def primitive(self, kafka_type: str, hint: Any) -> Any:
        rng = self.random
        match kafka_type:
            case "bool":
                return rng.random() < 0.5
            case "error_code":
                return rng.choice(list(ErrorCode))
            case "uuid":
                return rng.choice((NO_TOPIC_ID, uuid.UUID(int=rng.getrandbits(128))))
            case "string":
                return "".join(rng.choices("aZ.é漢😀 ", k=rng.choice((0, 1, 3, 150))))
            case "bytes" | "records":
                data = rng.randbytes(rng.choice((1, 7, 200, 9_000)))
                return (data,) if "Sequence" in str(hint) else data
            case "float64":
                return rng.choice((0.0, -1.5, 1e300, rng.random()))
            case "datetime_i64":
                return rng.randrange(2**31) * 1000  # whole seconds: kio goes through floating point
        bits = NUMBER_BITS[kafka_type]
        return rng.choice((0, 1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), rng.getrandbits(bits - 1)))


def samples(api_key: int, version: int, direction: Direction, count: int) -> Iterator[Any]:
    schema, cls = load_schema(api_key, version, direction), message_class(api_key, direction)
    for number in range(count):
        generator = Generator(f"{api_key} {version} {direction} {number}")
        yield generator.message(schema, cls, getattr(cls, "INLINED", frozenset()))


@every_message
def test_what_is_written_is_read(api_key: int, version: int, direction: Direction) -> None:
    for message in samples(api_key, version, direction, 6):
        assert decode_body(type(message), version, read_parts(encode_body(message, version))) == message


@pytest.mark.proof
@pytest.mark.parametrize(
    ("api_key", "version", "direction"), [case for case in CASES if case.values[0] not in OWN_VERSIONS]
)
def test_kio_reads_and_writes_the_same_bytes(api_key: int, version: int, direction: Direction) -> None:
    api = KNOWN_VERSIONS[api_key]
    module = importlib.import_module(f"kio.schema.{api.module}.v{version}.{direction}")
    kio_class = getattr(module, api.name + direction.capitalize())
    for message in samples(api_key, version, direction, 6):
        ours = read_parts(encode_body(message, version))
        theirs, size = entity_reader(kio_class)(ours, 0)
        written = io.BytesIO()
        entity_writer(kio_class)(written, theirs)
        assert size == len(ours)
        assert written.getvalue() == ours


@every_message
def test_every_shorter_body_is_refused(api_key: int, version: int, direction: Direction) -> None:
    for message in samples(api_key, version, direction, 2):
        body = read_parts(encode_body(message, version))
        ends = range(len(body)) if len(body) < 300 else [*range(150), *range(len(body) - 150, len(body))]
        for end in ends:
            with pytest.raises(WireError, match="malformed"):
                decode_body(type(message), version, body[:end])


@every_message
def test_a_damaged_body_is_a_message_or_a_wire_error(
    api_key: int, version: int, direction: Direction
) -> None:
    rng = random.Random(f"{api_key} {version} {direction}")
    for message in samples(api_key, version, direction, 2):
        intact = read_parts(encode_body(message, version))
        for _ in range(30 if intact else 0):
            body = bytearray(intact)
            for _ in range(rng.randrange(1, 4)):
                body[rng.randrange(len(body))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            try:
                decoded = decode_body(type(message), version, body)
            except WireError:
                continue
            assert type(decoded) is type(message)


@pytest.mark.parametrize("api_key", KNOWN_VERSIONS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_every_field_of_a_message_is_in_some_version(api_key: int, direction: Direction) -> None:
    api = KNOWN_VERSIONS[api_key]
    seen: dict[type, set[str]] = {}

    def visit(schema: Schema, cls: type) -> None:
        names = seen.setdefault(cls, set())
        names |= {extension.field for extension in EXTENSIONS.get((api_key, direction, cls.__name__), ())}
        for field in schema.fields:
            if field.entity is not None and field.name in getattr(cls, "INLINED", ()):
                names |= {inner.name for inner in field.entity.fields}
                continue
            names.add(field.name)
            if field.entity is not None:
                visit(field.entity, _class_in(get_type_hints(cls)[field.name]))

    for version in range(api.min, api.max + 1):
        visit(load_schema(api_key, version, direction), message_class(api_key, direction))
    for cls, names in seen.items():
        assert {field.name for field in dataclasses.fields(cls)} == names, cls


@pytest.mark.parametrize("key", EXTENSIONS)
def test_software_that_knows_no_extensions_reads_the_rest(
    key: tuple[int, Direction, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    api_key, direction, _ = key
    version = KNOWN_VERSIONS[api_key].max
    message = next(samples(api_key, version, direction, 1))
    monkeypatch.setattr(compiler, "EXTENSIONS", {})
    stranger = compile_entity(load_schema(api_key, version, direction), type(message), api_key, direction)
    extended = _extend(message, key)
    body = read_parts(encode_body(extended, version))
    assert stranger.read(Cursor(memoryview(body))) == _without_extensions(extended, (api_key, direction))


SAMPLES = {
    "bytes": b"abc",
    "int16 array": (1, 257),
    "int64 array": (3, 0, 5, 2**40),
    "int64": 4,
    "string": "words",
    "string map": {"a": "b"},
    "uuid": uuid.UUID(int=7),
}
DEFAULTS = {
    "payload_kinds": (),
    "own_apis": (),
    "columns": None,
    "condition": b"",
    "ended": (),
    "producers": b"",
    "min_insync_replicas": 1,
    "schema_version": 0,
    "topic_id": NO_TOPIC_ID,
}


def _extend(message: Any, key: tuple[int, Direction, str]) -> Any:
    """With a value in each field of ours that ``key`` is about."""
    return _with_fields(message, {key: [(one.field, SAMPLES[one.type]) for one in EXTENSIONS[key]]}, key[:2])


def _without_extensions(message: Any, api: tuple[int, Direction]) -> Any:
    plain = {
        key: [(one.field, DEFAULTS.get(one.field, -1 if one.type == "int64" else {})) for one in group]
        for key, group in EXTENSIONS.items()
    }
    return _with_fields(message, plain, api)


def _with_fields(message: Any, fields: dict[Any, list[tuple[str, Any]]], api: tuple[int, Direction]) -> Any:
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        if isinstance(value, list):
            changes[field.name] = [
                _with_fields(item, fields, api) if dataclasses.is_dataclass(item) else item for item in value
            ]
    changes |= dict(fields.get((*api, type(message).__name__), []))
    return dataclasses.replace(message, **changes)


def test_extensions_travel_on_nested_entities_after_kafka_s_own_tags() -> None:
    topic = LeaderAndIsrTopicState(topic_name="t", configs={"retention.ms": "5", "x": ""})
    request = LeaderAndIsrRequest(controller_id=1, controller_epoch=2, topic_states=[topic, topic])
    assert decode_body(LeaderAndIsrRequest, 7, read_parts(encode_body(request, 7))) == request
