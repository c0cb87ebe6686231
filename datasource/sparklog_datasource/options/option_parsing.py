"""The parsing of options: names in any case, values with their bounds, misspelt names refused.

Spark passes options as text, with names in lower case. Options of Kafka clients begin with ``kafka.``:

- Options that sparklog supports have their effect.
- Options that would change the records read or written, and cannot be honoured, are refused.
- Other options of Kafka's clients are ignored, so that jobs move unchanged.
- A name that no Kafka client has is refused if it looks like a misspelt one. Any other name may be a plugin's
  or a later Kafka's: it is logged as a warning, once in each Python process.
"""

import difflib
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sparklog.client.calls.bootstrap import parse_bootstrap_servers
from sparklog.client.property_names import CLIENT_PROPERTIES
from sparklog.client.security.security_properties import (
    login_settings_of,
    resolved,
    security_properties,
    tls_settings_of,
    without_effect,
)
from sparklog.model.errors import ConfigError
from sparklog_datasource.options.option_names import BOOTSTRAP, BOOTSTRAP_SHORT

CLIENT_PREFIX: Final = "kafka."
TABLE_PREFIX: Final = "option."
"""When a table is created, Spark hands on each of its options twice, as it is and with this prefix, among the
table's properties."""

TABLE_PROVIDER: Final = "provider"
"""The property that every table has, and no read or write."""

TABLE_OPTIONS: Final = (
    "a table of a catalog cannot have options: Spark would hand them to no later statement, and each would "
    "fail. Use CREATE TEMPORARY VIEW ... USING sparklog OPTIONS (...), or leave OPTIONS out here and give "
    "them with each statement, SELECT ... FROM name WITH (...)"
)

NO_OPTIONS: Final = (
    f"option '{BOOTSTRAP}' (or '{BOOTSTRAP_SHORT}') must be specified, and no option arrived. Spark hands "
    "the options of a catalog's table to no Python source: use a temporary view, or give them with each "
    "statement, WITH (...) in SQL"
)

LIKELY_MISSPELT: Final = 0.85
"""The similarity from which an unknown name is refused as a misspelt option of a Kafka client."""

LONG_MAX: Final = 2**63 - 1
INT_MAX: Final = 2**31 - 1

SPARK_OPTIONS: Final = (
    "checkpointLocation", "queryName", "asyncProgressTrackingEnabled",
    "asyncProgressTrackingCheckpointIntervalMs", "asyncProgressTrackingOverrideSinkSupportCheck",
)  # fmt: skip
"""Spark's own options, which it passes on to sources and sinks."""

REFUSED_CLIENT_OPTIONS: Final[Mapping[str, str]] = {
    "auto.offset.reset": "set startingOffsets to earliest or latest instead",
    "enable.auto.commit": "offsets are kept in the query's checkpoint, never committed to a group",
    "interceptor.classes": "Java interceptors cannot run here",
    "key.deserializer": "set keyFormat=string for text, or cast the column",
    "value.deserializer": "set valueFormat=string for text, or cast the column",
    "key.serializer": "keys are written as binary or string; cast the column instead",
    "value.serializer": "values are written as binary or string; cast the column instead",
    "transactional.id": "leave it out: writes are exactly once without it; a batch write that may be run "
    "again takes txnAppId and txnVersion",
    "partitioner.class": "Java classes cannot run here; compute a partition column instead",
}
"""Client options that would change the meaning of a query and cannot be honoured, with the remedy."""

DEFAULT_PARTITIONERS: Final = ("DefaultPartitioner", "UniformStickyPartitioner")
"""Java's own partitioners, which choose partitions as sparklog does."""

logger: Final = logging.getLogger(__name__)
_warned_of: Final[set[str]] = set()

