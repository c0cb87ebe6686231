"""The two systems under measurement, each with three brokers on this machine, behind one interface."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from kazoo.client import KazooClient

from bench.machine import CACHE, TOKEN, VARIABLE, answers, end, free_ports, launch, wait_until

BROKERS: Final = 3
START_TIMEOUT_S: Final = 400.0
"""Seconds on a quiet machine: a busy one can try a benchmark, too."""
COMMAND_TIMEOUT_S: Final = 240.0
SPARKLOG: Final = str(Path(sys.executable).with_name("sparklog"))
KAFKA_JARS: Final = CACHE / "kafka"
KAFKA_HEAP: Final = ("-Xms256m", "-Xmx1g")


class Cluster(Protocol):
    name: str
    bootstrap: str

    def start(self) -> None:
        """Launch everything; returns at once."""

    def wait_ready(self) -> None: ...

    def broker_pids(self) -> dict[int, int]: ...

    def other_pids(self) -> dict[str, int]:
        """What runs beside the brokers, by its role."""

    def kill(self, broker_id: int) -> None:
        """SIGKILL; brokers that nothing relaunches are started again after the kill was noticed."""

    def ask_to_stop(self, broker_id: int) -> None:
        """SIGTERM: the broker hands over what it leads, and ends."""

    def revive(self, broker_id: int) -> None: ...

    def stop(self) -> None: ...


class Sparklog:
    """`sparklog start`, as users run it."""

    name = "sparklog"

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        settings_file: Path | None = None,
        command: Path | str = SPARKLOG,
    ) -> None:
        self._command = str(command)
        self._settings = {"min.insync.replicas": "2", **(settings or {})}
        self._settings_file = settings_file
        self._root = Path(tempfile.mkdtemp(prefix="bench-sparklog-"))
        port = free_ports(2 * BROKERS)  # a second listener's follow those of the first
        self.bootstrap = ",".join(f"127.0.0.1:{port + index}" for index in range(BROKERS))
        self._port = port
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        (self._root / "start.log").unlink(missing_ok=True)  # an earlier start's, on the same data
        command = [self._command, "start", "--brokers", str(BROKERS)]
        command += ["--root", str(self.folder), "--port", str(self._port)]
        if self._settings_file is not None:
            command += ["--settings", str(self._settings_file)]
        given = [f"{name}={value}" for name, value in self._settings.items()]
        self._process = launch([*command, "-c", *given], self._root / "start.log")

    def wait_ready(self) -> None:
        def is_ready() -> bool:
            assert self._process is not None
            output = (self._root / "start.log").read_text()
            if self._process.poll() is not None:
                raise RuntimeError(f"sparklog start ended: {output}")
            return "sparklog is ready" in output

        wait_until(is_ready, START_TIMEOUT_S, "sparklog is ready")

    def _description(self) -> dict[str, object]:
        return json.loads((self.folder / "cluster.json").read_text())

    def run(self, *command: str, timeout_s: float = COMMAND_TIMEOUT_S) -> str:
        """What a command of ours prints about this cluster; RuntimeError with its complaint if it fails."""
        done = subprocess.run(
            [self._command, *command, "--root", str(self.folder)],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            env={**os.environ, VARIABLE: TOKEN},
        )
        if done.returncode:
            raise RuntimeError(f"sparklog {' '.join(command)}: {done.stdout[-800:]} {done.stderr[-800:]}")
        return done.stdout

    @property
    def page_url(self) -> str:
        """Where the driver serves the page."""
        return str(self._description()["controllers"][0]["web_url"]).rstrip("/")

    @property
    def folder(self) -> Path:
        """``--root``: a folder for each broker is in it."""
        return self._root / "cluster"

    @property
    def zookeeper(self) -> str:
        return str(self._description()["zookeeper"])

    def broker_pids(self) -> dict[int, int]:
        return {int(broker["id"]): int(broker["pid"]) for broker in self._description()["brokers"]}

    def other_pids(self) -> dict[str, int]:
        description = self._description()
        controller = int(description["controllers"][0]["pid"])
        named = {"controller": controller, "ZooKeeper": int(description["zookeeper_pid"])}
        for thread in Path(
            f"/proc/{controller}/task"
        ).iterdir():  # a child belongs to the thread that made it
            for pid in map(int, (thread / "children").read_text().split()):
                if pid not in named.values() and _is_java(pid):
                    named["Spark's JVM"] = pid
        return named

    def start_story(self) -> list[tuple[str, float]]:
        """Where the seconds of the start went, as the controller's log tells it."""
        story = []
        for line in (self._root / "cluster/logs/controller.log").read_text().splitlines():
            said = line.partition(": start: ")[2]
            what, _, seconds = said.rpartition(" after ")
            if what and seconds.endswith(" s"):
                story.append((what, float(seconds.removesuffix(" s"))))
        return story

    def kill(self, broker_id: int) -> None:
        os.kill(self.broker_pids()[broker_id], signal.SIGKILL)

    def ask_to_stop(self, broker_id: int) -> None:
        os.kill(self.broker_pids()[broker_id], signal.SIGTERM)

    def revive(self, broker_id: int) -> None:
        """The supervisor does."""

    def halt(self) -> None:
        """Ends in order, and keeps its data: ``start`` goes on with them."""
        if self._process is not None:
            end(self._process, START_TIMEOUT_S)

    def stop(self) -> None:
        if self._process is not None:
            end(self._process)
        shutil.rmtree(self._root, ignore_errors=True)


