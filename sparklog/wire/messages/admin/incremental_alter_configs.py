"""IncrementalAlterConfigs (key 44, KIP-339): set or delete single settings of topics and brokers."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar

from sparklog.model.errors import ErrorCode


class ConfigOperation(IntEnum):
    """What to do with one setting; ``append`` and ``subtract`` are for lists."""

    set = 0
    delete = 1
    append = 2
    subtract = 3


@dataclass(slots=True, kw_only=True)
class IncrementallyAlterableConfig:
    """``config_operation`` is a number of ``ConfigOperation``; ``delete`` has no value."""

    name: str
    config_operation: int = ConfigOperation.set
    value: str | None = None


@dataclass(slots=True, kw_only=True)
class IncrementalAlterConfigsResource:
    """``resource_type`` 2 is a topic, 4 a broker; an empty broker name means all brokers' default."""

    resource_type: int
    resource_name: str
    configs: list[IncrementallyAlterableConfig] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class IncrementalAlterConfigsRequest:
    API_KEY: ClassVar[int] = 44

    resources: list[IncrementalAlterConfigsResource] = field(default_factory=list)
    validate_only: bool = False


@dataclass(slots=True, kw_only=True)
class IncrementalAlterConfigsResourceResponse:
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    resource_type: int
    resource_name: str


@dataclass(slots=True, kw_only=True)
class IncrementalAlterConfigsResponse:
    API_KEY: ClassVar[int] = 44

    throttle_time_ms: int = 0
    responses: list[IncrementalAlterConfigsResourceResponse] = field(default_factory=list)
