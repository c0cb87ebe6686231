"""Values for the fields of requests, by the field's type and name: ordinary ones and odd ones.

Fields that are not known by name get values of their type, so an API that is new needs no change here.
"""

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from fuzz.layout import FIXED, RAW_TAGS, UUID_BYTES, Tree
from fuzz.records import draw_records
from fuzz.surroundings import (
    KEPT_GROUP,
    KEPT_TOPIC,
    PLAYED_GROUPS,
    PLAYED_TOPICS,
    Surroundings,
    may_name_kept_group,
    may_name_kept_topic,
)
from sparklog.model.settings.settings_table import BROKER_SETTINGS, TOPIC_SETTINGS
from sparklog.wire.extensions import EXTENSION_TAG_MIN
from sparklog.wire.schema import Schema, SchemaField

STRING_BYTES_MAX: Final = 32_767
ODD_TEXTS: Final = (
    b"", b".", b"..", b" ", b"\x00", b"a/b", b"../../etc", b"%s%n", b"-1", b"null", "Größe".encode(),
    "\u202e\U0001f980".encode(), b"x" * 249, b"x" * 250, b"x" * STRING_BYTES_MAX, b"__consumer_offsets",
    b"__transaction_state",
)  # fmt: skip
ODD_UUIDS: Final = (bytes(UUID_BYTES), bytes(15) + b"\x01", b"\xff" * UUID_BYTES)
ODD_COUNTS: Final = (0, 0, 3, 17, 60)

SETTING_VALUES: Final = (
    b"1", b"0", b"-1", b"true", b"false", b"compact", b"delete", b"0.5", b"9223372036854775807", b"", b"x",
)  # fmt: skip

LOCKS_US_OUT: Final = {"max.connections", "max.connections.per.ip", "socket.request.max.bytes"}
"""Settings of brokers that a fuzz must not change: the broker would rightly refuse the fuzz afterwards."""

BROKER_NAMES: Final = tuple(sorted(BROKER_SETTINGS.keys() - LOCKS_US_OUT))
TOPIC_NAMES: Final = tuple(sorted(TOPIC_SETTINGS))

ORDINARY_WAITS_MS: Final = (0, 10, 100, 400)

ORDINARY_NUMBERS: Final[dict[str, Sequence[int]]] = {
    "acks": (-1, -1, 1, 0),
    "broker_id": (1, 2),
    "broker_ids": (1, 2),
    "config_operation": (0, 1, 2, 3),
    "count": (2, 3, 4),
    "current_leader_epoch": (-1, 0),
    "election_type": (0, 1),
    "generation_id": (-1, 0, 1, 2, 3),
    "isolation_level": (0, 1),
    "key_type": (0, 0, 1),
    "max_bytes": (1, 4_096, 1 << 20),
    "min_bytes": (0, 1, 1),
    "num_partitions": (-1, 1, 2, 3),
    "offset": (0, 1, 5, -1),
    "fetch_offset": (0, 1, 5),
    "partition_max_bytes": (1, 4_096, 1 << 20),
    "port": (9,),
    "producer_id": (-1, 1, 1_000),
    "producer_epoch": (-1, 0),
    "replica_id": (-1, -1, -1, 2, -2),
    "replicas": (1, 2),
    "replication_factor": (-1, 1, 2),
    "resource_type": (2, 2, 4, 4, 8),
    "session_epoch": (-1, -1, 0, 1),
    "session_id": (0, 0, 1),
    "timestamp": (-1, -2, -3, 0, 1_000),
}
"""Numbers that fields of these names often have; other fields have one of ``(0, 0, 1)``."""

SEEN: Final = frozenset({"member_id", "producer_id", "producer_epoch", "session_id", "generation_id"})
"""Fields of requests that should often have what a response gave out."""

SEEN_SHARE: Final = 0.6


