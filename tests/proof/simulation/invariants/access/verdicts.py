"""What rules say, in the simplest words: the shipped code is compared with it."""

from collections.abc import Mapping
from typing import Final

from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.rules import Pattern, PatternType, Permission, Rule, Rules

RuleSet = Mapping[Pattern, Rules]
"""All rules of a moment."""

IMPLYING_DESCRIBE: Final = (AclOperation.read, AclOperation.write, AclOperation.delete, AclOperation.alter)


def allows(
    rules: RuleSet,
    principal: str,
    host: str,
    operation: AclOperation,
    name: str,
    *,
    without_rules: bool,
    resource: ResourceType = ResourceType.topic,
) -> bool:
    """Whether ``principal`` may do that to what has this name. ``without_rules``: the answer if no rule is
    about it.
    """
    about = [of_pattern for pattern, of_pattern in rules.items() if _covers(pattern, resource, name)]
    if not about:
        return without_rules
    mine = [one for of_pattern in about for one in of_pattern if _is_for(one, principal, host)]
    is_denied = any(
        one.permission is Permission.deny and one.operation in (operation, AclOperation.all) for one in mine
    )
    implying = IMPLYING_DESCRIBE if operation is AclOperation.describe else ()
    is_allowed = any(
        one.permission is Permission.allow and one.operation in (operation, AclOperation.all, *implying)
        for one in mine
    )
    return is_allowed and not is_denied


def _covers(pattern: Pattern, resource: ResourceType, name: str) -> bool:
    if pattern.resource is not resource:
        return False
    if pattern.kind is PatternType.prefixed:
        return name.startswith(pattern.name)
    return pattern.name in (name, "*")


def _is_for(rule: Rule, principal: str, host: str) -> bool:
    return rule.principal in (principal, "User:*") and rule.host in (host, "*")
