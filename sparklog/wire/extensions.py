"""Tagged fields of our own, which Kafka's own software skips (KIP-482 demands that of everybody).

Kafka numbers its tags from 0 up; ours begin at 5000, far from anything it will use. They exist in flexible
versions only, lie after Kafka's tags, and are written only when they differ from the field's default.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from sparklog.model.errors import WireError
from sparklog.wire.primitives import (
    Cursor,
    Output,
    Reader,
    Writer,
    append_compact_length,
    array_reader,
    bytes_reader,
    bytes_writer,
    number_reader,
    number_writer,
    numbers_reader,
    numbers_writer,
    read_compact_length,
    read_uuid,
    string_reader,
    string_writer,
    write_uuid,
)

Direction = Literal["request", "response"]
ExtensionType = Literal["bytes", "int16 array", "int64", "int64 array", "string", "string map", "uuid"]

EXTENSION_TAG_MIN: Final = 5_000


@dataclass(frozen=True, slots=True)
class Extension:
    """One tagged field of ours: its number, the attribute that holds it, and how it is encoded."""

    tag: int
    field: str
    type: ExtensionType


_PAYLOAD_KINDS: Final = Extension(5_000, "payload_kinds", "int16 array")
_CONFIGS: Final = Extension(5_001, "configs", "string map")
_BROKER_EPOCH: Final = Extension(5_002, "epoch", "int64")
_MIN_INSYNC_REPLICAS: Final = Extension(5_003, "min_insync_replicas", "int64")
_DYNAMIC_CONFIGS: Final = Extension(5_004, "dynamic_configs", "string map")
_DEFAULT_CONFIGS: Final = Extension(5_005, "default_configs", "string map")
_LAST_EPOCH: Final = Extension(5_006, "last_epoch", "int64")
_LOG_END_OFFSET: Final = Extension(5_007, "log_end_offset", "int64")
_LOST_IN_EPOCH: Final = Extension(5_008, "lost_in_epoch", "int64")
_TOPIC_ID: Final = Extension(5_009, "topic_id", "uuid")
_PUSH: Final = Extension(5_010, "push", "int64")
_PRODUCERS: Final = Extension(5_011, "producers", "bytes")
_OWN_APIS: Final = Extension(5_012, "own_apis", "int16 array")
_LOG_START_OFFSET: Final = Extension(5_013, "log_start_offset", "int64")
_EPOCHS: Final = Extension(5_014, "epochs", "int64 array")
_WITH_ABORTED: Final = Extension(5_015, "with_aborted", "int64")
_REMOTE_SHARE: Final = Extension(5_016, "remote_share", "int64 array")
_REMOTE_TROUBLE: Final = Extension(5_017, "remote_trouble", "string")
_HAS_LEFT: Final = Extension(5_018, "has_left", "int64")
_ENDED: Final = Extension(5_019, "ended", "int64 array")

_WITHOUT_STORE: Final = Extension(5_020, "without_store", "int64")
_STORE_GIVEN_UP: Final = Extension(5_021, "store_given_up_in_epoch", "int64")
_SCHEMA_VERSION: Final = Extension(5_030, "schema_version", "int64")
_COLUMNS: Final = Extension(5_032, "columns", "int64 array")
_CONDITION: Final = Extension(5_033, "condition", "bytes")
_LOOKED_TO: Final = Extension(5_034, "looked_to", "int64")
_THROTTLE: Final = Extension(5_040, "throttle", "int64")
_OPERATION: Final = Extension(5_041, "operation", "int64")

EXTENSIONS: Final[Mapping[tuple[int, Direction, str], tuple[Extension, ...]]] = MappingProxyType(
    {
        (0, "request", "ProduceRequest"): (_PAYLOAD_KINDS,),
        (1, "request", "FetchRequest"): (_PAYLOAD_KINDS, _WITH_ABORTED),
        (1, "request", "FetchPartition"): (_COLUMNS, _CONDITION),
        (1, "response", "FetchPartitionData"): (_LOOKED_TO,),
        (2, "response", "ListOffsetsPartitionResponse"): (
            _PRODUCERS,
            _LOG_START_OFFSET,
            _EPOCHS,
            _REMOTE_SHARE,
            _REMOTE_TROUBLE,
        ),
        (3, "response", "MetadataResponseBroker"): (_HAS_LEFT,),
        (3, "response", "MetadataResponseTopic"): (_SCHEMA_VERSION,),
        (3, "response", "MetadataResponsePartition"): (_LOST_IN_EPOCH,),
        (4, "request", "LeaderAndIsrTopicState"): (_CONFIGS, _SCHEMA_VERSION),
        (4, "request", "LeaderAndIsrPartitionState"): (_MIN_INSYNC_REPLICAS, _LOST_IN_EPOCH, _STORE_GIVEN_UP),
        (4, "response", "LeaderAndIsrPartitionError"): (_LAST_EPOCH, _LOG_END_OFFSET),
        (5, "request", "StopReplicaTopicState"): (_TOPIC_ID,),
        (6, "request", "UpdateMetadataRequest"): (_DYNAMIC_CONFIGS, _DEFAULT_CONFIGS, _PUSH, _ENDED),
        (6, "request", "UpdateMetadataPartitionState"): (_LOST_IN_EPOCH,),
        (6, "request", "UpdateMetadataTopicState"): (_CONFIGS, _SCHEMA_VERSION),
        (6, "request", "UpdateMetadataBroker"): (_BROKER_EPOCH,),
        (18, "response", "ApiVersionsResponse"): (_OWN_APIS,),
        (24, "request", "AddPartitionsToTxnTopic"): (_TOPIC_ID,),
        (43, "request", "ElectLeadersRequest"): (_WITHOUT_STORE,),
        (45, "request", "AlterPartitionReassignmentsRequest"): (_THROTTLE,),
        (45, "response", "AlterPartitionReassignmentsResponse"): (_OPERATION,),
    }
)
"""By API key, direction and the name of the message class that carries them."""

_read_int16s: Final = numbers_reader(read_compact_length, "h", nullable=False)
_write_int16s: Final = numbers_writer(append_compact_length, "h", nullable=False)
_read_int64s: Final = numbers_reader(read_compact_length, "q", nullable=False)
_write_int64s: Final = numbers_writer(append_compact_length, "q", nullable=False)
_read_string: Final = string_reader(read_compact_length, nullable=False)
_write_string: Final = string_writer(append_compact_length, nullable=False)


def _read_int16_tuple(cursor: Cursor) -> tuple[int, ...]:
    return tuple(_read_int16s(cursor))


def _read_int64_tuple(cursor: Cursor) -> tuple[int, ...]:
    return tuple(_read_int64s(cursor))


def _read_pair(cursor: Cursor) -> tuple[str, str]:
    return _read_string(cursor), _read_string(cursor)


_read_pairs: Final = array_reader(read_compact_length, _read_pair, 2, nullable=False, entities=True)


def _read_string_map(cursor: Cursor) -> dict[str, str]:
    pairs = _read_pairs(cursor)
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise WireError(f"a map of {len(pairs)} entries names only {len(mapping)} keys")
    return mapping


def _write_string_map(value: dict[str, str], output: Output) -> None:
    append_compact_length(output.buffer, len(value))
    for name, text in value.items():
        _write_string(name, output)
        _write_string(text, output)


EXTENSION_TYPES: Final[Mapping[ExtensionType, tuple[Reader, Writer]]] = MappingProxyType(
    {
        "bytes": (
            bytes_reader(read_compact_length, nullable=False),
            bytes_writer(append_compact_length, nullable=False),
        ),
        "int16 array": (_read_int16_tuple, _write_int16s),
        "int64": (number_reader("q"), number_writer("q")),
        "int64 array": (_read_int64_tuple, _write_int64s),
        "string": (_read_string, _write_string),
        "string map": (_read_string_map, _write_string_map),
        "uuid": (read_uuid, write_uuid),
    }
)
