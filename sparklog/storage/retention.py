"""Which segments retention removes: those that are too old, too many bytes, or below the log start.

Segments are removed oldest first, without a gap, and only below the high watermark, because followers may
still need uncommitted records (KAFKA-5634). The active segment is removed too when all its records are too
old; the log is rolled first, so that it always has an active segment.

An index entry about a segment's age is compared with its batch, because a damaged index must not cause the
loss of records.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sparklog.storage.log_config import LogConfig
from sparklog.storage.segments.segment import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The settings and offsets by which segments are judged at ``now_ms``."""

    config: LogConfig
    log_start_offset: int
    high_watermark: int
    now_ms: int
    limits_apply: bool = True
    """Whether age and size count; else only the log start does."""

    def count_doomed(self, segments: Sequence[Segment]) -> int:
        """How many segments to remove from the front of ``segments``, all of a log; the last is active."""
        excess_bytes = sum(segment.size_bytes for segment in segments) - self.config.retention_bytes
        active = segments[-1]
        for doomed, segment in enumerate(segments):
            if segment.end_offset > self.high_watermark:
                return doomed
            goes = self._active_goes if segment is active else self._sealed_goes
            if not goes(segment, excess_bytes):
                return doomed
            excess_bytes -= segment.size_bytes
        return len(segments)

    def _sealed_goes(self, segment: Segment, excess_bytes: int) -> bool:
        if segment.end_offset <= self.log_start_offset:
            return True
        if self._is_too_much(segment, excess_bytes):
            return True
        if not self.limits_apply:
            return False
        newest_ms = segment.greatest_timestamp()[0]
        if not self._is_too_old(newest_ms if newest_ms >= 0 else segment.created_ms):
            return False
        if segment.bears_out_greatest_timestamp():
            return True
        segment.cool()  # its index was rebuilt; the next round judges by the new index
        return False

    def _active_goes(self, segment: Segment, excess_bytes: int) -> bool:
        """Never too old without timestamps, because its last record may be new."""
        if not segment.size_bytes or not self.limits_apply:
            return False
        if self._is_too_much(segment, excess_bytes):
            return True
        newest_ms = segment.greatest_timestamp()[0]
        return newest_ms >= 0 and self._is_too_old(newest_ms) and segment.bears_out_greatest_timestamp()

    def _is_too_much(self, segment: Segment, excess_bytes: int) -> bool:
        config = self.config
        return (
            self.limits_apply
            and config.deletes
            and config.retention_bytes >= 0
            and excess_bytes >= segment.size_bytes
        )

    def _is_too_old(self, newest_ms: int) -> bool:
        return self.config.deletes and 0 <= self.config.retention_ms < self.now_ms - newest_ms
