"""Kafka's error codes, and the few exceptions of our own.

Expected outcomes travel as ``ErrorCode`` values. Exceptions are for broken disks, bugs, and input that a
caller must be told about; each says what was wrong, with the value, and what to do.
"""

from sparklog.model.error_codes import ErrorCode

__all__ = [
    "ConfigError",
    "CorruptBatch",
    "ErrorCode",
    "KafkaError",
    "LogDirectoryError",
    "SparklogError",
    "WireError",
]


class SparklogError(Exception):
    """Base of every error that sparklog raises on purpose."""


class ConfigError(SparklogError):
    """A setting that cannot work; the message names it, its value and the remedy."""


class WireError(SparklogError):
    """Bytes from the network that are not a message; the connection they came from is closed."""


class CorruptBatch(SparklogError):  # noqa: N818 (the field's word for the thing itself)
    """Bytes that are not a whole, intact record batch."""


class LogDirectoryError(SparklogError):
    """A log directory that cannot be used: locked, foreign, read-only or broken."""


class KafkaError(SparklogError):
    """A request that was refused: an error code with the server's own words."""

    def __init__(self, code: ErrorCode, message: str = "") -> None:
        super().__init__(f"{code.name.upper()}: {message}" if message else code.name.upper())
        self.code = code
        self.message = message
