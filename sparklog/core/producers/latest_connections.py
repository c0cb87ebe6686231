"""Recognises late requests of transactions by the connection on which they arrive.

Before EndTxn 5 nothing in a request says which transaction of a producer epoch it belongs to. So an EndTxn
that was sent for transaction n, and was late, could end n + 1. But a client sends a request again over a
*new* connection only after it has given up the old one. So a request is late if one of the same kind,
producer and epoch has come over a connection that was accepted after its own. It changes nothing, and its
connection is closed without an answer, for which nobody waits.

Kinds are kept apart, because clients have several connections to one broker, each for kinds of its own.

What is remembered lives in memory, with the role that serves the requests. A late request that meets another
leader or coordinator is refused by it, or is verified (``verification``). The entries are bounded; the one
that was used least recently goes first.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

ENTRIES_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Late:
    """The result of a late request. It has no error code, so that no code of another broker, or of a lost
    connection, is taken for it.
    """


LATE: Final = Late()


@dataclass(slots=True)
class LatestConnections:
    """By kind and producer, the epoch and the connection of the latest request."""

    entries_max: int = ENTRIES_MAX
    _latest: dict[Hashable, tuple[int, int]] = field(default_factory=dict)

    def is_late(self, sender: Hashable, epoch: int, connection: int | None) -> bool:
        """Whether a request is late; if not, it is remembered.

        ``sender``: the kind of request, and its producer. ``connection``: its number on this broker, which
        rises with each connection that is accepted; None for a request from within the broker, never late.
        """
        if connection is None:
            return False
        known_epoch, known_connection = self._latest.pop(sender, (epoch, connection))
        is_late = epoch == known_epoch and connection < known_connection
        if is_late or epoch < known_epoch:
            self._latest[sender] = (known_epoch, known_connection)
            return is_late
        self._latest[sender] = (epoch, connection)
        if len(self._latest) > self.entries_max:
            del self._latest[next(iter(self._latest))]
        return False

    def __len__(self) -> int:
        return len(self._latest)
