"""Which bindings a filter takes (KIP-140, KIP-290), and the answer to DescribeAcls."""

from sparklog.core.controller.commands.acl_commands import AclBinding, AclFilter, DescribeAcls, DescribedAcls
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.security.rules import EVERY_NAME, Pattern, PatternType
from sparklog.model.errors import ErrorCode


def describe_acls(image: ClusterImage, request: DescribeAcls) -> DescribedAcls:
    """In the order of patterns and rules."""
    filter_ = request.filter
    if isinstance(filter_, str):
        return DescribedAcls(error=ErrorCode.invalid_request, message=filter_)
    taken = [
        binding
        for pattern, node in image.acls.items()
        if takes_pattern(filter_, pattern)
        for rule in node.rules
        if takes(filter_, binding := AclBinding(pattern, rule))
    ]
    return DescribedAcls(tuple(sorted(taken, key=_order)))


def _order(binding: AclBinding) -> tuple[int, str, int, str, int, int, str]:
    pattern, rule = binding.pattern, binding.rule
    of_pattern = (pattern.resource, pattern.name, pattern.kind)
    return (*of_pattern, rule.principal, rule.operation, rule.permission, rule.host)


def takes(filter_: AclFilter, binding: AclBinding) -> bool:
    rule = binding.rule
    return (
        filter_.principal in (None, rule.principal)
        and filter_.host in (None, rule.host)
        and filter_.operation in (None, rule.operation)
        and filter_.permission in (None, rule.permission)
        and takes_pattern(filter_, binding.pattern)
    )


def takes_pattern(filter_: AclFilter, pattern: Pattern) -> bool:
    if filter_.resource not in (None, pattern.resource):
        return False
    if filter_.kind == "match":
        return filter_.name is None or _covers(pattern, filter_.name)
    return filter_.kind in ("any", pattern.kind) and filter_.name in (None, pattern.name)


def _covers(pattern: Pattern, name: str) -> bool:
    if pattern.kind is PatternType.prefixed:
        return name.startswith(pattern.name)
    return pattern.name in (name, EVERY_NAME)
