"""The commands ``sparklog start`` and ``sparklog demo``, as the command line finds them (entry points)."""

import argparse
import importlib
import logging
from pathlib import Path
from typing import Final

from sparklog.cli.command import WRONG_USAGE, Command, UsageError
from sparklog.cli.values import INT32_MAX, PORT_MAX, directory, natural, port, positive, setting
from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import check_broker_settings
from sparklog_runtime.life.foreground import run_in_foreground, serve
from sparklog_runtime.life.local_cluster import LocalCluster
from sparklog_runtime.settings.settings_check import master_problem, zookeeper_problem
from sparklog_runtime.settings.settings_file import SettingsFile, read_settings_file
from sparklog_runtime.start.cluster_options import DEFAULT_PORT, ClusterOptions
from sparklog_runtime.voice import Voice, say

logger: Final = logging.getLogger(__name__)


class _Command(Command):
    """A command that can also add itself to the parser of another program."""

    def __call__(self, subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
        parser = subparsers.add_parser(
            self.name, help=self.summary, description=self.description or self.summary
        )
        self.add_arguments(parser)
        parser.set_defaults(run=self.run)


def broker_ids(text: str) -> tuple[int, ...]:
    """Different numbers from 0 on, such as 1,2,3."""
    items = [item.strip() for item in text.split(",")]
    if not all(item.isascii() and item.isdigit() for item in items):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers from 0 on, such as 1,2,3")
    ids = tuple(int(item) for item in items)
    if len(set(ids)) != len(ids):
        raise argparse.ArgumentTypeError(f"{text!r} names a broker twice; every broker has an id of its own")
    if max(ids) > INT32_MAX:
        raise argparse.ArgumentTypeError(f"{text!r}: {max(ids)} is beyond {INT32_MAX}, the largest broker id")
    return ids


def zookeeper(text: str) -> str:
    """``HOST:PORT,HOST:PORT/chroot``, as ZooKeeper's own clients take it."""
    problem = zookeeper_problem(text)
    if problem is not None:
        raise argparse.ArgumentTypeError(problem)
    return text


def master(text: str) -> str:
    """A master URL that Spark will understand."""
    problem = master_problem(text)
    if problem is not None:
        raise argparse.ArgumentTypeError(problem)
    return text


def _add_start_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--brokers",
        type=natural,
        required=True,
        metavar="N",
        help="how many brokers; 0 runs a standby controller alone",
    )
    add("--root", type=directory, required=True, metavar="DIR", help="where everything is kept")
    add(
        "--port",
        type=port,
        default=DEFAULT_PORT,
        help="the first broker's port, the others follow; 0 takes free ones (default: %(default)s)",
    )
    add(
        "--zookeeper",
        type=zookeeper,
        metavar="HOST:PORT[/chroot]",
        help="a ZooKeeper to use (default: one of its own)",
    )
    add("--master", type=master, metavar="URL", help="the Spark master (default: local[BROKERS+2])")
    add("--broker-ids", type=broker_ids, metavar="1,2,3", help="the brokers' ids (default: 1..N)")
    add(
        "--log-dirs-per-broker",
        type=positive,
        default=1,
        metavar="N",
        help="log directories of each broker (default: %(default)s)",
    )
    add(
        "--settings",
        dest="settings_file",
        type=Path,
        metavar="FILE",
        help="settings of brokers in Kafka's format, such as the server.properties of `sparklog conf`; "
        "--zookeeper and -c go over it",
    )
    add(
        "-c",
        "--config",
        dest="settings",
        type=setting,
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="broker settings, with Kafka's names; may be repeated",
    )


def _check_together(args: argparse.Namespace) -> None:
    """Check options against each other; UsageError names them as they were typed."""
    ids: tuple[int, ...] | None = args.broker_ids
    if ids is not None and len(ids) != args.brokers:
        raise UsageError(
            f"--broker-ids {','.join(map(str, ids))} names {len(ids)}, but --brokers says {args.brokers}; "
            "give as many ids as brokers"
        )
    last = args.port + args.brokers - 1
    if args.port and last > PORT_MAX:
        raise UsageError(
            f"--port {args.port} with --brokers {args.brokers} needs ports up to {last}, but the last one "
            f"is {PORT_MAX}; choose --port {PORT_MAX - args.brokers + 1} or lower"
        )


def _options(args: argparse.Namespace) -> ClusterOptions:
    """ConfigError for a settings file that cannot be used."""
    file = SettingsFile({}, None, ())
    if args.settings_file is not None:
        file = read_settings_file(args.settings_file)
    if file.log_dir_patterns and args.log_dirs_per_broker > 1:
        raise UsageError(
            f"--log-dirs-per-broker {args.log_dirs_per_broker}: {args.settings_file} lists the directories "
            "(log.dirs); leave one of them out"
        )
    return ClusterOptions(
        root=args.root,
        brokers=args.brokers,
        port=args.port,
        broker_ids=args.broker_ids or (),
        log_dirs_per_broker=args.log_dirs_per_broker,
        zookeeper=args.zookeeper or file.zookeeper,
        master=args.master,
        settings=file.settings | dict(args.settings),
        settings_file=args.settings_file,
        settings_over_file=dict(args.settings),
        log_dir_patterns=file.log_dir_patterns,
        chooses_defaults=True,
        has_page=True,
    )


def _run_start(args: argparse.Namespace) -> int:
    try:
        _check_together(args)
        options = _options(args)
        options.check()
        for warning in check_broker_settings(options.settings).warnings:
            say(f"warning: {warning}")
        voice = Voice()
        cluster = LocalCluster(options, progress=voice)
    except (ConfigError, UsageError) as error:
        say(str(error))
        return WRONG_USAGE
    return run_in_foreground(cluster, lambda: serve(cluster), hush=voice.hush)


def _add_demo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep",
        action="store_true",
        help="leave the cluster running, and its data in place: no later demo empties the folder, and "
        "`sparklog start --brokers 3 --root DIR` goes on with it",
    )
    parser.add_argument(
        "--root", type=directory, metavar="DIR", help="where to keep everything (default: ./sparklog-demo)"
    )


def _run_demo(args: argparse.Namespace) -> int:
    demo = importlib.import_module("sparklog_runtime.demo.main_job")  # heavy, and only this command wants it
    return int(demo.run_demo(args.keep, None if args.root is None else str(args.root)))


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
