"""Closes the connections of users of PLAIN who were removed, as a deleted credential of SCRAM closes its own.

Users are removed from the file that their JAAS string, or the references in it, are about. It is read each
second. A user must be missing twice in a row: a file that is being written over lacks users for a moment. A
file that cannot be read removes nobody. Nobody looks where no user of PLAIN is connected.
"""

import logging
from typing import Final

from sparklog.core.security.login.plain import PLAIN
from sparklog.credentials.jaas_users import present_plain_users
from sparklog.model.errors import ConfigError
from sparklog.model.loops import Loop, Pause
from sparklog.model.settings.secrets import Secret
from sparklog.network.login.sessions import LoginSessions

logger: Final = logging.getLogger(__name__)

LOOK_INTERVAL_MS: Final = 1_000


class PlainRemovals:
    """The removals of one listener's users."""

    def __init__(self, jaas: Secret, sessions: LoginSessions) -> None:
        self._jaas = jaas
        self._sessions = sessions
        self._missing: frozenset[str] = frozenset()

    def loop(self) -> Loop:
        while True:
            yield Pause(LOOK_INTERVAL_MS)
            self.look()

    def look(self) -> None:
        """Close the sessions of users who were missing at the last look, and still are."""
        connected = [
            key[0] for key in self._sessions.credentials() if isinstance(key, tuple) and key[1] == PLAIN
        ]
        if not connected:
            self._missing = frozenset()
            return
        try:
            present = present_plain_users(self._jaas)
        except ConfigError:
            return  # logins say so
        missing = frozenset(user for user in connected if user not in present)
        for user in missing & self._missing:
            count = self._sessions.close((user, PLAIN))
            logger.info("%r may not log in by PLAIN any more; %d connections are closed", user, count)
        self._missing = missing
