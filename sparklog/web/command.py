"""``sparklog page``: the page on this machine, until Ctrl-C."""

import argparse
import socket
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from sparklog.cli.command import DONE, Command
from sparklog.cli.command_config import command_config_of
from sparklog.cli.connect import add_cluster_arguments, bootstrap_servers_of, cluster_words, read_cluster_file
from sparklog.cli.signals import end_as_flag
from sparklog.cli.values import port
from sparklog.client.calls.bootstrap import Endpoint
from sparklog.model.cluster_facts import host_port
from sparklog.model.errors import SparklogError
from sparklog.web.page_app import build_app
from sparklog.web.page_settings import PageSettings
from sparklog.web.page_viewers import OneViewer
from sparklog.web.serving import PageServer
from sparklog.web.viewer import RETRY_TIMEOUT_MS, Viewer

BACKLOG: Final = 128


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cluster_arguments(parser)
    parser.add_argument(
        "--port", type=port, default=0, metavar="P", help="the page's own port; default: any free one"
    )


def run(arguments: argparse.Namespace) -> int:
    settings = PageSettings()
    viewer = _viewer(arguments)
    try:
        with end_as_flag() as ended, listening_at(settings.host, arguments.port) as listening:
            viewer.watch()
            app = build_app(OneViewer(viewer), settings)
            server = PageServer(app, is_over=lambda _: ended.is_set())
            print(f"sparklog: page: http://{host_port(*listening.getsockname()[:2])}/", flush=True)
            server.serve(listening)
    finally:
        viewer.close()
    return DONE


def _viewer(arguments: argparse.Namespace) -> Viewer:
    """A client that is not connected yet: the page also says that nobody answers."""
    config = command_config_of(arguments)
    cluster = config.client(bootstrap_servers_of(arguments), retry_timeout_ms=RETRY_TIMEOUT_MS)
    root: Path | None = getattr(arguments, "root", None)
    return Viewer(
        cluster,
        options=cluster_words(arguments),
        connector=config.connector(),
        find_controllers=tuple if root is None else partial(_controllers_of, root),
    )


def _controllers_of(root: Path) -> Sequence[Endpoint]:
    """Those of ``cluster.json``, which may have changed since; none if it cannot be read."""
    try:
        entries = read_cluster_file(root).get("controllers", [])
    except SparklogError:
        return ()
    return [Endpoint(str(entry["host"]), int(entry["port"])) for entry in entries]


def listening_at(host: str, port: int) -> socket.socket:
    """A listening socket; SparklogError names the port that is taken, or the host that is not this one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise SparklogError(
            f"the page cannot listen at {host_port(host, port)}: {error.strerror}; give another --port, "
            "or none for any free one"
        ) from error
    return listening


COMMAND = Command(
    name="page",
    summary="a page for the browser: whether the cluster is well, its records, and which reader lags",
    description="Serves a page at 127.0.0.1 until Ctrl-C, and prints its address. It only reads: it joins no "
    "group,\ncommits nothing, and names the command where something can be changed.\n\nIt also opens while "
    "nobody answers, and says so.",
    add_arguments=add_arguments,
    run=run,
    examples=(
        "sparklog page --root /tmp/sparklog",
        "sparklog page --bootstrap-server 127.0.0.1:9092 --port 8080",
    ),
)
