"""ApiVersions (key 18): which APIs and versions a broker serves; the first request of nearly every client."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class ApiVersionsRequest:
    API_KEY: ClassVar[int] = 18
    IGNORABLE: ClassVar[frozenset[str]] = frozenset({"client_software_name", "client_software_version"})

    client_software_name: str = ""
    client_software_version: str = ""


@dataclass(slots=True, kw_only=True)
class ApiVersion:
    """One API and the versions of it that are served, both bounds inclusive."""

    api_key: int
    min_version: int
    max_version: int


@dataclass(slots=True, kw_only=True)
class SupportedFeatureKey:
    name: str
    min_version: int
    max_version: int


@dataclass(slots=True, kw_only=True)
class FinalizedFeatureKey:
    name: str
    max_version_level: int
    min_version_level: int


@dataclass(slots=True, kw_only=True)
class ApiVersionsResponse:
    """``own_apis`` is an extension of ours: key, least and greatest version of each of sparklog's own APIs,
    one after the other.
    """

    API_KEY: ClassVar[int] = 18

    error_code: ErrorCode = ErrorCode.none
    api_keys: list[ApiVersion] = field(default_factory=list)
    throttle_time_ms: int = 0
    supported_features: list[SupportedFeatureKey] = field(default_factory=list)
    finalized_features_epoch: int = -1
    finalized_features: list[FinalizedFeatureKey] = field(default_factory=list)
    zk_migration_ready: bool = False
    own_apis: Sequence[int] = ()
