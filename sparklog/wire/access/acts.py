"""Acts of administration: the requests that change the cluster, and what of it each changes, in words.

An act is known where it is decided: by the controller, or by the broker that has the handler. Values of
settings are left out, because some are secrets, and so is everything that is made of a password.
"""

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from sparklog.core.apis.api import Api, Code
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.audit import Act
from sparklog.core.security.login.scram import SCRAM_MECHANISMS
from sparklog.core.security.rules import PatternType, Permission

Subjects = Callable[[Any], Iterable[str]]

_CONFIG_TYPES: Final = {2: "topic", 4: "broker", 8: "loggers of broker"}
_BROKER_LOGGER: Final = 8
_MECHANISMS: Final = {one.number: one.name for one in SCRAM_MECHANISMS.values()}
_DELETES: Final = 1


def act_at_controller(api: Api, request: Any) -> Act | None:
    """What a request changes that the controller decides; None if it is no act, or a trial."""
    found = ACTS.get(api.name) if Code.command in api.code else None
    return None if found is None or getattr(request, "validate_only", False) else Act.on(found(request))


def act_at_broker(api: Api, request: Any) -> Act | None:
    """What a request changes that a broker decides; None as above."""
    if api.name == "IncrementalAlterConfigs":
        loggers = [one for one in request.resources if one.resource_type == _BROKER_LOGGER]
        return None if not loggers or request.validate_only else Act.on(map(_config, loggers))
    found = None if Code.command in api.code else ACTS.get(api.name)
    return None if found is None else Act.on(found(request))


def _named(request: Any) -> Iterator[str]:
    return (topic.name for topic in request.topics)


def _deleted_topics(request: Any) -> Iterator[str]:
    yield from request.topic_names
    for topic in request.topics:
        yield topic.name if topic.name is not None else f"the topic with id {topic.topic_id}"


def _columns(request: Any) -> Iterator[str]:
    return (f"{request.topic}: {one.operation} {one.text}" for one in request.changes)


def _operations(request: Any) -> Iterator[str]:
    if request.action == "cancel":
        yield f"cancel of operation {request.operation}"
    elif request.is_all:
        yield f"{request.action} of all brokers"
    for broker in request.brokers:
        yield f"{request.action} of broker {broker}"


def _grown(request: Any) -> Iterator[str]:
    return (f"{topic.name} to {topic.count} partitions" for topic in request.topics)


def _configs(request: Any) -> Iterator[str]:
    return (_config(one) for one in request.resources if one.resource_type != _BROKER_LOGGER)


def _config(resource: Any) -> str:
    kind = _CONFIG_TYPES.get(resource.resource_type, f"type {resource.resource_type}")
    changes = (
        f"-{one.name}" if getattr(one, "config_operation", None) == _DELETES else one.name
        for one in resource.configs
    )
    return f"{kind} {resource.resource_name!r}: {', '.join(changes)}"


def _added_rules(request: Any) -> Iterator[str]:
    for one in request.creations:
        pattern = (one.resource_pattern_type, one.resource_type, one.resource_name)
        yield _rule(one.permission_type, one.principal, one.host, one.operation, *pattern)


def _removed_rules(request: Any) -> Iterator[str]:
    for one in request.filters:
        pattern = (one.pattern_type_filter, one.resource_type_filter, one.resource_name_filter)
        yield _rule(one.permission_type, one.principal_filter, one.host_filter, one.operation, *pattern)


def _rule(
    permission: int,
    principal: str | None,
    host: str | None,
    operation: int,
    kind: int,
    resource: int,
    name: str | None,
) -> str:
    """As ``allow User:alice from * READ on prefixed topic 'sales-'``; a filter that names less says any."""
    shown = "any" if name is None else repr(name)
    return (
        f"{_word(Permission, permission)} {principal or 'any'} from {host or 'any'} "
        f"{_word(AclOperation, operation).upper()} on {_word(PatternType, kind)} "
        f"{_word(ResourceType, resource)} {shown}"
    )


def _word(kind: type[enum.IntEnum], number: int) -> str:
    try:
        return kind(number).name
    except ValueError:
        return {1: "any", 2: "matching"}.get(number, str(number))


def _quotas(request: Any) -> Iterator[str]:
    for entry in request.entries:
        parts = (f"{one.entity_type} {one.entity_name!r}" for one in entry.entity)
        changes = (f"-{one.key}" if one.remove else f"{one.key}={one.value:g}" for one in entry.ops)
        yield f"{', '.join(parts)}: {', '.join(changes)}"


def _users(request: Any) -> Iterator[str]:
    for one in request.deletions:
        yield f"-{one.name!r}: {_MECHANISMS.get(one.mechanism, one.mechanism)}"
    for one in request.upsertions:
        yield f"{one.name!r}: {_MECHANISMS.get(one.mechanism, one.mechanism)}"


def _reassignments(request: Any) -> Iterator[str]:
    for topic in request.topics:
        for one in topic.partitions:
            to = "cancelled" if one.replicas is None else f"to {','.join(map(str, one.replicas))}"
            yield f"{topic.name}-{one.partition_index} {to}"


def _elections(request: Any) -> Iterator[str]:
    if request.topic_partitions is None:
        yield "every partition"
    for topic in request.topic_partitions or ():
        yield from (f"{topic.topic}-{number}" for number in topic.partitions)


def _deleted_records(request: Any) -> Iterator[str]:
    for topic in request.topics:
        for one in topic.partitions:
            yield f"{topic.name}-{one.partition_index} before {one.offset}"


def _deleted_offsets(request: Any) -> Iterator[str]:
    for topic in request.topics:
        for one in topic.partitions:
            yield f"{request.group_id!r}: {topic.name}-{one.partition_index}"


def _markers(request: Any) -> Iterator[str]:
    for marker in request.markers:
        verb = "commits" if marker.transaction_result else "aborts"
        for topic in marker.topics:
            for number in topic.partition_indexes:
                yield f"producer {marker.producer_id} {verb} in {topic.name}-{number}"


ACTS: Final[Mapping[str, Subjects]] = MappingProxyType(
    {
        "CreateTopics": _named,
        "DeleteTopics": _deleted_topics,
        "CreatePartitions": _grown,
        "AlterSchema": _columns,
        "OperateBrokers": _operations,
        "AlterConfigs": _configs,
        "IncrementalAlterConfigs": _configs,
        "CreateAcls": _added_rules,
        "DeleteAcls": _removed_rules,
        "AlterClientQuotas": _quotas,
        "AlterUserScramCredentials": _users,
        "AlterPartitionReassignments": _reassignments,
        "ElectLeaders": _elections,
        "DeleteRecords": _deleted_records,
        "DeleteGroups": lambda request: request.groups_names,
        "OffsetDelete": _deleted_offsets,
        "WriteTxnMarkers": _markers,
    }
)
"""What each act changes, by its API's name."""
