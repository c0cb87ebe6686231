"""``DIR/cluster.json``: where a running cluster listens and which processes serve it.

Tools and tests find brokers, and kill, pause or measure them, through this file, so every change replaces
it in one step: written to a temporary file beside it, then renamed. A reader sees the old or the new one,
never half of either. The file exists exactly while the cluster is ready; a stop removes it.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ControllerEntry:
    """A controller candidate: its process, its address, and whether it is the elected one."""

    pid: int
    host: str
    port: int
    active: bool
    metrics_port: int | None = None
    """Where it serves metrics; None if it does not, or another application has to say."""
    web_port: int | None = None
    web_url: str | None = None
    """Where its driver serves a page; None as above."""


@dataclass(frozen=True, slots=True)
class BrokerEntry:
    """A broker of this application and the process that serves it now."""

    id: int
    host: str
    port: int
    pid: int
    log_dirs: tuple[str, ...]
    metrics_port: int | None = None
    listeners: Mapping[str, str] = field(default_factory=dict)
    """``host:port`` by the name of the listener; ``host`` and ``port`` are those of the first."""


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """What ``cluster.json`` says."""

    cluster_id: str
    bootstrap_servers: str
    zookeeper: str
    zookeeper_pid: int | None
    controllers: tuple[ControllerEntry, ...]
    brokers: tuple[BrokerEntry, ...]

    def as_json(self) -> str:
        return json.dumps(
            {
                "cluster_id": self.cluster_id,
                "bootstrap_servers": self.bootstrap_servers,
                "zookeeper": self.zookeeper,
                "zookeeper_pid": self.zookeeper_pid,
                "controllers": [
                    {
                        "pid": entry.pid,
                        "host": entry.host,
                        "port": entry.port,
                        "active": entry.active,
                        "metrics_port": entry.metrics_port,
                        "web_port": entry.web_port,
                        "web_url": entry.web_url,
                    }
                    for entry in self.controllers
                ],
                "brokers": [
                    {
                        "id": entry.id,
                        "host": entry.host,
                        "port": entry.port,
                        "listeners": dict(entry.listeners),
                        "pid": entry.pid,
                        "log_dirs": list(entry.log_dirs),
                        "metrics_port": entry.metrics_port,
                    }
                    for entry in self.brokers
                ],
            },
            indent=1,
        )


def write_cluster_file(path: Path, content: ClusterFile) -> None:
    """Replace the file in one step. No fsync: after a power cut no cluster runs that it could describe."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(content.as_json() + "\n", encoding="utf-8")
    temporary.replace(path)


def remove_cluster_file(path: Path) -> None:
    path.unlink(missing_ok=True)
