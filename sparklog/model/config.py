"""Settings with Kafka's names, as typed values.

Every setting that sparklog acts on is one ``Setting`` in ``BROKER_SETTINGS`` or ``TOPIC_SETTINGS``: its name,
type, default, bounds and one sentence of documentation. A topic takes its defaults from the broker.

What a name means when it is not one of ours is decided here too: a property that Apache Kafka has and
sparklog does not act on is accepted with one warning; a name that neither has is refused with the nearest
known one.
"""

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from sparklog.model.errors import ConfigError
from sparklog.model.kafka_properties import KAFKA_BROKER_PROPERTIES, KAFKA_TOPIC_PROPERTIES

Kind = Literal["int", "bool", "string", "list"]
Value = int | bool | str | tuple[str, ...]


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
    """Choices that Kafka has and sparklog does not act on yet: accepted with a warning."""
    broker_name: str = ""
    """For topic settings: the broker setting that supplies the default."""

    def parse(self, text: str) -> Value:
        """The typed value of ``text``; raises ConfigError that names value and bounds."""
        stripped = text.strip()
        if self.kind == "bool":
            if stripped.lower() not in ("true", "false"):
                raise ConfigError(f"{self.name}={text!r}: must be true or false")
            return stripped.lower() == "true"
        if self.kind == "int":
            return self._parse_int(stripped)
        items = [item.strip() for item in stripped.split(",")] if self.kind == "list" else [stripped]
        for item in items:
            if self.choices and item not in self.choices:
                raise ConfigError(f"{self.name}={text!r}: must be one of {', '.join(self.choices)}")
        return tuple(items) if self.kind == "list" else stripped

    def is_not_yet(self, value: Value) -> bool:
        """Whether ``value`` asks for something that sparklog does not do yet."""
        asked = value if isinstance(value, tuple) else (value,)
        return any(item in self.not_yet for item in asked)

    def _parse_int(self, text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ConfigError(f"{self.name}={text!r}: must be a whole number") from None
        if self.minimum is not None and value < self.minimum:
            raise ConfigError(f"{self.name}={value}: must be at least {self.minimum}")
        if self.maximum is not None and value > self.maximum:
            raise ConfigError(f"{self.name}={value}: must be at most {self.maximum}")
        return value


def render(value: Value) -> str:
    """The text of a typed value, as configuration files and DescribeConfigs show it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)


_LONG_MAX: Final = 2**63 - 1
_INT_MAX: Final = 2**31 - 1


def _table(*settings: Setting) -> dict[str, Setting]:
    return {setting.name: setting for setting in settings}


BROKER_SETTINGS: Final[Mapping[str, Setting]] = _table(
    Setting("num.network.threads", "int", 1,
            "Processor threads of the reactor; each runs a selector over its connections. One is fastest "
            "under CPython's interpreter lock.", 1, 64),
    Setting("num.io.threads", "int", 2, "Handler threads that work on requests.", 1, 64),
    Setting("queued.max.requests", "int", 500,
            "Requests that may wait for a handler before processors stop reading.", 1, _INT_MAX),
    Setting("socket.request.max.bytes", "int", 104_857_600,
            "Frames larger than this close the connection before memory is taken.", 1, _INT_MAX),
    Setting("max.connections", "int", _INT_MAX, "Connections that a listener accepts.", 1, _INT_MAX),
    Setting("connections.max.idle.ms", "int", 600_000,
            "Connections without traffic for this long are closed.", 1_000, _LONG_MAX),
    Setting("num.partitions", "int", 1, "Partitions of a topic created without a number.", 1, 100_000),
    Setting("default.replication.factor", "int", 1,
            "Replication factor of a topic created without one.", 1, 1_000),
    Setting("auto.create.topics.enable", "bool", True,
            "Create a topic when a client asks for metadata of one that does not exist and allows it."),
    Setting("min.insync.replicas", "int", 1,
            "Writes with acks=all are refused while fewer replicas are in sync.", 1, 1_000),
    Setting("replica.lag.time.max.ms", "int", 30_000,
            "A follower that has not caught up for this long leaves the ISR.", 10, _LONG_MAX),
    Setting("replica.fetch.wait.max.ms", "int", 500,
            "Longest wait of a follower's fetch at the leader.", 1, 60_000),
    Setting("replica.fetch.min.bytes", "int", 1, "Bytes a follower's fetch waits for.", 1, _INT_MAX),
    Setting("replica.fetch.max.bytes", "int", 1_048_576,
            "Bytes per partition that a follower asks for at once.", 1, _INT_MAX),
    Setting("replica.fetch.response.max.bytes", "int", 10_485_760,
            "Bytes that a follower asks for in one fetch.", 1, _INT_MAX),
    Setting("replica.fetch.backoff.ms", "int", 1_000,
            "Pause of a follower after an error of one partition.", 1, 60_000),
    Setting("replica.socket.timeout.ms", "int", 30_000,
            "Longest wait for a leader's answer beyond the fetch's own wait.", 100, _INT_MAX),
    Setting("replica.high.watermark.checkpoint.interval.ms", "int", 5_000,
            "How often high watermarks are written to disk.", 10, _LONG_MAX),
    Setting("fetch.max.bytes", "int", 57_671_680, "Most bytes of one fetch reply.", 1_024, _INT_MAX),
    Setting("message.max.bytes", "int", 1_048_588, "Largest record batch that is accepted.", 0, _INT_MAX),
    Setting("log.segment.bytes", "int", 1_073_741_824, "Size at which a segment is rolled.", 14, _INT_MAX),
    Setting("log.roll.ms", "int", 604_800_000,
            "Age at which a segment is rolled, by its records' timestamps.", 1, _LONG_MAX),
    Setting("log.index.interval.bytes", "int", 4_096,
            "Bytes of log between two entries of an index.", 0, _INT_MAX),
    Setting("log.index.size.max.bytes", "int", 10_485_760,
            "Size at which an index is full and its segment rolled.", 24, _INT_MAX),
    Setting("log.flush.offset.checkpoint.interval.ms", "int", 60_000,
            "How often recovery points are written to disk.", 10, _LONG_MAX),
    Setting("log.retention.ms", "int", 604_800_000,
            "Age at which segments are deleted; -1 keeps them.", -1, _LONG_MAX),
    Setting("log.retention.check.interval.ms", "int", 300_000,
            "How often to look for segments that retention gives up.", 1, _LONG_MAX),
    Setting("log.retention.bytes", "int", -1, "Size above which old segments are deleted.", -1, _LONG_MAX),
    Setting("log.cleanup.policy", "list", ("delete",), "How old records leave the log.",
            choices=("delete", "compact"), not_yet=("compact",)),
    Setting("unclean.leader.election.enable", "bool", False,
            "Elect a replica outside the ISR when no other is left; may lose acknowledged records."),
    Setting("producer.id.expiration.ms", "int", 86_400_000,
            "Producers silent for this long are forgotten.", 1, _INT_MAX),
    Setting("controlled.shutdown.enable", "bool", True, "Move leaders away before a broker stops."),
    Setting("zookeeper.session.timeout.ms", "int", 18_000,
            "ZooKeeper declares a broker dead after this long without a heartbeat.", 1_000, _INT_MAX),
    Setting("zookeeper.connection.timeout.ms", "int", 18_000,
            "Longest wait for ZooKeeper at start.", 1_000, _INT_MAX),
    Setting("controlled.shutdown.max.retries", "int", 3, "Tries of a controlled shutdown.", 0, 100),
    Setting("request.timeout.ms", "int", 30_000, "Longest wait for a controller's answer.", 100, _INT_MAX),
)  # fmt: skip
"""What a broker acts on."""

TOPIC_SETTINGS: Final[Mapping[str, Setting]] = _table(
    *(
        Setting(
            name=topic_name,
            kind=broker.kind,
            default=broker.default,
            doc=broker.doc,
            minimum=broker.minimum,
            maximum=broker.maximum,
            choices=broker.choices,
            not_yet=broker.not_yet,
            broker_name=broker.name,
        )
        for topic_name, broker in (
            ("min.insync.replicas", BROKER_SETTINGS["min.insync.replicas"]),
            ("max.message.bytes", BROKER_SETTINGS["message.max.bytes"]),
            ("segment.bytes", BROKER_SETTINGS["log.segment.bytes"]),
            ("segment.ms", BROKER_SETTINGS["log.roll.ms"]),
            ("segment.index.bytes", BROKER_SETTINGS["log.index.size.max.bytes"]),
            ("index.interval.bytes", BROKER_SETTINGS["log.index.interval.bytes"]),
            ("retention.ms", BROKER_SETTINGS["log.retention.ms"]),
            ("retention.bytes", BROKER_SETTINGS["log.retention.bytes"]),
            ("cleanup.policy", BROKER_SETTINGS["log.cleanup.policy"]),
            ("unclean.leader.election.enable", BROKER_SETTINGS["unclean.leader.election.enable"]),
        )
    )
)
"""What a topic may set for itself."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Settings that were checked: typed values of those given, and a warning per one we do not act on."""

    values: Mapping[str, Value]
    warnings: tuple[str, ...] = ()
    ignored: Mapping[str, str] = field(default_factory=dict)


def _check(
    given: Mapping[str, str], known: Mapping[str, Setting], kafka: Iterable[str], what: str
) -> Checked:
    kafka_names = frozenset(kafka)
    values: dict[str, Value] = {}
    ignored: dict[str, str] = {}
    warnings: list[str] = []
    for name, text in given.items():
        if name in known:
            values[name] = known[name].parse(text)
            if known[name].is_not_yet(values[name]):
                warnings.append(f"{what} setting {name}={text}: sparklog does not act on this value yet")
        elif name in kafka_names:
            ignored[name] = text
            warnings.append(f"{what} setting {name}={text} is accepted, but sparklog does not act on it yet")
        else:
            near = difflib.get_close_matches(name, [*known, *kafka_names], n=1, cutoff=0.6)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"unknown {what} setting {name!r}{hint}")
    return Checked(values, tuple(warnings), ignored)


