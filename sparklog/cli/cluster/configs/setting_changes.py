"""Changes of settings as an administrator sees them: the sources as text, and before -> after."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sparklog.cli.command import UsageError
from sparklog.cli.progress import say
from sparklog.client.settings import DescribedSetting, Settings
from sparklog.model.kafka_numbers import ConfigSource
from sparklog.model.schema.schema_settings import SCHEMA_SETTINGS
from sparklog.model.settings.config import (
    check_broker_settings,
    check_topic_settings,
    nearest_broker_setting,
    nearest_topic_setting,
)
from sparklog.model.settings.kafka_names import KAFKA_BROKER_PROPERTIES, KAFKA_TOPIC_PROPERTIES
from sparklog.model.settings.promises import refuse_changes_of_security
from sparklog.model.settings.settings_table import BROKER_SETTINGS, TOPIC_SETTINGS

Change = Mapping[str, str | None]
"""New values by name; None removes the value, so that the next lower level applies."""

SOURCES: Final[Mapping[ConfigSource, str]] = {
    ConfigSource.UNKNOWN: "unknown",
    ConfigSource.TOPIC: "topic",
    ConfigSource.DYNAMIC_BROKER: "dynamic, this broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER: "dynamic, all brokers",
    ConfigSource.STATIC_BROKER: "static, at start",
    ConfigSource.DEFAULT: "default",
    ConfigSource.DYNAMIC_BROKER_LOGGER: "dynamic, of a logger",
}


@dataclass(frozen=True, slots=True)
class Changed:
    """One setting's value and source, before and after a change; empty without a value."""

    name: str
    before: str
    source_before: str
    after: str
    source_after: str

    def __str__(self) -> str:
        return f"{self.name}: {_shown(self.before, self.source_before)} -> " + _shown(
            self.after, self.source_after
        )

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "before": self.before, "after": self.after}


def _shown(value: str, source: str) -> str:
    if not value and source == SOURCES[ConfigSource.DEFAULT]:
        return f"({source})"
    shown = value if value else "(empty)" if source else "(not set)"
    return f"{shown} ({source})" if source else shown


def changes_of(set_: Iterable[tuple[str, str]], delete: Iterable[str], *, is_topic: bool) -> Change:
    """The changes that the options name; warns of settings without effect. UsageError, ConfigError."""
    given = dict(set_)
    delete = tuple(delete)
    columns = [name for name in (*given, *delete) if is_topic and name in SCHEMA_SETTINGS]
    if columns:
        raise UsageError(f"{columns[0]}: a topic has its columns from its creation; leave it as it is")
    if not is_topic:
        refuse_changes_of_security(given)
    checked = check_topic_settings(given) if is_topic else check_broker_settings(given)
    for warning in checked.warnings:
        say(f"warning: {warning}")
    known = (
        TOPIC_SETTINGS.keys() | KAFKA_TOPIC_PROPERTIES
        if is_topic
        else BROKER_SETTINGS.keys() | KAFKA_BROKER_PROPERTIES
    )
    nearest = nearest_topic_setting if is_topic else nearest_broker_setting
    changes: dict[str, str | None] = dict(given)
    for name in delete:
        if name in given:
            raise UsageError(f"{name} is both set and deleted; choose one")
        if name not in known:
            near = nearest(name)
            hint = f"; did you mean {near}?" if near else ""
            raise UsageError(f"there is no setting {name!r} that could be deleted{hint}")
        changes[name] = None
    return changes


def changed_by(change: Change, settings: Settings, level: ConfigSource) -> list[Changed]:
    """The settings that ``change`` changes at the level ``level``, with the values before and after."""
    found = []
    for name, value in change.items():
        before = settings.get(name)
        after, source = _after(value, before, level)
        changed = Changed(
            name, before.value if before else "", SOURCES[before.source] if before else "", after, source
        )
        if (changed.before, changed.source_before) != (changed.after, changed.source_after):
            found.append(changed)
    return found


def _after(value: str | None, before: DescribedSetting | None, level: ConfigSource) -> tuple[str, str]:
    if value is None:
        return _without(before, level)
    if before is not None and before.source < level:  # a value of a higher level stays in force
        return before.value, SOURCES[before.source]
    return value, SOURCES[level]


def _without(before: DescribedSetting | None, level: ConfigSource) -> tuple[str, str]:
    """Value and source after the value of ``level`` is deleted."""
    if before is None:
        return "", ""
    if all(one.source != level for one in before.synonyms):
        return before.value, SOURCES[before.source]
    under = before.without(level)
    if under is None:
        return "", SOURCES[ConfigSource.DEFAULT]
    is_other_name = under.name != before.name and level is not ConfigSource.TOPIC
    return f"{under.name}={under.value}" if is_other_name else under.value, SOURCES[under.source]
