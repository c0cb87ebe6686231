"""The driver of a cluster of its own: what ``spark-submit`` runs (``sparklog_runtime/submit.py`` calls it).

One broker runs on each executor, and stores its data there, in ``broker-N`` below each of ``log.dirs``. A
broker's identity stays with those directories: a host that has the data of broker 2 serves broker 2, wherever
Spark runs the tasks. ZooKeeper must run already (``zookeeper.connect``). This driver runs a controller
candidate; every application that hosts brokers of the cluster needs a name of its own, as replicas of a
partition are spread over applications.

The driver's own files (``cluster.json``, logs, lock) are under ``--root``.
"""

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from sparklog.cli.command import FAILED, WRONG_USAGE, Parser
from sparklog.cli.values import directory, port, positive
from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import check_broker_settings
from sparklog_runtime.commands import broker_ids
from sparklog_runtime.life.foreground import run_in_foreground, serve
from sparklog_runtime.life.local_cluster import LocalCluster
from sparklog_runtime.settings.settings_file import bad_log_dirs, read_settings_file
from sparklog_runtime.start.cluster_options import DEFAULT_PORT, ClusterOptions
from sparklog_runtime.start.reachable import master_problem_now
from sparklog_runtime.start.session import stop_context
from sparklog_runtime.stop.child_processes import die_with_parent
from sparklog_runtime.stop.jvm_shutdown import stop_before_spark
from sparklog_runtime.submission.driver_line import stop_with_submit
from sparklog_runtime.submission.entry_point import ENTRY_POINT
from sparklog_runtime.voice import Voice, say

_PARENT_POLL_S: Final = 0.5


def add_cluster_arguments(parser: argparse.ArgumentParser) -> None:
    """What ``sparklog submit`` and this program take alike."""
    add = parser.add_argument
    add("--brokers", type=positive, required=True, metavar="N", help="how many brokers to host")
    add(
        "--settings",
        type=Path,
        required=True,
        metavar="FILE",
        help="settings of brokers, with zookeeper.connect and log.dirs: server.properties of `sparklog conf`",
    )
    add("--broker-ids", type=broker_ids, metavar="1,2,3", help="the brokers' ids (default: 1..N)")
    add(
        "--port",
        type=port,
        default=DEFAULT_PORT,
        help="the first broker's port, the others follow (default: %(default)s)",
    )
    add(
        "--root",
        type=directory,
        default=Path("sparklog"),
        metavar="DIR",
        help="the driver's own files (default: ./sparklog)",
    )


def cluster_options(args: argparse.Namespace, application: str = "") -> ClusterOptions:
    """Arguments and settings file as options; ConfigError says what is missing from the file."""
    file = read_settings_file(args.settings)
    if file.zookeeper is None:
        raise ConfigError(f"{args.settings} does not say zookeeper.connect: a cluster of its own needs one")
    if not file.log_dir_patterns:
        raise bad_log_dirs(args.settings, [])
    return ClusterOptions(
        root=args.root,
        brokers=args.brokers,
        port=args.port,
        broker_ids=args.broker_ids or (),
        zookeeper=file.zookeeper,
        settings=file.settings,
        settings_file=args.settings,
        log_dir_patterns=file.log_dir_patterns,
        application=application,
    )


def _stop_with_spark() -> None:
    """Stop when spark-submit's JVM, our parent, ends: brokers end with it, and nothing is left to control.

    Until ``run_in_foreground`` handles signals there is nothing to stop, so a signal ends this process at
    once.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = os.getppid()
    die_with_parent(signal.SIGTERM)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_POLL_S)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def _application_name(context: Any) -> str:
    """What the application was called; nothing if Spark called it after the file that it runs."""
    name = str(context.appName)
    return "" if name == ENTRY_POINT.name else name


def _python_of_executors(context: Any) -> None:
    """Executors run the Python of this driver, which has sparklog, unless the user named theirs.

    PySpark would take whichever ``python3`` is the first on their path.
    """
    if not os.environ.get("PYSPARK_PYTHON"):  # Spark puts spark.pyspark.python there
        context.pythonExec = sys.executable


def run_driver(argv: Sequence[str] | None = None) -> int:
    """What ``spark-submit`` runs; returns the exit status."""
    stop_with_submit()
    _stop_with_spark()
    parser = Parser(prog="sparklog", description="brokers on the executors of Spark", allow_abbrev=False)
    add_cluster_arguments(parser)
    args = parser.parse_args(argv)
    from pyspark import SparkConf, SparkContext  # after the arguments were checked, which need no Spark

    no_master = master_problem_now(str(SparkConf().get("spark.master", "")))
    if no_master is not None:
        say(no_master)
        return FAILED
    context: Any = SparkContext.getOrCreate()
    _python_of_executors(context)
    try:
        options = cluster_options(args, _application_name(context))
        for warning in check_broker_settings(options.settings).warnings:
            say(f"warning: {warning}")
        voice = Voice()
        cluster = LocalCluster(options, progress=voice, context=context)
    except ConfigError as error:
        say(str(error))
        context.stop()
        return WRONG_USAGE
    with stop_before_spark(context):
        status = run_in_foreground(cluster, lambda: serve(cluster), hush=voice.hush)
        stop_context(context)
    return status
