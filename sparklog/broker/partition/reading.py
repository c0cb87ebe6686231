"""What a reader is given of one partition; called within the partition's steps."""

from collections.abc import Callable
from typing import TypeVar

from sparklog.broker.partition.answers import HistoryRange, ReadRequest, ReadResult
from sparklog.broker.partition.log_guard import LogGuard
from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.core.replication.epoch_fence import check_leader_epoch
from sparklog.core.replication.follower import Follower
from sparklog.core.replication.leader import Diverging, Leader
from sparklog.core.replication.replica import Replica
from sparklog.core.replication.watermarks import Watermarks
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.storage.damage import refuse_damaged
from sparklog.storage.log import Log
from sparklog.storage.segments.log_read import LogRead

Role = TypeVar("Role", bound=Leader | Follower)


def read_as_follower(
    log: Log, follower: Follower, request: ReadRequest, *, at_least_one_batch: bool
) -> ReadResult:
    """Give a consumer what is below the follower's own high watermark or last stable offset (KIP-392)."""
    refuse_damaged(log, request.fetch_offset)
    marks = follower.marks
    error = follower.check_epoch(request.current_leader_epoch)
    if error is ErrorCode.none:
        error = follower.check_read(request.fetch_offset)
    if error is not ErrorCode.none:
        return _result(marks, error)
    if request.fetch_offset < marks.local_start_offset:
        return _from_history(log, follower, request, at_least_one_batch)
    read = log.read(
        request.fetch_offset,
        request.max_bytes,
        marks.readable_end(request.visibility),
        at_least_one_batch=at_least_one_batch,
    )
    return (
        _result(marks, error) if read is None else _result(marks, error, read, aborted_in(log, request, read))
    )


def check_reader(leader: Leader, request: ReadRequest) -> ErrorCode:
    """Whether a leader answers this fetcher."""
    error = leader.check_epoch(request.current_leader_epoch)
    if error is ErrorCode.none and request.follower is not None:
        error = leader.check_follower(request.follower, request.follower_epoch)
        if error is ErrorCode.unknown_leader_epoch and request.current_leader_epoch < 0:
            return ErrorCode.not_leader_or_follower  # the request named no epoch
    return error


def no_leader(replica: Replica, current_leader_epoch: int, *, is_offline: bool) -> ErrorCode:
    """The answer of a replica that does not lead: its epoch is compared first (KIP-320)."""
    if is_offline:
        return ErrorCode.kafka_storage_error
    fenced = check_leader_epoch(current_leader_epoch, replica.leader_epoch)
    return ErrorCode.not_leader_or_follower if fenced is ErrorCode.none else fenced


def offset_of(
    role: Role | None,
    current_leader_epoch: int,
    choose: Callable[[Role, Log], int | None],
    replica: Replica,
    log_guard: LogGuard,
) -> int | ErrorCode:
    """The offset that ``choose`` names of the replica in this role; its None means OFFSET_NOT_AVAILABLE."""
    if role is None:
        return no_leader(replica, current_leader_epoch, is_offline=log_guard.is_offline)
    error = role.check_epoch(current_leader_epoch)
    if error is not ErrorCode.none:
        return error
    try:
        offset = choose(role, log_guard.log)
    except (OSError, SparklogError) as problem:
        return log_guard.unreadable(problem)
    return ErrorCode.offset_not_available if offset is None else offset


def read_as_leader(
    log: Log, leader: Leader, request: ReadRequest, *, at_least_one_batch: bool
) -> ReadResult | LogRead:
    """What a fetcher reads of a leader's log, or why it reads nothing."""
    # Before positions are compared, or a follower could truncate its intact copy of a damaged range.
    refuse_damaged(log, request.fetch_offset)
    position = leader.check_fetch_position(request.fetch_offset, request.last_fetched_epoch)
    if position is ErrorCode.none and request.follower is not None:
        position = leader.check_follower_log(
            request.follower, request.fetch_offset, request.last_fetched_epoch, request.log_start_offset
        )
        if position is ErrorCode.none:
            position = leader.check_local(request.fetch_offset)
    if isinstance(position, Diverging):
        return leader_result(leader, diverging=position)
    if position is not ErrorCode.none:
        return leader_result(leader, error=position)
    if request.fetch_offset < leader.marks.local_start_offset:
        return _from_history(log, leader, request, at_least_one_batch)
    read = log.read(
        request.fetch_offset,
        request.max_bytes,
        leader.marks.readable_end(request.visibility),
        at_least_one_batch=at_least_one_batch,
    )
    return leader_result(leader, error=ErrorCode.offset_out_of_range) if read is None else read


def aborted_in(log: Log, request: ReadRequest, read: LogRead) -> tuple[AbortedTransaction, ...]:
    """The aborted transactions with records in ``read``, for a reader that must leave them out."""
    if not request.leaves_out_aborted or not read.parts:
        return ()
    return tuple(log.aborted_transactions(request.fetch_offset, read.next_offset))


def _from_history(
    log: Log, role: Leader | Follower, request: ReadRequest, at_least_one_batch: bool
) -> ReadResult:
    """The answer to a consumer whose fetch offset is in the remote store only: what to read there."""
    marks = role.marks
    wanted = HistoryRange(
        log.topic_id,
        log.topic_partition,
        request.fetch_offset,
        marks.local_start_offset,
        request.max_bytes,
        at_least_one_batch,
        request.leaves_out_aborted,
        log.epochs.before(marks.local_start_offset),
        role.leader_epoch,
    )
    return _result(marks, ErrorCode.none)._replace(history=wanted)


def leader_result(
    leader: Leader,
    *,
    error: ErrorCode = ErrorCode.none,
    read: LogRead | None = None,
    aborted: tuple[AbortedTransaction, ...] = (),
    diverging: Diverging | None = None,
    preferred: int = -1,
) -> ReadResult:
    """A leader's answer, with the marks of its log as they are now."""
    return _result(leader.marks, error, read, aborted, diverging, preferred)


def _result(
    marks: Watermarks,
    error: ErrorCode,
    read: LogRead | None = None,
    aborted: tuple[AbortedTransaction, ...] = (),
    diverging: Diverging | None = None,
    preferred: int = -1,
) -> ReadResult:
    parts, size_bytes = ((), 0) if read is None else (tuple(read.parts), read.size_bytes)
    return ReadResult(
        error,
        parts,
        size_bytes,
        marks.high_watermark,
        marks.log_start_offset,
        diverging,
        preferred,
        marks.last_stable_offset,
        aborted,
        next_offset=-1 if read is None else read.next_offset,
    )
