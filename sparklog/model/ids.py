"""Types of names, ids, epochs and offsets.

A topic has a name and an id (a UUID). A topic that is deleted and created again has the same name and a new
id, so state of the old topic is never mistaken for state of the new one.
"""

import re
import uuid
from typing import Final, NamedTuple, NewType

BrokerId = NewType("BrokerId", int)
"""A broker's number, which its data directories keep over restarts."""

BrokerEpoch = NewType("BrokerEpoch", int)
"""Fences incarnations of one broker: the ZooKeeper transaction id of its registration."""

LeaderEpoch = NewType("LeaderEpoch", int)
"""Fences leaders of one partition; grows with every election."""

ControllerEpoch = NewType("ControllerEpoch", int)
"""Fences controllers; grows with every controller election."""

Offset = NewType("Offset", int)
"""A record's position in its partition."""

ProducerId = NewType("ProducerId", int)

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
"""In records and messages, where a field for a producer names none."""

TopicId = uuid.UUID
NO_TOPIC_ID: Final = uuid.UUID(int=0)

NO_LEADER: Final = BrokerId(-1)
NO_EPOCH: Final = LeaderEpoch(-1)
NO_OFFSET: Final = Offset(-1)
NO_BROKER_EPOCH: Final = BrokerEpoch(-1)

TOPIC_NAME_LENGTH_MAX: Final = 249
_LEGAL_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")


class TopicPartition(NamedTuple):
    """One partition of one topic, by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class NamedTopic(NamedTuple):
    """A topic under its name. One that is made again under the name of another has another id."""

    name: str
    id: TopicId
    """NO_TOPIC_ID where the name alone counts."""


def topic_name_problem(name: str) -> str | None:
    """Why ``name`` cannot be a topic's name, or None if it can (Kafka's rule: Topic.validate)."""
    if not name:
        return "a topic name may not be empty"
    if name in (".", ".."):
        return f"a topic may not be named {name!r}"
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        return f"topic name of {len(name)} characters is longer than {TOPIC_NAME_LENGTH_MAX}"
    if not _LEGAL_TOPIC_NAME.fullmatch(name):
        return f"topic name {name!r} has characters other than a-z, A-Z, 0-9, '.', '_' and '-'"
    return None


def collides(name: str, other: str) -> bool:
    """Whether two different topic names differ only in '.' and '_' (their metrics would collide)."""
    return name != other and name.replace(".", "_") == other.replace(".", "_")
