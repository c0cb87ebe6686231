"""Which cluster a command talks to: ``--bootstrap-server``, or ``--root`` of a cluster on this machine."""

import argparse
import json
from pathlib import Path
from typing import Final

from sparklog.cli.command import UsageError
from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import SparklogError

RETRY_TIMEOUT_MS: Final = 20_000
"""How long a command goes on trying: long enough for a failover, short enough for a person."""

CLUSTER_FILE: Final = "cluster.json"


def add_cluster_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that every command has that talks to a cluster; may be added to nested parsers too."""
    parser.add_argument(
        "--bootstrap-server",
        default=argparse.SUPPRESS,
        metavar="HOST:PORT,...",
        help="brokers of the cluster, any one that lives will do",
    )
    parser.add_argument(
        "--root",
        default=argparse.SUPPRESS,
        type=Path,
        metavar="DIR",
        help="the DIR of a cluster that `sparklog start --root DIR` runs on this machine",
    )


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="one JSON object instead"
    )


def wants_json(arguments: argparse.Namespace) -> bool:
    return bool(getattr(arguments, "json", False))


def bootstrap_servers_of(arguments: argparse.Namespace) -> str:
    """The brokers that the options name; UsageError unless exactly one of the two is given."""
    servers: str | None = getattr(arguments, "bootstrap_server", None)
    root: Path | None = getattr(arguments, "root", None)
    if (servers is None) == (root is None):
        problem = "which cluster?" if servers is None else "both --bootstrap-server and --root are given;"
        raise UsageError(
            f"{problem} give --bootstrap-server HOST:PORT, or --root DIR of a cluster started here"
        )
    return servers if root is None else str(read_cluster_file(root)["bootstrap_servers"])  # type: ignore[return-value]


def connect(arguments: argparse.Namespace) -> ClusterClient:
    """A client of the cluster that the options name; close it."""
    return ClusterClient(
        bootstrap_servers_of(arguments), client_id="sparklog-cli", retry_timeout_ms=RETRY_TIMEOUT_MS
    )


def read_cluster_file(root: Path) -> dict[str, object]:
    """``DIR/cluster.json``, which is there exactly while the cluster runs."""
    path = root / CLUSTER_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SparklogError(
            f"{path} is not there, so no cluster runs on --root {root}; start one with: "
            f"sparklog start --brokers 3 --root {root}"
        ) from None
    except (OSError, ValueError) as error:
        raise SparklogError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("bootstrap_servers"), str):
        raise SparklogError(f"{path} does not tell bootstrap_servers; is --root {root} a sparklog root?")
    return content