def _is_java(pid: int) -> bool:
    return b"java" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]


class KafkaBrokers:
    """Brokers of Apache Kafka from Maven artifacts: what is the same with ZooKeeper and without it."""

    name = "Apache Kafka"
    jars: Path
    log_property: str
    """The JVM's, which names the settings of its log: ``log_file``."""
    log_file: str

    def __init__(self, settings: Mapping[str, str] | None, brokers: int) -> None:
        """Ports follow ``_port``, the first of which is left to whoever decides on leaders."""
        self._settings = {"min.insync.replicas": "2", **(settings or {})}
        self._count = brokers
        self._root = Path(tempfile.mkdtemp(prefix="bench-kafka-"))
        self._port = free_ports(brokers + 1)
        self.bootstrap = ",".join(f"127.0.0.1:{self._port + 1 + index}" for index in range(brokers))
        self._brokers: dict[int, subprocess.Popen[str]] = {}

    @classmethod
    def is_there(cls) -> bool:
        return cls.jars.is_dir()

    def start(self) -> None:
        for broker_id in range(1, self._count + 1):
            self._start_broker(broker_id)

    def _start_broker(self, broker_id: int) -> None:
        properties = str(self._write_properties(broker_id))
        self._brokers[broker_id] = self._java(KAFKA_HEAP, "kafka.Kafka", properties)

    def _write_properties(self, broker_id: int) -> Path:
        file = self._root / f"broker-{broker_id}.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in self._settings_of(broker_id).items()))
        return file

    def _settings_of(self, broker_id: int) -> dict[str, object]:
        return {
            "log.dirs": self.log_directory(broker_id),
            "auto.create.topics.enable": "false",
            **self._settings,
        }

    def _java(self, heap: tuple[str, ...], main: str, *arguments: str) -> subprocess.Popen[str]:
        return launch([*self._command(heap, main), *arguments], self._root / "output.log")

    def _command(self, heap: tuple[str, ...], main: str) -> list[str]:
        # As Kafka's own start script sets it.
        collector = ("-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true")
        # The tests, which start a Kafka too, choose another collector for all JVMs by that variable.
        java = ("env", "-u", "JDK_JAVA_OPTIONS", "java")
        log = f"-D{self.log_property}=file:{self._root}/{self.log_file}"
        return [*java, *heap, *collector, log, "-cp", f"{self.jars}/*", main]

    def wait_ready(self) -> None:
        for offset in range(1, self._count + 1):
            wait_until(
                lambda port=self._port + offset: answers(port), START_TIMEOUT_S, "a broker of Kafka answers"
            )

    def output(self) -> str:
        """What all of it said so far."""
        return (self._root / "output.log").read_text()

    def log_directory(self, broker_id: int) -> Path:
        return self._root / f"broker-{broker_id}"

    def broker_pids(self) -> dict[int, int]:
        return {broker_id: process.pid for broker_id, process in self._brokers.items()}

    def other_pids(self) -> dict[str, int]:
        return {}

    def kill(self, broker_id: int) -> None:
        self._brokers[broker_id].kill()
        self._brokers[broker_id].wait()

    def ask_to_stop(self, broker_id: int) -> None:
        self._brokers[broker_id].terminate()

    def revive(self, broker_id: int) -> None:
        self._brokers[broker_id].wait()
        self._start_broker(broker_id)

    def stop(self) -> None:
        for process in self._brokers.values():
            process.kill()
            process.wait()
        shutil.rmtree(self._root, ignore_errors=True)


