"""The clients under test, and how each driver is started from what scripts/clients-setup has fetched."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CACHE = Path(
    os.environ.get("SPARKLOG_CLIENTS_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sparklog-clients"
)
JAVA_RELEASES = ("2.1.1", "3.9.1", "4.1.0")
SARAMA_VERSIONS = (
    "0.9.0.0 0.10.0.0 0.10.2.0 0.11.0.0 1.0.0 1.1.0 2.0.0 2.1.0 2.2.0 2.3.0 2.4.0 2.5.0 2.6.0 2.7.0 2.8.0 "
    "3.0.0 3.1.0 3.2.0 3.3.0 3.4.0 3.5.0 3.6.0"
).split()
"""Releases of Kafka that sarama can be told to speak to. Each is another set of API versions."""


def why_missing(fetched: Path) -> str | None:
    """Why the cache lacks what scripts/clients-setup should have fetched there; None if it has it."""
    if fetched.exists():
        return None
    reason = CACHE / "missing" / fetched.name
    return reason.read_text().strip() if reason.exists() else "not fetched: run scripts/clients-setup"


@dataclass(frozen=True)
class Client:
    """A column of the table. ``needs`` is what scripts/clients-setup leaves in the cache."""

    name: str
    command: Callable[[], list[str]]
    needs: Path | None = None

    @property
    def why_missing(self) -> str | None:
        """Why the client cannot be run here, or None."""
        return None if self.needs is None else why_missing(self.needs)


def _python(driver: str, python: str = sys.executable) -> Callable[[], list[str]]:
    return lambda: [python, str(HERE / "python" / f"{driver}_driver.py")]


def _kafka_python(release: str) -> Client:
    """Each in an environment of its own, with the libraries for all codecs."""
    folder = CACHE / f"kafka-python-{release}"
    return Client(f"kafka-python {release}", _python("kafka_python", str(folder / "bin/python")), folder)


def _java(release: str) -> Client:
    folder = CACHE / f"java-{release}"
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    classes = f"{folder}/classes:{folder}/*:{HERE}/java"
    return Client(f"Java {release}", lambda: ["java", *options, "-cp", classes, "Driver"], folder / "classes")


def _go(name: str, *arguments: str) -> Client:
    binary = CACHE / "go-driver"
    return Client(name, lambda: [str(binary), *arguments], binary)


CLIENTS = (
    *map(_java, JAVA_RELEASES),
    Client("confluent-kafka", _python("confluent")),
    *map(_kafka_python, ("3", "2")),
    Client("aiokafka", _python("aiokafka")),
    _go("franz-go", "franz"),
    _go("sarama", "sarama", "3.6.0"),
    _go("kafka-go", "kafka-go"),
    Client(
        "kafkajs",
        lambda: ["node", str(CACHE / "javascript/driver.js")],
        CACHE / "javascript",
    ),
)
KAFKA_PYTHON = Client("kafka-python", _python("kafka_python"))
"""The release in our own environment, for ``make test``, which fetches nothing."""
SARAMA = tuple(_go(f"sarama as {version}", "sarama", version) for version in SARAMA_VERSIONS)
BY_NAME = {client.name: client for client in (*CLIENTS, *SARAMA, KAFKA_PYTHON)}
