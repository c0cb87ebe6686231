"""The rules of a run: those that there are at first, that come and go, and that nobody may make."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from simulation.plans.principals import (
    BROKER,
    CHOSEN_NAME,
    OFFICE,
    OWN_NAMES,
    TEAMS,
    PrincipalPlan,
    team_topic,
)
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.rules import (
    ANYBODY,
    CLUSTER_NAME,
    EVERY_NAME,
    Pattern,
    PatternType,
    Permission,
    Rule,
)

_READ, _WRITE, _ALL = AclOperation.read, AclOperation.write, AclOperation.all


@dataclass(frozen=True, slots=True)
class Given:
    """A rule, and the pattern that it stands under."""

    pattern: Pattern
    rule: Rule

    def __str__(self) -> str:
        rule = self.rule
        return f"{rule.permission.name} {rule.principal}@{rule.host} {rule.operation.name} {self.pattern}"


def _names(name: str, kind: PatternType = PatternType.literal) -> Pattern:
    return Pattern(ResourceType.topic, name, kind)


def _begins(name: str) -> Pattern:
    return _names(name, PatternType.prefixed)


def _ids(name: str, kind: PatternType = PatternType.literal) -> Pattern:
    return Pattern(ResourceType.transactional_id, name, kind)


def _of(team: str, other: str) -> Iterator[Given]:
    """About a team. A literal pattern that is a prefix of the topic's name covers nothing."""
    me, mine, others = f"User:{team}", team_topic(team), team_topic(other)
    yield Given(_names(mine), Rule(me, _WRITE))
    yield Given(_names(mine), Rule(me, _READ))
    yield Given(_begins(f"{team}-"), Rule(me, _ALL))
    yield Given(_names(f"{team}-"), Rule(me, _ALL))
    yield Given(_names(others), Rule(me, _READ))
    yield Given(_begins(f"{other}-o"), Rule(me, _WRITE))
    yield Given(_names(mine), Rule(me, _WRITE, Permission.deny))
    yield Given(_names(mine), Rule(me, _WRITE, Permission.deny, f"{team}-writer-0"))
    yield Given(_begins(f"{team}-or"), Rule(me, _READ, Permission.deny))
    yield Given(_begins(f"{team}-"), Rule(ANYBODY, _ALL, Permission.deny))


RULES: Final = (
    *_of(*TEAMS),
    *_of(*reversed(TEAMS)),
    Given(_names(EVERY_NAME), Rule(ANYBODY, AclOperation.describe)),
)
"""Those that come and go."""


def _about_names_of_writes(team: str) -> Iterator[Given]:
    me = f"User:{team}"
    for name in (OWN_NAMES[0], CHOSEN_NAME):
        yield Given(_ids(name), Rule(me, _WRITE))
        yield Given(_ids(name), Rule(me, _WRITE, Permission.deny))
    yield Given(_ids("query-", PatternType.prefixed), Rule(me, _ALL))


NAME_RULES: Final = tuple(given for team in TEAMS for given in _about_names_of_writes(team))
"""Those that come and go beside them, where teams use each other's names of atomic writes."""

FORBIDDEN: Final = tuple(Given(_names(EVERY_NAME), Rule(f"User:{team}", _ALL)) for team in TEAMS)
"""What each team asks for itself."""


def changing_rules(plan: PrincipalPlan) -> tuple[Given, ...]:
    """What rulers create and delete."""
    return (*RULES, *NAME_RULES) if plan.name_users else RULES


def rules_at_first(plan: PrincipalPlan) -> list[Given]:
    """Each team may write and read its own topic. Nobody may change rules for want of a rule about that."""
    cluster = Pattern(ResourceType.cluster, CLUSTER_NAME)
    given = [Given(cluster, Rule(OFFICE, AclOperation.alter))]
    given += [
        Given(_names(team_topic(team)), Rule(f"User:{team}", operation))
        for team in TEAMS
        for operation in (_READ, _WRITE)
    ]
    if plan.are_brokers_by_rule:
        given.append(Given(cluster, Rule(BROKER, AclOperation.cluster_action)))
    return given
