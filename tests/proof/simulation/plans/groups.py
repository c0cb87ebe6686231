"""Which consumer groups a seed has, and what their members do to each other.

Groups have dice of their own: a seed without them is the run that it would be if there were none.
"""

import random
from dataclasses import dataclass
from typing import Final, Literal

from simulation.schedule import dice

Churn = Literal["leave", "die", "stall", "twin"]
"""A member leaves and joins again, dies and is replaced, stands still, or meets a second process with its
instance id."""

ALL_CHURN: Final[tuple[Churn, ...]] = ("leave", "die", "stall", "twin")

WITH_GROUPS: Final = 0.2
"""Share of the seeds that have groups."""


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One group. Times in milliseconds; ``statics`` of the ``members`` have an instance id.

    ``rude_share``: how likely a member commits when it must not, whenever it could: between its join and its
    assignment, and late, as a member of the generation before.
    """

    members: int
    statics: int
    session_timeout_ms: int
    rebalance_timeout_ms: int
    commit_ms: float
    churn_ms: float
    churn: tuple[Churn, ...]
    rude_share: float


def draw_groups(seed: int, *, share: float = WITH_GROUPS) -> tuple[GroupPlan, ...]:
    """The groups of a seed: none, one or two."""
    draw = dice(seed, "groups")
    if draw.random() >= share:
        return ()
    return tuple(_draw_group(draw) for _ in range(draw.choice((1, 1, 2))))


def _draw_group(draw: random.Random) -> GroupPlan:
    members = draw.choice((1, 2, 2, 3))
    churn = tuple(kind for kind in ALL_CHURN if draw.random() < 0.6)
    return GroupPlan(
        members=members,
        statics=draw.randint(0, members),
        session_timeout_ms=draw.choice((400, 800, 1_500)),
        rebalance_timeout_ms=draw.choice((500, 1_000)),
        commit_ms=draw.choice((60.0, 150.0, 400.0)),
        churn_ms=draw.choice((300.0, 1_000.0)),
        churn=churn or ("die",),
        rude_share=draw.choice((0.0, 0.3, 0.8)),
    )


def draw_load_turn_us(seed: int) -> int:
    """Logs are short here; a coordinator that reads slowly loads as long as one of a long log."""
    return dice(seed, "loads").choice((50, 10_000, 50_000))


def clients_of_group(number: int, group: GroupPlan) -> tuple[str, ...]:
    """The names of all that have to do with it. ``number`` is its place in the plan, from 0 on."""
    members = (member_name(number, seat) for seat in range(group.members))
    return (*members, f"offsets-{number}", f"keeper-{number}")


def member_name(group: int, seat: int) -> str:
    return f"member-{group}-{seat}"


def settings_for_groups(seed: int, session_timeout_ms: int) -> dict[str, str]:
    """The brokers' settings that groups depend on. ``session_timeout_ms`` is ZooKeeper's, which brokers must
    know: their coordinators doubt after a third of it."""
    draw = dice(seed, "settings for groups")
    return {
        "zookeeper.session.timeout.ms": str(session_timeout_ms),
        "offsets.topic.num.partitions": draw.choice(("1", "2")),
        "offsets.topic.replication.factor": "3",
        "offsets.topic.segment.bytes": draw.choice(("1000", "4000", "1048576")),
        "offsets.load.buffer.size": draw.choice(("300", "2000", "5242880")),
        "offsets.commit.timeout.ms": draw.choice(("300", "1000", "5000")),
        "group.min.session.timeout.ms": "100",
        "group.initial.rebalance.delay.ms": draw.choice(("0", "100", "300")),
    }