_DURATION: Final = re.compile(r"(\d+)\s*(us|ms|s|m|min|h|d)?", re.IGNORECASE)
_BYTES: Final = re.compile(r"(\d{1,19})\s*([kmgtp]?b?)", re.IGNORECASE)
_BITS_OF_UNIT: Final = {"b": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_MS_PER_UNIT: Final = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """How to reach the cluster; equal values share a client (``clients``)."""

    bootstrap_servers: str
    client_id: str
    request_timeout_ms: int
    retry_timeout_ms: int
    auto_create_topics: bool = False
    client_rack: str = ""
    security: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """``security.*``, ``ssl.*`` and ``sasl.*`` as they were given, references and passwords among them: each
    process resolves them for itself."""


class Options:
    """The options of one read or write, after unknown names were refused."""

    def __init__(
        self, given: Mapping[str, str], known: Iterable[str], what: str, *, passed_over: Iterable[str] = ()
    ) -> None:
        """``passed_over`` are names that are known and have no effect on this side."""
        self._known = {name.lower(): name for name in known}
        self._passed_over = {name.lower() for name in passed_over}
        self._given = {name.lower(): text for name, text in given.items()}
        self._what = what
        if not self._given:
            raise ConfigError(NO_OPTIONS)
        for name in sorted(self._given):
            self._refuse_unknown(name)
        self._refuse_client_options()

    def text(self, name: str) -> str | None:
        """An option's text as it was given, or None."""
        return self._given.get(name.lower())

    def client(self, name: str) -> str | None:
        """A Kafka client's option, by its name without the prefix."""
        text = self._given.get(CLIENT_PREFIX + name)
        return None if text is None else resolved(f"option {CLIENT_PREFIX}{name}", text).strip()

    def boolean(self, name: str, default: bool) -> bool:
        text = self.text(name)
        if text is None:
            return default
        if text.strip().lower() not in ("true", "false"):
            raise ConfigError(f"option {name}={text!r}: must be true or false")
        return text.strip().lower() == "true"

    def integer(self, name: str, *, minimum: int, maximum: int = LONG_MAX) -> int | None:
        text = self.text(name)
        return None if text is None else _integer(name, text, minimum, maximum)

    def client_integer(self, name: str, default: int, *, minimum: int = 0, maximum: int = INT_MAX) -> int:
        text = self.client(name)
        return default if text is None else _integer(CLIENT_PREFIX + name, text, minimum, maximum)

    def choice(self, name: str, default: str, choices: Iterable[str]) -> str:
        """One of the words, in lower case."""
        text = self.text(name)
        return default if text is None else _choice(name, text, choices)

    def client_choice(self, name: str, default: str, choices: Iterable[str]) -> str:
        text = self.client(name)
        return default if text is None else _choice(CLIENT_PREFIX + name, text, choices)

    def duration_ms(self, name: str, default_ms: int) -> int:
        """As Spark writes them: 500ms, 30s, 15m; milliseconds without a unit."""
        text = self.text(name)
        if text is None:
            return default_ms
        match = _DURATION.fullmatch(text.strip())
        if match is None:
            raise ConfigError(f"option {name}={text!r}: must be a duration such as 500ms, 30s or 15m")
        unit = (match[2] or "ms").lower()
        return int(match[1]) // 1_000 if unit == "us" else int(match[1]) * _MS_PER_UNIT[unit]

    def byte_count(self, name: str, *, minimum: int) -> int | None:
        """As Spark writes them: 64m, 1g, 512k; bytes without a unit."""
        text = self.text(name)
        if text is None:
            return None
        match = _BYTES.fullmatch(text.strip())
        if match is None:
            raise ConfigError(f"option {name}={text!r}: must be a size such as 512k, 64m or 1g")
        value = int(match[1]) << _BITS_OF_UNIT[(match[2] or "b")[0].lower()]
        if not minimum <= value <= LONG_MAX:
            raise ConfigError(f"option {name}={text!r}: must be between {minimum} and {LONG_MAX} bytes")
        return value

    @staticmethod
    def warn_once(message: str) -> None:
        """Log a warning, once in each Python process."""
        if message not in _warned_of:
            _warned_of.add(message)
            logger.warning("%s", message)

    def connection(self, *, retry_option: str, auto_create_topics: bool = False) -> ConnectionOptions:
        return ConnectionOptions(
            bootstrap_servers=self._bootstrap_servers(),
            client_id=self.client("client.id") or "sparklog-spark",
            request_timeout_ms=self.client_integer("request.timeout.ms", 30_000, minimum=1),
            retry_timeout_ms=self.client_integer(retry_option, 60_000, minimum=1),
            auto_create_topics=auto_create_topics,
            client_rack=self.client("client.rack") or "",
            security=tuple(sorted(self._security().items())),
        )

    def _security(self) -> dict[str, str]:
        """How to connect, by Kafka's names; ConfigError for what is unknown or cannot be kept."""
        prefix = CLIENT_PREFIX
        given = security_properties(
            {name.removeprefix(prefix): text for name, text in self._given.items() if name.startswith(prefix)}
        )
        try:
            tls_settings_of(given)
            login_settings_of(given)
            ignored = without_effect(given)
        except ConfigError as error:
            raise ConfigError(f"option {prefix}{error}") from None
        if ignored is not None:
            self.warn_once(f"options {prefix}*: {ignored}")
        return given

    def _bootstrap_servers(self) -> str:
        texts = {text for name in (BOOTSTRAP, BOOTSTRAP_SHORT) if (text := self.text(name)) is not None}
        if len(texts) > 1:
            raise ConfigError(f"options {BOOTSTRAP} and {BOOTSTRAP_SHORT} differ: {sorted(texts)}; give one")
        if not texts:
            raise ConfigError(
                f"option '{BOOTSTRAP}' (or '{BOOTSTRAP_SHORT}') must be specified, such as 127.0.0.1:9092"
            )
        text = resolved(f"option {BOOTSTRAP}", texts.pop())
        parse_bootstrap_servers(text)
        return text

    def _refuse_unknown(self, name: str) -> None:
        if name in self._known or name in self._passed_over or name in _SPARK_NAMES:
            return
        if name == BOOTSTRAP_SHORT or name.startswith("__"):
            return
        if name.startswith(CLIENT_PREFIX):
            self._refuse_misspelt_client_option(name.removeprefix(CLIENT_PREFIX))
            return
        if name == "path":
            raise ConfigError(f"a sparklog {self._what} takes no path: topics are named by options")
        near = difflib.get_close_matches(name, [*self._known, BOOTSTRAP, BOOTSTRAP_SHORT], n=1, cutoff=0.6)
        if near:
            hint = f"did you mean {self._known.get(near[0], near[0])}?"
        else:
            hint = f"options of Kafka clients begin with {CLIENT_PREFIX!r}"
        raise ConfigError(f"unknown option {name!r} for a sparklog {self._what}; {hint}")

    def _refuse_misspelt_client_option(self, name: str) -> None:
        if name in CLIENT_PROPERTIES:
            return
        near = difflib.get_close_matches(name, CLIENT_PROPERTIES, n=1, cutoff=LIKELY_MISSPELT)
        if near:
            raise ConfigError(
                f"unknown option '{CLIENT_PREFIX}{name}' for a sparklog {self._what}; "
                f"did you mean {CLIENT_PREFIX}{near[0]}?"
            )
        self.warn_once(
            f"option {CLIENT_PREFIX}{name} has no effect: neither sparklog nor Kafka's clients have it"
        )

    def _refuse_client_options(self) -> None:
        for name, remedy in REFUSED_CLIENT_OPTIONS.items():
            text = self.client(name)
            if text is None or (name == "partitioner.class" and text.endswith(DEFAULT_PARTITIONERS)):
                continue
            raise ConfigError(f"Kafka option '{CLIENT_PREFIX}{name}' is not supported: {remedy}")
        self._security()


_SPARK_NAMES: Final = frozenset(name.lower() for name in SPARK_OPTIONS)


def is_of_new_table(given: Mapping[str, str]) -> bool:
    """Whether these are the properties of a table that Spark creates, not the options of a read.

    ConfigError if the table has options.
    """
    names = {name.lower() for name in given}
    if any(name.startswith(TABLE_PREFIX) for name in names):
        raise ConfigError(TABLE_OPTIONS)
    return TABLE_PROVIDER in names


def _choice(name: str, text: str, choices: Iterable[str]) -> str:
    allowed = tuple(choices)
    value = text.strip().lower()
    if value not in allowed:
        raise ConfigError(f"option {name}={text!r}: must be one of {', '.join(allowed)}")
    return value


def _integer(name: str, text: str, minimum: int, maximum: int) -> int:
    try:
        value = int(text.strip())
    except ValueError:
        raise ConfigError(f"option {name}={text!r}: must be a whole number") from None
    if not minimum <= value <= maximum:
        bound = "positive" if minimum == 1 and value < 1 else f"between {minimum} and {maximum}"
        raise ConfigError(f"option {name}={value}: must be {bound}")
    return value
