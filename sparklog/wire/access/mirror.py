"""Responses that say of all that a request names that it is refused.

The items of Kafka's responses repeat what the items of requests name. So a refusal is made from the request's
own fields: names and numbers of partitions are copied, each error code is the refusal's, and everything else
is at its default. A response with an error of its own says it there, once.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Final, get_args, get_type_hints

from sparklog.core.security.acl import ResourceType
from sparklog.model.errors import ErrorCode
from sparklog.wire.codec import Message, message_class

ERRORS: Final[Mapping[ResourceType, ErrorCode]] = MappingProxyType(
    {
        ResourceType.topic: ErrorCode.topic_authorization_failed,
        ResourceType.group: ErrorCode.group_authorization_failed,
        ResourceType.cluster: ErrorCode.cluster_authorization_failed,
        ResourceType.transactional_id: ErrorCode.transactional_id_authorization_failed,
        ResourceType.delegation_token: ErrorCode.delegation_token_authorization_failed,
        ResourceType.user: ErrorCode.delegation_token_authorization_failed,
    }
)
"""The error of a client that lacks a right on a resource, by its type."""

_MESSAGES: Final = {
    ErrorCode.topic_authorization_failed: "Topic authorization failed.",
    ErrorCode.group_authorization_failed: "Group authorization failed.",
    ErrorCode.cluster_authorization_failed: "Cluster authorization failed.",
    ErrorCode.transactional_id_authorization_failed: "Transactional Id authorization failed.",
}
"""In Kafka's words, which some clients show."""

_PARTITION: Final = ("partition_index", "index", "partition", "partition_id")
_TOPIC: Final = ("name", "topic")
_IDENTITIES: Final = frozenset(
    {
        *_PARTITION,
        *_TOPIC,
        *("topic_id", "group_id", "transactional_id", "producer_id", "resource_type", "resource_name"),
        "entity",
    }
)
"""Fields by which an answer says what it is about."""

_WITH_ITEMS_TOO: Final = frozenset({43})
"""ElectLeaders: its version 0 lacks the response's own error."""


def refused(request: Message, error: ErrorCode) -> Any:
    """The response to a request of which nothing is served."""
    response_type = message_class(request.API_KEY, "response")
    codes = [one for one in fields(response_type) if _hints(response_type)[one.name] is ErrorCode]
    if codes:
        response = response_type(**{codes[0].name: error})
        if "error_message" in _hints(response_type):
            response.error_message = _MESSAGES.get(error)
        if request.API_KEY in _WITH_ITEMS_TOO:
            mirror = mirrored(request, response_type, error)
            mirror.error_code = error
            return mirror
        return response
    return mirrored(request, response_type, error)


def mirrored(item: Any, answer_type: type, error: ErrorCode) -> Any:
    """What answers one item of a request: a dataclass, or the bare name or number of what it is about."""
    hints = _hints(answer_type)
    values: dict[str, Any] = {}
    for one in fields(answer_type):
        hint = hints[one.name]
        if hint is ErrorCode:
            values[one.name] = ErrorCode.none if one.name == "topic_config_error_code" else error
        elif one.name == "error_message":
            values[one.name] = _MESSAGES.get(error)
        elif (inner := item_type(hint)) is not None and _is_about_items(inner):
            values[one.name] = [mirrored(part, inner, error) for part in _items(item)]
        elif (value := _value(item, one)) is not MISSING:
            values[one.name] = value
    return answer_type(**values)


def item_type(hint: Any) -> type | None:
    """The dataclass of a list's items."""
    for argument in get_args(hint):
        if isinstance(argument, type) and is_dataclass(argument):
            return argument
        if (inner := item_type(argument)) is not None:
            return inner
    return None


def _is_about_items(answer_type: type) -> bool:
    """Whether it answers something that a request names: then it has an error, or items that have one."""
    hints = _hints(answer_type).values()
    inner = (item_type(hint) for hint in hints)
    return ErrorCode in hints or any(one is not None and _is_about_items(one) for one in inner)


def _value(item: Any, answer: Field[Any]) -> Any:
    """What the item has for a field of its answer; MISSING if nothing."""
    if not is_dataclass(item):
        return item if answer.default is MISSING and answer.default_factory is MISSING else MISSING
    if answer.name not in _IDENTITIES:
        return MISSING
    aliases = next((names for names in (_PARTITION, _TOPIC) if answer.name in names), (answer.name,))
    return next((getattr(item, name) for name in aliases if hasattr(item, name)), MISSING)


def _items(item: Any) -> list[Any]:
    """The first list of the item, in which a request names what it is about."""
    if is_dataclass(item):
        for one in fields(item):
            if isinstance(value := getattr(item, one.name), list) and value:
                return value
    return []


@cache
def _hints(message: type) -> Mapping[str, Any]:
    return get_type_hints(message)
