"""The three offsets that every replica has, whatever its role.

``log_start_offset <= high_watermark <= log_end_offset`` always holds. The log's own numbers are facts that
the shell reports; the high watermark is decided here. One object per replica, kept over changes of role.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Watermarks:
    """``log_end_offset`` and ``high_watermark`` are exclusive ends; ``log_start_offset`` is inclusive."""

    log_start_offset: int = 0
    high_watermark: int = 0
    log_end_offset: int = 0
    flushed_offset: int | None = None
    """With ``log.flush.acks=fsync``: the end of what is on disk. None: what is appended counts."""

    @property
    def own_end_offset(self) -> int:
        """The end of what this replica may vouch for."""
        return self.log_end_offset if self.flushed_offset is None else self.flushed_offset

    @property
    def owes_flush(self) -> bool:
        return self.own_end_offset < self.log_end_offset

    def clamp(self) -> None:
        """Bring a high watermark from a checkpoint, or from before a truncation, into the log's range."""
        self.high_watermark = min(max(self.high_watermark, self.log_start_offset), self.log_end_offset)

    def check_invariants(self) -> None:
        assert 0 <= self.log_start_offset <= self.high_watermark <= self.log_end_offset, self
        assert self.own_end_offset <= self.log_end_offset, self
