"""Fetch requests: each reads its partitions, and waits until there is enough to answer.

Partitions are read in the request's order under its byte limit. The first one with records may exceed the
limits by one batch, so that a large batch never stops a reader (KIP-74). A fetch with fewer than
``min_bytes``, and without an error or divergence, waits in the purgatory of each of its partitions. A change
of a partition wakes it. It then reads the changed partitions again, and answers or waits until its time is
up. Partitions at rest (``session_partitions``) join the fetch when they change.

A fetch of records that only the remote store has is parked with ``history_fetches``, until the store has
answered or ``remote.fetch.max.wait.ms`` is over. It then reads its other partitions again, so that each
answer is of the present leader and log.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Protocol

from sparklog.broker.partition.answers import HistoryFound, HistoryRead, HistoryTime, ReadRequest, ReadResult
from sparklog.broker.partition.partition import Partition
from sparklog.broker.ports import Ports
from sparklog.broker.throttles import Allowance, ReplicationThrottle
from sparklog.broker.waiting.asked_partitions import AskedPartition
from sparklog.broker.waiting.history_fetches import HistoryFetches, ranges_of
from sparklog.broker.waiting.session_partitions import Resting, SessionPartitions, may_rest
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.ports import Cancellable, Guard


class FetchLimits(NamedTuple):
    """``wait_max_ms`` 0 answers at once; ``bytes_max`` is for the whole reply."""

    wait_max_ms: int
    bytes_min: int
    bytes_max: int


Wanted = Sequence[tuple[TopicPartition, Partition, ReadRequest]]
Results = dict[TopicPartition, ReadResult]
Answer = Callable[[Results], None]
NOT_READ = ReadResult(ErrorCode.none)
"""The result of a partition that has just joined a fetch."""
NOT_HERE: Mapping[int, HistoryRead] = MappingProxyType({})
"""The remote store's answers by index among the wanted partitions; here none."""


@dataclass(slots=True)
class SessionFetch:
    """A fetch of a follower's session (``session_partitions``). Partitions at rest join it as they change."""

    partitions: SessionPartitions
    entries: dict[TopicPartition, AskedPartition]
    joined: list[Resting] = field(default_factory=list)


@dataclass(slots=True)
class FetchWait:
    """One request that may wait, under one token in each of its partitions."""

    guard: Guard
    """Protects ``answered``, and what is added to ``tokens`` and ``wanted``."""
    wanted: list[tuple[TopicPartition, Partition, ReadRequest]]
    """Partitions at rest that change are added at the end, so an index stays valid."""
    limits: FetchLimits
    answer: Answer
    results: Results
    """The last result of each partition in ``wanted``."""
    tokens: dict[int, int] = field(default_factory=dict)
    """The index in ``wanted`` of each token's partition. Woken tokens are removed."""
    timer: Cancellable | None = None
    answered: bool = False
    """Set once, by the thread that calls ``answer``. No token is added from then on."""
    session: SessionFetch | None = None

    def is_over(self) -> bool:
        return self.answered


class Limited(Protocol):
    """A request that waits, as far as it is read again."""

    @property
    def wanted(self) -> list[tuple[TopicPartition, Partition, ReadRequest]]: ...

    @property
    def limits(self) -> FetchLimits: ...

    @property
    def results(self) -> Results: ...


class Wakes(Protocol):
    """What waits under tokens of its own (``lean_wait``)."""

    def wake(self, token: int) -> None: ...


