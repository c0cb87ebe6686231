"""Objects that no manifest names: what fenced leaders and failed uploads have left in a store.

A listing says neither how old an object is nor whether it is about to be named. So an object is garbage once
it was seen unnamed in every listing for longer than a grace, which must be longer than any lease, any upload
and any read of a manifest that was replaced.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class GarbageWatch:
    """Remembers since when each object has had no name in a manifest; forgets all with its process."""

    grace_ms: int
    _unnamed_since_ms: dict[str, int] = field(default_factory=dict)

    def on_listed(self, listed: Iterable[str], named: Collection[str], now_ms: int) -> list[str]:
        """The objects to delete, sorted. ``named`` must have been read after the listing.

        Read before it, the names of an object that was uploaded and named in between would be missing.
        """
        unnamed = set(listed).difference(named)
        self._unnamed_since_ms = {name: self._unnamed_since_ms.get(name, now_ms) for name in unnamed}
        return sorted(
            name for name, since_ms in self._unnamed_since_ms.items() if now_ms - since_ms > self.grace_ms
        )
