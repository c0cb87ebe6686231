"""Quotas of users, clients and addresses: changes, questions and their results (KIP-546)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sparklog.model.errors import ErrorCode
from sparklog.model.quota_entity import QuotaEntity


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """``value`` None removes the quota."""

    key: str
    value: float | None


@dataclass(frozen=True, slots=True)
class QuotaAlteration:
    entity: QuotaEntity
    changes: tuple[QuotaChange, ...]


@dataclass(frozen=True, slots=True)
class AlterQuotas:
    alterations: tuple[QuotaAlteration, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class QuotaResult:
    entity: QuotaEntity
    error: ErrorCode = ErrorCode.none
    message: str = ""


@dataclass(frozen=True, slots=True)
class QuotasResult:
    """One result for each alteration, in their order."""

    results: tuple[QuotaResult, ...]


Match = Literal["exact", "default", "any"]


@dataclass(frozen=True, slots=True)
class QuotaFilter:
    """Takes entities with a part of type ``kind``.

    ``exact``: the part has the name ``name``. ``default``: it is the default. ``any``: either. None for a
    match that is unknown.
    """

    kind: str
    match: Match | None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class DescribeQuotas:
    """``is_strict``: leave out entities with a part of a type that no filter names."""

    filters: tuple[QuotaFilter, ...]
    is_strict: bool = False


@dataclass(frozen=True, slots=True)
class DescribedQuotas:
    """The quotas of each entity that has some, by key."""

    entries: tuple[tuple[QuotaEntity, Mapping[str, float]], ...] = ()
    error: ErrorCode = ErrorCode.none
    message: str = ""
