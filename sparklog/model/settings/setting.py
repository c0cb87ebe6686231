"""One setting with Kafka's name: its type, default, bounds and documentation, and how its text is read."""

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

from sparklog.model.errors import ConfigError

Kind = Literal["int", "float", "bool", "string", "list"]
Value = int | float | bool | str | tuple[str, ...]

LONG_MAX: Final = 2**63 - 1
INT_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. ``minimum`` and ``maximum`` are inclusive; ``choices`` lists the legal strings."""

    name: str
    kind: Kind
    default: Value
    doc: str
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    not_yet: tuple[str, ...] = ()
    """Kafka's choices that sparklog does not implement: accepted with a warning."""
    broker_name: str = ""
    """The broker setting that supplies a topic setting's default, if any."""
    pattern: str = ""
    """A regular expression that each item of a list must match."""
    dynamic: bool = False
    """Whether it may be changed while brokers run."""

    def parse(self, text: str) -> Value:
        """The typed value of ``text``; raises ConfigError with the value and the bounds."""
        stripped = text.strip()
        if self.kind == "bool":
            if stripped.lower() not in ("true", "false"):
                raise ConfigError(f"{self.name}={text!r}: must be true or false")
            return stripped.lower() == "true"
        if self.kind == "int":
            return self._parse_int(stripped)
        if self.kind == "float":
            return self._parse_float(stripped)
        items = [item.strip() for item in stripped.split(",")] if self.kind == "list" else [stripped]
        if self.pattern:
            items = [item for item in items if item]  # such a list may be empty
        for item in items:
            if self.choices and item not in self.choices:
                raise ConfigError(f"{self.name}={text!r}: must be one of {', '.join(self.choices)}")
            if self.pattern and not re.fullmatch(self.pattern, item):
                raise ConfigError(f"{self.name}={text!r}: {item!r} is not of the form {self.pattern}")
        return tuple(items) if self.kind == "list" else stripped

    def is_not_yet(self, value: Value) -> bool:
        """Whether ``value`` is a choice that sparklog does not implement."""
        asked = value if isinstance(value, tuple) else (value,)
        return any(str(item) in self.not_yet for item in asked)

    def _parse_int(self, text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ConfigError(f"{self.name}={text!r}: must be a whole number") from None
        self._check_bounds(value)
        return value

    def _parse_float(self, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ConfigError(f"{self.name}={text!r}: must be a number") from None
        if not math.isfinite(value):
            raise ConfigError(f"{self.name}={text!r}: must be a finite number")
        self._check_bounds(value)
        return value

    def _check_bounds(self, value: float) -> None:
        if self.minimum is not None and value < self.minimum:
            raise ConfigError(f"{self.name}={value}: must be at least {self.minimum}")
        if self.maximum is not None and value > self.maximum:
            raise ConfigError(f"{self.name}={value}: must be at most {self.maximum}")


def render(value: Value) -> str:
    """The text of a typed value, as in configuration files and DescribeConfigs."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _render_float(value)
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _render_float(value: float) -> str:
    """As Java writes it, because clients compare texts: 0.5, 100000.0, 1.0E7."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    shortest = Decimal(repr(value)).normalize()
    first, *others = map(str, shortest.as_tuple().digits)
    sign = "-" if value < 0 else ""
    return f"{sign}{first}.{''.join(others) or '0'}E{shortest.adjusted()}"
