"""What one replica answers to readers: batches, offsets, and where its leader epochs end.

A read takes the lock only to look up positions; bytes leave by ``sendfile`` without it.
"""

from collections.abc import Callable, Mapping

from sparklog.broker.partition.answers import ReadRequest, ReadResult
from sparklog.broker.partition.log_guard import LogGuard
from sparklog.broker.partition.reading import (
    aborted_in,
    check_reader,
    leader_result,
    no_leader,
    offset_of,
    read_as_follower,
    read_as_leader,
)
from sparklog.core.replication.actions import WakeFetch
from sparklog.core.replication.follower import Follower
from sparklog.core.replication.leader import Leader
from sparklog.core.replication.read_replica import closest_replica
from sparklog.core.replication.replica import Replica
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.ids import BrokerId
from sparklog.model.time import Clock
from sparklog.storage.log import Log


class Reads:
    """One per replica, kept when its role changes."""

    def __init__(self, log: Log, replica: Replica, log_guard: LogGuard, clock: Clock) -> None:
        self._log = log
        self._replica = replica
        self._log_guard = log_guard
        self._clock = clock

    def read(self, request: ReadRequest, *, at_least_one_batch: bool, is_retry: bool = False) -> ReadResult:
        """Look up the batches for a fetch. A follower's fetch also reports its progress, unless ``is_retry``.

        A range that cannot be read is answered with an error; the rest of the log is still served.
        """
        with self._log_guard.step:
            try:
                return self._read(request, at_least_one_batch=at_least_one_batch, is_retry=is_retry)
            except (OSError, SparklogError) as error:
                return ReadResult(self._log_guard.unreadable(error))

    def _read(self, request: ReadRequest, *, at_least_one_batch: bool, is_retry: bool) -> ReadResult:
        leader, follower = self._replica.leader, self._replica.follower
        if self._log_guard.is_offline:
            return ReadResult(ErrorCode.kafka_storage_error)
        if follower is not None and request.from_any_replica:
            return read_as_follower(self._log, follower, request, at_least_one_batch=at_least_one_batch)
        if leader is None:
            return ReadResult(self._no_leader(request.current_leader_epoch))
        error = check_reader(leader, request)
        if error is not ErrorCode.none:
            return ReadResult(error)
        read = read_as_leader(self._log, leader, request, at_least_one_batch=at_least_one_batch)
        if isinstance(read, ReadResult):
            return read
        if request.follower is not None and not is_retry:
            self._log_guard.apply(
                leader.on_follower_fetch(
                    request.follower,
                    request.follower_epoch,
                    request.fetch_offset,
                    self._clock.monotonic_ms(),
                    request.log_start_offset,
                )
            )
        return leader_result(leader, read=read, aborted=aborted_in(self._log, request, read))

    def closer_replica(
        self, request: ReadRequest, rack: str, racks: Mapping[BrokerId, str | None]
    ) -> ReadResult | None:
        """The answer that sends a consumer in ``rack`` to a follower near it; None if it may read here."""
        with self._log_guard.lock:
            leader = self._replica.leader
            if leader is None or leader.check_epoch(request.current_leader_epoch) is not ErrorCode.none:
                return None
            closest = closest_replica(leader, request.fetch_offset, rack, racks)
            return None if closest is None else leader_result(leader, preferred=closest)

    def wait_for_more(self, token: int, request: ReadRequest) -> None:
        """Wake ``token`` when records beyond the fetch offset can be read, or when the answer changes."""
        with self._log_guard.step:
            leader, follower = self._replica.leader, self._replica.follower
            if follower is not None and request.from_any_replica and not self._log_guard.is_offline:
                self._log_guard.apply(
                    follower.on_fetch_waits(token, request.fetch_offset, request.visibility)
                )
                return
            if leader is None:
                self._log_guard.apply([WakeFetch(token)])
                return
            self._log_guard.apply(leader.on_fetch_waits(token, request.fetch_offset, request.visibility))

    def forget(self, token: int) -> None:
        with self._log_guard.lock:
            if (role := self._replica.role) is not None:
                role.fetches.forget(token)

    def leader_offset(
        self, current_leader_epoch: int, choose: Callable[[Leader, Log], int | None]
    ) -> int | ErrorCode:
        """The offset that ``choose`` names, if this replica leads; its None means OFFSET_NOT_AVAILABLE."""
        with self._log_guard.step:
            role = self._replica.leader
            return offset_of(role, current_leader_epoch, choose, self._replica, self._log_guard)

    def replica_offset(
        self, current_leader_epoch: int, choose: Callable[[Leader | Follower, Log], int | None]
    ) -> int | ErrorCode:
        """As ``leader_offset``, whether this replica leads or follows."""
        with self._log_guard.step:
            role = self._replica.role
            return offset_of(role, current_leader_epoch, choose, self._replica, self._log_guard)

    def epoch_end(self, current_leader_epoch: int, epoch: int) -> tuple[int, int] | ErrorCode:
        """(largest epoch not above ``epoch``, its end) for OffsetForLeaderEpoch (KIP-279)."""
        with self._log_guard.lock:
            leader = self._replica.leader
            if leader is None:
                return self._no_leader(current_leader_epoch)
            error = leader.check_epoch(current_leader_epoch)
            if error is not ErrorCode.none:
                return error
            return self._log.epochs.end_offset_for(epoch, self._replica.marks.log_end_offset)

    def _no_leader(self, current_leader_epoch: int) -> ErrorCode:
        return no_leader(self._replica, current_leader_epoch, is_offline=self._log_guard.is_offline)