class FetchPurgatory:
    """Fetch requests, by the tokens that their partitions know."""

    def __init__(
        self, ports: Ports, throttle: ReplicationThrottle, at_rest: Mapping[int, SessionPartitions]
    ) -> None:
        """``throttle`` limits the bytes for replicas that are not in sync; ``at_rest`` has the sessions of
        the tokens of partitions at rest.
        """
        self._at_rest = at_rest
        self.ports = ports
        self._tokens = itertools.count(1)
        self._waits: dict[int, FetchWait] = {}
        self.lean: dict[int, Wakes] = {}
        """The waits of lean fetches, by the tokens that they have in partitions; a wake-up takes one out."""
        self.throttle = throttle
        self.history: HistoryFetches | None = None
        """Reads of the remote store; None at a broker without one."""

    def __len__(self) -> int:
        return len({id(wait) for wait in list(self._waits.values())})

    def fetch(
        self, wanted: Wanted, limits: FetchLimits, answer: Answer, session: SessionFetch | None = None
    ) -> None:
        """Answer at once, as soon as there is enough, or after ``limits.wait_max_ms``."""
        results = read_all(wanted, limits.bytes_max, self.throttle.allowance(), is_retry=False)
        if self._ask_history(wanted, limits, results, answer):
            return
        can_wait = bool(wanted) or (session is not None and session.partitions.has_resting())
        if limits.wait_max_ms <= 0 or not can_wait or is_enough(results, limits.bytes_min):
            self.throttle.count(wanted, results)
            answer(results)
            return
        wait = FetchWait(self.ports.new_guard(), list(wanted), limits, answer, results, session=session)
        wait.timer = self.ports.timer.after(limits.wait_max_ms, lambda: self._time_out(wait))
        self._park(wait)

    def find(
        self,
        times: Mapping[int, HistoryTime],
        wait_max_ms: int,
        finish: Callable[[Mapping[int, HistoryFound]], None],
    ) -> bool:
        """As ``HistoryFetches.find``; False at a broker without a remote store, which never finishes."""
        history = self.history  # it goes when the broker stops
        if history is None:
            return False
        history.find(times, wait_max_ms, finish)
        return True

    def _ask_history(self, wanted: Wanted, limits: FetchLimits, results: Results, answer: Answer) -> bool:
        """Answer with records that only the remote store has, once it gives them; False if there are none."""
        ranges = ranges_of([results[topic_partition] for topic_partition, *_ in wanted], limits.bytes_max)
        history = self.history  # it goes when the broker stops
        if history is None or not ranges:
            return False

        def answer_with(arrived: Mapping[int, HistoryRead]) -> None:
            allowance = self.throttle.allowance()
            results = read_all(wanted, limits.bytes_max, allowance, is_retry=True, arrived=arrived)
            self.throttle.count(wanted, results)
            holes = [nth for nth, read in arrived.items() if is_hole(wanted[nth][2], read)]
            if holes and not is_enough(results, 1):
                # The disk has nothing after the hole yet. Without a pause the client would repeat at once.
                self.ports.timer.after(limits.wait_max_ms, lambda: answer(results))
            else:
                answer(results)

        history.ask(ranges, answer_with)
        return True

    def new_token(self) -> int:
        return next(self._tokens)

    def wake(self, token: int) -> None:
        """The partition with ``token`` has changed."""
        wait = self._waits.pop(token, None)
        if wait is not None and not wait.answered:
            self._look_again(wait, wait.tokens.pop(token))
        elif (lean := self.lean.pop(token, None)) is not None:
            lean.wake(token)
        elif (partitions := self._at_rest.get(token)) is not None:
            partitions.wake(token)

    def _look_again(self, wait: FetchWait, index: int) -> None:
        _, partition, request = wait.wanted[index]
        # The end is taken before the read, because later changes must wake this fetch again.
        end = partition.log_end_offset if request.follower is not None else partition.high_watermark
        read_again(wait, index, self.throttle.allowance())
        if is_enough(wait.results, wait.limits.bytes_min):
            self._answer(wait)
        else:
            self._wait_in(wait, index, advanced(request, end))

    def _park(self, wait: FetchWait) -> None:
        parked = list(enumerate(wait.wanted))
        if (session := wait.session) is not None:
            session.partitions.wait(lambda resting: self._join(wait, session, resting))
        for index, (_, _, request) in parked:
            if not wait.answered:
                self._wait_in(wait, index, request)

    def _join(self, wait: FetchWait, session: SessionFetch, resting: Resting) -> None:
        """A partition at rest has changed. A fetch that is answered leaves it to the next one."""
        index = _add(wait, session, resting)
        if index is not None:
            self._look_again(wait, index)

    def _wait_in(self, wait: FetchWait, index: int, request: ReadRequest) -> None:
        token = next(self._tokens)
        partition = wait.wanted[index][1]
        with wait.guard:
            if wait.answered:
                return
            wait.tokens[token] = index
            self._waits[token] = wait
        partition.reads.wait_for_more(token, request)
        if wait.is_over():
            # The fetch was answered before the partition had the token, which would never be forgotten.
            self._waits.pop(token, None)
            partition.reads.forget(token)

    def _time_out(self, wait: FetchWait) -> None:
        if wait.answered:
            return
        if (session := wait.session) is not None:
            for resting in session.partitions.wake_all():
                _add(wait, session, resting)
        allowance = self.throttle.allowance()
        wait.results |= read_all(list(wait.wanted), wait.limits.bytes_max, allowance, is_retry=True)
        self._answer(wait)

    def _answer(self, wait: FetchWait) -> None:
        with wait.guard:
            if wait.answered:
                return
            wait.answered = True
            tokens = list(wait.tokens.items())
        if wait.timer is not None:
            wait.timer.cancel()
        if wait.session is not None:
            wait.session.partitions.stop_waiting()
        for token, index in tokens:
            if self._leave_at_rest(wait, token, index):
                continue
            self._waits.pop(token, None)
            partition = wait.wanted[index][1]
            partition.reads.forget(token)
        self.throttle.count(wait.wanted, wait.results)
        wait.answer(wait.results)

    def _leave_at_rest(self, wait: FetchWait, token: int, index: int) -> bool:
        """Whether ``token`` stays in its partition, for the next fetches of the session."""
        session = wait.session
        topic_partition, partition, request = wait.wanted[index]
        if session is None or not may_rest(partition, request, wait.results[topic_partition]):
            return False
        resting = Resting(session.entries[topic_partition], topic_partition, partition, request, token)
        if not session.partitions.rest(resting):
            return False
        if self._waits.pop(token, None) is None:  # a change has taken the token, and found the fetch answered
            session.partitions.wake(token)
        return True


