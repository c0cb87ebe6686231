"""Changes of apps whose records are not committed yet, at most one of each app.

Until then the shard holds every other request of the app. A change counts once its record is below the high
watermark. Its request is answered then, or as soon as the outcome is in doubt.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sparklog.core.coordinator.actions import InDoubt, Refused, Reply, Token, WriteId
from sparklog.core.transaction_coordinator.write_errors import write_error
from sparklog.core.write_coordinator.app import Change
from sparklog.core.write_coordinator.requests import EndWrite, OpenWrite


@dataclass(slots=True)
class PendingChange:
    """A change in progress. ``change`` None forgets the app."""

    app: str
    change: Change | None
    waiting: tuple[Token, OpenWrite | EndWrite] | None = None
    """The request that caused it, until it is answered; None for a change without a request."""

    def refused(self, outcome: Refused | InDoubt) -> list[Reply]:
        """The answer to the request that waits for the record, given once."""
        waiting, self.waiting = self.waiting, None
        if waiting is None:
            return []
        token, request = waiting
        return [Reply(token, request.refused(write_error(outcome)))]


@dataclass(slots=True)
class UnderWay:
    """The changes in progress of one partition."""

    changes: dict[WriteId, PendingChange] = field(default_factory=dict)
    """No two of the same app."""
    held: set[str] = field(default_factory=set)
    """The apps of ``changes``."""

    def add(self, write_id: WriteId, pending: PendingChange) -> None:
        self.changes[write_id] = pending
        self.held.add(pending.app)

    def remove(self, write_id: WriteId) -> None:
        self.held.discard(self.changes.pop(write_id).app)

    def of_apps(self) -> dict[str, Change]:
        """The change in progress of each app; an app that is being forgotten has none."""
        return {
            pending.app: pending.change for pending in self.changes.values() if pending.change is not None
        }

    def waiting(self) -> Iterator[tuple[Token, OpenWrite | EndWrite]]:
        """The requests that wait for a record."""
        return (pending.waiting for pending in self.changes.values() if pending.waiting is not None)

    def clear(self) -> None:
        self.changes.clear()
        self.held.clear()

    def check_invariants(self) -> None:
        names = [pending.app for pending in self.changes.values()]
        assert sorted(names) == sorted(self.held), (names, self.held)
