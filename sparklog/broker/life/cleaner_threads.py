"""The threads that compact logs: each takes the most urgent log, cleans it, and rests when none is due."""

import logging
import threading
from typing import Final

from sparklog.broker.current_settings import CurrentSettings
from sparklog.broker.disks.log_cleaner import Cleaning, LogCleaner

logger: Final = logging.getLogger(__name__)

_AFTER_A_BUG_SECONDS: Final = 1.0


class CleanerThreads:
    """``log.cleaner.threads`` of them, or none without ``log.cleaner.enable``.

    A change of the broker's settings ends every pause, because its length may follow from the old settings.
    """

    def __init__(self, cleaner: LogCleaner, settings: CurrentSettings) -> None:
        self._cleaner = cleaner
        self._condition = threading.Condition()
        """Guards the two fields below, and is notified of their changes."""
        self._is_stopping = False
        self._changes = 0
        config = settings.at_start
        count = config.get_int("log.cleaner.threads") if config.get_bool("log.cleaner.enable") else 0
        self._threads = [
            threading.Thread(target=self._run, name=f"log-cleaner-{number}", daemon=True)
            for number in range(count)
        ]
        settings.on_change(lambda _: self._end_pauses())

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop after the step that is being done; what a round has not put in place is thrown away."""
        with self._condition:
            self._is_stopping = True
            self._condition.notify_all()
        for thread in self._threads:
            thread.join()

    def _end_pauses(self) -> None:
        with self._condition:
            self._changes += 1
            self._condition.notify_all()

    def _is_stopped_in(self, seconds: float) -> bool:
        """Pause, unless the settings change; whether the threads must stop."""
        with self._condition:
            changes = self._changes
            self._condition.wait_for(
                lambda: self._is_stopping or self._changes != changes, min(seconds, threading.TIMEOUT_MAX)
            )
            return self._is_stopping

    def _run(self) -> None:
        pause_seconds = 0.0
        while not self._is_stopped_in(pause_seconds):
            try:
                cleaning = self._cleaner.next()
                pause_seconds = self._cleaner.backoff_ms / 1_000 if cleaning is None else 0.0
                if cleaning is not None:
                    self._clean(cleaning)
            except Exception:
                # Also after a bug: without this thread no log of this broker is compacted any more.
                logger.exception("the log cleaner failed and goes on")
                pause_seconds = max(self._cleaner.backoff_ms / 1_000, _AFTER_A_BUG_SECONDS)

    def _clean(self, cleaning: Cleaning) -> None:
        steps = cleaning.run()
        try:
            for done_bytes in steps:
                if self._is_stopped_in(self._cleaner.pause_ms(done_bytes) / 1_000):
                    return
        finally:
            steps.close()
