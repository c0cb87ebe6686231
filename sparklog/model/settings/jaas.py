"""JAAS strings, by which Java's clients and brokers name a user and a password, and brokers PLAIN's users:

    org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="…";
    org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="…" user_bob="…";

Read as Kafka reads them: one login module, a flag, options, a semicolon. Values may stand in quotes, in which
a backslash means what it means in Java. No error shows a value, because each may be a secret.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sparklog.model.errors import ConfigError
from sparklog.model.settings.java_text import unescaped

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
MODULES: Final = (PLAIN_MODULE, SCRAM_MODULE)

SHADED: Final = "kafkashaded."
"""What stands before the module's name where a vendor has renamed Kafka's classes."""

TEXT_LENGTH_MAX: Final = 1_000_000

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|(?P<sign>[=;])|"(?P<double>(?:\\.|[^"\\\n])*)"|'(?P<single>(?:\\.|[^'\\\n])*)'"""
    r"""|(?P<word>[^\s=;"']+)""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """A login module, without a vendor's prefix, and its options. Their values are shown nowhere."""

    module: str
    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str = field(repr=False)


def parse_jaas(text: str) -> JaasEntry:
    """The one entry of ``text``; ConfigError says what is wrong with it."""
    tokens = _Tokens(text)
    module = tokens.take("word", "the name of a login module").removeprefix(SHADED)
    if module not in MODULES:
        raise ConfigError(
            f"its login module is none that sparklog has, which are {PLAIN_MODULE} and {SCRAM_MODULE}"
        )
    if tokens.take("word", "required").lower() not in _FLAGS:
        raise ConfigError(f"after the login module it must have one of {', '.join(_FLAGS)}")
    options: dict[str, str] = {}
    while not tokens.has_passed(";"):
        name = tokens.take("word", "an option or a semicolon")
        if not tokens.has_passed("="):
            raise ConfigError('it has an option without a value; write NAME="VALUE", and end it with ;')
        options[name] = tokens.take_value()
    tokens.expect_end()
    return JaasEntry(module, options)


class _Tokens:
    def __init__(self, text: str) -> None:
        if len(text) > TEXT_LENGTH_MAX:
            raise ConfigError(f"it has {len(text)} characters; at most {TEXT_LENGTH_MAX} are read")
        self._tokens = _split(text)
        self._position = 0

    def has_passed(self, sign: str) -> bool:
        """Whether ``sign`` came next; it is passed then."""
        token = self._peek()
        if token is None or token.kind != "sign" or token.text != sign:
            return False
        self._position += 1
        return True

    def take(self, kind: str, what: str) -> str:
        token = self._peek()
        if token is None or token.kind != kind:
            raise ConfigError(f'it lacks {what}, as in: MODULE required username="…" password="…";')
        self._position += 1
        return token.text

    def take_value(self) -> str:
        token = self._peek()
        if token is None or token.kind == "sign":
            raise ConfigError('it has an option without a value; write NAME="VALUE", and end it with ;')
        self._position += 1
        return token.text

    def expect_end(self) -> None:
        if self._peek() is not None:
            raise ConfigError("it has more than one login module, or text after its semicolon; leave one")

    def _peek(self) -> _Token | None:
        return self._tokens[self._position] if self._position < len(self._tokens) else None


def _split(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ConfigError('it has a quote that does not end; a quote inside a value is written \\"')
        position = found.end()
        kind = found.lastgroup
        if kind in ("double", "single"):
            tokens.append(_Token("quoted", unescaped(found[kind])))
        elif kind is not None:
            tokens.append(_Token(kind, found[kind]))
    return tokens
