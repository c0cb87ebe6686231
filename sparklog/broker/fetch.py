"""A fetch request on its way: read what there is, or wait until there is enough.

Partitions are read in the request's order under its byte limit; the first that has anything may exceed every
limit by one batch, so that a large batch never stops a reader (KIP-74). With fewer than ``min_bytes`` and
nothing else to say, the fetch waits in the purgatory of each of its partitions; whatever happens there wakes
it, it reads again, and answers or goes on waiting until its time is up.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sparklog.broker.answers import ReadRequest, ReadResult
from sparklog.broker.partition import Partition
from sparklog.broker.ports import Ports
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.ports import Cancellable, Guard
from sparklog.model.time import MonotonicMs


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """``wait_max_ms`` 0 answers at once; ``bytes_max`` is for the whole reply."""

    wait_max_ms: int
    bytes_min: int
    bytes_max: int


Wanted = Sequence[tuple[TopicPartition, Partition | None, ReadRequest]]
Results = dict[TopicPartition, ReadResult]
Answer = Callable[[Results], None]


@dataclass(slots=True)
class FetchWait:
    """One request that may wait, under one token in each of its partitions."""

    guard: Guard
    wanted: Wanted
    limits: FetchLimits
    answer: Answer
    deadline_ms: MonotonicMs
    tokens: dict[int, Partition] = field(default_factory=dict)
    timer: Cancellable | None = None
    answered: bool = False

    def is_over(self) -> bool:
        return self.answered


class FetchPurgatory:
    """Fetch requests, by the tokens that their partitions know."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._tokens = itertools.count(1)
        self._waits: dict[int, FetchWait] = {}

    def __len__(self) -> int:
        return len({id(wait) for wait in list(self._waits.values())})

    def fetch(self, wanted: Wanted, limits: FetchLimits, answer: Answer) -> None:
        """Answer at once, or as soon as there is enough, or when ``limits.wait_max_ms`` are over."""
        results = read_all(wanted, limits.bytes_max, is_retry=False)
        if limits.wait_max_ms <= 0 or not wanted or is_enough(results, limits.bytes_min):
            answer(results)
            return
        deadline_ms = MonotonicMs(self._ports.clock.monotonic_ms() + limits.wait_max_ms)
        wait = FetchWait(self._ports.new_guard(), wanted, limits, answer, deadline_ms)
        wait.timer = self._ports.timer.after(limits.wait_max_ms, lambda: self._answer(wait))
        self._park(wait)

    def wake(self, token: int) -> None:
        """Something changed in the partition that knows ``token``."""
        wait = self._waits.pop(token, None)
        if wait is None or wait.answered:
            return
        partition = wait.tokens.pop(token)
        request = next(request for _, other, request in wait.wanted if other is partition)
        # Taken before the read: what comes in after it must wake this fetch again.
        end = partition.log_end_offset if request.follower is not None else partition.high_watermark
        results = read_all(wait.wanted, wait.limits.bytes_max, is_retry=True)
        if is_enough(results, wait.limits.bytes_min):
            self._answer(wait, results)
        else:
            self._wait_in(wait, partition, advanced(request, end))

    def _park(self, wait: FetchWait) -> None:
        for _, partition, request in wait.wanted:
            if partition is not None and not wait.answered:
                self._wait_in(wait, partition, request)

    def _wait_in(self, wait: FetchWait, partition: Partition, request: ReadRequest) -> None:
        token = next(self._tokens)
        with wait.guard:
            if wait.answered:
                return
            wait.tokens[token] = partition
            self._waits[token] = wait
        partition.wait_for_more(token, request)
        if wait.is_over():
            # Its time ran out before the partition knew of the token, which nobody would forget then.
            self._waits.pop(token, None)
            partition.forget_fetch(token)

    def _answer(self, wait: FetchWait, results: Results | None = None) -> None:
        with wait.guard:
            if wait.answered:
                return
            wait.answered = True
            tokens = list(wait.tokens.items())
        if wait.timer is not None:
            wait.timer.cancel()
        for token, partition in tokens:
            self._waits.pop(token, None)
            partition.forget_fetch(token)
        if results is None:
            results = read_all(wait.wanted, wait.limits.bytes_max, is_retry=True)
        wait.answer(results)


def advanced(request: ReadRequest, end: int) -> ReadRequest:
    """The same request, but content with everything below ``end``: only what is beyond wakes it again."""
    return replace(request, fetch_offset=max(request.fetch_offset, end))


def read_all(wanted: Wanted, bytes_max: int, *, is_retry: bool) -> Results:
    """Read each partition in turn, within what the earlier ones left of ``bytes_max``."""
    results: Results = {}
    left = bytes_max
    for topic_partition, partition, request in wanted:
        if partition is None:
            results[topic_partition] = ReadResult(ErrorCode.unknown_topic_or_partition)
            continue
        limited = request if request.max_bytes <= left else replace(request, max_bytes=max(left, 0))
        nothing_yet = left == bytes_max
        result = partition.read(limited, at_least_one_batch=nothing_yet, is_retry=is_retry)
        results[topic_partition] = result
        left -= result.size_bytes
    return results


def is_enough(results: Results, bytes_min: int) -> bool:
    """Whether to answer now: enough bytes, or an error or a divergence that should not wait."""
    size = 0
    for result in results.values():
        if result.error is not ErrorCode.none or result.diverging is not None:
            return True
        size += result.size_bytes
    return size >= bytes_min
