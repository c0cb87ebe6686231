"""The kinds of payload, their versions, and the capability numbers by which clients announce them."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final


class PayloadKind(IntEnum):
    """The format of the bytes after the envelope, selected by the ARROW bit of its attributes."""

    RECORDS = 0
    ARROW = 1


RECORDS_VERSION: Final = 2
"""Kafka's own number: message format v2."""

ARROW_VERSION: Final = 1


def capability(kind: PayloadKind, version: int) -> int:
    """A kind and its version as one number, as in the ``payload_kinds`` tags."""
    return kind << 8 | version


SUPPORTED_PAYLOADS: Final = (
    capability(PayloadKind.RECORDS, RECORDS_VERSION),
    capability(PayloadKind.ARROW, ARROW_VERSION),
)
"""The payloads that this release reads and writes; our clients send them with each Fetch and Produce."""


def takes_arrow(payload_kinds: Sequence[int]) -> bool:
    """Whether a client that sent these ``payload_kinds`` can read arrow payloads as we write them."""
    return capability(PayloadKind.ARROW, ARROW_VERSION) in payload_kinds
