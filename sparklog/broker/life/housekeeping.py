"""What a broker does by the clock: look for lagging followers, write checkpoints."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from sparklog.broker.replicas.chores import Chores
from sparklog.model.settings.config import BrokerConfig

logger: Final = logging.getLogger(__name__)

EXPIRE_PRODUCERS_INTERVAL_MS = 600_000
REMOVE_FILES_INTERVAL_MS = 30_000


def chores_of(chores: Chores, config: BrokerConfig) -> list[tuple[int, Callable[[], None]]]:
    """What is to be done, and after how many milliseconds again."""
    return [
        (max(1, config.get_int("replica.lag.time.max.ms") // 2), chores.on_tick),
        (
            config.get_int("replica.high.watermark.checkpoint.interval.ms"),
            chores.checkpoint_high_watermarks,
        ),
        (config.get_int("log.flush.offset.checkpoint.interval.ms"), chores.checkpoint_recovery_points),
        (EXPIRE_PRODUCERS_INTERVAL_MS, chores.expire_producers),
        (config.get_int("log.retention.check.interval.ms"), chores.delete_old_segments),
        (config.get_int("log.flush.scheduler.interval.ms"), chores.flush_by_time),
        (REMOVE_FILES_INTERVAL_MS, chores.remove_late_files),
    ]


class Housekeeping:
    """One thread that runs each chore at its interval; a chore that fails is logged and tried again."""

    def __init__(self, chores: Chores, config: BrokerConfig) -> None:
        self._chores = chores_of(chores, config)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        now = time.monotonic()
        due = [now + interval_ms / 1_000 for interval_ms, _ in self._chores]
        while not self._stopping.wait(max(0.0, min(due) - time.monotonic())):
            for index, (interval_ms, chore) in enumerate(self._chores):
                if due[index] <= time.monotonic():
                    self._do(chore)
                    due[index] = time.monotonic() + interval_ms / 1_000

    @staticmethod
    def _do(chore: Callable[[], None]) -> None:
        try:
            chore()
        except Exception:
            # Also after a bug, because without this thread no lagging follower leaves an ISR.
            logger.exception("a chore failed and is tried again at its next time")
