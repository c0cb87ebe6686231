"""Which segments a log gives up: too old, too many bytes, or below the log's start.

Segments go oldest first and without a gap, and only below the high watermark: what is not committed yet may
have to be given to followers (KAFKA-5634). The active segment goes too once all that is in it is too old; the
log is rolled first, so that there always is one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sparklog.storage.log_config import LogConfig
from sparklog.storage.segment import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What decides, beside the segments: where the log begins, what is committed, and what time it is."""

    config: LogConfig
    log_start_offset: int
    high_watermark: int
    now_ms: int

    def count_doomed(self, segments: Sequence[Segment]) -> int:
        """How many of ``segments``, all that a log has, are to be removed; the last one is active."""
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
        newest_ms = segment.greatest_timestamp()[0]
        return self._goes(segment, excess_bytes, newest_ms if newest_ms >= 0 else segment.created_ms)

    def _active_goes(self, segment: Segment, excess_bytes: int) -> bool:
        """Records without time are as old as their segment, but one that is written to may just have come."""
        newest_ms = segment.greatest_timestamp()[0]
        now_if_unknown = newest_ms if newest_ms >= 0 else self.now_ms
        return segment.size_bytes > 0 and self._goes(segment, excess_bytes, now_if_unknown)

    def _goes(self, segment: Segment, excess_bytes: int, newest_ms: int) -> bool:
        if not self.config.deletes:
            return False
        if self.config.retention_bytes >= 0 and excess_bytes >= segment.size_bytes:
            return True
        return 0 <= self.config.retention_ms < self.now_ms - newest_ms
