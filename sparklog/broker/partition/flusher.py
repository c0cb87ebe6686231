"""Group commit: one fsync for all that was appended while the one before it ran.

A partition is flushed by one worker at a time. Whoever asks meanwhile is served by the next flush, which
covers everything appended until it begins; so a slow disk makes larger groups, not longer queues.
"""

from collections.abc import Callable

from sparklog.broker.partition.log_guard import LogGuard
from sparklog.model.ids import TopicPartition
from sparklog.model.ports import Executor, Guard


class Flusher:
    """Flushes partitions on an executor's threads."""

    def __init__(self, executor: Executor, new_guard: Callable[[], Guard]) -> None:
        self._executor = executor
        self._guard = new_guard()
        self._wanted_again: dict[TopicPartition, bool] = {}
        """The partitions that are being flushed, and whether another flush was asked for since that began."""

    def request(self, log_guard: LogGuard) -> None:
        """Flush what ``log_guard`` has by now, soon."""
        with self._guard:
            is_running = log_guard.topic_partition in self._wanted_again
            self._wanted_again[log_guard.topic_partition] = is_running
        if not is_running:
            self._executor.submit(lambda: self._run(log_guard))

    def _run(self, log_guard: LogGuard) -> None:
        try:
            while True:
                log_guard.flush()
                with self._guard:
                    if not self._wanted_again.get(log_guard.topic_partition):
                        del self._wanted_again[log_guard.topic_partition]
                        return
                    self._wanted_again[log_guard.topic_partition] = False
        except BaseException:
            with self._guard:
                self._wanted_again.pop(log_guard.topic_partition, None)
            raise
