"""Reads of a remote store on threads of their own, so that a slow object delays nothing else.

Fetches of the same offset of a log share one read. A consumer that has half of a run makes the reader read
the next run ahead. With too many reads in progress a new one is refused silently: its fetch is answered empty
when its time is over, and the client repeats it.

A read that fails answers KAFKA_STORAGE_ERROR for its range, and the log names the object. Other ranges are
served.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from sparklog.broker.partition.answers import HistoryFound, HistoryRange, HistoryRead, HistoryTime
from sparklog.broker.remote_log.reading.runs import Log, Run, RunCache
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.model.ports import Executor, Guard

logger: Final = logging.getLogger(__name__)

RUN_BYTES: Final = 4_194_304
"""Bytes of one read, if the fetch wants fewer."""

Answer = Callable[[HistoryRead], None]
Waiting = list[tuple[HistoryRange, Answer]]


class HistorySource(Protocol):
    """The batches of logs in a remote store."""

    def run_from(self, wanted: HistoryRange, offset: int, size: int) -> Run | None:
        """About ``size`` bytes of batches, the first of which has ``offset``; blocks. None if unclean
        elections lost all batches from there up to the end of ``wanted``.

        A batch that cannot be read ends the run. If it is the first one: SparklogError with the object's
        name.
        """

    def first_of_time(self, wanted: HistoryTime) -> tuple[int, int] | None:
        """Offset and timestamp of the first record of that time or later; None if the range has none. Blocks.

        SparklogError with the object's name for a batch that cannot be read.
        """


@dataclass(slots=True)
class Counts:
    """Counts for the metrics, since the broker's start."""

    requests: int = 0
    """Reads of the store."""
    bytes_read: int = 0
    errors: int = 0
    refused: int = 0
    """Reads that were not begun, because too many were in progress."""


@dataclass(slots=True)
class HistoryReader:
    """Answers from memory, or has a thread read the store."""

    source: HistorySource
    executor: Executor
    guard: Guard
    cache: RunCache
    pending_max: int
    """Most reads in progress, those that wait for a thread included; as many searches are on top."""
    suspect: Callable[[TopicPartition], None]
    """Takes each partition of which a read has failed; any thread calls it."""
    counts: Counts = field(default_factory=Counts)
    _waiting: dict[tuple[Log, int], Waiting] = field(default_factory=dict)
    """Reads in progress, by log and offset, with the fetches that wait for each; none for a read-ahead."""
    _searches: int = 0
    """Searches for a time in progress, at most ``pending_max``."""
    _is_closed: bool = False

    def close(self) -> None:
        """Read nothing more. Reads that wait for a thread are answered with an error."""
        self._is_closed = True

    def read(self, wanted: HistoryRange, answer: Answer) -> None:
        """See ``waiting.history_fetches.History``."""
        log = (wanted.topic_id, wanted.topic_partition.partition)
        ahead: int | None = None
        with self.guard:
            run = self.cache.find(log, wanted.fetch_offset)
            # An unclean election may have replaced the batches in memory.
            if run is not None and not run.is_of(wanted, wanted.fetch_offset):
                self.cache.forget(log, run)
                run = None
            if run is None:
                begins = self._begin(log, wanted.fetch_offset, [(wanted, answer)])
            else:
                read = run.cut(wanted)
                ahead = self._ahead(log, run, read, wanted)
                begins = ahead is not None and self._begin(log, ahead, [])
        if begins:
            offset = wanted.fetch_offset if ahead is None else ahead
            size = RUN_BYTES if ahead is not None else max(RUN_BYTES, wanted.max_bytes)
            self.executor.submit(lambda: self._run(wanted, offset, size))
        if run is not None:  # outside the guard, which an answer may need
            answer(read)

    def find(self, wanted: HistoryTime, answer: Callable[[HistoryFound], None]) -> None:
        """See ``waiting.history_fetches.History``. Searches are rare, so their results are not kept."""
        with self.guard:
            if self._searches >= self.pending_max:
                self.counts.refused += 1
                return
            self._searches += 1
        self.executor.submit(lambda: self._search(wanted, answer))

    def _search(self, wanted: HistoryTime, answer: Callable[[HistoryFound], None]) -> None:
        result = HistoryFound(ErrorCode.kafka_storage_error)
        try:
            if not self._is_closed:
                record = self.source.first_of_time(wanted)
                result = HistoryFound(ErrorCode.none, *(record or (-1, -1)))
        except (SparklogError, OSError) as error:
            logger.error(
                "%s: the remote store cannot be searched for time %d: %s",
                wanted.topic_partition,
                wanted.timestamp_ms,
                error,
            )
        finally:
            with self.guard:
                self.counts.requests += 1
                self.counts.errors += result.error is not ErrorCode.none
                self._searches -= 1
            answer(result)

    def _begin(self, log: Log, offset: int, waiting: Waiting) -> bool:
        """Whether a new read must begin at ``offset``; if not, ``waiting`` joins the one in progress."""
        known = self._waiting.get((log, offset))
        if known is not None:
            known += waiting
            return False
        if len(self._waiting) >= self.pending_max:
            self.counts.refused += 1
            return False
        self._waiting[log, offset] = waiting
        return True

    def _ahead(self, log: Log, run: Run, read: HistoryRead, wanted: HistoryRange) -> int | None:
        """The offset to read ahead from, after a consumer got ``read`` of ``run``; None if not yet."""
        half = run.first_offset + (run.next_offset - run.first_offset) // 2
        if read.next_offset < half or run.next_offset >= wanted.end_offset:
            return None
        return None if self.cache.find(log, run.next_offset) else run.next_offset

    def _run(self, wanted: HistoryRange, offset: int, size: int) -> None:
        """Read, keep, and answer all waiting fetches; on a reader's thread."""
        log = (wanted.topic_id, wanted.topic_partition.partition)
        run: Run | None = None
        is_read = False
        try:
            if not self._is_closed:
                run = self.source.run_from(wanted, offset, size)
                is_read = True
        except (SparklogError, OSError) as error:
            logger.error(
                "%s: offset %d cannot be read from the remote store: %s",
                wanted.topic_partition,
                offset,
                error,
            )
            self.suspect(wanted.topic_partition)
        finally:
            with self.guard:
                self.counts.requests += 1
                self.counts.errors += not is_read
                if run is not None:
                    self.counts.bytes_read += len(run.data)
                    self.cache.add(log, run)
                waiting = self._waiting.pop((log, offset), [])
            for asked, answer in waiting:
                if run is not None:
                    answer(run.cut(asked))
                elif is_read:  # a hole up to the end of the range
                    answer(HistoryRead(ErrorCode.none, next_offset=wanted.end_offset))
                else:
                    answer(HistoryRead(ErrorCode.kafka_storage_error))
