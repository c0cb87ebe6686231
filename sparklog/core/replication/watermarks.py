"""The offsets that every replica has, whatever its role.

``log_start_offset <= local_start_offset <= last_stable_offset <= high_watermark <= log_end_offset`` always
holds. What is before the local start is in the remote store, which gets only what is stable. The log's own
numbers and its transactions are facts that the shell reports; the high watermark is decided here. One object
per replica, kept over changes of role.
"""

from dataclasses import dataclass, field

from sparklog.core.producers.transactions import Transactions
from sparklog.core.replication.visibility import Visibility


@dataclass(slots=True)
class Watermarks:
    """``log_end_offset`` and ``high_watermark`` are exclusive ends; ``log_start_offset`` is inclusive."""

    log_start_offset: int = 0
    high_watermark: int = 0
    log_end_offset: int = 0
    flushed_offset: int | None = None
    """With ``log.flush.acks=fsync``: the end of what is on disk. None: what is appended counts."""

    transactions: Transactions = field(default_factory=Transactions)
    """The transactions of the log as it is now."""

    local_start_offset: int = 0
    """The first offset on this replica's disk; the log start, unless the remote store has what is before."""

    last_stable_offset: int = field(init=False)
    """The end of what read-committed consumers read; see ``core.producers.transactions``. It changes with
    the high watermark and the log alone, and so is kept here.
    """

    def __post_init__(self) -> None:
        self.local_start_offset = max(self.local_start_offset, self.log_start_offset)
        self.last_stable_offset = self._stable_offset()

    def readable_end(self, visibility: Visibility) -> int:
        """The end (exclusive) of the records that this kind of fetcher may read."""
        match visibility:
            case Visibility.LOG_END:
                return self.log_end_offset
            case Visibility.HIGH_WATERMARK:
                return self.high_watermark
            case Visibility.LAST_STABLE_OFFSET:
                return self.last_stable_offset

    @property
    def own_end_offset(self) -> int:
        """The end of what this replica may vouch for."""
        return self.log_end_offset if self.flushed_offset is None else self.flushed_offset

    @property
    def owes_flush(self) -> bool:
        return self.own_end_offset < self.log_end_offset

    def set_high_watermark(self, offset: int) -> None:
        """Markers below ``offset`` are committed, and their transactions hold back no reader."""
        self.high_watermark = offset
        self.transactions.on_high_watermark(offset)
        self.last_stable_offset = self._stable_offset()

    def clamp(self) -> None:
        """Bring a high watermark from a checkpoint, or from before a truncation, into the log's range."""
        self.set_high_watermark(min(max(self.high_watermark, self.local_start_offset), self.log_end_offset))

    def stable_offset_of_clients(self) -> int:
        """The last stable offset as it would be without the open members of atomic writes."""
        return self._stable(self.transactions.first_unstable_of_clients(self.high_watermark))

    def _stable_offset(self) -> int:
        return self._stable(self.transactions.first_unstable(self.high_watermark))

    def _stable(self, unstable: int | None) -> int:
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.local_start_offset)

    def check_invariants(self) -> None:
        assert 0 <= self.log_start_offset <= self.local_start_offset, self
        assert self.local_start_offset <= self.high_watermark <= self.log_end_offset, self
        assert self.local_start_offset <= self.last_stable_offset <= self.high_watermark, self
        assert self.last_stable_offset == self._stable_offset(), self
        assert self.own_end_offset <= self.log_end_offset, self
