"""Apache Kafka of the line that has no ZooKeeper: three nodes, each a broker and a voter of the controllers.

Its directories are formatted before the clock runs, as an administrator does once.
"""

import secrets
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench.clusters import BROKERS, COMMAND_TIMEOUT_S, KAFKA_HEAP, Kafka
from bench.machine import CACHE, free_ports

LINE: Final = "4.1"
RELEASE: Final = "4.1.1"
JARS: Final = CACHE / "kafka-4.1"
LOG4J: Final = """\
<Configuration><Appenders><Console name="out"><PatternLayout pattern="%d %p %m (%c)%n"/></Console></Appenders>
<Loggers><Root level="WARN"><AppenderRef ref="out"/></Root></Loggers></Configuration>
"""


class Kraft(Kafka):
    """Its brokers' ports are those of ``Kafka``; the voters' follow them."""

    jars = JARS

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(settings)
        self._voters = free_ports(BROKERS)
        (self._root / "log4j2.xml").write_text(LOG4J)
        cluster = urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        for node in range(1, BROKERS + 1):
            self._properties(node).write_text(self._settings_of(node))
            self._format(node, cluster)

    def _properties(self, node: int) -> Path:
        return self._root / f"broker-{node}.properties"

    def _settings_of(self, node: int) -> str:
        voters = ",".join(f"{one}@127.0.0.1:{self._voters + one - 1}" for one in range(1, BROKERS + 1))
        listeners = f"PLAINTEXT://127.0.0.1:{self._port + node},VOTERS://127.0.0.1:{self._voters + node - 1}"
        settings = {
            "node.id": node,
            "process.roles": "broker,controller",
            "controller.quorum.voters": voters,
            "controller.listener.names": "VOTERS",
            "listeners": listeners,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,VOTERS:PLAINTEXT",
            "log.dirs": self.log_directory(node),
            "auto.create.topics.enable": "false",
            **self._settings,
        }
        return "".join(f"{name}={value}\n" for name, value in settings.items())

    def _format(self, node: int, cluster: str) -> None:
        """RuntimeError with the tool's complaint if it fails."""
        arguments = ["format", "-t", cluster, "-c", str(self._properties(node))]
        command = [*self._command(("-Xmx256m",), "kafka.tools.StorageTool"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMMAND_TIMEOUT_S)
        if done.returncode:
            raise RuntimeError(f"the directory of node {node} is not formatted: {done.stdout}{done.stderr}")

    def _logging(self) -> str:
        return f"-Dlog4j2.configurationFile={self._root}/log4j2.xml"

    def start(self) -> None:
        for node in range(1, BROKERS + 1):
            self._start_broker(node)

    def _start_broker(self, broker_id: int) -> None:
        self._brokers[broker_id] = self._java(KAFKA_HEAP, "kafka.Kafka", str(self._properties(broker_id)))

    def revive(self, broker_id: int) -> None:
        self._brokers[broker_id].wait()
        self._start_broker(broker_id)

    @property
    def zookeeper(self) -> str:
        raise NotImplementedError(f"Apache Kafka {LINE} has no ZooKeeper")
