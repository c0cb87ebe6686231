"""Judges rights: by super users, by the rules, and by what holds where there is no rule.

authorizer.class.name             switches it on, by the name of either of Kafka's two authorizers
super.users                       principals, divided by semicolons, who may do everything
allow.everyone.if.no.acl.found    whether everybody may do what no rule is about
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.requester import Requester
from sparklog.core.security.rule_book import RuleBook
from sparklog.model.settings.access_settings import (
    ALLOWS_WITHOUT_RULES,
    AUTHORIZER,
    SUPER_USERS,
    super_users,
)
from sparklog.model.settings.config import BrokerConfig


@dataclass(slots=True)
class Authorizer:
    """``book`` is replaced as a whole when all rules are read again."""

    super_users: frozenset[str] = frozenset()
    allows_without_rules: bool = False
    book: RuleBook = field(default_factory=RuleBook)

    def allows(
        self, requester: Requester, operation: AclOperation, resource: ResourceType, name: str
    ) -> bool:
        if requester.principal in self.super_users:
            return True
        verdict = self.book.verdict(requester.principal, requester.client_host, operation, resource, name)
        return self.allows_without_rules if verdict is None else verdict

    def allows_any(self, requester: Requester, operation: AclOperation, resource: ResourceType) -> bool:
        """Whether the right is there on a resource of the type, whichever it is."""
        if requester.principal in self.super_users:
            return True
        question = (requester.principal, requester.client_host, operation, resource)
        book = self.book
        if self.allows_without_rules:
            return not book.denies_all(*question)
        return book.allows_any(*question)

    def operations(
        self, requester: Requester, among: Iterable[AclOperation], resource: ResourceType, name: str
    ) -> int:
        """What the requester may do to the resource, as bits."""
        return bits(one for one in among if self.allows(requester, one, resource, name))


def bits(operations: Iterable[AclOperation]) -> int:
    """Operations as Kafka's responses have them: the bit of an operation's number is set (KIP-430)."""
    return sum(1 << operation for operation in operations)


def authorizer_of(config: BrokerConfig) -> Authorizer | None:
    """The authorizer that the settings ask for, without any rules yet; None if they ask for none."""
    if not config.get_str(AUTHORIZER):
        return None
    return Authorizer(super_users(config.get_str(SUPER_USERS)), config.get_bool(ALLOWS_WITHOUT_RULES))
