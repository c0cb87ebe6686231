"""``sparklog submit``: brokers on the executors of a Spark cluster, from the command line."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from sparklog.cli.command import DONE, Command, UsageError
from sparklog.cli.values import setting
from sparklog.model.errors import SparklogError
from sparklog_runtime.commands import master
from sparklog_runtime.settings.settings_check import check_settings
from sparklog_runtime.start.cluster_folders import Layout, RootLock
from sparklog_runtime.start.cluster_options import ClusterOptions
from sparklog_runtime.start.reachable import master_problem_now
from sparklog_runtime.submission.driver import add_cluster_arguments, cluster_options
from sparklog_runtime.submission.driver_process import DriverProcess
from sparklog_runtime.submission.spark_command import SparkCommand, spark_command


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--master", type=master, required=True, metavar="URL", help="the Spark master, as spark://HOST:7077")
    add_cluster_arguments(parser)
    add(
        "--name",
        metavar="APPLICATION",
        help="the application's name, which stays over restarts; its brokers count as one rack "
        "(default: spark.app.name, or else this host and DIR)",
    )
    add(
        "--conf",
        dest="spark_conf",
        type=setting,
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="settings of Spark; may be repeated",
    )
    add("--dry-run", action="store_true", help="print the spark-submit command, and run nothing")


def _run(args: argparse.Namespace) -> int:
    options, command = _plan(args, os.environ)
    if args.dry_run:
        print(command)
        return DONE
    layout = Layout.at(options.root)
    # refused here, because Spark would start for seconds before the driver could say the same
    RootLock(layout).withdraw()
    problem = master_problem_now(args.master)
    if problem is not None:
        raise SparklogError(problem)
    return DriverProcess(command, layout).run()


def _plan(args: argparse.Namespace, environment: Mapping[str, str]) -> tuple[ClusterOptions, SparkCommand]:
    """Options and command; ConfigError or UsageError for what could not work."""
    conf = dict(args.spark_conf)
    if args.name is not None:
        if not args.name.strip():
            raise UsageError("--name is empty; give the application a name that stays over restarts")
        conf["spark.app.name"] = args.name
    options = replace(cluster_options(args), master=args.master)
    command = spark_command(options, args.settings, conf, environment)
    options.check()
    check_settings(command.spark_conf, args.master, options.brokers)
    return options, command


submit_command: Final = Command(
    name="submit",
    summary="start brokers on the executors of a Spark cluster",
    add_arguments=_add_arguments,
    run=_run,
    description="Run brokers on a Spark cluster, in the foreground, until Ctrl-C, SIGTERM or SIGHUP. FILE "
    "names ZooKeeper and the log directories (`sparklog conf DIR` writes one). spark-defaults.conf and "
    "log4j2.properties beside FILE are read, if they exist.",
    examples=(
        "sparklog conf conf",
        "sparklog submit --master spark://host:7077 --settings conf/server.properties --brokers 3",
    ),
)
