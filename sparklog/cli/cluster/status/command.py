"""``sparklog status``: which brokers and controllers there are, and whether partitions and disks are well."""

import argparse
import json
from functools import partial
from pathlib import Path

from sparklog.cli.cluster.status.cluster_status import look
from sparklog.cli.cluster.status.status_text import render_status
from sparklog.cli.cluster.status.status_watch import watch
from sparklog.cli.command import DONE, Command
from sparklog.cli.connect import (
    add_cluster_arguments,
    add_json_argument,
    bootstrap_servers_of,
    read_cluster_file,
    wants_json,
)
from sparklog.cli.progress import say
from sparklog.cli.served_processes import gone_processes, is_over


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cluster_arguments(parser)
    add_json_argument(parser)
    parser.add_argument("--watch", action="store_true", help="show it again and again, until Ctrl-C")


def run(arguments: argparse.Namespace) -> int:
    if arguments.watch:
        bootstrap_servers_of(arguments)  # so that options without a cluster are refused at once
        watch(partial(look, arguments), as_json=wants_json(arguments))
        return DONE
    root: Path | None = getattr(arguments, "root", None)
    if root is not None:
        _warn_of_gone_processes(root)
    status = look(arguments)
    print(json.dumps(status.as_json()) if wants_json(arguments) else render_status(status))
    return DONE


def _warn_of_gone_processes(root: Path) -> None:
    """Warn of ended processes before connecting. If all controllers are gone, ``connect`` reports that."""
    content = read_cluster_file(root)
    gone = gone_processes(content)
    if is_over(content, gone):
        return
    for process in gone:
        say(
            f"warning: process {process.pid} is gone, which served {process.role}; `sparklog start` replaces "
            f"it within seconds, else {root / 'logs'} shows why"
        )


COMMAND = Command(
    name="status",
    summary="which brokers and controllers there are, and whether partitions and disks are well",
    description="Shows every broker that has registered, with its state, and the reason where one does not "
    "serve;\nthe controller in office and its standbys; and whether partitions and disks are well.\n\n"
    "With --watch it is redrawn every two seconds, until Ctrl-C, and shows its age while nobody answers.",
    add_arguments=add_arguments,
    run=run,
    examples=(
        "sparklog status --root /tmp/sparklog",
        "sparklog status --watch --root /tmp/sparklog",
        "sparklog status --bootstrap-server 127.0.0.1:9092 --json",
    ),
)
