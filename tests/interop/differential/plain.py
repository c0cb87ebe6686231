"""Answers made comparable: what each system chooses for itself has a name, and what has no order is sorted.

Ids are named by the order in which a dialogue meets them, so that the same id at two places has one name. The
text of an error message counts only as being there: clients show it and do not read it.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tests.interop.differential.talk import Said

ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|producer id [0-9]+")
OWN: Final = frozenset({"port", "cluster_id", "total_bytes", "usable_bytes", "partition_size", "log_dir"})
"""What only says which machine and which run it is."""
IGNORED: Final = frozenset({"throttle_time_ms"})
A_TIME_FROM: Final = 1_500_000_000_000
ATTRIBUTES_AT: Final = 21
PRODUCER_AT: Final = 43
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20

Difference = tuple[str, Any, Any]
"""Where, ours, theirs."""


class Namer:
    """Names ids by the order in which they are met."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def name(self, text: str) -> str:
        return ID.sub(lambda found: self._names.setdefault(found[0], f"<id {len(self._names)}>"), text)


def plain(said: Sequence[Said]) -> list[tuple[str, Any]]:
    """What was said, each request with its answer.

    Ids that stand alone are named first, because lists are sorted by the names of what is in them.
    """
    namer = Namer()
    masked = [(one.request, _masked(one.answer, "")) for one in said]
    for _, answer in masked:
        _meet(answer, namer)
    return [(request, _named(answer, namer)) for request, answer in masked]


def _masked(value: Any, name: str) -> Any:
    """Ids are still there; everything else is as it will be, but for the order."""
    if isinstance(value, dict):
        return {key: _masked(item, key) for key, item in value.items() if key not in IGNORED}
    if name == "records":
        return list(_batches(value or b""))
    if isinstance(value, list):
        return [_masked(item, name) for item in value]
    if name in OWN:
        return f"<{name}>"
    if name == "error_message":
        return None if value in (None, b"") else "<text>"
    if name == "topic_id" and any(value or b""):
        return "<topic id>"
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, int) and value > A_TIME_FROM and "time" in name:
        return "<time>"
    if name == "producer_id" and value >= 0:
        return f"producer id {value}"
    return value


def _meet(answer: Any, namer: Namer) -> None:
    for value in answer.values() if isinstance(answer, dict) else ():
        if isinstance(value, str):
            namer.name(value)


def _named(value: Any, namer: Namer) -> Any:
    if isinstance(value, dict):
        return {key: _named(item, namer) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((_named(item, namer) for item in value), key=repr)
    return namer.name(value) if isinstance(value, str) else value


def _batches(octets: bytes) -> Iterator[dict[str, Any]]:
    """Each whole batch: its offsets and its producer."""
    while len(octets) >= PRODUCER_AT + 14:
        base, length = struct.unpack_from(">qi", octets)
        if len(octets) < 12 + length:
            return
        attributes, delta = struct.unpack_from(">hi", octets, ATTRIBUTES_AT)
        producer_id, epoch, sequence = struct.unpack_from(">qhi", octets, PRODUCER_AT)
        yield {
            "base_offset": base,
            "last_offset_delta": delta,
            "is_transactional": bool(attributes & TRANSACTIONAL),
            "is_control": bool(attributes & CONTROL),
            "producer_id": _masked(producer_id, "producer_id"),
            "producer_epoch": epoch,
            "base_sequence": sequence,
        }
        octets = octets[12 + length :]


def differences(ours: Any, theirs: Any, where: str = "") -> Iterator[Difference]:
    """Each place where two trees differ, by its path: ``groups[0].error_code``."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        for key, item in ours.items():
            yield from differences(item, theirs[key], f"{where}.{key}" if where else key)
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, f"{where}[{number}]")
    elif ours != theirs:
        yield where, ours, theirs
