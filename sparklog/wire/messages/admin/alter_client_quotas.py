"""AlterClientQuotas (key 49, KIP-546): set and remove quotas of users, clients and addresses."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class EntityData:
    """``entity_type`` is "user", "client-id" or "ip"; ``entity_name`` None is the default of the type."""

    entity_type: str
    entity_name: str | None = None


@dataclass(slots=True, kw_only=True)
class OpData:
    """One quota, set to ``value`` or removed."""

    key: str
    value: float = 0.0
    remove: bool = False


@dataclass(slots=True, kw_only=True)
class EntryData:
    entity: list[EntityData] = field(default_factory=list)
    ops: list[OpData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterClientQuotasRequest:
    API_KEY: ClassVar[int] = 49

    entries: list[EntryData] = field(default_factory=list)
    validate_only: bool = False


@dataclass(slots=True, kw_only=True)
class EntryResponseData:
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    entity: list[EntityData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterClientQuotasResponse:
    API_KEY: ClassVar[int] = 49

    throttle_time_ms: int = 0
    entries: list[EntryResponseData] = field(default_factory=list)
