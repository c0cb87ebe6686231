"""Settings with Kafka's names, as typed values.

A property of Apache Kafka that sparklog does not implement is accepted with one warning, unless it promises
safety (``promises``). A name that neither has is refused, with the most similar known name.
"""

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from sparklog.model.errors import ConfigError
from sparklog.model.listeners import LISTENER_SETTINGS, Listeners, read_listeners
from sparklog.model.settings.access_settings import check_access
from sparklog.model.settings.kafka_names import (
    KAFKA_BROKER_PROPERTIES,
    KAFKA_TOPIC_PROPERTIES,
    listener_prefix,
    without_listener,
)
from sparklog.model.settings.login_rows import is_login_setting
from sparklog.model.settings.promises import is_unkept_promise, refuse_unkept_promise, shown
from sparklog.model.settings.setting import Setting, Value, render
from sparklog.model.settings.settings_table import (
    BROKER_NAMES,
    BROKER_SETTINGS,
    DYNAMIC_BROKER_SETTINGS,
    TOPIC_NAMES,
    TOPIC_SETTINGS,
)
from sparklog.model.settings.synonyms import OTHER_NAMES, names_described_with
from sparklog.model.settings.tls_rows import METRICS_TLS_NAMES, is_tls_setting, metrics_have_tls
from sparklog.model.settings.zookeeper_rows import ZOOKEEPER_NAMES

if TYPE_CHECKING:
    from sparklog.model.settings.login_settings import ClientLoginSettings, ListenerLoginSettings
    from sparklog.model.settings.tls_settings import TlsSettings
    from sparklog.model.settings.zookeeper_settings import ZooKeeperSettings


def nearest_topic_setting(name: str) -> str | None:
    """The topic setting most similar to ``name``, which may be the broker's name of a setting; else None."""
    return _nearest(name, TOPIC_SETTINGS.keys() | KAFKA_TOPIC_PROPERTIES, TOPIC_NAMES)


def nearest_broker_setting(name: str) -> str | None:
    """The broker setting most similar to ``name``, which may be the topic's name of a setting; else None."""
    return _nearest(name, BROKER_SETTINGS.keys() | KAFKA_BROKER_PROPERTIES, BROKER_NAMES)


def _nearest(name: str, known: Set[str], others: Mapping[str, str]) -> str | None:
    """The name most similar to ``name``. ``others``: names of the other level, mapped to this level's."""
    if name in others:
        return others[name]
    near = difflib.get_close_matches(name, sorted(known | others.keys()), n=1, cutoff=0.6)
    return others.get(near[0], near[0]) if near else None


@dataclass(frozen=True, slots=True)
class Checked:
    """The typed values of checked settings, and a warning for each one that is not implemented."""

    values: Mapping[str, Value]
    warnings: tuple[str, ...] = ()
    ignored: Mapping[str, str] = field(default_factory=dict)


def _check(
    given: Mapping[str, str],
    known: Mapping[str, Setting],
    kafka_names: Set[str],
    nearest: Callable[[str], str | None],
    what: str,
) -> Checked:
    values: dict[str, Value] = {}
    ignored: dict[str, str] = {}
    warnings: list[str] = []
    for name, text in given.items():
        if name in known:
            values[name] = known[name].parse(text)
            if known[name].is_not_yet(values[name]):
                warnings.append(f"{what} setting {name}={text}: sparklog does not act on this value yet")
        elif _is_of_one_listener(name) and without_listener(name) in known:
            values[name] = replace(known[without_listener(name)], name=name).parse(text)
        elif without_listener(name) in kafka_names:
            ignored[name] = text
            if is_unkept_promise(name):
                continue  # it has Kafka's default, or it would have been refused
            given_text = shown(name, text)  # the warnings are logged
            warnings.append(
                f"{what} setting {name}={given_text} is accepted, but sparklog does not act on it yet"
            )
        else:
            near = nearest(name)
            hint = f"; did you mean {near}?" if near else ""
            raise ConfigError(f"unknown {what} setting {name!r}{hint}")
    return Checked(values, tuple(warnings), ignored)


LIMITS_OF_LISTENERS: Final = frozenset({"max.connections", "max.connection.creation.rate"})
"""Settings that a listener may have for itself, beside the broker's."""

_RETENTION_NAMES: Final = frozenset(names_described_with("log.retention.ms"))


