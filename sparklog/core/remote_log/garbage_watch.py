"""Objects that no manifest names: remains of fenced leaders and failed uploads in a store.

A listing says neither how old an object is nor whether a manifest will name it soon. So an object is garbage
once every listing has had it unnamed for longer than a grace. The grace must be longer than any lease, any
upload and any read of a replaced manifest.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class GarbageWatch:
    """Remembers since when each object is unnamed, as long as its process lives."""

    grace_ms: int
    _unnamed_since_ms: dict[str, int] = field(default_factory=dict)
    """The objects of the last listing that no manifest named; a named or unlisted one is forgotten."""

    def on_listed(self, listed: Iterable[str], named: Collection[str], now_ms: int) -> list[str]:
        """The objects to delete, sorted.

        ``named`` must be read after the listing. Names read before it lack objects that were uploaded and
        named in between.
        """
        unnamed = set(listed).difference(named)
        self._unnamed_since_ms = {name: self._unnamed_since_ms.get(name, now_ms) for name in unnamed}
        return sorted(
            name for name, since_ms in self._unnamed_since_ms.items() if now_ms - since_ms > self.grace_ms
        )
