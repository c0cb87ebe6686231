"""Files with secrets: their content, and whether others than their owner may open them.

The mode 0600 closes a file. Root may leave a file of its own open to a group, with 0640, so that a secret
reaches a process that does not run as root (in Kubernetes: ``defaultMode: 0440`` and ``fsGroup``).
"""

import os
import shlex
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sparklog.model.errors import ConfigError

ROOT: Final = 0
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_OF_ROOT: Final = stat.S_IWGRP | stat.S_IXGRP | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class SecretFile:
    """A file as it was read; ``mode``: the bits of its permissions, ``owner``: a user's number."""

    path: str
    content: bytes = field(repr=False)
    mode: int
    owner: int

    def exposure(self) -> str | None:
        """That others may open the file, with the command that closes it; None if they may not."""
        is_of_root = self.owner == ROOT
        if not self.mode & (_OTHERS_OF_ROOT if is_of_root else _OTHERS):
            return None
        closed = "640" if is_of_root else "600"
        return (
            f"others may open {self.path}, as its mode is 0{self.mode:o}; close it: chmod {closed} "
            f"{shlex.quote(self.path)}"
        )


ReadFile = Callable[[str], SecretFile]
"""Reads the file at a path; raises ConfigError that names it."""


def read_file(path: str) -> SecretFile:
    """A regular file. A pipe or a device could hold this process for ever, and is refused."""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise ConfigError(f"{path} is no file; name a file")
            return SecretFile(path, file.read(), stat.S_IMODE(found.st_mode), found.st_uid)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read here: {error.strerror}") from None


def closed_content(file: SecretFile) -> bytes:
    """The content of a file that is closed to others; ConfigError with the remedy if it is not."""
    exposure = file.exposure()
    if exposure is not None:
        raise ConfigError(exposure)
    return file.content


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
