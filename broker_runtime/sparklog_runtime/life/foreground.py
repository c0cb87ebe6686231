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
from types import FrameType
from typing import Final

from sparklog.cli.command import DONE, FAILED, WRONG_USAGE
from sparklog.model.errors import ConfigError, SparklogError
from sparklog_runtime.life.local_cluster import LocalCluster
from sparklog_runtime.settings.log_files import log_to_file
from sparklog_runtime.start.demo_folder import keep_from_demos
from sparklog_runtime.start.start_patience import StartInterrupted
from sparklog_runtime.stop.child_processes import adopt_orphans, reap_adopted, sweep_run
from sparklog_runtime.voice import say, say_ready

logger: Final = logging.getLogger(__name__)

STOP_DEADLINE_S: Final = 60.0

SIGNAL_POLL_S: Final = 0.1
"""Python runs signal handlers on the main thread, and a signal that the kernel gave to another thread does
not end a wait there that has no time-out. Nor may a handler set the event that it interrupts the wait for:
that takes the event's lock a second time.
"""


def serve(cluster: LocalCluster) -> int:
    """Say that the cluster is ready, and wait for its end."""
    keep_from_demos(cluster.layout.root)
    if cluster.page_url is not None:
        say(f"page: {cluster.page_url}")
    say_ready(cluster.bootstrap_servers)
    cluster.wait_ended()
    return DONE


def run_in_foreground(
    cluster: LocalCluster,
    work: Callable[[], int],
    *,
    greet: Callable[[], None] = lambda: None,
    hush: Callable[[], None] = lambda: None,
    interrupted: Callable[[int], int] = lambda number: DONE,
) -> int:
    """Start, do ``work``, and stop when it returns or a signal arrives; no process of the run remains.

    The exit status is what ``work`` returned, 1 if start or work failed, 2 if a setting kept them from it,
    and after a signal what ``interrupted`` makes of its number: for a cluster that runs until then, that is
    its proper end. ``greet`` is called first, once signals are handled, and ``hush`` before the stop: it ends
    all other output.
    """
    woken = threading.Event()
    signals: list[int] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        signals.append(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    greet()
    adopt_orphans()
    _log_to_file(cluster)
    _log_what_fails_beside(lambda: bool(signals) or woken.is_set())
    outcome = _Outcome()
    starter = threading.Thread(target=_run, args=(cluster, work, outcome, woken), name="start", daemon=True)
    starter.start()
    threading.Thread(target=_watch, args=(cluster, woken), name="watch-end", daemon=True).start()
    while not (signals or woken.wait(SIGNAL_POLL_S)):
        pass
    woken.set()
    hush()
    if signals:
        logger.info("stops on %s", signal.Signals(signals[0]).name)
        say("stopping")
    _stop_in_time(cluster)
    return interrupted(signals[0]) if signals else _status(cluster, outcome)


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
        logger.info("ready after %.1f s", time.monotonic() - began)
        if not woken.is_set():
            outcome.status = work()
    except BaseException as error:
        outcome.error = error
        outcome.reason = _words_of(error)
        if not isinstance(error, SparklogError):
            logger.error("the work in the foreground failed", exc_info=error)
    woken.set()


def _words_of(error: BaseException) -> str:
    if isinstance(error, SparklogError):
        return str(error)
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 (py4j asks the JVM for an error's words, and that may be gone by now)
        return f"{type(error).__name__}, which Spark can no longer put into words"


def _watch(cluster: LocalCluster, woken: threading.Event) -> None:
    """End the work when the cluster can no longer run, because the work may wait for it for ever."""
    cluster.wait_ended()
    woken.set()


def _stop_in_time(cluster: LocalCluster) -> None:
    """Stop; kill the processes that are left at the deadline."""

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


def _status(cluster: LocalCluster, outcome: _Outcome) -> int:
    if cluster.failure is not None:
        # The work's own error, if there is one by now, is only what followed from it.
        say(cluster.failure)
        return FAILED
    if outcome.error is not None and not isinstance(outcome.error, StartInterrupted):
        say(outcome.reason)
        return WRONG_USAGE if isinstance(outcome.error, ConfigError) else FAILED
    return outcome.status


def _log_to_file(cluster: LocalCluster) -> None:
    """This process's log, with the controller's, to a file."""
    log_to_file(cluster.layout.logs / "controller.log")
    # py4j logs every connection that the end of Spark closes.
    logging.getLogger("py4j").setLevel(logging.ERROR)


def _log_what_fails_beside(is_over: Callable[[], bool]) -> None:
    """Log errors that no thread caught, and those in finalizers. During a stop only the log gets them:
    threads that use Spark, py4j's own among them, fail then as expected.
    """
    on_thread_error, on_unraisable = threading.excepthook, sys.unraisablehook

    def log_thread_error(failed: threading.ExceptHookArgs) -> None:
        if failed.exc_value is not None:
            name = failed.thread.name if failed.thread is not None else "that is gone"
            logger.error("the thread %s failed", name, exc_info=failed.exc_value)
        if not is_over():
            on_thread_error(failed)

    def log_unraisable(failed: "sys.UnraisableHookArgs") -> None:
        if failed.exc_value is not None:
            logger.error("%s: %r", failed.err_msg or "ignored in", failed.object, exc_info=failed.exc_value)
        if not is_over():
            on_unraisable(failed)

    threading.excepthook, sys.unraisablehook = log_thread_error, log_unraisable
