"""Whether a seed has principals: two teams, access rules about their topics, and rulers who change the rules.

They have dice of their own: a seed without them is the run that it would be if there were none. So have those
who use names of atomic writes, of which each team knows the other's.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from simulation.plans.faults import Fault
from simulation.schedule import dice
from sparklog.model.settings.access_settings import ALLOWS_WITHOUT_RULES, AUTHORIZER, AUTHORIZERS, SUPER_USERS

WITH_PRINCIPALS: Final = 0.15
"""Share of the seeds that have principals."""

WITH_NAMES: Final = 0.5
"""Share of these in which teams use names of atomic writes and of agreements."""

TEAMS: Final = ("red", "blue")
BROKER: Final = "User:broker"
"""Brokers and controllers."""
OFFICE: Final = "User:office"
"""Everybody who is of no team. It may do everything."""

BROKER_HOSTS: Final = ("broker-", "controller-")

LATE_NEWS: Final = ("lag zookeeper", "delay watches")
"""Faults that keep news of ZooKeeper from those who are connected."""

OWN_NAMES: Final = ("write-1", "query-2")
"""Names of atomic writes as jobs draw them, which both teams know."""
CHOSEN_NAME: Final = "app-ledger"
"""One that a user has chosen."""

KEPT_MIN_MS: Final = 1_000
NEVER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class PrincipalPlan:
    """``change_every_ms``: how often each ruler changes rules, on average."""

    rulers: int
    change_every_ms: float
    are_brokers_by_rule: bool
    """Whether brokers have CLUSTER_ACTION by a rule; else they are super users."""
    allows_without_rules: bool
    kept_ms: int
    """How long notifications of changes are kept: longer than anybody who is connected hears of them late."""
    name_users: int = 0
    """How many of each team use names."""
    use_every_ms: float = 0.0
    """How often each of them does, on average."""


def team_topic(team: str) -> str:
    return f"{team}-orders"


TEAM_TOPICS: Final = tuple(team_topic(team) for team in TEAMS)


def principal_of(origin: str) -> str:
    """Of the program that calls from ``origin``."""
    if origin.startswith(BROKER_HOSTS):
        return BROKER
    team, dash, _ = origin.partition("-")
    return f"User:{team}" if dash and team in TEAMS else OFFICE


def draw_principals(
    seed: int,
    faults: Iterable[Fault],
    session_timeout_ms: int,
    *,
    share: float = WITH_PRINCIPALS,
    names: float = WITH_NAMES,
) -> PrincipalPlan | None:
    """``names``: the share of seeds with principals in which teams use names."""
    draw = dice(seed, "principals")
    if draw.random() >= share:
        return None
    users = dice(seed, "names of teams")
    has_names = users.random() < names
    hears_late = any(fault.kind in LATE_NEWS for fault in faults)
    return PrincipalPlan(
        rulers=draw.choice((1, 2)),
        change_every_ms=draw.choice((100.0, 250.0, 600.0)),
        are_brokers_by_rule=draw.random() < 0.5,
        allows_without_rules=draw.random() < 0.25,
        kept_ms=NEVER_MS if hears_late else session_timeout_ms + KEPT_MIN_MS,
        use_every_ms=users.choice((80.0, 200.0)),
        name_users=users.choice((1, 2)) if has_names else 0,
    )


def settings_for_principals(plan: PrincipalPlan) -> dict[str, str]:
    super_users = (OFFICE,) if plan.are_brokers_by_rule else (OFFICE, BROKER)
    return {
        AUTHORIZER: AUTHORIZERS[0],
        SUPER_USERS: ";".join(super_users),
        ALLOWS_WITHOUT_RULES: str(plan.allows_without_rules).lower(),
    }
