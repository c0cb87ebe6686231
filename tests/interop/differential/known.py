"""What differs between our answers and Apache Kafka's, and why a client does not suffer from it."""

import re
from dataclasses import dataclass
from typing import Any, Final

from tests.interop.differential.plain import Difference


@dataclass(frozen=True, slots=True)
class Known:
    """``request`` and ``place`` are patterns of the request's name and of the path in its answer.

    ``ours`` and ``theirs`` are patterns of the two values; ``dialogue`` is a pattern of the dialogue's name.
    """

    request: str
    place: str
    reason: str
    ours: str = ".*"
    theirs: str = ".*"
    dialogue: str = ".*"

    def covers(self, dialogue: str, request: str, difference: Difference) -> bool:
        place, ours, theirs = difference
        pairs: tuple[tuple[str, Any], ...] = (
            (self.dialogue, dialogue),
            (self.request, request),
            (self.place, place),
            (self.ours, repr(ours)),
            (self.theirs, repr(theirs)),
        )
        return all(re.fullmatch(pattern, str(value), re.DOTALL) for pattern, value in pairs)


_FORGOTTEN: Final = (
    "a group without members and offsets is forgotten with its last pending member; Kafka keeps it until its "
    "next cleanup"
)
_STILL_PENDING: Final = (
    "a pending member outlives the deletion of the group's last offset; Kafka forgets the group with it"
)

OF_GROUPS: Final = (
    Known("DescribeGroups .*", r"groups\[0\].group_state", _FORGOTTEN, "'Dead'", "'Empty'"),
    Known("LeaveGroup .*", r"members\[0\].error_code", _STILL_PENDING, "0", "25", "names_of_groups"),
)


def unknown(
    dialogue: str, request: str, found: list[Difference], known: tuple[Known, ...]
) -> list[Difference]:
    """The differences that are not on the list."""
    return [one for one in found if not any(rule.covers(dialogue, request, one) for rule in known)]