class Kafka(KafkaBrokers):
    """The last line of Apache Kafka that has a ZooKeeper, with it; settings as they come."""

    jars = KAFKA_JARS
    log_property = "log4j.configuration"
    log_file = "log4j.properties"

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        brokers: int = BROKERS,
        protocol: str = "PLAINTEXT",
    ) -> None:
        super().__init__(settings, brokers)
        self._protocol = protocol
        self._zookeeper: subprocess.Popen[str] | None = None

    def start(self) -> None:
        (self._root / self.log_file).write_text(
            "log4j.rootLogger=WARN, out\nlog4j.logger.kafka.log.LogCleaner=INFO\n"
            "log4j.appender.out=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n\n"
        )
        (self._root / "zookeeper.properties").write_text(
            f"dataDir={self._root}/zookeeper\nclientPort={self._port}\nclientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\nmaxClientCnxns=0\n"
        )
        self._zookeeper = self._java(
            ("-Xmx512m",),
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            str(self._root / "zookeeper.properties"),
        )
        wait_until(lambda: answers(self._port), START_TIMEOUT_S, "Kafka's ZooKeeper answers")
        super().start()

    def _settings_of(self, broker_id: int) -> dict[str, object]:
        return {
            "broker.id": broker_id,
            "listeners": f"{self._protocol}://127.0.0.1:{self._port + broker_id}",
            "zookeeper.connect": self.zookeeper,
            **super()._settings_of(broker_id),
        }

    @property
    def zookeeper(self) -> str:
        return f"127.0.0.1:{self._port}"

    def other_pids(self) -> dict[str, int]:
        return {} if self._zookeeper is None else {"ZooKeeper": self._zookeeper.pid}

    def revive(self, broker_id: int) -> None:
        """It does not start while its last session stands."""
        self._brokers[broker_id].wait()
        self.wait_forgotten(broker_id)
        super().revive(broker_id)

    def wait_forgotten(self, broker_id: int) -> None:
        zookeeper = KazooClient(self.zookeeper)
        zookeeper.start()
        try:
            path = f"/brokers/ids/{broker_id}"
            wait_until(lambda: zookeeper.exists(path) is None, START_TIMEOUT_S, f"{path} is gone")
        finally:
            zookeeper.stop()
            zookeeper.close()

    def stop(self) -> None:
        """Brokers first: without their ZooKeeper they would write of nothing else."""
        for broker_id in self._brokers:
            self.kill(broker_id)
        if self._zookeeper is not None:
            end(self._zookeeper)
        super().stop()


class Pair:
    """Both clusters, started when first asked for and shared by the parts of one run."""

    def __init__(self, *, kafka: type[KafkaBrokers] | None, before: Path | None = None) -> None:
        """``kafka``: the class of the other cluster; None measures our half alone. ``before``: the command of
        another checkout.
        """
        self.before = before
        self.kafka_kind: type[KafkaBrokers] = kafka or Kafka
        self.with_kafka = kafka is not None and kafka.is_there()
        self._running: dict[str, Cluster] = {}

    @property
    def ours(self) -> Sparklog:
        return self._get(Sparklog)

    @property
    def kafka(self) -> KafkaBrokers | None:
        return self._get(self.kafka_kind) if self.with_kafka else None

    def all(self) -> list[Cluster]:
        kafka = self.kafka
        return [self.ours] if kafka is None else [self.ours, kafka]

    def _get(self, kind: type) -> Cluster:
        if kind.name not in self._running:
            cluster = kind()
            self._running[kind.name] = cluster  # first, so that a failed start is cleaned up too
            cluster.start()
            cluster.wait_ready()
        return self._running[kind.name]

    def stop(self) -> None:
        for cluster in self._running.values():
            cluster.stop()
        self._running.clear()
