"""What a coordinator needs of the codec of its internal topic."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from sparklog.core.coordinator.actions import StateRecord


class EncodedRecord(NamedTuple):
    """Key and value of a record in the log; ``value`` None is a tombstone."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """A record that this release does not understand: newer, damaged by its writer, or another program's.

    ``kind`` names the reason, the same for every record with that reason.
    """

    kind: str


class RecordCodec(Protocol):
    """Typed records of one internal topic to bytes and back."""

    def encode(self, record: StateRecord) -> EncodedRecord:
        """Raises WireError if a string is longer than the 32,767 bytes for which the format has room."""

    def decode(
        self, key: bytes | memoryview | None, value: bytes | memoryview | None
    ) -> StateRecord | UnreadableRecord:
        """Never raises: a record that nobody understands must not stop a coordinator."""
