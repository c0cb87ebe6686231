"""The kinds of payload, their versions, and the capability numbers by which clients announce them.

Version 2 of *arrow* has the rows of typed topics, version 1 those of untyped ones.
"""

from collections.abc import Collection
from enum import IntEnum
from typing import Final


class PayloadKind(IntEnum):
    """The format of the bytes after the envelope, selected by the ARROW bit of its attributes."""

    RECORDS = 0
    ARROW = 1


RECORDS_VERSION: Final = 2
"""Kafka's own number: message format v2."""

ARROW_VERSION: Final = 1
TYPED_ARROW_VERSION: Final = 2


def capability(kind: PayloadKind, version: int) -> int:
    """A kind and its version as one number, as in the ``payload_kinds`` tags."""
    return kind << 8 | version


SUPPORTED_PAYLOADS: Final = (
    capability(PayloadKind.RECORDS, RECORDS_VERSION),
    capability(PayloadKind.ARROW, ARROW_VERSION),
)
"""The payloads that a reader without a topic's columns takes; our clients send them with each Fetch."""

ALL_PAYLOADS: Final = (*SUPPORTED_PAYLOADS, capability(PayloadKind.ARROW, TYPED_ARROW_VERSION))
"""The payloads that this release reads and writes, for producers and for readers that know the columns."""


def takes_arrow(payload_kinds: Collection[int], version: int = ARROW_VERSION) -> bool:
    """Whether a client that sent these ``payload_kinds`` knows this version of arrow payloads."""
    return capability(PayloadKind.ARROW, version) in payload_kinds