def check_broker_settings(given: Mapping[str, str]) -> Checked:
    """Type and check broker settings; raises ConfigError on an unknown name or an illegal value."""
    return _check(given, BROKER_SETTINGS, KAFKA_BROKER_PROPERTIES, "broker")


def check_topic_settings(given: Mapping[str, str]) -> Checked:
    """Type and check topic settings; raises ConfigError on an unknown name or an illegal value."""
    return _check(given, TOPIC_SETTINGS, KAFKA_TOPIC_PROPERTIES, "topic")


class TypedSettings(ABC):
    """Settings by name, as the types that they are declared to have."""

    __slots__ = ()

    @abstractmethod
    def get(self, name: str) -> Value: ...

    def get_int(self, name: str) -> int:
        value = self.get(name)
        assert isinstance(value, int), (name, value)
        return value

    def get_bool(self, name: str) -> bool:
        value = self.get(name)
        assert isinstance(value, bool), (name, value)
        return value

    def get_str(self, name: str) -> str:
        value = self.get(name)
        assert isinstance(value, str), (name, value)
        return value


@dataclass(frozen=True, slots=True)
class BrokerConfig(TypedSettings):
    """A broker's settings: what was given over what is the default."""

    given: Mapping[str, Value] = field(default_factory=dict)

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "BrokerConfig":
        return cls(check_broker_settings(given).values)

    def get(self, name: str) -> Value:
        return self.given[name] if name in self.given else BROKER_SETTINGS[name].default

    def topic(self, overrides: Mapping[str, str]) -> "TopicConfig":
        """The settings of a topic with these overrides, on this broker. Overrides were checked before."""
        return TopicConfig(self, check_topic_settings(overrides).values)


@dataclass(frozen=True, slots=True)
class TopicConfig(TypedSettings):
    """A topic's settings: its own over the broker's over the default."""

    broker: BrokerConfig
    overrides: Mapping[str, Value] = field(default_factory=dict)

    def get(self, name: str) -> Value:
        if name in self.overrides:
            return self.overrides[name]
        return self.broker.get(TOPIC_SETTINGS[name].broker_name)