def _add(wait: FetchWait, session: SessionFetch, resting: Resting) -> int | None:
    """The index in ``wanted`` of a partition that rested, now added; None if the fetch is answered."""
    with wait.guard:
        if wait.answered:
            return None
        session.entries[resting.topic_partition] = resting.entry
        session.joined.append(resting)
        wait.results[resting.topic_partition] = NOT_READ
        wait.wanted.append((resting.topic_partition, resting.partition, resting.request))
        return len(wait.wanted) - 1


def advanced(request: ReadRequest, end: int) -> ReadRequest:
    """The same request from ``end`` on, so that records below it do not wake the fetch again."""
    return request._replace(fetch_offset=max(request.fetch_offset, end))


def read_all(
    wanted: Wanted,
    bytes_max: int,
    allowance: Allowance | None,
    *,
    is_retry: bool,
    arrived: Mapping[int, HistoryRead] = NOT_HERE,
) -> Results:
    """Read each partition in turn, within what the earlier ones left of ``bytes_max``."""
    results: Results = {}
    left = bytes_max
    for index, (topic_partition, partition, request) in enumerate(wanted):
        result = read_one(
            partition, request, left, allowance, nothing_yet=left == bytes_max, is_retry=is_retry
        )
        if result.history is not None and index in arrived:
            result = with_history(result, arrived[index], left)
            if is_hole(request, arrived[index]):
                later = request._replace(fetch_offset=arrived[index].next_offset, last_fetched_epoch=-1)
                result = read_after_hole(
                    partition, later, result, left, allowance, nothing_yet=left == bytes_max
                )
        results[topic_partition] = result
        left -= result.size_bytes
    return results


