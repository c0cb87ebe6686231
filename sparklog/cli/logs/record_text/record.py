"""One record, as ``produce`` reads it and ``consume`` prints it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Record:
    """``partition`` None: by its key. ``timestamp_ms`` None: when it is sent. A null is a None."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None
