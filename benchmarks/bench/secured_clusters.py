"""Clusters that speak TLS, or that ask for logins and obey access rules, and how clients reach them.

The files are those of `sparklog security init`; Apache Kafka gets the same certificates.
"""

import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.clusters import SPARKLOG, Kafka, Sparklog
from sparklog.client.cluster import ClusterClient
from sparklog.client.security.connecting import connector_of
from sparklog.client.security.user_admin import UserAdmin
from sparklog.model.settings.jaas import SCRAM_MODULE
from sparklog.model.settings.settings_text import parse_properties

USER: Final = "alice"
PASSWORD: Final = "of-alice"
MECHANISM: Final = "SCRAM-SHA-512"
ITERATIONS: Final = 8_192


@dataclass(frozen=True, slots=True)
class Access:
    """How a client reaches a cluster: properties of librdkafka, and of Java's clients, Spark and ours."""

    librdkafka: Mapping[str, object] = field(default_factory=dict)
    java: Mapping[str, str] = field(default_factory=dict)

    def spark(self) -> dict[str, str]:
        return {f"kafka.{name}": value for name, value in self.java.items()}


IN_THE_CLEAR: Final = Access()


@contextmanager
def security_files() -> Iterator[Path]:
    """A folder with an authority, certificates, and settings for brokers on this machine."""
    with tempfile.TemporaryDirectory(prefix="bench-security-") as root:
        folder = Path(root) / "security"
        made = subprocess.run(
            [SPARKLOG, "security", "init", str(folder), "--host", "localhost"],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise RuntimeError(f"sparklog security init: {made.stderr}")
        yield folder


def over_tls(files: Path) -> Access:
    trust = str(files / "ca.pem")
    return Access(
        {"security.protocol": "ssl", "ssl.ca.location": trust},
        {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": trust,
        },
    )


def as_user(files: Path) -> Access:
    """``USER`` logs in by SCRAM, over TLS."""
    tls = over_tls(files)
    login = {"sasl.username": USER, "sasl.password": PASSWORD}
    return Access(
        {**tls.librdkafka, "security.protocol": "sasl_ssl", "sasl.mechanism": MECHANISM, **login},
        {
            **tls.java,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": f'{SCRAM_MODULE} required username="{USER}" password="{PASSWORD}";',
        },
    )


def tls_cluster(kind: type[Sparklog] | type[Kafka], files: Path) -> Sparklog | Kafka:
    """Nothing but TLS, among brokers too; not started yet."""
    stores = {
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files / "ca.pem"),
    }
    if kind is Kafka:
        return Kafka(stores, protocol="SSL")
    return Sparklog({"listeners": "SSL://:0", **stores})


def secured_cluster(files: Path) -> Sparklog:
    """Ours with logins, access rules and a closed ZooKeeper; not started yet, and without users."""
    return Sparklog(settings_file=files / "server.properties")


def administrator(cluster: Sparklog, files: Path) -> ClusterClient:
    """A client of who may do everything; to be closed."""
    properties = parse_properties((files / "admin.properties").read_text())
    return ClusterClient(
        cluster.bootstrap, client_id="bench-administrator", connector=connector_of(properties)
    )


def add_user(admin: ClusterClient) -> None:
    UserAdmin(admin).set_password(USER, MECHANISM, PASSWORD, ITERATIONS)