class Drawer:
    """Draws one request's tree.

    ``oddity`` is the share of fields with an odd value. With ``spares_kept`` the request names no kept thing,
    even where its API only reads.
    """

    def __init__(
        self,
        dice: random.Random,
        api_key: int,
        surroundings: Surroundings,
        *,
        oddity: float,
        spares_kept: bool = False,
    ) -> None:
        self._dice = dice
        self._surroundings = surroundings
        self._oddity = oddity
        names_topic = not spares_kept and may_name_kept_topic(api_key)
        names_group = not spares_kept and may_name_kept_group(api_key)
        self._topics = PLAYED_TOPICS + ((KEPT_TOPIC,) * len(PLAYED_TOPICS) if names_topic else ())
        self._groups = PLAYED_GROUPS + ((KEPT_GROUP,) if names_group else ())

    def tree(self, schema: Schema, outer: str = "") -> Tree:
        """``outer`` is the name of the field that the entity is in."""
        tree: Tree = {}
        for one in schema.fields:
            if one.tag is None or self._dice.random() < 0.3:
                tree[one.name] = self._field(one, outer)
        if schema.flexible and self._is_odd(0.2):
            tag = self._dice.choice((100, EXTENSION_TAG_MIN - 1, 2**31 - 1))
            tree[RAW_TAGS] = [(tag, self._dice.randbytes(self._dice.choice((0, 1, 9, 200))))]
        return tree

    def _is_odd(self, share: float = 1.0) -> bool:
        return self._dice.random() < self._oddity * share

    def _field(self, one: SchemaField, outer: str) -> Any:
        if one.nullable and one.kafka_type != "uuid" and self._dice.random() < (0.3 if one.is_array else 0.2):
            return None
        if not one.is_array:
            return self._item(one, outer)
        count = self._dice.choice(ODD_COUNTS) if self._is_odd() else self._dice.choice((1, 1, 1, 2))
        items = [self._item(one, outer) for _ in range(count)]
        return items * 2 if self._is_odd(0.3) else items

    def _item(self, one: SchemaField, outer: str) -> Any:
        if one.entity is not None:
            return self.tree(one.entity, one.name)
        assert one.kafka_type is not None
        seen = self._surroundings.seen.values.get(one.name) if one.name in SEEN else None
        if seen and self._dice.random() < SEEN_SHARE:
            return self._dice.choice(seen)
        if one.kafka_type in FIXED:
            return self._number(one)
        if one.kafka_type == "uuid":
            known = tuple(self._surroundings.topic_ids.get(name, bytes(UUID_BYTES)) for name in self._topics)
            return self._dice.choice(ODD_UUIDS if self._is_odd() else known)
        if one.kafka_type == "string":
            return self._text(one.name, outer)
        if one.kafka_type == "records":
            return draw_records(self._dice, is_odd=self._is_odd(2.0))
        return self._dice.randbytes(self._dice.choice((0, 1, 20, 5_000) if self._is_odd() else (8, 20)))

    def _number(self, one: SchemaField) -> int:
        assert one.kafka_type is not None
        if one.kafka_type == "bool":
            return self._dice.choice((2, 255)) if self._is_odd() else self._dice.randrange(2)
        if self._is_odd():
            bits = 8 * struct.calcsize(FIXED[one.kafka_type])
            least = -(2 ** (bits - 1))
            odd = self._dice.choice((least, least + 1, -2, -1, 0, 1, 2, 100, -least - 2, -least - 1))
            return odd % 2**bits if one.kafka_type.startswith("u") else odd
        if one.name.endswith("_ms"):
            return self._dice.choice(ORDINARY_WAITS_MS)
        return self._dice.choice(ORDINARY_NUMBERS.get(one.name, (0, 0, 1)))

    def _text(self, name: str, outer: str) -> bytes:
        if self._is_odd():
            return self._dice.choice(ODD_TEXTS)
        return self._dice.choice(self._texts(name, outer)).encode()

    def _texts(self, name: str, outer: str) -> Sequence[str]:
        if "config" in outer or name == "configuration_keys":
            return _SETTINGS[name]() if name in _SETTINGS else TOPIC_NAMES
        if name == "resource_name":
            return (*self._topics, "1", "2", "")
        if ("group" in name and "instance" not in name) or name in ("key", "coordinator_keys"):
            return self._groups
        if "topic" in name or (name == "name" and outer not in ("protocols", "components")):
            return self._topics
        if name == "protocol_type":
            return ("consumer",)
        if outer == "protocols" or name == "protocol_name":
            return ("range", "roundrobin")
        if name == "member_id":
            return ("", "", "nobody")
        if "instance" in name:
            return ("twin-1", "twin-2")
        return ("", "a", "consumer", "127.0.0.1")


_SETTINGS: Final[dict[str, Callable[[], Sequence[str]]]] = {
    "name": lambda: TOPIC_NAMES + BROKER_NAMES,
    "value": lambda: tuple(value.decode() for value in SETTING_VALUES),
}


def asked_wait_ms(tree: Any) -> int:
    """The longest wait that a request asks for: the greatest of its fields that are named for a time-out."""
    if isinstance(tree, list):
        return max((asked_wait_ms(item) for item in tree), default=0)
    if not isinstance(tree, dict):
        return 0
    waits = [
        value if name.endswith(("timeout_ms", "wait_ms")) and isinstance(value, int) else asked_wait_ms(value)
        for name, value in tree.items()
    ]
    return max(waits, default=0)