def read_one(
    partition: Partition,
    request: ReadRequest,
    left: int,
    allowance: Allowance | None,
    *,
    nothing_yet: bool,
    is_retry: bool,
) -> ReadResult:
    """Read a partition within ``left`` bytes, and within its throttle."""
    limited = request if request.max_bytes <= left else request._replace(max_bytes=max(left, 0))
    if allowance is None or not allowance.limits(partition, request):
        return partition.reads.read(limited, at_least_one_batch=nothing_yet, is_retry=is_retry)
    throttled = limited._replace(max_bytes=min(limited.max_bytes, max(allowance.left, 0)))
    # The last batch may exceed the allowance, or a large one would never be sent. The reply's limit holds.
    may_exceed = throttled.max_bytes > 0
    result = partition.reads.read(throttled, at_least_one_batch=may_exceed, is_retry=is_retry)
    allowance.left -= result.size_bytes
    return result


def read_again(wait: Limited, woken: int, allowance: Allowance | None) -> None:
    """Read the partition that woke the fetch, and every other that has changed since it was read, because
    that one's bytes need not wait for another fetch.
    """
    left = wait.limits.bytes_max
    nothing_yet = True
    for index, (topic_partition, partition, request) in enumerate(list(wait.wanted)):
        result = wait.results[topic_partition]
        if index == woken or has_changed(partition, request, result):
            result = read_one(partition, request, left, allowance, nothing_yet=nothing_yet, is_retry=True)
            wait.results[topic_partition] = result
        left -= result.size_bytes
        nothing_yet = nothing_yet and not result.size_bytes


def has_changed(partition: Partition, request: ReadRequest, result: ReadResult) -> bool:
    """Whether a read may differ from ``result``. Bytes are read again for every answer, because the log may
    have been cut since.
    """
    return (
        result.size_bytes > 0
        or partition.high_watermark != result.high_watermark
        or partition.log_start_offset != result.log_start_offset
        or (request.follower is not None and partition.log_end_offset > request.fetch_offset)
    )


def with_history(result: ReadResult, read: HistoryRead, left: int) -> ReadResult:
    """The result of a partition, with the records from the remote store."""
    if read.size_bytes and left <= 0:  # other partitions have more by now; the next fetch gets these records
        return result
    return result._replace(
        error=read.error,
        parts=read.parts,
        size_bytes=read.size_bytes,
        aborted=read.aborted,
        history=None,
        next_offset=read.next_offset,
    )


def is_hole(request: ReadRequest, read: HistoryRead) -> bool:
    """Whether the log has no record from the fetch offset up to the start of its disk."""
    return read.error is ErrorCode.none and not read.parts and read.next_offset > request.fetch_offset


def read_after_hole(
    partition: Partition,
    request: ReadRequest,
    before: ReadResult,
    left: int,
    allowance: Allowance | None,
    *,
    nothing_yet: bool,
) -> ReadResult:
    """Read on after a hole. Returns ``before`` if that offset has left the disk or the log has changed; the
    next fetch decides.

    ``request`` has no epoch of its last record, because the log cannot compare an epoch from before the hole
    with an offset after it.
    """
    result = read_one(partition, request, left, allowance, nothing_yet=nothing_yet, is_retry=True)
    is_there = result.error is ErrorCode.none and result.diverging is None and result.history is None
    return result if is_there else before


def is_enough(results: Results, bytes_min: int) -> bool:
    """Whether to answer now: with enough bytes, an error or a divergence."""
    size = 0
    for result in list(results.values()):  # other threads may add to them
        if result.error is not ErrorCode.none or result.diverging is not None:
            return True
        size += result.size_bytes
    return size >= bytes_min
