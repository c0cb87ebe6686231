"""The rules that ZooKeeper had, pattern by pattern, and when.

RulesAreAskedFor    a rule comes or goes only if somebody who may say so asked for that
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from simulation.invariants.access.verdicts import RuleSet
from simulation.invariants.invariant import Violation
from sparklog.core.security.acl import ResourceType
from sparklog.core.security.rule_nodes import (
    LITERAL_RULES,
    ROOTS,
    decode_rules,
    rules_path,
    type_path,
)
from sparklog.core.security.rules import Pattern, Rule, Rules
from sparklog.model.zookeeper import Operation
from sparklog.testing.memory_zookeeper import ZooKeeperTree

NO_RULES: Final[Rules] = frozenset()

Asked = tuple[Pattern, Rule]


@dataclass(frozen=True, slots=True)
class Version:
    """The rules of a pattern, ``from_us`` on until the next version."""

    rules: Rules
    from_us: int


@dataclass(slots=True)
class RuleHistory:
    tree: ZooKeeperTree
    now_us: Callable[[], int]
    asked_for: set[Asked] = field(default_factory=set)
    """Rules whose creation somebody asked for who may create them."""
    asked_away: set[Asked] = field(default_factory=set)
    """Likewise, of deletions."""
    changes: int = 0
    is_silent: bool = False
    _of_pattern: dict[Pattern, list[Version]] = field(default_factory=dict)
    _is_written: bool = True

    def look_at_write(self, operations: Sequence[Operation]) -> None:
        """Before it is applied: only what is written below the rules can change them."""
        if any(one.path.startswith(LITERAL_RULES) for one in operations):
            self._is_written = True

    def look_at_zookeeper(self) -> None:
        """After a transaction."""
        if not self._is_written:
            return
        self._is_written = False
        present = self._read()
        for pattern in {*present, *self._of_pattern}:
            before, rules = self.latest(pattern), present.get(pattern, NO_RULES)
            if rules != before:
                self._check_is_asked(pattern, before, rules)
                self.versions(pattern).append(Version(rules, self.now_us()))
                self.changes += 1

    def versions(self, pattern: Pattern) -> list[Version]:
        """Oldest first; there were no rules at first."""
        return self._of_pattern.setdefault(pattern, [Version(NO_RULES, 0)])

    def latest(self, pattern: Pattern) -> Rules:
        versions = self._of_pattern.get(pattern)
        return NO_RULES if versions is None else versions[-1].rules

    def patterns(self) -> list[Pattern]:
        """All that ever had rules."""
        return list(self._of_pattern)

    @property
    def now(self) -> RuleSet:
        return {one: rules for one in self._of_pattern if (rules := self.latest(one))}

    def had(self, asked: Asked, *, is_there: bool, since_us: int) -> bool:
        """Whether ZooKeeper had the rule, or had it not, at some time since then."""
        pattern, rule = asked
        versions = self.versions(pattern)
        ends = [*(one.from_us for one in versions[1:]), self.now_us()]
        return any(
            (rule in version.rules) is is_there and end_us >= since_us
            for version, end_us in zip(versions, ends, strict=True)
        )

    def _check_is_asked(self, pattern: Pattern, before: Rules, after: Rules) -> None:
        if self.is_silent:
            return
        for rule in after - before:
            if (pattern, rule) not in self.asked_for:
                raise Violation("RulesAreAskedFor", f"{pattern} has got {rule}, and nobody may ask for it")
        for rule in before - after:
            if (pattern, rule) not in self.asked_away:
                raise Violation("RulesAreAskedFor", f"{pattern} has lost {rule}, and nobody asked for that")

    def _read(self) -> dict[Pattern, Rules]:
        patterns = [
            Pattern(resource, name, kind)
            for kind in ROOTS
            for resource in ResourceType
            for name in self.tree.children(type_path(kind, resource))
        ]
        paths = [(pattern, rules_path(pattern)) for pattern in patterns]
        nodes = [(pattern, path, self.tree.get(path)) for pattern, path in paths]
        return {one: decode_rules(path, node.data) for one, path, node in nodes if node is not None}
