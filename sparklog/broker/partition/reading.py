"""What a reader is given of one partition; called within the partition's steps."""

from sparklog.broker.partition.answers import ReadRequest, ReadResult
from sparklog.core.replication.follower import Follower
from sparklog.core.replication.leader import Diverging, Leader
from sparklog.model.errors import ErrorCode
from sparklog.model.parts import Part
from sparklog.storage.log import Log
from sparklog.storage.recovery.damage import refuse_damaged


def read_as_follower(
    log: Log, follower: Follower, request: ReadRequest, *, at_least_one_batch: bool
) -> ReadResult:
    """Give a consumer what is below the follower's own high watermark (KIP-392)."""
    refuse_damaged(log, request.fetch_offset)
    marks = follower.marks
    error = follower.check_epoch(request.current_leader_epoch)
    if error is ErrorCode.none:
        error = follower.check_read(request.fetch_offset)
    if error is not ErrorCode.none:
        return ReadResult(error, (), 0, marks.high_watermark, marks.log_start_offset)
    read = log.read(
        request.fetch_offset,
        request.max_bytes,
        marks.high_watermark,
        at_least_one_batch=at_least_one_batch,
    )
    parts, size_bytes = (tuple(read.parts), read.size_bytes) if read is not None else ((), 0)
    return ReadResult(error, parts, size_bytes, marks.high_watermark, marks.log_start_offset)


def leader_result(
    leader: Leader,
    *,
    error: ErrorCode = ErrorCode.none,
    parts: tuple[Part, ...] = (),
    size_bytes: int = 0,
    diverging: Diverging | None = None,
    preferred: int = -1,
) -> ReadResult:
    """A leader's answer, with the marks of its log as they are now."""
    marks = leader.marks
    return ReadResult(
        error, parts, size_bytes, marks.high_watermark, marks.log_start_offset, diverging, preferred
    )
