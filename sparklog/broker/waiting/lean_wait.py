"""The wait of a session's lean fetches: one, which serves request after request.

A follower asks again as soon as it has an answer. So what a wait needs stays with the session: its place in
each partition, and its timer. A request that waits is *parked*; only one is. Whoever takes it out answers it.

    token    waits in a partition that is awake, from request to request, until the partition wakes it or
             comes to rest. So it may be that of an earlier request. A wake-up counts for the parked request
             only if that one has placed the token; otherwise the next request reads the partition anyway.
    timer    set once for many requests. Where it ends before the parked request's time, it is set again.

Reads, limits, throttles and partitions at rest are those of ``fetch_purgatory``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from sparklog.broker.partition.answers import ReadRequest
from sparklog.broker.partition.partition import Partition
from sparklog.broker.waiting.asked_partitions import AskedPartition
from sparklog.broker.waiting.fetch_purgatory import (
    NOT_READ,
    FetchLimits,
    FetchPurgatory,
    Results,
    advanced,
    is_enough,
    read_again,
    read_all,
)
from sparklog.broker.waiting.session_partitions import Resting, SessionPartitions, may_rest
from sparklog.model.ids import TopicPartition
from sparklog.model.ports import Cancellable, Guard
from sparklog.model.time import MonotonicMs


@dataclass(slots=True, eq=False)
class LeanAsked:
    """One request: what it reads, and the last result of each partition."""

    wanted: list[tuple[TopicPartition, Partition, ReadRequest]]
    """Partitions at rest that change are added at the end, so an index stays valid."""
    entries: list[AskedPartition]
    """The session's partitions, in the order of ``wanted``."""
    limits: FetchLimits
    answer: "Callable[[LeanAsked], None]"
    results: Results = field(default_factory=dict)
    deadline_ms: int = 0
    indexes: dict[int, int] = field(default_factory=dict)
    """The index in ``wanted`` of each token that this request has placed."""


