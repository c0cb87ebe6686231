"""Changes of the settings of topics and brokers, and the results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sparklog.model.errors import ErrorCode

Operation = Literal["set", "delete", "append", "subtract"]


ALL_BROKERS = ""
"""The name of the resource whose settings hold for every broker that does not have its own."""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """``value`` is None for "delete"; ``operation`` is None if the operation is unknown."""

    name: str
    operation: Operation | None
    value: str | None = None


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """Changes of one resource. ``replaces_all``: what is not named loses its value (AlterConfigs)."""

    kind: int
    name: str
    changes: tuple[SettingChange, ...]
    replaces_all: bool = False


@dataclass(frozen=True, slots=True)
class ChangeConfigs:
    resources: tuple[ConfigChange, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class ConfigResult:
    kind: int
    name: str
    error: ErrorCode = ErrorCode.none
    message: str = ""
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConfigsResult:
    resources: tuple[ConfigResult, ...]
