"""The users of PLAIN as their JAAS string has them, read again while logins go on, at most once in a second.

A user whose secret is gone from its file has been removed, and the others go on.

Anybody may begin a login. So a login does not read the string itself, whose references may name many files:
it takes what was read within the last second, and a string that cannot be read is logged as often as that.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from sparklog.credentials.jaas_users import present_plain_users
from sparklog.model.errors import ConfigError
from sparklog.model.settings.secrets import Secret

logger: Final = logging.getLogger(__name__)

KEPT_S: Final = 1.0


class PresentUsers:
    """Called for the passwords by name. For any thread."""

    def __init__(self, jaas: Secret, now_s: Callable[[], float] = time.monotonic) -> None:
        self._jaas = jaas
        self._now_s = now_s
        self._guard = threading.Lock()
        self._passwords: Mapping[str, str] = {}
        self._kept_until_s: float | None = None

    def __call__(self) -> Mapping[str, str]:
        with self._guard:
            if self._kept_until_s is None or self._now_s() >= self._kept_until_s:
                self._passwords = self._read()
                self._kept_until_s = self._now_s() + KEPT_S
            return self._passwords

    def _read(self) -> Mapping[str, str]:
        try:
            return present_plain_users(self._jaas)
        except ConfigError as error:
            logger.error("nobody can log in by PLAIN: %s", error)
            return {}