def check_broker_settings(given: Mapping[str, str]) -> Checked:
    """Type and check broker settings.

    Raises ConfigError on an unknown name, an illegal value, or a security setting that is not implemented.
    """
    for name, text in given.items():
        refuse_unkept_promise(name, text)
    checked = _check(given, BROKER_SETTINGS, KAFKA_BROKER_PROPERTIES, nearest_broker_setting, "broker")
    for name in _RETENTION_NAMES & checked.values.keys():
        if checked.values[name] == 0:
            raise ConfigError(f"{name}=0: must be -1 (no limit) or at least 1")
    check_access(checked.values)
    listeners = read_listeners(_of_listeners(checked.values))
    warnings = (*checked.warnings, *_check_tls(given, listeners), *_check_logins(given, listeners))
    warnings = (*warnings, *_check_zookeeper(given))
    return replace(checked, warnings=warnings)


def _is_of_one_listener(name: str) -> bool:
    """Whether ``name`` is a setting that each listener may have for itself."""
    return is_tls_setting(name) or is_login_setting(name) or without_listener(name) in LIMITS_OF_LISTENERS


def _check_limits(names: Iterable[str], listeners: Listeners) -> None:
    """ConfigError for a limit of a listener that there is not."""
    prefixes = [listener_prefix(listener) for listener in listeners.bound]
    for name in names:
        base = without_listener(name)
        if base in LIMITS_OF_LISTENERS and name not in (base, *(prefix + base for prefix in prefixes)):
            raise ConfigError(
                f"{name}: no listener has this prefix; there are {', '.join(prefixes)}; correct it"
            )


def _check_tls(given: Mapping[str, str], listeners: Listeners) -> tuple[str, ...]:
    is_asked = any(is_tls_setting(name) or name in METRICS_TLS_NAMES for name in given)
    if not is_asked and not listeners.with_tls():
        return ()
    # plain brokers start without it
    from sparklog.model.settings.tls_checks import check_tls

    return check_tls(given, listeners)


def _check_logins(given: Mapping[str, str], listeners: Listeners) -> tuple[str, ...]:
    if not listeners.with_login() and not any(map(is_login_setting, given)):
        return ()
    # as above
    from sparklog.model.settings.login_checks import check_logins

    return check_logins(given, listeners)


def _check_zookeeper(given: Mapping[str, str]) -> tuple[str, ...]:
    if ZOOKEEPER_NAMES.isdisjoint(given):
        return ()
    # as above
    from sparklog.model.settings.zookeeper_settings import check_zookeeper

    return check_zookeeper(given)


def check_dynamic_settings(stored: Mapping[str, str]) -> Checked:
    """Type the settings that ZooKeeper holds for brokers that run.

    Another tool may have written them. One that is illegal, or that is read only at start, is left out, and a
    warning says so, because a broker must not fail by it.
    """
    values: dict[str, Value] = {}
    warnings: list[str] = []
    for name, text in stored.items():
        is_limit = without_listener(name) in LIMITS_OF_LISTENERS
        if (_is_of_one_listener(name) and not is_limit) or (
            name in BROKER_SETTINGS and name not in DYNAMIC_BROKER_SETTINGS
        ):
            warnings.append(f"the dynamic setting {name} is ignored: it is read only at start")
            continue
        if name not in BROKER_SETTINGS and not is_limit and not is_unkept_promise(name):
            continue
        try:
            values.update(check_broker_settings({name: text}).values)
        except ConfigError as error:
            warnings.append(f"a dynamic setting is ignored: {error}")
    return Checked(values, tuple(warnings))


def _of_listeners(values: Mapping[str, Value]) -> dict[str, str]:
    return {name: str(values[name]) for name in LISTENER_SETTINGS if name in values}


def check_topic_settings(given: Mapping[str, str]) -> Checked:
    """Type and check topic settings; raises ConfigError on an unknown name or an illegal value."""
    checked = _check(given, TOPIC_SETTINGS, KAFKA_TOPIC_PROPERTIES, nearest_topic_setting, "topic")
    policy = checked.values.get("cleanup.policy", ())
    if checked.values.get("remote.storage.enable") and isinstance(policy, tuple) and "compact" in policy:
        raise ConfigError(
            f"remote.storage.enable=true with cleanup.policy={given['cleanup.policy']}: compacted topics are "
            "not copied to a remote store; leave one of the two out"
        )
    return checked


class TypedSettings(ABC):
    """Access to settings by name, with their declared types."""

    __slots__ = ()

    @abstractmethod
    def get(self, name: str) -> Value: ...

    def get_int(self, name: str) -> int:
        value = self.get(name)
        assert isinstance(value, int), (name, value)
        return value

    def get_float(self, name: str) -> float:
        value = self.get(name)
        assert isinstance(value, int | float), (name, value)
        return float(value)

    def get_bool(self, name: str) -> bool:
        value = self.get(name)
        assert isinstance(value, bool), (name, value)
        return value

    def get_list(self, name: str) -> tuple[str, ...]:
        value = self.get(name)
        assert isinstance(value, tuple), (name, value)
        return value

    def get_str(self, name: str) -> str:
        value = self.get(name)
        assert isinstance(value, str), (name, value)
        return value


