"""A record of an internal topic in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

DELETED: Final = "<DELETE>"
"""What Kafka's tool shows for a tombstone."""


@dataclass(frozen=True, slots=True)
class DecodedRecord:
    """Key and value with the fields of the record's version; ``value`` None is a tombstone.

    The texts are those of Kafka's tool.
    """

    key: Mapping[str, Any]
    value: Mapping[str, Any] | None
    key_text: str
    value_text: str
