"""A line now and then while Spark works: how many rows are written, and how far its tasks are."""

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

from sparklog.client.admin import Admin
from sparklog.model.errors import SparklogError

logger: Final = logging.getLogger(__name__)

INTERVAL_S: Final = 2.0


class Ticker:
    """Tells what ``describe`` says, for the length of a block."""

    def __init__(self, describe: Callable[[], str], tell: Callable[[str], None]) -> None:
        self._describe = describe
        self._tell = tell
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(INTERVAL_S)

    def _run(self) -> None:
        began = time.monotonic()
        try:
            while not self._ended.wait(INTERVAL_S):
                self._tell(f"{self._describe()} ({time.monotonic() - began:.0f} s)")
        except Exception:  # of many kinds where Spark ends; the caller that waits for the work gets the error
            logger.info("no more progress, as Spark does not answer", exc_info=True)


def write_progress(spark: Any, admin: Admin, topic: str, tell: Callable[[str], None]) -> Ticker:
    """Tells about a write to ``topic`` that begins now."""
    tracker = spark.sparkContext.statusTracker()
    brokers_stages = set(tracker.getActiveStageIds())  # of one task each, which lasts as long as its broker

    def tasks() -> str:
        active = set(tracker.getActiveStageIds()) - brokers_stages
        stages = [info for info in map(tracker.getStageInfo, active) if info is not None]
        if not stages:
            return "Spark prepares its tasks"
        done = sum(stage.numCompletedTasks for stage in stages)
        return f"Spark has finished {done} of {sum(stage.numTasks for stage in stages)} tasks"

    return Ticker(lambda: f"{topic}: {written_rows(admin, topic):,} rows written so far, {tasks()}", tell)


def written_rows(admin: Admin, topic: str) -> int:
    """Rows of a topic that every replica in sync has, committed or not; 0 while its partitions have no leader
    yet.
    """
    try:
        return sum(part.high_watermark for part in admin.describe_topics([topic])[0].partitions)
    except SparklogError:
        return 0
