"""Who is logged in on which connection, so that those of a deleted credential can be closed."""

import threading
from collections.abc import Callable, Hashable
from typing import Final

Disconnect = Callable[[], None]


class LoginSessions:
    """Sessions by the credential that opened them. For any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._by_credential: Final[dict[Hashable, dict[int, Disconnect]]] = {}

    def enter(self, credential: Hashable, connection_id: int, disconnect: Disconnect) -> None:
        with self._guard:
            self._by_credential.setdefault(credential, {})[connection_id] = disconnect

    def leave(self, credential: Hashable, connection_id: int) -> None:
        with self._guard:
            sessions = self._by_credential.get(credential, {})
            sessions.pop(connection_id, None)
            if not sessions:
                self._by_credential.pop(credential, None)

    def credentials(self) -> list[Hashable]:
        """Those that have opened sessions."""
        with self._guard:
            return list(self._by_credential)

    def close(self, credential: Hashable) -> int:
        """Disconnect all that this credential has opened; returns how many."""
        with self._guard:
            sessions = self._by_credential.pop(credential, {})
        for disconnect in sessions.values():
            disconnect()
        return len(sessions)
