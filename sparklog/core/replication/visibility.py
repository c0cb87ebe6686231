"""How far a fetcher may read, which depends on who it is (Kafka's FetchIsolation)."""

from enum import Enum


class Visibility(Enum):
    """The exclusive end of what one kind of fetcher reads."""

    LOG_END = "log end"
    """Followers read everything."""
    HIGH_WATERMARK = "high watermark"
    """Consumers read what is committed."""
    LAST_STABLE_OFFSET = "last stable offset"
    """Read-committed consumers read up to the first transaction that is not decided."""

    @classmethod
    def of_consumer(cls, *, read_committed: bool) -> "Visibility":
        return cls.LAST_STABLE_OFFSET if read_committed else cls.HIGH_WATERMARK
