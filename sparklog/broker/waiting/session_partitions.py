"""The partitions of one fetch session: awake, or at rest.

Most partitions of most clusters are idle. While a follower has all records of such a partition, and knows
both its offsets, the session's fetches neither read it nor wait in it anew. It is *at rest*: the token of an
earlier fetch stays in it, and any change wakes it.

    at rest     the follower's fetch offset is the log's end and the high watermark, it has both offsets of
                the last answer, it is in sync, and a token of ours waits in the partition
    awake       all others: each fetch of the session reads them

These changes wake a partition: records, another role, a failed disk; a fetch that names or forgets it; the
end of the session. A waiting fetch of the session then reads it. Without one the next fetch does, so no
change is lost.

Failure: a raised log start wakes no partition, and the leader must see fetches of each follower. So a fetch
reads all partitions every ``rest_max_ms``. That is the time that a fetch waits, half a second, or a quarter
of the lag at which a follower leaves the ISR, if that is less.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from sparklog.broker.partition.answers import ReadRequest, ReadResult
from sparklog.broker.partition.partition import Partition
from sparklog.broker.waiting.asked_partitions import AskedPartition, Key, asked_partitions
from sparklog.core.replication.follower_progress import NEVER
from sparklog.core.replication.session_slots import LeanPosition, SessionSlots
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, TopicPartition
from sparklog.model.ports import Guard
from sparklog.model.time import MonotonicMs
from sparklog.wire.messages.data.fetch import FetchRequest

REST_MAX_MS: Final = 500


class Resting(NamedTuple):
    """A partition at rest, how to read it once it changes, and the token that waits in it."""

    entry: AskedPartition
    topic_partition: TopicPartition
    partition: Partition
    request: ReadRequest
    token: int


Join = Callable[[Resting], None]
"""Makes the waiting fetch read one more partition."""


def rest_max_ms(lag_max_ms: int) -> int:
    """The longest rest of a partition, by ``replica.lag.time.max.ms``."""
    return min(REST_MAX_MS, lag_max_ms // 4)


def may_rest(partition: Partition, request: ReadRequest, result: ReadResult) -> bool:
    """Whether the follower that gets ``result`` then has all records and offsets of the partition."""
    return (
        request.follower is not None
        and result.error is ErrorCode.none
        and result.diverging is None
        and result.history is None
        and not result.size_bytes
        and request.fetch_offset == result.high_watermark == partition.log_end_offset
        and result.log_start_offset == partition.log_start_offset
        and partition.is_in_sync(request.follower)
    )


class SessionPartitions:
    """The partitions of one session, those awake in the order of reading. Any thread may wake a partition."""

    def __init__(
        self,
        entries: Iterable[AskedPartition],
        guard: Guard,
        by_token: dict[int, "SessionPartitions"],
    ) -> None:
        """``by_token`` is the table of the tokens at rest in all sessions."""
        self._all = {entry.key: entry for entry in entries}
        self._slots = SessionSlots(self._all)
        """The slots of all keys of ``_all``."""
        self._awake = dict(self._all)
        """In the order of reading. Every key of ``_all`` is here or in ``_tokens``."""
        self._resting: dict[int, Resting] = {}
        """By token; each of these tokens is in ``_by_token``, too."""
        self._tokens: dict[Key, int] = {}
        """The tokens of ``_resting`` by partition."""
        self._guard = guard
        self._by_token = by_token
        self._join: Join | None = None
        """That of the waiting fetch; None while no fetch waits."""
        self._woken: list[Resting] = []
        """Partitions woken since the last fetch began, while no fetch waited."""
        self._all_awake_ms = NEVER
        """When a fetch last read all partitions."""
        self._follower_epoch = BrokerEpoch(-1)
        self.is_ended = False
        self.drop: Callable[[AskedPartition], None] = _nothing_waits
        """Takes back what lean fetches have placed in a partition that leaves the session."""

    def __len__(self) -> int:
        return len(self._all)

    def values(self) -> Iterable[AskedPartition]:
        return self._all.values()

    # A fetch of the session

    def begin(self, request: FetchRequest, now_ms: MonotonicMs, rest_max_ms: int) -> list[AskedPartition]:
        """Apply the changes in an incremental fetch; returns the partitions that it reads."""
        gone: list[AskedPartition] = []
        with self._guard:
            left = list(self._change(request, gone))
            awake = self._begin(left, BrokerEpoch(request.replica_epoch), now_ms, rest_max_ms)
        _forget(left)
        for entry in gone:
            self.drop(entry)
        return awake

    def begin_lean(
        self,
        positions: Sequence[LeanPosition],
        follower_epoch: BrokerEpoch,
        now_ms: MonotonicMs,
        rest_max_ms: int,
    ) -> list[AskedPartition]:
        """As ``begin``, for a lean fetch, whose slots ``has_slots`` of."""
        left: list[Resting] = []
        with self._guard:
            for position in positions:
                entry = self._all[self._key_of(position.slot)]
                entry.move(position)
                if (token := self._tokens.get(entry.key)) is not None:
                    left.append(self._leave(token))
            awake = self._begin(left, follower_epoch, now_ms, rest_max_ms)
        _forget(left)
        return awake

    def has_slots(self, positions: Iterable[LeanPosition]) -> bool:
        """Whether the session has a partition in each of these slots."""
        return all(self._slots.key_of(position.slot) is not None for position in positions)

    def slot_of(self, key: Key) -> int | None:
        """The slot of a partition; None if it has left the session."""
        return self._slots.slot_of(key)

    def _key_of(self, slot: int) -> Key:
        key = self._slots.key_of(slot)
        assert key is not None, slot
        return key

    def _begin(
        self, left: list[Resting], follower_epoch: BrokerEpoch, now_ms: MonotonicMs, rest_max_ms: int
    ) -> list[AskedPartition]:
        """The partitions to read now; those that rest no longer are added to ``left``."""
        is_due = now_ms - self._all_awake_ms >= rest_max_ms
        # A second fetch while another waits comes from no proper follower: it gets a full answer.
        if is_due or self._join is not None or follower_epoch != self._follower_epoch:
            left += [self._leave(token) for token in list(self._resting)]
            self._all_awake_ms = now_ms
            self._follower_epoch = follower_epoch
        self._woken.clear()
        return list(self._awake.values())

    def _change(self, request: FetchRequest, gone: list[AskedPartition]) -> Iterable[Resting]:
        """Apply what ``request`` names; yields what no longer rests. What it forgets is added to ``gone``."""
        for entry in asked_partitions(request):
            known = self._all.get(entry.key)
            if known is None:
                self._all[entry.key] = self._awake[entry.key] = entry
                self._slots.give(entry.key)
                continue
            known.ask(entry.asked)
            if (token := self._tokens.get(entry.key)) is not None:
                yield self._leave(token)
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                key = topic.topic, topic.topic_id, partition
                if (token := self._tokens.get(key)) is not None:
                    yield self._leave(token)
                if (known := self._all.pop(key, None)) is not None:
                    gone.append(known)
                self._awake.pop(key, None)
                self._slots.forget(key)

    def to_the_end(self, key: Key) -> None:
        """Partitions that yielded records are read last by the next fetch."""
        with self._guard:
            if self._awake and next(reversed(self._awake)) is key:
                return  # as most often: it is the only one that is busy
            if (entry := self._awake.pop(key, None)) is not None:
                self._awake[key] = entry

    # Its wait

    def has_resting(self) -> bool:
        return bool(self._resting or self._woken)

    def wait(self, join: Join) -> None:
        """A fetch waits from now on. Partitions that have changed since it began join it at once."""
        with self._guard:
            self._join = join
            woken = self._woken[:]
            self._woken.clear()
        for resting in woken:
            join(resting)

    def stop_waiting(self) -> None:
        with self._guard:
            self._join = None

    def rest(self, resting: Resting) -> bool:
        """Let a partition rest, whose token waits in it; False if the session is over or asks otherwise."""
        entry = resting.entry
        with self._guard:
            # The entry or its request is another one if a later fetch has named the partition since.
            if self.is_ended or self._awake.get(entry.key) is not entry or entry.read is not resting.request:
                return False
            del self._awake[entry.key]
            self._resting[resting.token] = resting
            self._tokens[entry.key] = resting.token
            self._by_token[resting.token] = self
            return True

    def wake(self, token: int) -> None:
        """The partition of ``token`` has changed."""
        with self._guard:
            if token not in self._resting:
                return
            resting, join = self._leave(token), self._join
            if join is None:
                self._woken.append(resting)
        if join is not None:
            join(resting)

    def wake_all(self) -> list[Resting]:
        """Wake all partitions, for a fetch whose time is up, and return those that rested."""
        with self._guard:
            left = [self._leave(token) for token in list(self._resting)]
        _forget(left)
        return left

    def end(self) -> None:
        """The session is over."""
        with self._guard:
            self.is_ended = True
            left = [self._leave(token) for token in list(self._resting)]
            gone = list(self._all.values())
        _forget(left)
        for entry in gone:
            self.drop(entry)

    def _leave(self, token: int) -> Resting:
        resting = self._resting.pop(token)
        self._by_token.pop(token, None)
        del self._tokens[resting.entry.key]
        self._awake[resting.entry.key] = resting.entry
        return resting


def _nothing_waits(entry: AskedPartition) -> None:
    """No lean fetch has placed a token."""


def _forget(left: Iterable[Resting]) -> None:
    for resting in left:
        resting.partition.reads.forget(resting.token)
