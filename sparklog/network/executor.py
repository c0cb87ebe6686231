"""A few named threads for work that may block: parallel recovery, group fsync, calls to peers."""

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final, Self

logger: Final = logging.getLogger(__name__)


class ThreadExecutor:
    """The ``Executor`` port: ``threads`` workers over one unbounded queue, first come, first served.

    Work that raises is logged with its traceback and costs no thread. ``stop`` finishes what was submitted
    before it and refuses what comes later, so that nobody waits for work that silently never ran.
    """

    def __init__(self, name: str, threads: int = 1) -> None:
        self._name = name
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._guard = threading.Lock()
        self._stopped = False
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Callable[[], None]) -> None:
        with self._guard:
            if self._stopped:
                raise RuntimeError(f"executor {self._name!r} is stopped; it takes no more work")
            self._queue.put(work)

    def stop(self) -> None:
        with self._guard:
            if not self._stopped:
                self._stopped = True
                for _ in self._threads:
                    self._queue.put(None)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            try:
                work()
            except Exception:
                logger.exception("work of executor %s failed", self._name)
