"""A cluster in the foreground of a terminal: start, work, and stop on a signal, at any moment.

Start and work run on a thread of their own, so that the main thread, where signals arrive, does nothing but
wait for the first of: done, failed, asked to stop.
"""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

from sparklog.cli.command import DONE, FAILED
from sparklog.model.errors import SparklogError
from sparklog_runtime.cluster import LocalCluster, StartInterrupted
from sparklog_runtime.processes import adopt_orphans, reap_adopted, sweep_run

log = logging.getLogger(__name__)

STOP_DEADLINE_S: Final = 60.0


def serve(cluster: LocalCluster) -> int:
    """Say that the cluster is ready, and wait for its end."""
    print(cluster.ready_line(), flush=True)
    cluster.wait_ended()
    return DONE


def run_in_foreground(cluster: LocalCluster, work: Callable[[], int]) -> int:
    """Start, do ``work``, and stop when it returns or a signal comes; then leave no process behind.

    The exit status is what ``work`` returned, or 1 if start or work failed.
    """
    woken = threading.Event()
    signals: list[str] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        signals.append(signal.Signals(number).name)
        woken.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    adopt_orphans()
    _log_to_file(cluster)
    outcome = _Outcome()
    starter = threading.Thread(target=_run, args=(cluster, work, outcome, woken), name="start", daemon=True)
    starter.start()
    woken.wait()
    if signals:
        log.info("stops on %s", signals[0])
        say("stopping")
    _stop_in_time(cluster)
    return _status(cluster, outcome, interrupted=bool(signals))


@dataclass(slots=True)
class _Outcome:
    """How the work ended: with a status, or with an error."""

    status: int = DONE
    error: BaseException | None = None
    reason: str = ""
    """The error in words, taken while Spark still runs: py4j asks its JVM for them."""


def _run(cluster: LocalCluster, work: Callable[[], int], outcome: _Outcome, woken: threading.Event) -> None:
    """Start and do the work; runs on a thread of its own."""
    began = time.monotonic()
    try:
        cluster.start()
        log.info("ready after %.1f s", time.monotonic() - began)
        if not woken.is_set():
            outcome.status = work()
    except BaseException as error:
        outcome.error = error
        outcome.reason = (
            str(error) if isinstance(error, SparklogError) else f"{type(error).__name__}: {error}"
        )
        if not isinstance(error, SparklogError):
            log.error("the work in the foreground failed", exc_info=error)
    woken.set()


def _stop_in_time(cluster: LocalCluster) -> None:
    """Stop; where that does not come to its end, kill what is left rather than leave it behind."""

    def overdue() -> None:
        say(f"not stopped after {STOP_DEADLINE_S:.0f} s; killing what is left")
        sweep_run(cluster.run, grace_s=0.5)
        os._exit(1)

    timer = threading.Timer(STOP_DEADLINE_S, overdue)
    timer.daemon = True
    timer.start()
    cluster.stop()
    reap_adopted()
    timer.cancel()


def _status(cluster: LocalCluster, outcome: _Outcome, *, interrupted: bool) -> int:
    if interrupted:
        return DONE
    error = outcome.error
    if error is not None and not isinstance(error, StartInterrupted):
        say(outcome.reason)
        return FAILED
    if cluster.failure is not None:
        say(cluster.failure)
        return FAILED
    return outcome.status


def _log_to_file(cluster: LocalCluster) -> None:
    """This process's log, with the controller's, to a file."""
    path = cluster.layout.logs / "controller.log"
    handler = _LateFileHandler(path)
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(threadName)s: %(message)s",
        handlers=[handler],
        force=True,
    )
    # py4j tells of every connection that Spark's end closes.
    logging.getLogger("py4j").setLevel(logging.ERROR)
    logging.captureWarnings(True)


class _LateFileHandler(logging.FileHandler):
    """A file handler that drops records until the folder of its file exists."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, delay=True, encoding="utf-8")

    def filter(self, record: logging.LogRecord) -> Any:
        return super().filter(record) if Path(self.baseFilename).parent.is_dir() else False


def say(text: str) -> None:
    print(f"sparklog: {text}", file=sys.stderr, flush=True)
