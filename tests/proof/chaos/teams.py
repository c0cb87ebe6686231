"""Who shares a secured cluster: two teams, a guest at one topic, and clients that try what is not theirs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

RED: Final = "red"
BLUE: Final = "blue"
GUEST: Final = "guest"

LENT: Final = "plain"
"""The topic of the red team that the guest writes to, as long as its rule is there."""


@dataclass(frozen=True, slots=True)
class Right:
    """A rule; ``kind`` is the option of ``sparklog acls`` that names the resource."""

    kind: str
    name: str
    operations: str
    is_prefix: bool = False

    @property
    def words(self) -> list[str]:
        """As options of the command."""
        named = [f"--{self.kind}", self.name, "--operation", self.operations]
        return [*named, "--prefixed"] if self.is_prefix else named


LOAN: Final = Right("topic", LENT, "write")
"""The guest's only rule."""


def rights_of(
    red_topics: Sequence[str], blue_topics: Sequence[str], red_group: str, blue_group: str
) -> Mapping[str, Sequence[Right]]:
    """By team: its topics, its groups, and the transactional ids of its producers and atomic writes."""
    return {
        RED: [
            *(Right("topic", name, "read,write") for name in red_topics),
            Right("group", red_group, "read"),
            Right("transactional-id", "typed-", "write", True),
        ],
        BLUE: [
            *(Right("topic", name, "read,write") for name in blue_topics),
            Right("group", blue_group, "read"),
            *(
                Right("transactional-id", name, "write", True)
                for name in ("transactions-", "pipeline-", "writes-")
            ),
        ],
        GUEST: [LOAN],
    }
