"""Changes of access rules: which are legal, and what they write.

The rules of a pattern are one node. It is written over the version that was read, because Kafka's own tools
may write there too. Kafka's notification of each change stands in the same write.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from sparklog.core.controller.acls.acl_filters import takes
from sparklog.core.controller.commands.acl_commands import (
    AclBinding,
    AclFilter,
    AclResult,
    AclResults,
    CreateAcls,
    DeleteAcls,
)
from sparklog.core.controller.state.acl_nodes import AclNode
from sparklog.core.controller.state.image import AclsChanged, Change, ClusterImage
from sparklog.core.controller.state.write_size import WRITE_BYTES_MAX, bytes_of
from sparklog.core.controller.steps import ApplyAcls, Decision
from sparklog.core.security.acl import ResourceType
from sparklog.core.security.rule_nodes import (
    NAME_LENGTH_MAX,
    change_path,
    encode_change,
    encode_rules,
    fits_a_path,
    rules_path,
)
from sparklog.core.security.rules import CLUSTER_NAME, Pattern, PatternType, Rule, Rules
from sparklog.model.errors import ErrorCode
from sparklog.model.zookeeper import Create, Delete, Operation, SetData

PRINCIPAL_BYTES_MAX: Final = 1_024
"""The longest principal that a connection has."""

NODE_BYTES_MAX: Final = 500_000
"""The rules of one pattern."""

_NO_ROOM: Final = "the rules of this request are too large for one write: send them in several requests"


def decide_acls(image: ClusterImage, step: ApplyAcls) -> Decision | AclResults:
    """What to write, or the answer if there is nothing to write."""
    request, changes = step.request, _Changes(image)
    results = _create(changes, request) if isinstance(request, CreateAcls) else _delete(changes, request)
    operations = changes.operations()
    if bytes_of(operations) > WRITE_BYTES_MAX:
        refused = AclResult(ErrorCode.invalid_request, _NO_ROOM)
        return AclResults(tuple(refused for _ in results))
    answer = AclResults(tuple(results))
    return Decision(step, tuple(operations), tuple(changes.changes()), answer) if operations else answer


@dataclass(slots=True)
class _Changes:
    """The rules of patterns after a request."""

    image: ClusterImage
    after: dict[Pattern, Rules] = field(default_factory=dict)

    def rules_of(self, pattern: Pattern) -> Rules:
        node = self.image.acls.get(pattern)
        return self.after.get(pattern, frozenset() if node is None else node.rules)

    def _changed(self) -> Iterable[tuple[Pattern, Rules, AclNode | None]]:
        for pattern, rules in self.after.items():
            node = self.image.acls.get(pattern)
            if rules != (frozenset() if node is None else node.rules):
                yield pattern, rules, node

    def operations(self) -> list[Operation]:
        operations: list[Operation] = []
        for pattern, rules, node in self._changed():
            operations += [
                _write(rules_path(pattern), rules, node),
                Create(change_path(pattern.kind), encode_change(pattern), sequential=True),
            ]
        return operations

    def changes(self) -> Iterable[Change]:
        for pattern, rules, node in self._changed():
            version = 0 if node is None else node.version + 1
            yield AclsChanged(pattern, AclNode(rules, version) if rules else None)


def _write(path: str, rules: Rules, node: AclNode | None) -> Operation:
    if node is None:
        return Create(path, encode_rules(rules))
    return SetData(path, encode_rules(rules), node.version) if rules else Delete(path, node.version)


def _create(changes: _Changes, request: CreateAcls) -> list[AclResult]:
    results = []
    for binding in request.bindings:
        problem = binding if isinstance(binding, str) else _problem(changes, binding)
        if problem is None and isinstance(binding, AclBinding):
            changes.after[binding.pattern] = changes.rules_of(binding.pattern) | {binding.rule}
        results.append(AclResult() if problem is None else AclResult(ErrorCode.invalid_request, problem))
    return results


def _problem(changes: _Changes, binding: AclBinding) -> str | None:
    """Why there can be no such rule."""
    pattern = binding.pattern
    node = changes.image.acls.get(pattern)
    if node is not None and node.problem:
        return f"rules cannot be added to rules that cannot be read, delete those first: {node.problem}"
    problem = _problem_of_name(pattern) or _problem_of_rule(binding.rule)
    if problem is not None:
        return problem
    size = len(encode_rules(changes.rules_of(pattern) | {binding.rule}))
    if size > NODE_BYTES_MAX:
        return f"the rules of {pattern} would take {size} bytes, more than {NODE_BYTES_MAX}"
    return None


def _problem_of_name(pattern: Pattern) -> str | None:
    name = pattern.name
    if not name:
        return "Invalid empty resource name"
    if pattern.resource is ResourceType.cluster and (
        name != CLUSTER_NAME or pattern.kind is not PatternType.literal
    ):
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not fits_a_path(name):
        return (
            f"resource name {name[:60]!r} cannot be a node of ZooKeeper: it may have no slash and no control "
            f"character, is neither . nor .., and has at most {NAME_LENGTH_MAX} characters"
        )
    return None


def _problem_of_rule(rule: Rule) -> str | None:
    kind, colon, name = rule.principal.partition(":")
    if not (kind and colon and name):
        return f"principal {rule.principal[:60]!r} has no type: write it as User:NAME"
    if len(rule.principal.encode("utf-8", "surrogatepass")) > PRINCIPAL_BYTES_MAX:
        return f"principal {rule.principal[:60]!r}… is longer than {PRINCIPAL_BYTES_MAX} bytes"
    if not rule.principal.isprintable() or not rule.host.isprintable():
        return "principal and host consist of printable characters"
    if not rule.host or len(rule.host) > NAME_LENGTH_MAX:
        return f"host {rule.host[:60]!r} is neither an address nor *"
    return None


def _delete(changes: _Changes, request: DeleteAcls) -> list[AclResult]:
    results = []
    for filter_ in request.filters:
        if isinstance(filter_, str):
            results.append(AclResult(ErrorCode.invalid_request, filter_))
        else:
            results.append(AclResult(deleted=tuple(_taken(changes.image, filter_))))
    for result in results:
        for binding in result.deleted:
            changes.after[binding.pattern] = changes.rules_of(binding.pattern) - {binding.rule}
    return results


def _taken(image: ClusterImage, filter_: AclFilter) -> Iterable[AclBinding]:
    for pattern, node in image.acls.items():
        for rule in node.rules:
            binding = AclBinding(pattern, rule)
            if takes(filter_, binding):
                yield binding
