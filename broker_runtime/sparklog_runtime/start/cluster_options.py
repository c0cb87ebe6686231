"""What a cluster of this application is to be, and the Spark settings that follow from it."""

import contextlib
import ipaddress
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import check_broker_settings
from sparklog_runtime.settings.conf_files import cluster_spark_conf
from sparklog_runtime.settings.hosts_file import Hosts, read_hosts
from sparklog_runtime.settings.settings_check import check_settings, executor_cores, is_local
from sparklog_runtime.settings.settings_file import read_settings_file
from sparklog_runtime.start.cluster_folders import Layout
from sparklog_runtime.start.session import local_conf

DEFAULT_PORT: Final = 9092


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """What to run. ``zookeeper`` None runs one here; ``master`` None is ``local[brokers+2]``.

    ``port`` is the first broker's, the others follow it; 0 takes free ones.
    """

    root: Path
    brokers: int = 3
    port: int = DEFAULT_PORT
    broker_ids: tuple[int, ...] = ()
    log_dirs_per_broker: int = 1
    zookeeper: str | None = None
    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    settings_file: Path | None = None
    """Where they come from, but for ``settings_over_file``; read again for each broker that starts again."""
    settings_over_file: Mapping[str, str] = field(default_factory=dict)
    chooses_defaults: bool = False
    """Whether the replicas of topics follow from ``brokers`` where ``settings`` do not name them."""
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    ui: bool = False
    log_dir_patterns: tuple[str, ...] = ()
    """Log directories on the brokers' hosts, with ``{id}``; empty for those under ``root``."""
    has_page: bool = False
    """Whether the driver serves a page, at any free port, where ``settings`` do not name ``web.port``."""
    application: str = ""
    """Name that stays over restarts; brokers of one application count as one rack. Empty: host and root."""

    def settings_now(self) -> dict[str, str]:
        """``settings``, with the file read again; ConfigError says what is wrong with it."""
        if self.settings_file is None:
            return dict(self.settings)
        found = {**read_settings_file(self.settings_file).settings, **self.settings_over_file}
        check_broker_settings(found)
        return found

    def ids(self) -> tuple[int, ...]:
        return self.broker_ids or tuple(range(1, self.brokers + 1))

    def hosts(self) -> Hosts:
        """What the hosts file says; ConfigError if it cannot be read or used."""
        path = self.settings.get("hosts.file", "")
        return read_hosts(Path(path)) if path else {}

    def application_name(self) -> str:
        return self.application or f"{socket.gethostname()}:{Layout.at(self.root).root}"

    def spark_master(self) -> str:
        return self.master or f"local[{self.brokers + 2}]"

    def check(self) -> None:
        """Raise ConfigError for what cannot work, before anything is started."""
        ids = self.ids()
        if len(ids) != self.brokers or len(set(ids)) != len(ids):
            raise ConfigError(
                f"broker ids {','.join(map(str, ids))}: must be {self.brokers} different numbers, "
                "as many as --brokers says"
            )
        if any(broker_id < 0 for broker_id in ids):
            raise ConfigError(f"broker ids {','.join(map(str, ids))}: must not be negative")
        if self.log_dirs_per_broker < 1:
            raise ConfigError(f"log dirs per broker {self.log_dirs_per_broker}: must be at least 1")
        if self.zookeeper is None and not self.brokers:
            raise ConfigError("a standby controller needs the cluster's ZooKeeper: add --zookeeper HOST:PORT")
        check_broker_settings(self.settings)
        self.hosts()
        if self.brokers:
            # What Spark itself will say is checked again once it runs; this much is known now.
            check_settings(
                {"spark.executor.cores": "1", **self.spark_conf}, self.spark_master(), self.brokers
            )


def is_on_this_machine(master: str) -> bool:
    """Whether brokers of this Spark master run on this machine only."""
    if is_local(master) or master.startswith("local-cluster["):
        return True
    host = master.removeprefix("spark://").rpartition(":")[0]
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def default_conf(options: ClusterOptions, layout: Layout) -> dict[str, str]:
    """Spark settings of ``sparklog start`` for these options; what the user sets himself goes over them."""
    master = options.spark_master()
    conf = {**local_conf(layout, ui=options.ui), **driver_address_conf(options)}
    if is_on_this_machine(master):
        # Brokers of one executor, successors among them, are forked by one process: it imports what each
        # would import by itself.
        conf["spark.python.daemon.module"] = "sparklog_runtime.broker_process.python_daemon"
    if not is_local(master):
        conf = sized_for(options.brokers, master, {**conf, **cluster_spark_conf()})
    return conf


def driver_address_conf(options: ClusterOptions) -> dict[str, str]:
    """Where executors reach the driver: the loopback on this machine, else its address towards ZooKeeper."""
    if is_on_this_machine(options.spark_master()):
        return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return {"spark.driver.host": own_address(options.zookeeper)}


def sized_for(brokers: int, master: str, conf: Mapping[str, str]) -> dict[str, str]:
    """These settings, with as many executors as there are brokers unless they say how many there are."""
    if master == "yarn" or master.startswith("k8s://"):
        return {"spark.executor.instances": str(brokers), **conf}
    return {"spark.cores.max": str(brokers * executor_cores(conf)), **conf}


def own_address(zookeeper: str | None) -> str:
    """This host's address towards the cluster's ZooKeeper, or else towards the world.

    A cluster's network need not have a way out of it, and where it has one, that may be another interface.
    """
    servers = [] if zookeeper is None else zookeeper.partition("/")[0].split(",")
    for host in (*(server.rpartition(":")[0] for server in servers), "192.0.2.1"):
        address = _address_towards(host)
        if address is not None and not ipaddress.ip_address(address).is_loopback:
            return address
    return "127.0.0.1"


def _address_towards(host: str) -> str | None:
    """No packet is sent, but for a look-up of the name: a UDP connect only asks the routing table."""
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect((host, 9))
        except OSError:
            return None
        return str(probe.getsockname()[0])
