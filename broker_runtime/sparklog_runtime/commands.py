"""The commands ``sparklog start`` and ``sparklog demo``, as the command line finds them (entry points)."""

import argparse
import importlib
import logging
from pathlib import Path
from typing import Final

from sparklog.cli.command import WRONG_USAGE, Command
from sparklog.model.config import check_broker_settings
from sparklog.model.errors import ConfigError
from sparklog_runtime.cluster import LocalCluster
from sparklog_runtime.cluster_options import DEFAULT_PORT, ClusterOptions
from sparklog_runtime.foreground import run_in_foreground, say, serve

log = logging.getLogger(__name__)


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
    return run_in_foreground(cluster, lambda: serve(cluster))


def _add_demo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep", action="store_true", help="leave the cluster running, and its data in place"
    )
    parser.add_argument("--root", metavar="DIR", help="where to keep everything (default: ./sparklog-demo)")


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
