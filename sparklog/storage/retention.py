"""Which segments a log gives up: too old, too many bytes, or below the log's start.

Segments go oldest first and without a gap, and only below the high watermark: what is not committed yet may
have to be given to followers (KAFKA-5634). The active segment goes too once all that is in it is too old; the
log is rolled first, so that there always is one.

What an index says about a segment's age is compared with the batch that it names: an index is disposable, and
one that rotted must cost nobody a record.
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
        if self._is_too_much(segment, excess_bytes):
            return True
        newest_ms = segment.greatest_timestamp()[0]
        if not self._is_too_old(newest_ms if newest_ms >= 0 else segment.created_ms):
            return False
        if segment.bears_out_greatest_timestamp():
            return True
        segment.cool()  # with its index made anew; the next round judges by that
        return False

    def _active_goes(self, segment: Segment, excess_bytes: int) -> bool:
        """Records without time are as old as their segment, but one that is written to may just have come."""
        if not segment.size_bytes:
            return False
        if self._is_too_much(segment, excess_bytes):
            return True
        newest_ms = segment.greatest_timestamp()[0]
        return newest_ms >= 0 and self._is_too_old(newest_ms) and segment.bears_out_greatest_timestamp()

    def _is_too_much(self, segment: Segment, excess_bytes: int) -> bool:
        config = self.config
        return config.deletes and config.retention_bytes >= 0 and excess_bytes >= segment.size_bytes

    def _is_too_old(self, newest_ms: int) -> bool:
        return self.config.deletes and 0 <= self.config.retention_ms < self.now_ms - newest_ms
