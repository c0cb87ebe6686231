"""The settings of topics and brokers as DescribeConfigs answers them.

Every setting that sparklog acts on is described. Kafka's settings without an effect here are described if
they were given.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from sparklog.broker.handlers.configs.levels import BrokerLevels, Levels, default_of, is_sensitive, type_of
from sparklog.model.kafka_numbers import ConfigSource, ConfigType
from sparklog.model.schema.document import SchemaDocument
from sparklog.model.schema.schema_settings import SCHEMA_SETTINGS, settings_of
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.settings.kafka_names import KAFKA_DYNAMIC_PROPERTIES, without_listener
from sparklog.model.settings.setting import Setting, render
from sparklog.model.settings.settings_table import (
    BROKER_SETTINGS,
    DYNAMIC_BROKER_SETTINGS,
    IDENTITY_SETTINGS,
    TOPIC_SETTINGS,
)
from sparklog.wire.messages.admin.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)

NOT_ACTED_ON: Final = "Accepted for Kafka's sake; sparklog does not act on it."


def describe_topic(
    overrides: Mapping[str, str], broker: BrokerLevels, config: BrokerConfig
) -> Iterator[DescribeConfigsResourceResult]:
    """A topic's settings. ``config``: the broker's settings that are in effect now."""
    inherited = config.topic({})
    for name, setting in TOPIC_SETTINGS.items():
        levels = broker.of(setting.broker_name) if setting.broker_name else _default_level(setting)
        value = overrides.get(name, render(inherited.get(name)))
        described = _described(setting, [*_own_level(name, overrides), *levels], value)
        described.is_sensitive = False  # no setting that topics have is a secret
        yield described
    for name in sorted(overrides.keys() - TOPIC_SETTINGS.keys()):
        yield _not_acted_on(name, _own_level(name, overrides), read_only=False)


def describe_schema(schema: SchemaDocument) -> Iterator[DescribeConfigsResourceResult]:
    """The columns of a typed topic."""
    for name, value in settings_of(schema).items():
        yield DescribeConfigsResourceResult(
            name=name,
            value=value,
            read_only=True,
            config_source=ConfigSource.TOPIC,
            synonyms=_own_level(name, {name: value}),
            config_type=ConfigType.STRING,
            documentation=SCHEMA_SETTINGS[name],
        )


def describe_broker(broker: BrokerLevels) -> Iterator[DescribeConfigsResourceResult]:
    """A broker's settings. One that is read only at start is described as read-only."""
    for name, setting in BROKER_SETTINGS.items():
        levels = broker.of(name)
        described = _described(setting, levels, levels[0].value if levels else None)
        described.read_only = name not in DYNAMIC_BROKER_SETTINGS
        yield described
    for name in sorted(broker.identity.keys() - BROKER_SETTINGS.keys()):
        described = _not_acted_on(name, broker.of(name), read_only=True)
        described.documentation = IDENTITY_SETTINGS[name]
        yield described
    for name in broker.given_to_listeners():
        described = _not_acted_on(name, broker.of(name), read_only=True)
        described.documentation = BROKER_SETTINGS[without_listener(name)].doc
        yield described
    for name in broker.given_without_effect():
        yield _not_acted_on(name, broker.of(name), read_only=name not in KAFKA_DYNAMIC_PROPERTIES)


def describe_all_brokers(broker: BrokerLevels) -> Iterator[DescribeConfigsResourceResult]:
    """The dynamic settings of all brokers, whatever this broker has of its own."""
    for name in sorted(broker.dynamic.everybodys):
        levels = [level for level in broker.of(name) if level.source == ConfigSource.DYNAMIC_DEFAULT_BROKER]
        setting = BROKER_SETTINGS.get(name)
        if setting is None:
            yield _not_acted_on(name, levels, read_only=name not in KAFKA_DYNAMIC_PROPERTIES)
        else:
            yield _described(setting, levels, levels[0].value)


def _own_level(name: str, overrides: Mapping[str, str]) -> Levels:
    if name not in overrides:
        return []
    return [DescribeConfigsSynonym(name=name, value=overrides[name], source=ConfigSource.TOPIC)]


def _default_level(setting: Setting) -> Levels:
    default = default_of(setting)
    return [DescribeConfigsSynonym(name=setting.name, value=default, source=ConfigSource.DEFAULT)]


def _described(setting: Setting, levels: Levels, value: str | None) -> DescribeConfigsResourceResult:
    source = levels[0].source if levels else ConfigSource.DEFAULT
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=value,
        is_default=source == ConfigSource.DEFAULT,
        config_source=source,
        synonyms=levels,
        is_sensitive=is_sensitive(setting.name),
        config_type=type_of(setting.name, setting.kind),
        documentation=setting.doc,
    )


def _not_acted_on(name: str, levels: Levels, *, read_only: bool) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=name,
        value=levels[0].value if levels else None,
        read_only=read_only,
        config_source=levels[0].source if levels else ConfigSource.DEFAULT,
        is_sensitive=is_sensitive(name),
        synonyms=levels,
        config_type=type_of(name),
        documentation=NOT_ACTED_ON,
    )
