"""The partitions that one fetcher pulls for, and what its next request asks of them.

Most partitions of most followers are idle, and a round must cost nothing for those. So ``look`` reads only
the partitions that may ask for something else than at the last look:

    changed     a step of the partition has ended, it was added or removed, or must ask for leader's offsets
    delayed     it had an error since its last good answer: it waits, or its wait may be over
    lagging     not in sync, if a throttle is active: it may be held back from now on, or no longer

Of all others ``wanted`` is still right. Steps are noted under the partition's lock, before it is released,
and ``look`` takes that lock to read a position. So a change is read by this look, or noted for the next.

Failure: a partition whose step is not noted would be fetched from an old position, until its leader's answer
is refused. So nothing that a position shows may change outside of a step.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from sparklog.broker.following.session_with_leader import Key
from sparklog.broker.partition.partition import Partition
from sparklog.broker.throttles import ReplicationThrottle
from sparklog.core.replication.follower import FetchPosition
from sparklog.model.ids import TopicPartition
from sparklog.model.ports import Guard
from sparklog.model.time import MonotonicMs
from sparklog.wire.messages.data.fetch import FetchPartition

BACKOFF_MIN_MS = 20
"""First pause after an error; doubles up to ``replica.fetch.backoff.ms``.

Short, because usually the leader has not received its LeaderAndIsr yet.
"""


@dataclass(slots=True, eq=False)
class Followed:
    """One partition that a fetcher pulls for. It watches the steps of its partition while it is followed."""

    partition: Partition
    owner: "FollowedPartitions"
    key: Key
    ready_at_ms: MonotonicMs = MonotonicMs(0)
    """The end of its last wait after an error."""
    backoff_ms: int = BACKOFF_MIN_MS
    """Its next wait after an error; the minimum again after an answer without one."""
    asks_offsets: bool = False
    lags: bool = False
    """Whether the leader had committed more, when it last said so, than we had then: we are not in sync."""
    is_over: bool = False
    """Whether it was removed; never false again."""
    question: FetchPartition | None = None
    """What was asked for it last; the same object as long as that has not changed."""

    def on_step(self) -> None:
        self.owner.note(self)

    def ask(self, position: FetchPosition, bytes_max: int) -> FetchPartition:
        """What to ask the leader for it now."""
        partition, question = self.partition, self.question
        if (
            question is not None
            and question.fetch_offset == position.fetch_offset
            and question.current_leader_epoch == position.leader_epoch
            and question.last_fetched_epoch == position.last_fetched_epoch
            and question.log_start_offset == partition.log_start_offset
            and question.partition_max_bytes == bytes_max
        ):
            return question
        self.question = question = FetchPartition(
            partition=partition.topic_partition.partition,
            current_leader_epoch=position.leader_epoch,
            fetch_offset=position.fetch_offset,
            last_fetched_epoch=position.last_fetched_epoch,
            log_start_offset=partition.log_start_offset,
            partition_max_bytes=bytes_max,
        )
        return question


class Wanted(NamedTuple):
    """What the next request asks of one partition, and the position that this was derived from."""

    followed: Followed
    position: FetchPosition
    question: FetchPartition

    @property
    def topic(self) -> str:
        return self.followed.partition.topic_partition.topic


class FollowedPartitions:
    """The partitions of one fetcher. One round at a time calls the methods of "The round"."""

    def __init__(self, guard: Guard, throttle: ReplicationThrottle | None) -> None:
        self.wanted: dict[Key, Wanted] = {}
        """By topic id and number: the partitions to fetch as of the last look, which changes it."""
        self.asking: list[tuple[Followed, FetchPosition]] = []
        """Those that must ask for their leader's offsets before they fetch, as of the last look. None of them
        is in ``wanted``, and each is in ``_changed`` again.
        """
        self._guard = guard
        self._throttle = throttle
        self._followed: dict[TopicPartition, Followed] = {}
        """Each is the watcher of its partition, unless another fetcher follows that now."""
        self._changed: dict[Followed, None] = {}
        """Those to read in the next look, in the order of their first change; some of them may be over."""
        self._delayed: dict[Followed, None] = {}
        """Those that wait after an error, or have had no good answer since: all that have a ``ready_at_ms``
        later than the last look, or a ``backoff_ms`` above the minimum. None is over.
        """
        self._lagging: dict[Followed, None] = {}
        """Those with ``lags``; one that is over leaves in the next look."""
        self._is_holding_back = False
        """Whether the last look left out any of ``_lagging`` because of the throttle."""
        self._unsaid: dict[Key, None] = {}
        """All keys whose entry of ``wanted`` may be another one than ``take_changes`` last showed."""
        self._bytes_max = -1
        """The ``partition_max_bytes`` of every question in ``wanted``."""

    # From any thread

    def add(self, partition: Partition) -> None:
        number = partition.topic_partition.partition
        followed = Followed(partition, self, (partition.topic_id, number))
        with self._guard:
            if (earlier := self._followed.get(partition.topic_partition)) is not None:
                self._end(earlier)
            self._followed[partition.topic_partition] = followed
            self._changed[followed] = None
            partition.log_guard.watcher = followed

    def remove(self, partition: Partition) -> None:
        with self._guard:
            followed = self._followed.get(partition.topic_partition)
            if followed is not None and followed.partition is partition:
                self._end(followed)

    def _end(self, followed: Followed) -> None:
        followed.is_over = True
        del self._followed[followed.partition.topic_partition]
        self._delayed.pop(followed, None)
        self._changed[followed] = None
        if followed.partition.log_guard.watcher is followed:
            followed.partition.log_guard.watcher = None

    def note(self, followed: Followed) -> None:
        """Have it read in the next look."""
        with self._guard:
            self._changed[followed] = None

    def ask_leader_offsets(self, partition: Partition) -> None:
        with self._guard:
            if (followed := self._followed.get(partition.topic_partition)) is not None:
                followed.asks_offsets = True
                self._changed[followed] = None

    def back_off(self, partition: Partition, now_ms: MonotonicMs, longest_ms: int) -> None:
        with self._guard:
            if (followed := self._followed.get(partition.topic_partition)) is not None:
                followed.ready_at_ms = MonotonicMs(now_ms + followed.backoff_ms)
                followed.backoff_ms = min(2 * followed.backoff_ms, longest_ms)
                self._delayed[followed] = None

    # The round

    def look(self, now_ms: MonotonicMs, bytes_max: int) -> None:
        """Bring ``wanted`` and ``asking`` up to date."""
        due = self._due(now_ms, bytes_max)
        self.asking = []
        try:
            for followed in due:
                self._look_at(followed, now_ms)
        except BaseException:
            with self._guard:
                self._changed |= due  # a bug in one partition must not hide the changes of others
            raise
        for followed, _ in self.asking:
            self.note(followed)

    def _due(self, now_ms: MonotonicMs, bytes_max: int) -> dict[Followed, None]:
        with self._guard:
            due, self._changed = self._changed, {}
            if bytes_max != self._bytes_max:
                self._bytes_max = bytes_max
                due.update(dict.fromkeys(self._followed.values()))
            for followed in list(self._delayed):
                due[followed] = None
                if followed.ready_at_ms <= now_ms and followed.backoff_ms == BACKOFF_MIN_MS:
                    del self._delayed[followed]
        is_active = self._throttle is not None and self._throttle.is_active
        if is_active or self._is_holding_back:
            self._is_holding_back = False
            due.update(self._lagging)
        return due

    def _look_at(self, followed: Followed, now_ms: MonotonicMs) -> None:
        key, position = followed.key, None
        self._unsaid[key] = None
        if followed.is_over:
            self._lagging.pop(followed, None)
        elif followed.ready_at_ms <= now_ms and not self._is_held_back(followed):
            position = followed.partition.follower_append.fetch_position()
        if position is not None:
            if not (followed.asks_offsets or position.asks_first):
                self.wanted[key] = Wanted(followed, position, followed.ask(position, self._bytes_max))
                return
            self.asking.append((followed, position))
        known = self.wanted.get(key)
        if known is not None and known.followed is followed:
            del self.wanted[key]

    def _is_held_back(self, followed: Followed) -> bool:
        throttle = self._throttle
        if throttle is None or not followed.lags:
            return False
        is_held_back = throttle.holds_back(followed.partition.topic_partition)
        self._is_holding_back |= is_held_back
        return is_held_back

    def take_changes(self) -> Iterable[Key]:
        """The keys of ``wanted`` whose entries may have come, changed or gone since this was last called."""
        unsaid, self._unsaid = self._unsaid, {}
        return unsaid

    def note_lag(self, followed: Followed, leader_high_watermark: int, size_bytes: int) -> None:
        """Whether we are in sync now; what came while we were not counts against the throttle."""
        partition, lagged = followed.partition, followed.lags
        followed.lags = leader_high_watermark > partition.log_end_offset
        if followed.lags:
            self._lagging[followed] = None
        elif lagged:
            del self._lagging[followed]
        throttle = self._throttle
        if throttle is not None and (lagged or followed.lags) and throttle.names(partition.topic_partition):
            throttle.spend(size_bytes)

    def forgive(self, named: set[Followed]) -> None:
        """The leader has answered for all of ``wanted``: those that it did not name had no error."""
        with self._guard:
            delayed = list(self._delayed)
        for followed in delayed:
            known = self.wanted.get(followed.key)
            if known is not None and known.followed is followed and followed not in named:
                followed.backoff_ms = BACKOFF_MIN_MS

    def pause_ms(self, now_ms: MonotonicMs, longest_ms: int) -> int:
        """Until the first partition that waits after an error is ready again; ``longest_ms`` without one."""
        with self._guard:
            pauses = [followed.ready_at_ms - now_ms for followed in self._delayed]
        return min((pause for pause in pauses if pause > 0), default=longest_ms)
