"""Quotas of users, clients and addresses: which are set, and changes of them (KIP-546)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.quota_entity import QuotaEntity
from sparklog.wire.messages.admin.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from sparklog.wire.messages.admin.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)


class Controlled(Protocol):
    """What is needed of a client of the cluster."""

    def call_controller(self, message: Any, error_of: Callable[[Any], ErrorCode] | None = None) -> Any: ...


@dataclass(frozen=True, slots=True)
class EntityQuotas:
    """``values``: by the quota's name, which is Kafka's."""

    entity: QuotaEntity
    values: Mapping[str, float]


class QuotaAdmin:
    """Changes and questions, answered by the controller; KafkaError if it refuses."""

    def __init__(self, cluster: Controlled) -> None:
        self._cluster = cluster

    def quotas(self) -> list[EntityQuotas]:
        """All that are set, in the order of their nodes."""
        response: DescribeClientQuotasResponse = self._cluster.call_controller(
            DescribeClientQuotasRequest(), lambda response: response.error_code
        )
        _raise(response.error_code, response.error_message)
        return [
            EntityQuotas(
                QuotaEntity(tuple((part.entity_type, part.entity_name) for part in entry.entity)),
                {value.key: value.value for value in entry.values},
            )
            for entry in response.entries or ()
        ]

    def put(self, entity: QuotaEntity, values: Mapping[str, float]) -> None:
        """Let ``entity`` have these quotas, beside those of other names that it has."""
        self._alter(entity, [OpData(key=key, value=value) for key, value in values.items()])

    def remove(self, entity: QuotaEntity, keys: Sequence[str]) -> None:
        """Take quotas away from ``entity``."""
        self._alter(entity, [OpData(key=key, remove=True) for key in keys])

    def _alter(self, entity: QuotaEntity, ops: list[OpData]) -> None:
        parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity.parts]

        def error_of(response: AlterClientQuotasResponse) -> ErrorCode:
            return response.entries[0].error_code if response.entries else ErrorCode.none

        request = AlterClientQuotasRequest(entries=[EntryData(entity=parts, ops=ops)])
        response: AlterClientQuotasResponse = self._cluster.call_controller(request, error_of)
        for entry in response.entries:
            _raise(entry.error_code, entry.error_message)


def _raise(code: ErrorCode, message: str | None) -> None:
    if code is not ErrorCode.none:
        raise KafkaError(code, message or "the controller refuses")
