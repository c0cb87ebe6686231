"""Drawing the progress of a streaming query while it runs.

A thread looks at the query's reports every ``LOOK_INTERVAL_S`` seconds and draws them until the query ends,
or until the caller stops it. It waits where Spark lets callers wait for a query's end, so it notices the end
at once. It never stops or fails the query; a query's failure is drawn, and raised by Spark's own
``awaitTermination`` only.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from pyspark.errors import PySparkException, StreamingQueryException

from sparklog_datasource.monitoring.figures import Reports
from sparklog_datasource.monitoring.pictures import Picture

try:
    from py4j.protocol import Py4JError

    ERRORS_OF_THE_JVM: tuple[type[Exception], ...] = (Py4JError,)
except ImportError:  # a client of Spark Connect alone has no JVM
    ERRORS_OF_THE_JVM = ()


LOOK_INTERVAL_S: Final = 1.0
"""Spark keeps a hundred reports, which is more than a query makes meanwhile."""

WHY_LENGTH_MAX: Final = 120
"""Characters of a failure that are drawn."""


class Progress:
    """The drawing of one query. ``stop`` ends it, and the query goes on; the end of the query ends it too.

    As a context manager it stops at the end of the block.
    """

    def __init__(self, query: Any, picture: Picture, clock: Callable[[], float] = time.monotonic) -> None:
        self._query = query
        self._picture = picture
        self._clock = clock
        self._reports = Reports()
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="sparklog-progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the drawing and return when the last line is drawn. Further calls are harmless."""
        self._is_stopped.set()
        self._thread.join()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the last line is drawn; whether it is."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _work(self) -> None:
        try:
            why = self._watch()
        except (*ERRORS_OF_THE_JVM, PySparkException, OSError) as error:
            why = f"Spark no longer answers: {_first_line(error)}"
        self._picture.end(self._reports.figures(), why)

    def _watch(self) -> str:
        """Draw until there is nothing more to draw; the reason."""
        while not self._is_stopped.is_set():
            failure = None
            try:
                has_ended = self._query.awaitTermination(LOOK_INTERVAL_S)
            except StreamingQueryException as error:
                has_ended, failure = True, error
            self._look()
            if has_ended:
                return "ended" if failure is None else f"failed: {_first_line(failure)}"
        return "no longer watched"

    def _look(self) -> None:
        now_s = self._clock()
        self._reports.on_reports(self._query.recentProgress, now_s)
        self._picture.draw(self._reports.figures(), now_s)


def name_of_query(query: Any) -> str:
    """The query's name, or the first part of its id."""
    return query.name or f"query {str(query.id)[:8]}"


def _first_line(error: Exception) -> str:
    """The beginning of an error, which may fill a screen."""
    return str(error).strip().partition("\n")[0][:WHY_LENGTH_MAX]
