"""References to secrets become the secrets themselves, anew at each use.

An error names the reference and what is missing, never a value. A file that others may open is refused.
"""

import os

from sparklog.credentials.properties_text import properties_of_text
from sparklog.credentials.secret_files import ReadFile, SecretFile, closed_content, read_file
from sparklog.model.errors import ConfigError
from sparklog.model.settings.secrets import Reference, Secret, parts_of


class NoSuchSecret(ConfigError):  # noqa: N818 (it states a fact)
    """The place of a reference can be read, and does not have its key."""


class Resolver:
    """Resolves texts that are needed at one time: a file of many secrets is read and parsed once."""

    def __init__(self, read: ReadFile = read_file) -> None:
        """``read`` reads files."""
        self._read = read
        self._properties: dict[str, dict[str, str]] = {}

    def resolve(self, text: str) -> str:
        """``text`` with what its references name; ConfigError says what is missing."""
        return "".join(part if isinstance(part, str) else self._value_of(part) for part in parts_of(text))

    def _value_of(self, reference: Reference) -> str:
        if reference.source == "env":
            return _of_environment(reference)
        if reference.source == "file":
            return self._of_properties(reference)
        return _of_directory(reference, self._read)

    def _of_properties(self, reference: Reference) -> str:
        place = reference.place
        if place not in self._properties:
            self._properties[place] = properties_of_text(_text_of(reference, self._read(place)))
        values = self._properties[place]
        if reference.key not in values:
            raise NoSuchSecret(
                f"{reference}: {place} has no key {reference.key}; add it, or correct its name"
            )
        return values[reference.key]


def resolve(text: str, read: ReadFile = read_file) -> str:
    """One text, as ``Resolver`` does."""
    return Resolver(read).resolve(text)


def reveal(secret: Secret, read: ReadFile = read_file) -> str:
    """The secret without blanks around it, its references resolved; ConfigError names its setting too."""
    try:
        return resolve(secret.reveal(), read).strip()
    except ConfigError as error:
        raise ConfigError(f"{secret.setting}: {error}") from None


def _of_environment(reference: Reference) -> str:
    value = os.environ.get(reference.key)
    if value is None:
        raise ConfigError(
            f"{reference}: the environment of this process has no variable {reference.key}; set it, or "
            "correct its name"
        )
    return value


def _of_directory(reference: Reference, read: ReadFile) -> str:
    if "/" in reference.key or reference.key in (".", ".."):
        raise ConfigError(
            f"{reference}: {reference.key!r} is no file's name; name a file of that folder itself"
        )
    path = os.path.join(reference.place, reference.key)
    if os.path.isdir(reference.place) and not os.path.lexists(path):
        raise NoSuchSecret(f"{path} cannot be read here: No such file or directory")
    return _text_of(reference, read(path)).rstrip("\r\n")


def _text_of(reference: Reference, file: SecretFile) -> str:
    try:
        return closed_content(file).decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{reference}: byte {error.start} of the file is not UTF-8") from None
