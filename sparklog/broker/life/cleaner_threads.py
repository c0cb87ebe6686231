"""The threads that compact logs: each takes the most urgent log, cleans it, and rests when none is due."""

import logging
import threading
from typing import Final

from sparklog.broker.log_cleaner import Cleaning, LogCleaner
from sparklog.model.config import BrokerConfig

logger = logging.getLogger(__name__)

_AFTER_A_BUG_SECONDS: Final = 1.0


class CleanerThreads:
    """``log.cleaner.threads`` of them, or none without ``log.cleaner.enable``."""

    def __init__(self, cleaner: LogCleaner, config: BrokerConfig) -> None:
        self._cleaner = cleaner
        self._backoff_seconds = config.get_int("log.cleaner.backoff.ms") / 1_000
        self._stopping = threading.Event()
        count = config.get_int("log.cleaner.threads") if config.get_bool("log.cleaner.enable") else 0
        self._threads = [
            threading.Thread(target=self._run, name=f"log-cleaner-{number}", daemon=True)
            for number in range(count)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop after the step that is being done; what a round has not put in place is thrown away."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        pause_seconds = 0.0
        while not self._stopping.wait(pause_seconds):
            try:
                cleaning = self._cleaner.next()
                pause_seconds = self._backoff_seconds if cleaning is None else 0.0
                if cleaning is not None:
                    self._clean(cleaning)
            except Exception:
                # Also after a bug: without this thread no log of this broker is compacted any more.
                logger.exception("the log cleaner failed and goes on")
                pause_seconds = max(self._backoff_seconds, _AFTER_A_BUG_SECONDS)

    def _clean(self, cleaning: Cleaning) -> None:
        steps = cleaning.run()
        try:
            for done_bytes in steps:
                if self._stopping.wait(self._cleaner.pause_ms(done_bytes) / 1_000):
                    return
        finally:
            steps.close()
