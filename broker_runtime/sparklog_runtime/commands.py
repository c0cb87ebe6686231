"""The commands ``sparklog start`` and ``sparklog demo``, as the command line finds them (entry points).

``start`` runs in the foreground: the cluster is started on a thread, so that the main thread, where signals
arrive, does nothing but wait for the first of: ready, failed, asked to stop.
"""

import argparse
import importlib
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any, Final

from sparklog.cli.command import DONE, FAILED, WRONG_USAGE, Command
from sparklog.model.config import check_broker_settings
from sparklog.model.errors import ConfigError, SparklogError
from sparklog_runtime.cluster import LocalCluster, StartInterrupted
from sparklog_runtime.cluster_options import DEFAULT_PORT, ClusterOptions
from sparklog_runtime.processes import adopt_orphans, reap_adopted, sweep_run

log = logging.getLogger(__name__)

STOP_DEADLINE_S: Final = 60.0


class _Command(Command):
    """A command that can also add itself to a parser, for whoever assembles a program of their own."""

    def __call__(self, subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
        parser = subparsers.add_parser(
            self.name, help=self.summary, description=self.description or self.summary
        )
        self.add_arguments(parser)
        parser.set_defaults(run=self.run)


def _key_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form key=value")
    return key.strip(), value


def broker_ids(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(item) for item in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers such as 1,2,3") from None


def natural(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return value


def _add_start_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--brokers",
        type=natural,
        required=True,
        metavar="N",
        help="how many brokers; 0 runs a standby controller alone",
    )
    add("--root", type=Path, required=True, metavar="DIR", help="where everything is kept")
    add(
        "--port",
        type=natural,
        default=DEFAULT_PORT,
        help="the first broker's port, the others follow; 0 takes free ones (default: %(default)s)",
    )
    add("--zookeeper", metavar="HOST:PORT[/chroot]", help="a ZooKeeper to use (default: one of its own)")
    add("--master", metavar="URL", help="the Spark master (default: local[BROKERS+2])")
    add("--broker-ids", type=broker_ids, metavar="1,2,3", help="the brokers' ids (default: 1..N)")
    add(
        "--log-dirs-per-broker",
        type=natural,
        default=1,
        metavar="N",
        help="log directories of each broker (default: %(default)s)",
    )
    add("-c", "--config", dest="settings", type=_key_value, action="append", default=[], metavar="KEY=VALUE",
        help="a broker setting, with Kafka's name; may be repeated")  # fmt: skip


def _options(args: argparse.Namespace) -> ClusterOptions:
    return ClusterOptions(
        root=args.root,
        brokers=args.brokers,
        port=args.port,
        broker_ids=args.broker_ids or (),
        log_dirs_per_broker=args.log_dirs_per_broker,
        zookeeper=args.zookeeper,
        master=args.master,
        settings=dict(args.settings),
    )


def _run_start(args: argparse.Namespace) -> int:
    try:
        options = _options(args)
        options.check()
        for warning in check_broker_settings(options.settings).warnings:
            say(f"warning: {warning}")
        cluster = LocalCluster(options, progress=say)
    except ConfigError as error:
        say(str(error))
        return WRONG_USAGE
    return run_in_foreground(cluster)


def run_in_foreground(cluster: LocalCluster) -> int:
    """Start, say so, and run until a signal or a failure; then leave no process behind."""
    woken = threading.Event()
    signals: list[str] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        signals.append(signal.Signals(number).name)
        woken.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    adopt_orphans()
    _log_to_file(cluster)
    errors: list[BaseException] = []
    starter = threading.Thread(target=_start, args=(cluster, errors, woken), name="start", daemon=True)
    starter.start()
    woken.wait()
    if signals:
        log.info("stops on %s", signals[0])
        say("stopping")
    _stop_in_time(cluster)
    return _status(cluster, errors, interrupted=bool(signals))


def _start(cluster: LocalCluster, errors: list[BaseException], woken: threading.Event) -> None:
    """Start and wait for the end; runs on a thread of its own."""
    began = time.monotonic()
    try:
        cluster.start()
        log.info("ready after %.1f s", time.monotonic() - began)
        print(cluster.ready_line(), flush=True)
        cluster.wait_ended()
    except BaseException as error:  # noqa: BLE001 (the main thread tells it)
        errors.append(error)
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


def _status(cluster: LocalCluster, errors: list[BaseException], *, interrupted: bool) -> int:
    for error in errors:
        if isinstance(error, StartInterrupted) or interrupted:
            continue
        if not isinstance(error, SparklogError):
            log.error("the start failed", exc_info=error)
        say(str(error) if isinstance(error, SparklogError) else f"{type(error).__name__}: {error}")
        return FAILED
    if cluster.failure is not None and not interrupted:
        say(cluster.failure)
        return FAILED
    return DONE


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


def _add_demo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep", action="store_true", help="leave the cluster running, and its data in place"
    )
    parser.add_argument(
        "--root", metavar="DIR", help="where to keep everything (default: a temporary directory)"
    )


def _run_demo(args: argparse.Namespace) -> int:
    demo = importlib.import_module("sparklog_runtime.demo")  # heavy, and only this command wants it
    return int(demo.run_demo(args.keep, args.root))


start_command: Final = _Command(
    name="start",
    summary="start brokers in a Spark application on this machine",
    add_arguments=_add_start_arguments,
    run=_run_start,
    description="Run brokers in the foreground until Ctrl-C or SIGTERM. A second start on the same directory "
    "finds all data again.",
    examples=(
        "sparklog start --brokers 3 --root /tmp/cluster",
        "sparklog start --brokers 2 --broker-ids 4,5 --root /tmp/more --port 9192 --zookeeper 127.0.0.1:2181",
    ),
)

demo_command: Final = _Command(
    name="demo",
    summary="run the README's main job through three replicated brokers",
    add_arguments=_add_demo_arguments,
    run=_run_demo,
)
