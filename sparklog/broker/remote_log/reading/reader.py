"""Reads of a remote store on threads of their own, so that a slow object holds up nothing else.

One read of a place is under way at a time: fetches that ask for the same place wait for the same answer. A
consumer that has got half of what was read makes the reader fetch what follows (read-ahead). With too many
reads under way a new one is refused silently: its fetch is answered empty when its time is over, and asks
again.

A store that fails answers KAFKA_STORAGE_ERROR for that range, and the log names the object. Other ranges are
served on.
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

logger = logging.getLogger(__name__)

RUN_BYTES: Final = 4_194_304
"""Read at a time, if less is asked for."""

Answer = Callable[[HistoryRead], None]
Waiting = list[tuple[HistoryRange, Answer]]


class HistorySource(Protocol):
    """The batches of logs in a remote store."""

    def run_from(self, wanted: HistoryRange, offset: int, size: int) -> Run | None:
        """About ``size`` bytes of batches of that log, the first of which holds ``offset``; blocks. None if
        the log has none from there up to the end of ``wanted``: unclean elections lost them.

        A batch that cannot be read ends the run. SparklogError, with the object's name, if that is the first.
        """

    def first_of_time(self, wanted: HistoryTime) -> tuple[int, int] | None:
        """Offset and timestamp of the record; None if no record in the range is that late. Blocks.

        SparklogError, with the object's name, if a batch on the way cannot be read.
        """


@dataclass(slots=True)
class Counts:
    """What the metrics tell."""

    requests: int = 0
    """Reads of the store."""
    bytes_read: int = 0
    errors: int = 0
    refused: int = 0
    """Reads that were not begun, because too many were under way."""


@dataclass(slots=True)
class HistoryReader:
    """Answers from memory, or has a thread read the store."""

    source: HistorySource
    executor: Executor
    guard: Guard
    cache: RunCache
    pending_max: int
    """Reads that may be under way or wait for a thread."""
    suspect: Callable[[TopicPartition], None]
    """Is told of each partition of which a read has failed; any thread calls it."""
    counts: Counts = field(default_factory=Counts)
    _waiting: dict[tuple[Log, int], Waiting] = field(default_factory=dict)
    """By log and offset: who waits for the read that is under way."""
    _searches: int = 0
    _is_closed: bool = False

    def close(self) -> None:
        """Answer what waits for a thread with an error, and read nothing more."""
        self._is_closed = True

    def read(self, wanted: HistoryRange, answer: Answer) -> None:
        """See ``waiting.history_fetches.History``."""
        log = (wanted.topic_id, wanted.topic_partition.partition)
        ahead: int | None = None
        with self.guard:
            run = self.cache.find(log, wanted.fetch_offset)
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
        if run is not None:
            answer(read)

    def find(self, wanted: HistoryTime, answer: Callable[[HistoryFound], None]) -> None:
        """See ``waiting.history_fetches.History``. Searches are rare, and nothing of them is kept."""
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
        """Whether a new read must begin at ``offset``; else ``waiting`` joins the one that is under way."""
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
        """Where to read ahead, now that a consumer got ``read`` of ``run``; None if it has time."""
        half = run.first_offset + (run.next_offset - run.first_offset) // 2
        if read.next_offset < half or run.next_offset >= wanted.end_offset:
            return None
        return None if self.cache.find(log, run.next_offset) else run.next_offset

    def _run(self, wanted: HistoryRange, offset: int, size: int) -> None:
        """On a reader's thread: read, keep, and answer all who wait."""
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
                elif is_read:
                    answer(HistoryRead(ErrorCode.none, next_offset=wanted.end_offset))
                else:
                    answer(HistoryRead(ErrorCode.kafka_storage_error))
