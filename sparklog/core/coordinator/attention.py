"""Notices that a process may have lost its leaderships without having heard of it.

A leader whose process stands still, or is cut off from ZooKeeper, may be replaced after its session's
time-out. A coordinator must not answer from its old state then: an offset that it reads out may be older than
one that its successor has acknowledged.

    clock looked at ......... more than a third of the session later: looked at again
                             \\_ a standstill: every leader epoch is in doubt until ZooKeeper confirms it

A third, because the ZooKeeper client notices a silent server after two thirds of the session: a pause that
stays unnoticed here ends before the session does. For the same reason a leader that has been disconnected
for a third of the session is in doubt.
"""

from typing import Final

from sparklog.model.time import MonotonicMs

SESSION_SHARE: Final = 3


class Attention:
    """Counts the standstills of one process. A leader epoch that was confirmed after the last one is certain.

    Any thread may call it. The count is raised before the time is noted, so that nobody sees the new time
    with the old count.
    """

    __slots__ = ("_disconnected_since_ms", "_last_ms", "_standstills", "limit_ms")

    def __init__(self, session_timeout_ms: int, now_ms: MonotonicMs) -> None:
        self.limit_ms: Final = session_timeout_ms // SESSION_SHARE
        self._last_ms = now_ms
        self._disconnected_since_ms: MonotonicMs | None = None
        self._standstills = 0

    def standstills(self, now_ms: MonotonicMs) -> int:
        """How many standstills there were until ``now_ms``; to be called at least four times in ``limit_ms``.

        While the process is disconnected for longer than ``limit_ms``, every call counts one more.
        """
        since_ms = self._disconnected_since_ms
        is_cut_off = since_ms is not None and now_ms - since_ms > self.limit_ms
        if is_cut_off or now_ms - self._last_ms > self.limit_ms:
            self._standstills += 1
        self._last_ms = max(self._last_ms, now_ms)
        return self._standstills

    def on_disconnected(self, now_ms: MonotonicMs) -> None:
        """The connection to ZooKeeper is lost, or its session."""
        if self._disconnected_since_ms is None:
            self._disconnected_since_ms = now_ms

    def on_connected(self) -> None:
        self._disconnected_since_ms = None
