"""Numbers of Kafka's protocol that several packages use."""

from enum import IntEnum
from typing import Final

ACKS_ALL: Final = -1
"""A Produce is answered when all in-sync replicas have its records."""

ACKS: Final = (ACKS_ALL, 0, 1)
"""The legal acks of a Produce: 0 means no answer, 1 an answer when the leader has the records."""

READ_COMMITTED: Final = 1
"""The isolation level of a Fetch or ListOffsets that sees nothing of open or aborted transactions."""

ISOLATION_LEVELS: Final = (0, READ_COMMITTED)

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
BROKER_LOGGER_RESOURCE: Final = 8
"""The resource types that have settings."""


class ConfigSource(IntEnum):
    """The level that a setting's value is from. A lower number overrides a higher one."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6


class ConfigType(IntEnum):
    """The type of a setting's value, as DescribeConfigs numbers it."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9