@dataclass(frozen=True, slots=True)
class DynamicConfigs:
    """Dynamic settings of a broker: its own override those of all brokers."""

    own: Mapping[str, str] = field(default_factory=dict)
    everybodys: Mapping[str, str] = field(default_factory=dict)

    @property
    def merged(self) -> dict[str, str]:
        return {**self.everybodys, **self.own}


@dataclass(frozen=True, slots=True)
class BrokerConfig(TypedSettings):
    """A broker's settings: given values override defaults."""

    given: Mapping[str, Value] = field(default_factory=dict)
    not_acted_on: Mapping[str, str] = field(default_factory=dict)
    """Kafka's settings that were given and have no effect here."""
    _found: dict[str, Value] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What ``get`` has found: some twenty settings are read for each batch that is produced."""

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "BrokerConfig":
        checked = check_broker_settings(given)
        config = cls(checked.values, checked.ignored)
        _check_limits(checked.values, config.listeners)
        return config

    def get(self, name: str) -> Value:
        if name in self._found:
            return self._found[name]
        self._found[name] = value = self._find(name)
        return value

    def _find(self, name: str) -> Value:
        if name in self.given:
            return self.given[name]
        for other in OTHER_NAMES.get(name, ()):
            value = self.given.get(other.name)
            if isinstance(value, int):
                return other.convert(value)
        return BROKER_SETTINGS[name].default

    def limit_of(self, listener: str, name: str) -> int | None:
        """The limit ``name`` of one listener; None if it has none of its own."""
        value = self.given.get(f"{listener_prefix(listener)}{name}")
        return value if isinstance(value, int) else None

    @property
    def listeners(self) -> Listeners:
        return read_listeners(_of_listeners(self.given))

    def tls(self, listener: str) -> "TlsSettings":
        """The settings of a listener that speaks TLS."""
        # as above
        from sparklog.model.settings.tls_settings import tls_settings_of_listener

        return tls_settings_of_listener(self._texts(), listener)

    def tls_of_metrics(self) -> "TlsSettings | None":
        """The settings of what serves metrics; None if it is in the clear."""
        # as above
        from sparklog.model.settings.tls_settings import tls_settings_of_metrics

        texts = self._texts()
        return tls_settings_of_metrics(texts) if metrics_have_tls(texts) else None

    def login(self, listener: str) -> "ListenerLoginSettings":
        """The settings of a listener at which clients log in."""
        # as above
        from sparklog.model.settings.login_settings import login_settings_of_listener

        return login_settings_of_listener(self._texts(), listener)

    def brokers_login(self, listener: str) -> "ClientLoginSettings":
        """How brokers, and this host's own commands, log in at a listener with logins."""
        # as above
        from sparklog.model.settings.login_settings import login_settings_of_brokers

        return login_settings_of_brokers(self._texts(), listener)

    @property
    def zookeeper(self) -> "ZooKeeperSettings":
        """How to connect to ZooKeeper, and whether its nodes are closed to others."""
        # as above
        from sparklog.model.settings.zookeeper_settings import zookeeper_settings

        return zookeeper_settings(self._texts())

    def _texts(self) -> dict[str, str]:
        return {name: render(value) for name, value in self.given.items()}

    def with_dynamic(self, configs: Mapping[str, str]) -> "BrokerConfig":
        """These settings, overridden by those of ``configs`` that ``check_dynamic_settings`` accepts."""
        if not configs:
            return self
        return BrokerConfig({**self.given, **check_dynamic_settings(configs).values}, self.not_acted_on)

    def topic(self, overrides: Mapping[str, str]) -> "TopicConfig":
        """The settings of a topic with these overrides, on this broker. Overrides were checked before."""
        return TopicConfig(self, check_topic_settings(overrides).values)


@dataclass(frozen=True, slots=True)
class TopicConfig(TypedSettings):
    """A topic's settings: its own values override the broker's, which override defaults."""

    broker: BrokerConfig
    overrides: Mapping[str, Value] = field(default_factory=dict)
    _found: dict[str, Value] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What ``get`` has found."""

    def get(self, name: str) -> Value:
        if name in self._found:
            return self._found[name]
        self._found[name] = value = self._find(name)
        return value

    def _find(self, name: str) -> Value:
        if name in self.overrides:
            return self.overrides[name]
        setting = TOPIC_SETTINGS[name]
        return self.broker.get(setting.broker_name) if setting.broker_name else setting.default
