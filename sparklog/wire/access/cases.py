"""In which requests a right is needed: each condition of the table of APIs, as code.

A case gets the request with its version, and the item of it that the right would be about: a topic, a key, a
resource; the request itself where the right is about the whole of it.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from sparklog.core.security.conditions import Condition
from sparklog.model.internal_topics import INTERNAL_TOPICS
from sparklog.model.kafka_numbers import BROKER_LOGGER_RESOURCE, BROKER_RESOURCE, TOPIC_RESOURCE
from sparklog.model.own_names import is_own_name
from sparklog.records.envelope import claims_transaction
from sparklog.wire.access.question import Question
from sparklog.wire.messages.discovery.find_coordinator import GROUP_KEY, TRANSACTION_KEY

Case = Callable[[Question, Any], bool]

FIRST_BATCHED_VERSION: Final = 4
"""The first version of AddPartitionsToTxn with several transactions."""


def _always(_: Question, __: Any) -> bool:
    return True


def _is_in_named_transaction(asked: Question, _: Any) -> bool:
    name = asked.request.transactional_id
    return (
        name is not None
        and not is_own_name(name)
        and any(
            data.records is not None and claims_transaction(data.records)
            for topic in asked.request.topic_data
            for data in topic.partition_data
        )
    )


def _is_of_another(asked: Question, request: Any) -> bool:
    """Whether the token's owner is to be another than the requester."""
    name = request.owner_principal_name
    return bool(name) and f"{request.owner_principal_type}:{name}" != asked.access.requester.principal


CASES: Final[Mapping[Condition, Case]] = MappingProxyType(
    {
        Condition.always: _always,
        Condition.of_consumers: lambda asked, _: asked.request.replica_id < 0,
        Condition.of_replicas: lambda asked, _: asked.request.replica_id >= 0,
        Condition.of_producers: lambda asked, _: asked.version < FIRST_BATCHED_VERSION,
        Condition.of_verifiers: lambda asked, _: asked.version >= FIRST_BATCHED_VERSION,
        Condition.with_transactional_id: lambda asked, _: asked.request.transactional_id is not None,
        Condition.without_transactional_id: lambda asked, _: asked.request.transactional_id is None,
        Condition.in_named_transaction: _is_in_named_transaction,
        Condition.for_group: lambda asked, _: asked.request.key_type == GROUP_KEY,
        Condition.for_transactional_id: lambda asked, key: (
            asked.request.key_type == TRANSACTION_KEY and not is_own_name(_key(key))
        ),
        Condition.under_own_name: lambda _, write: is_own_name(write.app_id),
        Condition.under_other_name: lambda _, write: not is_own_name(write.app_id),
        Condition.for_topic: lambda _, resource: resource.resource_type == TOPIC_RESOURCE,
        Condition.for_broker: lambda _, resource: (
            resource.resource_type in (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE)
        ),
        Condition.of_clients: lambda _, topic: topic.name not in INTERNAL_TOPICS,
        Condition.of_internal_topics: lambda _, topic: topic.name in INTERNAL_TOPICS,
        Condition.with_warnings: lambda asked, _: asked.request.warnings_max > 0,
        Condition.named_by_id: lambda _, topic: topic.name is None,
        Condition.for_another_owner: _is_of_another,
        # Of what a response shows, or of what another request of the same client is asked for:
        Condition.created_automatically: _always,
        Condition.with_settings: _always,
        Condition.with_operations: _always,
        Condition.listed: _always,
        Condition.of_another_owner: _always,
    }
)


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(key.key)
