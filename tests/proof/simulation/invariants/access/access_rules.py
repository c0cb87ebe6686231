"""All rules of access rights in one run."""

from collections.abc import Callable, Collection

from simulation.invariants.access.names import NameRules
from simulation.invariants.access.rights import Rights
from simulation.invariants.access.rule_history import RuleHistory
from simulation.invariants.access.rule_stores import RuleStores
from simulation.invariants.access.team_rules import rules_at_first
from simulation.invariants.access.verdicts import allows
from simulation.plans.principals import PrincipalPlan
from simulation.schedule import Process
from sparklog.core.security.acl import AclOperation
from sparklog.core.security.rule_nodes import encode_rules, rules_path, type_path
from sparklog.core.security.rules import Pattern, Rule
from sparklog.model.ids import TopicId
from sparklog.model.parts import Part
from sparklog.model.zookeeper import Create
from sparklog.network.exchange import Exchange
from sparklog.testing.memory_zookeeper import ZooKeeperTree


class AccessRules:
    """``serving`` says which processes must know the rules."""

    def __init__(
        self,
        plan: PrincipalPlan,
        tree: ZooKeeperTree,
        now_us: Callable[[], int],
        topic_name: Callable[[TopicId], str | None],
        reach: Callable[[str], None],
    ) -> None:
        self.serving: Callable[[], Collection[Process]] = tuple
        self.history = RuleHistory(tree, now_us)
        self.stores = RuleStores(self.history, without_rules=plan.allows_without_rules, reach=reach)
        self.rights = Rights(self.stores, topic_name, reach)
        self.names = NameRules(self.stores, now_us, reach)
        self._without_rules = plan.allows_without_rules
        self._write_first(plan, tree)

    def _write_first(self, plan: PrincipalPlan, tree: ZooKeeperTree) -> None:
        """As ``sparklog acls --zookeeper`` does before the first start."""
        session = tree.open_session()
        given: dict[Pattern, set[Rule]] = {}
        for one in rules_at_first(plan):
            self.history.asked_for.add((one.pattern, one.rule))
            given.setdefault(one.pattern, set()).add(one.rule)
        for pattern, rules in given.items():
            tree.ensure_path(session, type_path(pattern.kind, pattern.resource))
            tree.apply(session, [Create(rules_path(pattern), encode_rules(frozenset(rules)))])
        tree.close_session(session)
        self.history.look_at_zookeeper()

    def allows(self, principal: str, host: str, operation: AclOperation, topic: str) -> bool:
        """What ZooKeeper's rules of now say."""
        rules = self.history.now
        return allows(rules, principal, host, operation, topic, without_rules=self._without_rules)

    def on_answer(self, process: Process, exchange: Exchange, parts: list[Part]) -> None:
        """A broker is about to answer."""
        self.rights.on_answer(process, exchange, parts)
        self.names.on_answer(process, exchange, parts)

    def be_silent(self) -> None:
        """Accuse nobody."""
        self.history.is_silent = self.stores.is_silent = self.rights.is_silent = True
        self.names.is_silent = True

    def unrest(self) -> str | None:
        troubles = (self.stores.unrest(process) for process in self.serving())
        return next((one for one in troubles if one is not None), None)
