"""AlterConfigs (key 33): replace all dynamic settings of a topic or broker. Older than key 44, and ruder."""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class AlterableConfig:
    name: str
    value: str | None = None


@dataclass(slots=True, kw_only=True)
class AlterConfigsResource:
    """``resource_type`` 2 is a topic, 4 a broker. Settings that are not named lose their value."""

    resource_type: int
    resource_name: str
    configs: list[AlterableConfig] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterConfigsRequest:
    API_KEY: ClassVar[int] = 33

    resources: list[AlterConfigsResource] = field(default_factory=list)
    validate_only: bool = False


@dataclass(slots=True, kw_only=True)
class AlterConfigsResourceResponse:
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    resource_type: int
    resource_name: str


@dataclass(slots=True, kw_only=True)
class AlterConfigsResponse:
    API_KEY: ClassVar[int] = 33

    throttle_time_ms: int = 0
    responses: list[AlterConfigsResourceResponse] = field(default_factory=list)