class LeanWait:
    """One session's. Any thread may wake it."""

    def __init__(self, purgatory: FetchPurgatory, partitions: SessionPartitions, guard: Guard) -> None:
        self._purgatory = purgatory
        self._partitions = partitions
        self._guard = guard
        """Protects ``_parked``, what is added to its lists, and the timer."""
        self._parked: LeanAsked | None = None
        """Whoever sets it to None, or to another request, answers this one."""
        self._timer: Cancellable | None = None
        """None while none is set."""
        self._timer_ms = 0
        """When ``_timer`` ends."""
        partitions.drop = self.drop

    def fetch(self, asked: LeanAsked) -> None:
        """Answer at once, as soon as there is enough, or when the time is up."""
        limits, throttle = asked.limits, self._purgatory.throttle
        asked.results = read_all(asked.wanted, limits.bytes_max, throttle.allowance(), is_retry=False)
        can_wait = bool(asked.wanted) or self._partitions.has_resting()
        if limits.wait_max_ms <= 0 or not can_wait or is_enough(asked.results, limits.bytes_min):
            throttle.count(asked.wanted, asked.results)
            asked.answer(asked)
            return
        self._park(asked)

    def wake(self, token: int) -> None:
        """The partition with ``token`` has changed."""
        parked = self._parked
        index = None if parked is None else parked.indexes.get(token)
        if parked is not None and index is not None:
            self._look_again(parked, index)

    def drop(self, entry: AskedPartition) -> None:
        """A partition leaves the session."""
        token, partition = entry.token, entry.waits_in
        if partition is not None and self._purgatory.lean.pop(token, None) is not None:
            partition.reads.forget(token)

    def _park(self, asked: LeanAsked) -> None:
        now_ms = self._purgatory.ports.clock.monotonic_ms()
        asked.deadline_ms = now_ms + asked.limits.wait_max_ms
        with self._guard:
            earlier, self._parked = self._parked, asked
            self._set_timer(now_ms, asked.deadline_ms)
        if earlier is not None:  # its session has gone on without it
            earlier.answer(earlier)
        own = list(asked.wanted)
        self._partitions.wait(self._join)
        for index, (_, _, request) in enumerate(own):
            if self._parked is not asked:
                return
            self._wait_in(asked, index, request)

    def _wait_in(self, asked: LeanAsked, index: int, request: ReadRequest) -> None:
        entry, partition = asked.entries[index], asked.wanted[index][1]
        lean = self._purgatory.lean
        if entry.waits_in is not partition or entry.token not in lean:
            self.drop(entry)
            entry.token, entry.waits_in = self._purgatory.new_token(), partition
            lean[entry.token] = self
        token = entry.token
        asked.indexes[token] = index
        partition.reads.wait_for_more(token, request)
        if self._partitions.is_ended:
            self.drop(entry)

    def _look_again(self, asked: LeanAsked, index: int) -> None:
        _, partition, request = asked.wanted[index]
        # The end is taken before the read, because later changes must wake this request again.
        end = partition.log_end_offset
        read_again(asked, index, self._purgatory.throttle.allowance())
        if is_enough(asked.results, asked.limits.bytes_min):
            self._answer(asked)
        elif self._parked is asked:
            self._wait_in(asked, index, advanced(request, end))

    # Partitions at rest

    def _join(self, resting: Resting) -> None:
        """A partition at rest has changed. A request that is answered leaves it to the next one."""
        asked = self._parked
        index = None if asked is None else self._add(asked, resting)
        if asked is not None and index is not None:
            self._look_again(asked, index)

    def _add(self, asked: LeanAsked, resting: Resting) -> int | None:
        """The index in ``wanted`` of a partition that rested; None if ``asked`` is answered."""
        with self._guard:
            if self._parked is not asked:
                return None
            asked.entries.append(resting.entry)
            asked.results[resting.topic_partition] = NOT_READ
            asked.wanted.append((resting.topic_partition, resting.partition, resting.request))
            return len(asked.wanted) - 1

    def _let_rest(self, asked: LeanAsked) -> None:
        lean = self._purgatory.lean
        for entry, (topic_partition, partition, request) in zip(asked.entries, asked.wanted, strict=True):
            token = entry.token
            is_placed = entry.waits_in is partition and token in lean
            if not is_placed or not may_rest(partition, request, asked.results[topic_partition]):
                continue
            if self._partitions.rest(Resting(entry, topic_partition, partition, request, token)):
                entry.waits_in = None  # the token is that of the rest from now on
                if lean.pop(token, None) is None:  # a change has taken it, and found the request answered
                    self._partitions.wake(token)

    # Answers

    def _answer(self, asked: LeanAsked) -> None:
        with self._guard:
            if self._parked is not asked:
                return
            self._parked = None
        self._partitions.stop_waiting()
        self._let_rest(asked)
        self._purgatory.throttle.count(asked.wanted, asked.results)
        asked.answer(asked)

    def _set_timer(self, now_ms: MonotonicMs, deadline_ms: int) -> None:
        """Within the guard: have a timer that ends no later than ``deadline_ms``."""
        if self._timer is not None:
            if self._timer_ms <= deadline_ms:
                return
            self._timer.cancel()
        self._timer_ms = deadline_ms
        self._timer = self._purgatory.ports.timer.after(deadline_ms - now_ms, self._on_timer)

    def _on_timer(self) -> None:
        now_ms = self._purgatory.ports.clock.monotonic_ms()
        with self._guard:
            asked, self._timer = self._parked, None
            if asked is None:
                return
            if asked.deadline_ms > now_ms:  # the timer was that of an earlier request
                self._set_timer(now_ms, asked.deadline_ms)
                return
        for resting in self._partitions.wake_all():
            self._add(asked, resting)
        allowance = self._purgatory.throttle.allowance()
        asked.results |= read_all(list(asked.wanted), asked.limits.bytes_max, allowance, is_retry=True)
        self._answer(asked)
