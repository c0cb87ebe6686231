"""Apache Kafka of the line that has no ZooKeeper: three nodes, each a broker and a voter of the controllers.

Its directories are formatted before the clock runs, as an administrator does once.
"""

import secrets
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Final

from bench.clusters import BROKERS, COMMAND_TIMEOUT_S, KafkaBrokers
from bench.machine import CACHE, free_ports

LINE: Final = "4.1"
RELEASE: Final = "4.1.1"
JARS: Final = CACHE / "kafka-4.1"
LOG4J: Final = """\
<Configuration><Appenders><Console name="out"><PatternLayout pattern="%d %p %m (%c)%n"/></Console></Appenders>
<Loggers><Root level="WARN"><AppenderRef ref="out"/></Root></Loggers></Configuration>
"""


class Kraft(KafkaBrokers):
    """Its brokers' ports are those of ``Kafka``; the voters' follow them."""

    jars = JARS
    log_property = "log4j2.configurationFile"
    log_file = "log4j2.xml"

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(settings, BROKERS)
        self._voters = free_ports(BROKERS)
        (self._root / self.log_file).write_text(LOG4J)
        cluster = urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        for node in range(1, BROKERS + 1):
            self._format(node, cluster)

    def _settings_of(self, broker_id: int) -> dict[str, object]:
        voter = f"127.0.0.1:{self._voters + broker_id - 1}"
        voters = (f"{one}@127.0.0.1:{self._voters + one - 1}" for one in range(1, BROKERS + 1))
        return {
            "node.id": broker_id,
            "process.roles": "broker,controller",
            "controller.quorum.voters": ",".join(voters),
            "controller.listener.names": "VOTERS",
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port + broker_id},VOTERS://{voter}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,VOTERS:PLAINTEXT",
            **super()._settings_of(broker_id),
        }

    def _format(self, node: int, cluster: str) -> None:
        """RuntimeError with the tool's complaint if it fails."""
        arguments = ["format", "-t", cluster, "-c", str(self._write_properties(node))]
        command = [*self._command(("-Xmx256m",), "kafka.tools.StorageTool"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMMAND_TIMEOUT_S)
        if done.returncode:
            raise RuntimeError(f"the directory of node {node} is not formatted: {done.stdout}{done.stderr}")
