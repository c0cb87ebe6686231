"""Settings that Kafka knows under several names, such as log.retention.ms, log.retention.minutes and
log.retention.hours.

Code reads such a setting under the name that has the finest unit. If that name was not given, the first of
its other names that was given supplies the value (``OTHER_NAMES``). DescribeConfigs lists the values of all
names of a setting in the same order (``names_described_with``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class OtherName:
    """Another name of a setting. ``unit``: one of its units in those of the setting."""

    name: str
    unit: int = 1

    def convert(self, value: int) -> int:
        """The setting's value; -1 for a negative one, which means no limit."""
        return -1 if value < 0 else value * self.unit


OTHER_NAMES: Final[Mapping[str, tuple[OtherName, ...]]] = MappingProxyType(
    {
        "log.retention.ms": (
            OtherName("log.retention.minutes", MINUTE_MS),
            OtherName("log.retention.hours", HOUR_MS),
        ),
        "log.roll.ms": (OtherName("log.roll.hours", HOUR_MS),),
        "log.roll.jitter.ms": (OtherName("log.roll.jitter.hours", HOUR_MS),),
        "log.flush.interval.ms": (OtherName("log.flush.scheduler.interval.ms"),),
        "zookeeper.connection.timeout.ms": (OtherName("zookeeper.session.timeout.ms"),),
    }
)
"""By setting, the names that supply its value if it was not given itself, the first one first."""

_UNITS_OF_TIME: Final = ("log.retention.ms", "log.roll.ms", "log.roll.jitter.ms")

_DESCRIBED_TOGETHER: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        **{
            name: names
            for finest in _UNITS_OF_TIME
            for names in [(finest, *(one.name for one in OTHER_NAMES[finest]))]
            for name in names
        },
        "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    }
)

WITHOUT_DEFAULT: Final = frozenset({*OTHER_NAMES, "log.retention.minutes"})
"""Settings that Kafka describes without a default, because another name supplies it."""


def names_described_with(name: str) -> tuple[str, ...]:
    """The names of the broker's setting ``name``, itself included, in Kafka's order of precedence."""
    return _DESCRIBED_TOGETHER.get(name, (name,))
