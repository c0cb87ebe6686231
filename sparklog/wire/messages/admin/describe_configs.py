"""DescribeConfigs (key 32): settings of topics and brokers, with where each value comes from."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class DescribeConfigsResource:
    """``resource_type`` 2 is a topic, 4 a broker; ``configuration_keys`` None asks for all."""

    resource_type: int
    resource_name: str
    configuration_keys: list[str] | None = None


@dataclass(slots=True, kw_only=True)
class DescribeConfigsRequest:
    API_KEY: ClassVar[int] = 32
    IGNORABLE: ClassVar[frozenset[str]] = frozenset({"include_documentation"})

    resources: list[DescribeConfigsResource] = field(default_factory=list)
    include_synonyms: bool = False
    include_documentation: bool = False


@dataclass(slots=True, kw_only=True)
class DescribeConfigsSynonym:
    name: str
    value: str | None = None
    source: int


@dataclass(slots=True, kw_only=True)
class DescribeConfigsResourceResult:
    """``is_default`` is all that version 0 says of the source; later ones have ``config_source``."""

    name: str
    value: str | None = None
    read_only: bool = False
    is_default: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = field(default_factory=list)
    config_type: int = 0
    documentation: str | None = None


@dataclass(slots=True, kw_only=True)
class DescribeConfigsResult:
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    resource_type: int
    resource_name: str
    configs: list[DescribeConfigsResourceResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeConfigsResponse:
    API_KEY: ClassVar[int] = 32

    throttle_time_ms: int = 0
    results: list[DescribeConfigsResult] = field(default_factory=list)
