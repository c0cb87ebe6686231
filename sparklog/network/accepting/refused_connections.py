"""The log's lines about refused connections: one at once for each address, then one for what follows.

A client that is refused usually tries again at once, thousands of times a second. So the first refusal of an
address is logged when it happens, and further ones are counted and logged together, at most
``REPORT_AFTER_MS`` later. An address that was not refused in that time is forgotten. Memory is bounded:
beyond ``ADDRESSES_MAX`` addresses the refusals of all others are logged together.
"""

import logging
from dataclasses import dataclass
from typing import Final

from sparklog.model.time import MonotonicMs

logger: Final = logging.getLogger(__name__)

REPORT_AFTER_MS: Final = 2_000
ADDRESSES_MAX: Final = 1_000
OTHERS: Final = "other addresses"
"""Named in place of the addresses beyond ``ADDRESSES_MAX``."""


@dataclass(slots=True)
class _Refusals:
    """Refusals of one address since its last line in the log."""

    due_ms: MonotonicMs
    why: str
    count: int = 0


class RefusedConnections:
    """Logs refusals. The caller's lock is held during every call."""

    def __init__(self) -> None:
        self._by_address: dict[str, _Refusals] = {}
        """In the order in which they are due."""

    def note(self, address: str, why: str, now_ms: MonotonicMs) -> None:
        """A connection from ``address`` was refused; ``why`` has the limit and the remedy."""
        if address not in self._by_address and len(self._by_address) >= ADDRESSES_MAX:
            address = OTHERS
        refusals = self._by_address.get(address)
        if refusals is None:
            logger.warning("connection from %s refused: %s", address, why)
            self._wait_for_more(address, why, now_ms)
        else:
            refusals.count += 1
            refusals.why = why

    def report_due(self, now_ms: MonotonicMs) -> int | None:
        """Log what is due; returns the milliseconds until the next line is due, None if none waits."""
        while self._by_address:
            address, refusals = next(iter(self._by_address.items()))
            if refusals.due_ms > now_ms:
                return refusals.due_ms - now_ms
            del self._by_address[address]
            if refusals.count:
                self._log(address, refusals)
                self._wait_for_more(address, refusals.why, now_ms)
        return None

    def report_all(self) -> None:
        """Log what waits, whether it is due or not: the server ends."""
        for address, refusals in self._by_address.items():
            if refusals.count:
                self._log(address, refusals)
        self._by_address.clear()

    def _wait_for_more(self, address: str, why: str, now_ms: MonotonicMs) -> None:
        self._by_address[address] = _Refusals(MonotonicMs(now_ms + REPORT_AFTER_MS), why)

    @staticmethod
    def _log(address: str, refusals: _Refusals) -> None:
        logger.warning("%d more connections from %s refused: %s", refusals.count, address, refusals.why)
