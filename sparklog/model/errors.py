"""Kafka's error codes, and sparklog's exceptions.

Expected outcomes are returned as ``ErrorCode`` values. Exceptions are for broken disks, bugs and invalid
input; each message has the problem, the value and the remedy.
"""

from sparklog.model.error_codes import ErrorCode

__all__ = [
    "ConfigError",
    "CorruptBatch",
    "ErrorCode",
    "KafkaError",
    "LogDirectoryError",
    "SchemaError",
    "SparklogError",
    "WireError",
]


class SparklogError(Exception):
    """Base of all of sparklog's exceptions."""


class ConfigError(SparklogError):
    """A setting that cannot work; the message names it, its value and the remedy."""


class UnsafeStartError(ConfigError):
    """A start that is refused for safety: a certificate, a secret or a right is missing or wrong."""


class WireError(SparklogError):
    """Bytes from the network that are not a message; their connection is closed."""


class CorruptBatch(SparklogError):  # noqa: N818 (the field's word for the thing itself)
    """Bytes that are not a whole, intact record batch."""


class LogDirectoryError(SparklogError):
    """A log directory that cannot be used: locked, foreign, read-only or broken."""


class SchemaError(SparklogError):
    """Columns that a topic cannot have; the message names the column and the remedy."""


class KafkaError(SparklogError):
    """A refused request: an error code with the server's message."""

    def __init__(self, code: ErrorCode, message: str = "") -> None:
        super().__init__(f"{code.name.upper()}: {message}" if message else code.name.upper())
        self.code = code
        self.message = message
