"""The rules that each broker and controller goes by, beside those of ZooKeeper.

StoresFollowZooKeeper   a store has rules that ZooKeeper had, and never goes back to earlier ones
RulesBindSoon           a store whose process is connected to ZooKeeper, and hears from it in time, is no more
                        than ``LATE_LOOKS`` looks late
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from simulation.invariants.access.rule_history import NO_RULES, RuleHistory
from simulation.invariants.access.verdicts import RuleSet, allows
from simulation.invariants.invariant import Violation
from simulation.schedule import Process
from sparklog.broker.partition.partition import Partition
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.authorizer import Authorizer
from sparklog.core.security.rules import Pattern, Rules

Holds = Callable[[Partition], bool]

LATE_LOOKS: Final = 25
"""A changed rule should bind a server within a second. A read of all rules goes many times to ZooKeeper, and
here a whole broker stands still meanwhile."""


@dataclass(slots=True)
class _Store:
    """What one process goes by. ``index``: which version of ZooKeeper's it has at least, by pattern."""

    name: str
    authorizer: Authorizer
    holds: Holds
    """Whether a replica is its own."""
    seen: dict[Pattern, Rules] = field(default_factory=dict)
    index: dict[Pattern, int] = field(default_factory=dict)
    past: list[tuple[int, RuleSet]] = field(default_factory=lambda: [(0, {})])
    """What it had, and from when on."""
    late_looks: int = 0
    late_for: tuple[Pattern, int] | None = None
    """The version that it lacks, and has lacked for so many looks."""


class RuleStores:
    def __init__(self, history: RuleHistory, *, without_rules: bool, reach: Callable[[str], None]) -> None:
        self._history = history
        self._without_rules = without_rules
        self._reach = reach
        self._stores: dict[Process, _Store] = {}
        self.is_silent = False

    def enrol(self, process: Process, authorizer: Authorizer, holds: Holds = lambda partition: False) -> None:
        """A process has read the rules, and is about to serve."""
        self._stores[process] = _Store(process.name, authorizer, holds)
        self.look_at(process)

    def holder(self, partition: Partition) -> Process | None:
        """Whose replica it is."""
        return next((one for one, store in self._stores.items() if store.holds(partition)), None)

    def look_at(self, process: Process) -> None:
        """After a step of the process."""
        store = self._stores.get(process)
        if store is None:
            return
        rules = store.authorizer.book._rules
        if rules == store.seen:
            return
        for pattern in {*rules, *store.seen}:
            if rules.get(pattern) != store.seen.get(pattern):
                self._follow(store, pattern, rules)
        store.seen = dict(rules)
        store.past.append((self._history.now_us(), dict(rules)))

    def _follow(self, store: _Store, pattern: Pattern, rules: RuleSet) -> None:
        versions, had = self._history.versions(pattern), store.index.get(pattern, 0)
        found = rules.get(pattern, NO_RULES)
        for index in range(had, len(versions)):
            if versions[index].rules == found:
                store.index[pattern] = index
                return
        if not self.is_silent:
            what = f"{store.name} has {sorted(map(str, found))} for {pattern}, "
            raise Violation("StoresFollowZooKeeper", f"{what}after version {had} of {len(versions) - 1}")

    # -- how late they are

    def look_whether_late(self, process: Process, *, is_undisturbed: bool) -> None:
        """Called over and over. ``is_undisturbed``: nothing keeps news of ZooKeeper from the process."""
        store = self._stores.get(process)
        if store is None:
            return
        lacks = self._lacks(store)
        if lacks is None or lacks != store.late_for:
            store.late_looks, store.late_for = 0, lacks
        elif not is_undisturbed:
            store.late_looks = 0
        elif not process.is_waiting:
            store.late_looks += 1
            if store.late_looks > LATE_LOOKS and not self.is_silent:
                pattern, index = lacks
                what = f"{store.name} does not know version {index} of the rules for {pattern}"
                raise Violation("RulesBindSoon", what)
        if lacks is not None and not is_undisturbed:
            self._reach("a server went by old rules while it was cut off")

    def _lacks(self, store: _Store) -> tuple[Pattern, int] | None:
        """The first version that came after what it has."""
        for pattern in dict.fromkeys((*self._history.patterns(), *store.seen)):
            found = store.seen.get(pattern, NO_RULES)
            if found != self._history.latest(pattern):
                versions = self._history.versions(pattern)
                last = max(index for index, one in enumerate(versions) if one.rules == found)
                return pattern, last + 1
        return None

    def unrest(self, process: Process) -> str | None:
        store = self._stores.get(process)
        if store is None:
            return f"{process.name} has not read the access rules"
        lacks = self._lacks(store)
        return None if lacks is None else f"{process.name} lacks the rules of now for {lacks[0]}"

    # -- what they say

    def allows(
        self, process: Process, principal: str, host: str, operation: AclOperation, topic: str
    ) -> bool:
        """Whether the process must allow that now."""
        return self._says(self._stores[process].seen, principal, host, operation, topic)

    def said(
        self,
        process: Process,
        principal: str,
        host: str,
        operation: AclOperation,
        name: str,
        *,
        since_us: int,
        resource: ResourceType = ResourceType.topic,
    ) -> set[bool]:
        """What the process said to that since then, in a word each."""
        past = self._stores[process].past
        ends = [*(at_us for at_us, _ in past[1:]), self._history.now_us()]
        return {
            self._says(rules, principal, host, operation, name, resource)
            for (_, rules), end_us in zip(past, ends, strict=True)
            if end_us >= since_us
        }

    def _says(
        self,
        rules: RuleSet,
        principal: str,
        host: str,
        operation: AclOperation,
        name: str,
        resource: ResourceType = ResourceType.topic,
    ) -> bool:
        without_rules = self._without_rules
        return allows(rules, principal, host, operation, name, without_rules=without_rules, resource=resource)
