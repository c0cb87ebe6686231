"""Numbers of Kafka's protocol that several rooms use."""

from enum import IntEnum
from typing import Final

ACKS_ALL: Final = -1
"""Answer a Produce when all replicas in sync have it."""

ACKS: Final = (ACKS_ALL, 0, 1)
"""What a Produce may ask for: 0 is no answer at all, 1 an answer when the leader has it."""

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
"""The resource types that have settings."""


class ConfigSource(IntEnum):
    """Where the value of a setting comes from. A topic's own value goes over its broker's, and so on down."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
