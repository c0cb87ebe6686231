"""The options that name a command's cluster: ``--bootstrap-server``, or ``--root`` of a local cluster."""

import argparse
import json
import shlex
from pathlib import Path
from typing import Any, Final

from sparklog.cli.command import UsageError
from sparklog.cli.command_config import (
    OPTION,
    VARIABLE,
    CommandConfig,
    add_command_config_argument,
    command_config_of,
)
from sparklog.cli.progress import patience
from sparklog.cli.served_processes import gone_processes, is_over
from sparklog.cli.values import directory
from sparklog.client.calls.bootstrap import parse_bootstrap_servers
from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import ClusterUnavailable
from sparklog.model.errors import ConfigError, SparklogError
from sparklog.network.dialing.connection import TLS_REMEDY

REACH_TIMEOUT_MS: Final = 8_000
"""The longest wait for any broker's first answer; a mistyped port always costs that long."""

RETRY_TIMEOUT_MS: Final = 20_000
"""The longest time of retries after a first answer: enough for a failover, and tolerable for a person."""

DEFAULT_PORT: Final = 9092
CLUSTER_FILE: Final = "cluster.json"


def add_cluster_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that connects to a cluster. Nested parsers may have them too."""
    parser.add_argument(
        "--bootstrap-server",
        default=argparse.SUPPRESS,
        type=_bootstrap_servers,
        metavar="HOST:PORT,...",
        help="brokers of the cluster, any one that lives will do",
    )
    parser.add_argument(
        "--root",
        default=argparse.SUPPRESS,
        type=directory,
        metavar="DIR",
        help="the DIR of a cluster that `sparklog start --root DIR` runs on this machine",
    )
    add_command_config_argument(parser)


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="one JSON object instead"
    )


def wants_json(arguments: argparse.Namespace) -> bool:
    return bool(getattr(arguments, "json", False))


def bootstrap_servers_of(arguments: argparse.Namespace) -> str:
    """The brokers that the options name; UsageError unless exactly one of the two options is given."""
    servers: str | None = getattr(arguments, "bootstrap_server", None)
    root: Path | None = getattr(arguments, "root", None)
    if (servers is None) == (root is None):
        problem = "which cluster?" if servers is None else "both --bootstrap-server and --root are given;"
        raise UsageError(
            f"{problem} give --bootstrap-server HOST:PORT, or --root DIR of a cluster started here"
        )
    if root is None:
        return servers or ""
    content = read_cluster_file(root)
    _refuse_what_is_gone(root, content)
    return str(content["bootstrap_servers"])


def cluster_words(arguments: argparse.Namespace) -> str:
    """The options that name the cluster and how to connect to it, for use in a remedy."""
    root: Path | None = getattr(arguments, "root", None)
    words = (
        f"--bootstrap-server {shlex.quote(getattr(arguments, 'bootstrap_server', 'HOST:PORT'))}"
        if root is None
        else f"--root {shlex.quote(str(root))}"
    )
    config: Path | None = getattr(arguments, "command_config", None)
    return words if config is None else f"{words} {OPTION} {shlex.quote(str(config))}"


def connect(arguments: argparse.Namespace) -> ClusterClient:
    """A client of the cluster that the options name, after its first answer. The caller closes it."""
    servers = bootstrap_servers_of(arguments)
    config = command_config_of(arguments)
    cluster = config.client(servers, retry_timeout_ms=RETRY_TIMEOUT_MS)
    try:
        with patience(f"waiting for an answer from {servers}"):
            cluster.reach(REACH_TIMEOUT_MS)
    except ClusterUnavailable as error:
        cluster.close()
        raise _with_place_of_remedy(error, config) from error
    except BaseException:
        cluster.close()
        raise
    return cluster


def _with_place_of_remedy(error: ClusterUnavailable, config: CommandConfig) -> ClusterUnavailable:
    """The error, with the place where a command takes the remedy for a port with TLS."""
    if TLS_REMEDY not in str(error):
        return error
    place = config.source or f"a file, and name it with {OPTION} or the variable {VARIABLE}"
    return ClusterUnavailable(f"{error} For a port with TLS, write {TLS_REMEDY} into {place}")


def read_cluster_file(root: Path) -> dict[str, Any]:
    """The content of ``DIR/cluster.json``, which exists while the cluster runs."""
    path = root / CLUSTER_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SparklogError(
            f"{path} is not there, so no cluster runs there, or it is not ready yet; start one with: "
            f"sparklog start --brokers 3 --root {shlex.quote(str(root))}"
        ) from None
    except (OSError, ValueError) as error:
        raise SparklogError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("bootstrap_servers"), str):
        raise SparklogError(f"{path} has no bootstrap_servers; is --root {root} a sparklog root?")
    return content


def start_words(root: Path, content: dict[str, Any]) -> str:
    """The command that starts the cluster of ``cluster.json`` again, with its ids and ports."""
    entries = content.get("brokers")
    brokers = entries if isinstance(entries, list) else []
    ids = [broker.get("id") for broker in brokers]
    words = f"sparklog start --brokers {len(brokers)}"
    if ids != list(range(1, len(ids) + 1)):
        words += f" --broker-ids {','.join(map(str, ids))}"
    if brokers and brokers[0].get("port") != DEFAULT_PORT:
        words += f" --port {brokers[0].get('port')}"
    if content.get("zookeeper") and content.get("zookeeper_pid") is None:
        words += f" --zookeeper {shlex.quote(str(content['zookeeper']))}"
    return f"{words} --root {shlex.quote(str(root))}"


def _refuse_what_is_gone(root: Path, content: dict[str, Any]) -> None:
    """SparklogError if the cluster's controllers are gone: its brokers end too, and would not answer."""
    gone = gone_processes(content)
    if is_over(content, gone):
        raise SparklogError(
            f"process {gone[0].pid} is gone, which ran the cluster of {root / CLUSTER_FILE}; "
            f"start it again with: {start_words(root, content)}"
        )


def _bootstrap_servers(text: str) -> str:
    try:
        parse_bootstrap_servers(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error).partition(": ")[2]) from None
    return text
