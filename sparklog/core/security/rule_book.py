"""All rules of a cluster, found by the resource that a request names.

A question looks at three kinds of patterns: the name itself, ``*``, and the prefixes of the name. Prefixes
are looked up by each length that a prefix has, so that a question takes as long with a hundred thousand
rules as with ten. What covers a name is remembered until the next change.

Other threads may ask while one changes the book: each change replaces the rules of one pattern at once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.rules import (
    ANYBODY,
    ANYWHERE,
    EVERY_NAME,
    Pattern,
    PatternType,
    Permission,
    Rule,
    Rules,
)

_DESCRIBE: Final = frozenset(
    {AclOperation.read, AclOperation.write, AclOperation.delete, AclOperation.alter, AclOperation.describe}
)
_DESCRIBE_CONFIGS: Final = frozenset({AclOperation.alter_configs, AclOperation.describe_configs})
IMPLYING: Final[Mapping[AclOperation, frozenset[AclOperation]]] = MappingProxyType(
    {
        **{operation: frozenset({operation, AclOperation.all}) for operation in AclOperation},
        AclOperation.describe: _DESCRIBE | {AclOperation.all},
        AclOperation.describe_configs: _DESCRIBE_CONFIGS | {AclOperation.all},
    }
)
"""By operation, those whose allowance allows it too. A denial implies nothing."""

REMEMBERED_MAX: Final = 10_000
"""Names; with more of them all are forgotten, because strangers may ask for any name."""

ByPrincipal = Mapping[str, tuple[Rule, ...]]


@dataclass(slots=True)
class RuleBook:
    """``put`` replaces the rules of a pattern; no rules remove it."""

    _rules: dict[Pattern, Rules] = field(default_factory=dict)
    _indexes: dict[Pattern, ByPrincipal] = field(default_factory=dict)
    _lengths: dict[ResourceType, tuple[int, ...]] = field(default_factory=dict)
    """The lengths of the prefixes that a type ever had."""
    _of_principal: dict[str, dict[Pattern, None]] = field(default_factory=dict)
    _remembered: dict[tuple[ResourceType, str], tuple[ByPrincipal, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """What covers a name, of those that were asked for since the last change."""

    def __len__(self) -> int:
        return len(self._rules)

    def patterns(self) -> list[Pattern]:
        return list(self._rules)

    def rules_of(self, pattern: Pattern) -> Rules:
        return self._rules.get(pattern, frozenset())

    def put(self, pattern: Pattern, rules: Rules) -> None:
        before = self.rules_of(pattern)
        index: dict[str, tuple[Rule, ...]] = {}
        for rule in rules:
            index[rule.principal] = (*index.get(rule.principal, ()), rule)
        for principal in index:
            self._of_principal.setdefault(principal, {})[pattern] = None
        if rules:
            self._note_length(pattern)
            self._rules[pattern], self._indexes[pattern] = rules, index
        else:
            self._rules.pop(pattern, None)
            self._indexes.pop(pattern, None)
        for principal in {rule.principal for rule in before} - index.keys():
            self._of_principal[principal].pop(pattern, None)
        self._remembered = {}  # last: who asks meanwhile puts what was found before into the old one

    def _note_length(self, pattern: Pattern) -> None:
        if pattern.kind is not PatternType.prefixed:
            return
        known = self._lengths.get(pattern.resource, ())
        if len(pattern.name) not in known:
            self._lengths[pattern.resource] = (*known, len(pattern.name))

    def _covering(self, resource: ResourceType, name: str) -> tuple[ByPrincipal, ...]:
        remembered = self._remembered
        found = remembered.get((resource, name))
        if found is None:
            found = tuple(self._look_up(resource, name))
            if len(remembered) >= REMEMBERED_MAX:
                remembered.clear()
            remembered[resource, name] = found
        return found

    def _look_up(self, resource: ResourceType, name: str) -> Iterator[ByPrincipal]:
        indexes = self._indexes
        for literal in (name, EVERY_NAME):
            index = indexes.get(Pattern(resource, literal))
            if index is not None:
                yield index
        for length in self._lengths.get(resource, ()):
            if length <= len(name):
                index = indexes.get(Pattern(resource, name[:length], PatternType.prefixed))
                if index is not None:
                    yield index

    def verdict(
        self, principal: str, host: str, operation: AclOperation, resource: ResourceType, name: str
    ) -> bool | None:
        """Whether the rules allow it; None if no rule is about the resource. A denial beats any allowance."""
        covering = self._covering(resource, name)
        if not covering:
            return None
        implying, is_allowed = IMPLYING[operation], False
        for index in covering:
            for one in (principal, ANYBODY):
                for rule in index.get(one, ()):
                    if rule.host not in (host, ANYWHERE):
                        continue
                    if rule.permission is Permission.deny:
                        if rule.operation in (operation, AclOperation.all):
                            return False
                    elif rule.operation in implying:
                        is_allowed = True
        return is_allowed

    def denies_all(self, principal: str, host: str, operation: AclOperation, resource: ResourceType) -> bool:
        """Whether a denial is about all resources of the type."""
        index = self._indexes.get(Pattern(resource, EVERY_NAME))
        return index is not None and self._decides(index, principal, host, operation, Permission.deny)

    def allows_any(self, principal: str, host: str, operation: AclOperation, resource: ResourceType) -> bool:
        """Whether one pattern is allowed that no denial covers (KIP-679)."""
        if self.denies_all(principal, host, operation, resource):
            return False
        for pattern in [*self._of_principal.get(principal, ()), *self._of_principal.get(ANYBODY, ())]:
            index = self._indexes.get(pattern)
            if index is None or pattern.resource is not resource:
                continue
            if self._decides(index, principal, host, operation, Permission.allow) and not self._is_denied(
                principal, host, operation, pattern
            ):
                return True
        return False

    def _is_denied(self, principal: str, host: str, operation: AclOperation, allowed: Pattern) -> bool:
        """Whether a denial covers all that the pattern covers, but for ``*``."""
        denying = [
            self._indexes.get(Pattern(allowed.resource, allowed.name[:length], PatternType.prefixed))
            for length in self._lengths.get(allowed.resource, ())
            if length <= len(allowed.name) and allowed.name != EVERY_NAME
        ]
        if allowed.kind is PatternType.literal:
            denying.append(self._indexes.get(allowed))
        return any(
            index is not None and self._decides(index, principal, host, operation, Permission.deny)
            for index in denying
        )

    @staticmethod
    def _decides(
        index: ByPrincipal, principal: str, host: str, operation: AclOperation, permission: Permission
    ) -> bool:
        """Whether one of the rules has this permission for the request."""
        is_denial = permission is Permission.deny
        operations = frozenset({operation, AclOperation.all}) if is_denial else IMPLYING[operation]
        return any(
            rule.permission is permission and rule.operation in operations and rule.host in (host, ANYWHERE)
            for one in (principal, ANYBODY)
            for rule in index.get(one, ())
        )
