"""Secrets, and the references by which settings name them.

A secret in settings is text that must be shown nowhere: a password, a private key. Settings travel, in files,
on command lines and in Spark's tasks; so they name a secret by a *reference*, which the process that needs
the secret resolves at each use (``sparklog.credentials``):

    ${file:PATH:KEY}       the value of KEY in a file in Java's properties format       (KIP-421)
    ${directory:DIR:FILE}  the content of the file DIR/FILE, as Kubernetes mounts them  (KIP-632)
    ${env:NAME}            a variable of the process's environment                      (KIP-887)

A text may have several references, and text between them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NoReturn

from sparklog.model.errors import ConfigError

STARS: Final = "********"
"""What is shown in a secret's place."""

SOURCES: Final = ("file", "directory", "env")

REFERENCE: Final = re.compile(r"\$\{(file|directory):([^:}]+):([^}]+)\}|\$\{(env):([^}]+)\}")

_UNKNOWN_SOURCE: Final = re.compile(r"\$\{([A-Za-z]{1,20}):[^}]*\}")


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a secret is. ``place`` is a file's or a folder's path, and empty for the environment."""

    source: str
    place: str
    key: str

    def __str__(self) -> str:
        return "${" + ":".join(part for part in (self.source, self.place, self.key) if part) + "}"


def parts_of(text: str) -> Iterator[str | Reference]:
    """The literal texts and the references of ``text``, in order.

    A text that is nothing but a reference to an unknown source raises ConfigError: it is misspelt. Beside
    other text it stays as it is, as in Kafka, because a password may have any characters.
    """
    end = 0
    for found in REFERENCE.finditer(text):
        if found.start() > end:
            yield text[end : found.start()]
        source, place, key = (found[1], found[2], found[3]) if found[1] else (found[4], "", found[5])
        yield Reference(source, place, key)
        end = found.end()
    if not end:
        _refuse_unknown_source(text)
    if end < len(text):
        yield text[end:]


def is_reference(text: str) -> bool:
    """Whether ``text`` consists of references, and so has nothing that must be hidden."""
    parts = list(parts_of(text.strip()))
    return bool(parts) and all(isinstance(part, Reference) for part in parts)


def refuse_literal_secret(name: str, text: str) -> None:
    """ConfigError if ``text`` is a secret itself, and no reference to one."""
    if not text.strip():
        return
    try:
        is_named = is_reference(text)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None
    if not is_named:
        raise ConfigError(
            f"{name}=[hidden]: it is a secret, and settings of brokers travel and are shown; put it into a "
            "file, and write ${file:PATH:KEY}, ${directory:DIR:FILE} or ${env:NAME}"
        )


def _refuse_unknown_source(text: str) -> None:
    found = _UNKNOWN_SOURCE.fullmatch(text.strip())
    if found is None:
        return
    if found[1] in SOURCES:
        raise ConfigError(
            f"a reference to the source {found[1]!r} is not of the form ${{file:PATH:KEY}}, "
            "${directory:DIR:FILE} or ${env:NAME}"
        )
    raise ConfigError(
        f"a reference names the source {found[1]!r}, which there is not: write ${{file:PATH:KEY}}, "
        "${directory:DIR:FILE} or ${env:NAME}"
    )


class Secret:
    """A text that is shown nowhere: ``repr``, ``str`` and ``json.dumps(default=str)`` have stars.

    It does not pickle, so that no task of Spark carries it by accident. ``setting`` is the name of the
    setting that has it, for error texts. References in it are not resolved yet.
    """

    __slots__ = ("_text", "setting")

    def __init__(self, text: str, setting: str = "") -> None:
        self._text = text
        self.setting = setting

    def reveal(self) -> str:
        """The text itself; the caller must not show it."""
        return self._text

    def __str__(self) -> str:
        return STARS

    def __repr__(self) -> str:
        return f"Secret({STARS})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, memo: object) -> "Secret":
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled: send its reference, and resolve it where it is used")
