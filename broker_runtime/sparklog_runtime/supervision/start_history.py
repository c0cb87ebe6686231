"""The starts of one slot's broker in a row: how long to wait before the next, and what to say of them.

    a start that served for 20 s      the next follows at once, and all before it is forgotten
    any other                         the next follows after 0.25 s, then twice that, 15 s at most
    five others in a row              a crash loop: the first and the last reason are reported once, and the
                                      next starts follow after five minutes at most

Where ZooKeeper is away, no broker can serve: those starts are tried again every 15 s, and count for nothing.
"""

from dataclasses import dataclass
from typing import Final

STABLE_S: Final = 20.0
"""A broker that served this long is launched again without delay."""

CRASH_LOOP_STARTS: Final = 5
PAUSE_MIN_S: Final = 0.25
PAUSE_MAX_S: Final = 15.0
PAUSE_OF_A_CRASH_LOOP_MAX_S: Final = 300.0

WITHOUT_A_WORD: Final = "its process ended without a reason; its log may have one"


@dataclass(slots=True)
class StartHistory:
    """See the module's text. ``ended`` after each start, then ``pause_s``."""

    barren: int = 0
    """Starts in a row that did not lead to a registered broker."""
    short: int = 0
    """Starts in a row that did not serve for ``STABLE_S``, and that count."""
    first_reason: str = ""
    last_reason: str = ""
    _tries: int = 0
    """Starts in a row that did not serve for ``STABLE_S``, whether they count or not."""

    def ended(self, served_s: float | None, reason: str, *, counts: bool = True) -> str | None:
        """A start is over: what is to be said of it, in a crash loop's fifth.

        ``served_s``: how long its broker was registered; None if it never was. ``counts`` is false where
        ZooKeeper was away.
        """
        if served_s is not None and served_s >= STABLE_S:
            self.barren = self.short = self._tries = 0
            self.first_reason = self.last_reason = ""
            return None
        self._tries += 1
        if not counts:
            return None
        self.barren = 0 if served_s is not None else self.barren + 1
        self.short += 1
        self.last_reason = reason or WITHOUT_A_WORD
        self.first_reason = self.first_reason or self.last_reason
        return self._in_words() if self.short == CRASH_LOOP_STARTS else None

    def pause_s(self) -> float:
        """How long to wait before the next start; 0 after a broker that served for a while."""
        if not self._tries:
            return 0.0
        most = PAUSE_OF_A_CRASH_LOOP_MAX_S if self.short >= CRASH_LOOP_STARTS else PAUSE_MAX_S
        return min(most, PAUSE_MIN_S * 2.0 ** min(self._tries, 12))

    def _in_words(self) -> str:
        reasons = f"each time: {self.last_reason}"
        if self.first_reason != self.last_reason:
            reasons = f"first: {self.first_reason}; last: {self.last_reason}"
        return (
            f"{self.short} starts in a row did not serve for {STABLE_S:.0f} s ({reasons}); it is started "
            f"again, after {PAUSE_OF_A_CRASH_LOOP_MAX_S / 60:.0f} minutes at most"
        )
