"""A cluster of its own: the program that ``spark-submit`` runs.

    spark-submit --master spark://HOST:7077 --properties-file conf/spark-defaults.conf \\
        .../sparklog_runtime/submit.py --brokers 3 --settings conf/server.properties

Spark gives executors on the workers' hosts, one broker goes onto each, and what a broker stores lies under
the log roots of its host (``log.dirs``), in ``broker-N``. A broker's identity stays with those directories:
wherever its task lands next, a host that has the data of broker 2 serves broker 2. ZooKeeper is one that
exists already (``zookeeper.connect``). This driver runs a controller candidate; give every application that
hosts brokers of the cluster a name of its own, as replicas of a partition are spread over applications.

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

from sparklog.cli.command import WRONG_USAGE
from sparklog.cli.values import natural
from sparklog.model.config import check_broker_settings
from sparklog.model.errors import ConfigError
from sparklog_runtime.cluster import LocalCluster
from sparklog_runtime.cluster_options import DEFAULT_PORT, ClusterOptions
from sparklog_runtime.commands import broker_ids
from sparklog_runtime.foreground import Voice, run_in_foreground, say, serve
from sparklog_runtime.processes import die_with_parent
from sparklog_runtime.properties import read_properties

_PARENT_POLL_S: Final = 0.5


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="submit.py", description="brokers of a cluster of its own")
    add = parser.add_argument
    add("--brokers", type=natural, required=True, metavar="N", help="how many brokers to host")
    add("--settings", type=Path, required=True, metavar="FILE", help="settings, like conf/server.properties")
    add("--broker-ids", type=broker_ids, metavar="1,2,3", help="the brokers' ids (default: 1..N)")
    add(
        "--port",
        type=natural,
        default=DEFAULT_PORT,
        help="the first broker's port, the others follow (default: %(default)s)",
    )
    add(
        "--root",
        type=Path,
        default=Path("sparklog"),
        metavar="DIR",
        help="the driver's own files (default: ./sparklog)",
    )
    return parser


def cluster_options(args: argparse.Namespace, application: str) -> ClusterOptions:
    """Arguments and settings file as options; ConfigError says what is missing from the file."""
    settings = read_properties(args.settings)
    zookeeper = settings.pop("zookeeper.connect", "")
    roots = [root.strip() for root in settings.pop("log.dirs", "").split(",") if root.strip()]
    if not zookeeper:
        raise ConfigError(f"{args.settings} does not say zookeeper.connect: a cluster of its own needs one")
    if not roots or not all(root.startswith("/") for root in roots):
        raise ConfigError(
            f"{args.settings}: log.dirs={','.join(roots)} must list absolute directories on the brokers' "
            "hosts; an executor's working directory is deleted with it"
        )
    return ClusterOptions(
        root=args.root,
        brokers=args.brokers,
        port=args.port,
        broker_ids=args.broker_ids or (),
        zookeeper=zookeeper,
        settings=settings,
        log_dir_patterns=tuple(_pattern(root) for root in roots),
        application=application,
    )


def _pattern(root: str) -> str:
    return root.rstrip("/").replace("{", "{{").replace("}", "}}") + "/broker-{id}"


def _stop_with_spark() -> None:
    """Stop when spark-submit's JVM, our parent, ends; a driver without Spark would be a ghost."""
    parent = os.getppid()
    die_with_parent(signal.SIGTERM)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_POLL_S)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def main(argv: Sequence[str] | None = None) -> int:
    """What ``spark-submit`` runs; returns the exit status."""
    args = _parser().parse_args(argv)
    from pyspark import SparkContext

    context: Any = SparkContext.getOrCreate()
    try:
        options = cluster_options(args, str(context.appName))
        for warning in check_broker_settings(options.settings).warnings:
            say(f"warning: {warning}")
        voice = Voice()
        cluster = LocalCluster(options, progress=voice, context=context)
    except ConfigError as error:
        say(str(error))
        context.stop()
        return WRONG_USAGE
    _stop_with_spark()
    status = run_in_foreground(cluster, lambda: serve(cluster), hush=voice.hush)
    context.stop()
    return status


if __name__ == "__main__":
    sys.exit(main())
