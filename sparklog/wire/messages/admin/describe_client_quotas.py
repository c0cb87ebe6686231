"""DescribeClientQuotas (key 48, KIP-546): the quotas that are set for users, clients and addresses."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar

from sparklog.model.errors import ErrorCode


class QuotaMatch(IntEnum):
    """Which entities of a type a filter takes."""

    exact = 0
    """The one with the name in ``match``."""
    default = 1
    """The default of the type."""
    any = 2
    """Every one for which a quota is set, and the default."""


@dataclass(slots=True, kw_only=True)
class ComponentData:
    """``entity_type`` is "user", "client-id" or "ip"; ``match_type`` a number of ``QuotaMatch``."""

    entity_type: str
    match_type: int
    match: str | None = None


@dataclass(slots=True, kw_only=True)
class DescribeClientQuotasRequest:
    """``strict``: leave out entities that have a part of a type that no component names."""

    API_KEY: ClassVar[int] = 48

    components: list[ComponentData] = field(default_factory=list)
    strict: bool = False


@dataclass(slots=True, kw_only=True)
class EntityData:
    """``entity_name`` None is the default of the type."""

    entity_type: str
    entity_name: str | None = None


@dataclass(slots=True, kw_only=True)
class ValueData:
    key: str
    value: float


@dataclass(slots=True, kw_only=True)
class EntryData:
    entity: list[EntityData] = field(default_factory=list)
    values: list[ValueData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeClientQuotasResponse:
    """``entries`` None goes with an error."""

    API_KEY: ClassVar[int] = 48

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    entries: list[EntryData] | None = field(default_factory=list)
