"""The levels that give a broker's setting its value (KIP-226).

A value is that of the first level that has one; the others are its *synonyms*:

    1 the topic    2 this broker, set while it runs    3 all brokers, likewise    4 the broker's start
    5 the default

Some settings have several names (``sparklog.model.settings.synonyms``). Each level lists the values of all
names. Kafka omits what precedes the setting's own name, so a setting that was given only under another name
is described without levels.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import Final

from sparklog.model.kafka_numbers import ConfigSource, ConfigType
from sparklog.model.settings.config import BrokerConfig, DynamicConfigs
from sparklog.model.settings.kafka_names import (
    KAFKA_BROKER_PROPERTIES,
    KAFKA_BROKER_TYPES,
    KAFKA_TOPIC_TYPES,
    is_secret,
    without_listener,
)
from sparklog.model.settings.setting import Kind, Setting, render
from sparklog.model.settings.settings_table import BROKER_SETTINGS
from sparklog.model.settings.synonyms import WITHOUT_DEFAULT, names_described_with
from sparklog.wire.messages.admin.describe_configs import DescribeConfigsSynonym

Levels = list[DescribeConfigsSynonym]
"""The values of a setting, the one that is in effect first."""

_TYPES_OF_OWN_SETTINGS: Final[Mapping[Kind, ConfigType]] = {
    "bool": ConfigType.BOOLEAN,
    "string": ConfigType.STRING,
    "int": ConfigType.INT,
    "float": ConfigType.DOUBLE,
    "list": ConfigType.LIST,
}

_EMPTY_BY_DEFAULT: Final = frozenset({"max.connections.per.ip.overrides"})
"""Kafka's settings whose default is the empty string; elsewhere an empty default is none at all."""


@dataclass(frozen=True, slots=True)
class BrokerLevels:
    """The levels of one broker's settings.

    ``identity`` has the values that the broker found at its start, such as its id and its log directories.
    They are described in place of what was given.
    """

    at_start: BrokerConfig = field(default_factory=BrokerConfig)
    dynamic: DynamicConfigs = field(default_factory=DynamicConfigs)
    identity: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str) -> Levels:
        """The levels of the broker's setting ``name``. A secret's levels have no values."""
        names = names_described_with(name)
        found = [level for one in self._by_source(names) for level in one]
        levels = list(dropwhile(lambda level: level.name != name, found))
        if is_sensitive(name):
            for level in levels:
                level.value = None
        return levels

    def given_to_listeners(self) -> list[str]:
        """Names of the settings of single listeners that are in effect."""
        return sorted(self.at_start.given.keys() - BROKER_SETTINGS.keys())

    def given_without_effect(self) -> list[str]:
        """Names of Kafka's settings that were given, and that nothing acts on."""
        given = {*self.at_start.not_acted_on, *self.dynamic.merged}
        return sorted(given - BROKER_SETTINGS.keys() - self.at_start.given.keys() - self.identity.keys())

    def _by_source(self, names: tuple[str, ...]) -> Iterator[Levels]:
        yield _levels(names, self.dynamic.own, ConfigSource.DYNAMIC_BROKER)
        yield _levels(names, self.dynamic.everybodys, ConfigSource.DYNAMIC_DEFAULT_BROKER)
        yield _levels(names, {name: self._at_start(name) for name in names}, ConfigSource.STATIC_BROKER)
        settings = (BROKER_SETTINGS[name] for name in names if name in BROKER_SETTINGS)
        defaults = {setting.name: default_of(setting) for setting in settings}
        yield _levels(names, defaults, ConfigSource.DEFAULT)

    def _at_start(self, name: str) -> str | None:
        if name in self.identity:
            return self.identity[name]
        if name in self.at_start.given:
            return render(self.at_start.given[name])
        return self.at_start.not_acted_on.get(name)


def _levels(names: tuple[str, ...], values: Mapping[str, str | None], source: ConfigSource) -> Levels:
    return [
        DescribeConfigsSynonym(name=name, value=values[name], source=source)
        for name in names
        if values.get(name) is not None
    ]


def default_of(setting: Setting) -> str | None:
    """The default that is described; None if there is none, or if it is that of another name."""
    if setting.name in WITHOUT_DEFAULT or (setting.default == "" and setting.name not in _EMPTY_BY_DEFAULT):
        return None
    return render(setting.default)


def is_sensitive(name: str) -> bool:
    """Whether the value of a broker's setting is hidden. Sparklog's own settings are no secrets."""
    is_own = name in BROKER_SETTINGS and name not in KAFKA_BROKER_PROPERTIES
    return is_secret(name) and not is_own


def type_of(name: str, kind: Kind = "string") -> ConfigType:
    """Kafka's type of a setting of brokers or topics; that of ``kind`` if Kafka has no such setting."""
    base = without_listener(name)
    return KAFKA_BROKER_TYPES.get(base) or KAFKA_TOPIC_TYPES.get(base) or _TYPES_OF_OWN_SETTINGS[kind]
