"""What exists in the cluster under test, by name: what requests may play with, and what must stay.

A request may name *kept* things only if its API reads. So whatever a request does, also a damaged one, the
kept records, and the kept group's offsets, are there afterwards.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sparklog.core.apis.api_table import APIS
from sparklog.core.security.acl import AclOperation, ResourceType

KEPT_TOPIC: Final = "kept"
KEPT_GROUP: Final = "kept-group"
PLAYED_TOPICS: Final = ("played-0", "played-1", "played-2", "played-3")
PLAYED_GROUPS: Final = ("group-0", "group-1", "group-2")

_READS: Final = {AclOperation.read, AclOperation.describe, AclOperation.describe_configs}


SEEN_MAX: Final = 8
"""How many values of each field are remembered."""


@dataclass(slots=True)
class Seen:
    """The latest values of those fields of responses that later requests refer to, by the field's name."""

    values: dict[str, list[object]] = field(default_factory=dict)

    def note(self, name: str, value: object) -> None:
        latest = self.values.setdefault(name, [])
        latest.append(value)
        del latest[:-SEEN_MAX]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """``topic_ids`` are those of today, by name; topics are deleted and made again while requests are drawn.

    ``seen`` has what the cluster gave out (members, sessions, producers), for requests to use.
    """

    topic_ids: Mapping[str, bytes]
    seen: Seen = field(default_factory=Seen)


def may_name_kept_topic(api_key: int) -> bool:
    """Whether the API only reads the topics that a request names."""
    return _only(api_key, ResourceType.topic, _READS)


def may_name_kept_group(api_key: int) -> bool:
    """Whether the API only describes groups; a member with the right to read a group changes it."""
    return _only(api_key, ResourceType.group, {AclOperation.describe})


def _only(api_key: int, resource: ResourceType, allowed: set[AclOperation]) -> bool:
    needed = (one for right in APIS[api_key].rights for one in right.alternatives)
    rights = [right for right in needed if right.resource is resource]
    return bool(rights) and all(right.operation in allowed | {AclOperation.create} for right in rights)
