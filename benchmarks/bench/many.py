"""What many partitions cost real brokers: creation, the loss of a broker and of the controller, memory, rest.

Topics of 100 partitions and three replicas. Ours are three broker processes, two controller candidates and a
ZooKeeper, without Spark around them; Kafka's controller is one of its brokers, so it is lost with that one.

A loss is timed from the moment when ZooKeeper ends the sessions (ours are taken away as that does it, Kafka's
are waited for) until the metadata of a living broker names a living leader for every partition.
"""

import contextlib
import json
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from confluent_kafka import ElectionType, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from bench.clusters import Kafka, Pair
from bench.control import Child
from bench.kafka_clients import quiet
from bench.machine import free_ports, memory_of, wait_until
from bench.report import PartResult, Row
from bench.scale import Scale, say
from sparklog.zookeeper.embedded import EmbeddedZooKeeper

PARTITIONS_PER_TOPIC: Final = 100
SESSION_MS: Final = 6_000
TIMEOUT_S: Final = 240.0
VICTIM: Final = 3
FEW_PARTITIONS: Final = 3
SETTLE_S: Final = 5.0
IDLE_S: Final = 20.0


class Ours:
    name = "sparklog"

    def __init__(self) -> None:
        self._closing = ExitStack()
        self._root = Path(self._closing.enter_context(tempfile.TemporaryDirectory(prefix="bench-many-")))
        self._server = self._closing.enter_context(EmbeddedZooKeeper(self._root / "zookeeper"))
        self.zookeeper = self._server.connect_string
        self._controller = self._candidate()
        port = free_ports(3)
        self._ports = {broker: port + broker for broker in (1, 2, 3)}
        self._brokers = {broker: self._broker(broker) for broker in self._ports}
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in self._ports.values())

    def _child(self, script: str, *arguments: str) -> Child:
        child = Child(script, self.zookeeper, *arguments)
        self._closing.callback(child.end)
        return child

    def _candidate(self) -> Child:
        return self._child("control_candidate.py")

    def _broker(self, broker: int) -> Child:
        settings = {"min.insync.replicas": "2", "zookeeper.session.timeout.ms": str(SESSION_MS)}
        directory, port = str(self._root / f"broker-{broker}"), str(self._ports[broker])
        return self._child("control_broker.py", str(broker), directory, port, json.dumps(settings))

    def broker_pids(self) -> dict[int, int]:
        return {broker: child.process.pid for broker, child in self._brokers.items()}

    def lose(self, zookeeper: KazooClient, *, office: bool) -> float:
        """When the sessions ended."""
        if office:
            standby = self._candidate()
            self._controller.kill()
            self._controller = standby
        self._brokers[VICTIM].kill()
        transaction = zookeeper.transaction()
        transaction.delete(f"/brokers/ids/{VICTIM}")
        if office:
            transaction.delete("/controller")
        began = time.monotonic()
        transaction.commit()
        return began

    def revive(self, broker: int) -> None:
        self._brokers[broker] = self._broker(broker)

    def stop(self) -> None:
        self._closing.close()


class Theirs:
    """Apache Kafka behind the same words."""

    name = Kafka.name

    def __init__(self) -> None:
        self._cluster = Kafka({"zookeeper.session.timeout.ms": str(SESSION_MS)})
        self._cluster.start()
        self._cluster.wait_ready()
        self.bootstrap, self.zookeeper = self._cluster.bootstrap, self._cluster.zookeeper

    def broker_pids(self) -> dict[int, int]:
        return self._cluster.broker_pids()

    def lose(self, zookeeper: KazooClient, *, office: bool) -> float:
        controller = int(json.loads(zookeeper.get("/controller")[0])["brokerid"])
        broker = next(one for one in self.broker_pids() if (one == controller) is office)
        self._cluster.kill(broker)
        path = f"/brokers/ids/{broker}"
        wait_until(lambda: zookeeper.exists(path) is None, TIMEOUT_S, f"{path} is gone", step_s=0.01)
        return time.monotonic()

    def revive(self, broker: int) -> None:
        self._cluster.revive(broker)

    def stop(self) -> None:
        self._cluster.stop()


class Measured:
    """One system through all events; ``found`` are figures by title."""

    def __init__(self, system: Ours | Theirs) -> None:
        self._system = system
        self._topics: list[str] = []
        self.found: dict[str, float] = {}
        self.cpu: dict[str, float] = {}

    def run(self, sizes: Sequence[int], topics: int) -> None:
        zookeeper = KazooClient(self._system.zookeeper)
        zookeeper.start()
        try:
            self._create(1, FEW_PARTITIONS)
            self._rest(FEW_PARTITIONS)
            self._topics.clear()
            for size in sizes:
                self._at(zookeeper, size)
            with self._event(f"creation of {topics:,} topics of one partition"):
                self._create(topics, 1)
        finally:
            zookeeper.stop()

    def _at(self, zookeeper: KazooClient, size: int) -> None:
        missing = size - PARTITIONS_PER_TOPIC * len(self._topics)
        with self._event(f"creation up to {size:,} partitions, until all are in every ISR"):
            self._create(missing // PARTITIONS_PER_TOPIC, PARTITIONS_PER_TOPIC)
        time.sleep(3)
        largest = max(memory_of([pid]).pss_mb for pid in self._system.broker_pids().values())
        self._note(f"memory of the largest broker with {size:,} partitions, PSS", largest)
        self._rest(size)
        self._lose(zookeeper, f"{size:,} partitions, a broker lost: all led again", office=False)
        self._lose(
            zookeeper, f"{size:,} partitions, controller and a broker lost: all led again", office=True
        )

    def _rest(self, size: int) -> None:
        """The brokers' CPU while no client asks for anything."""
        time.sleep(SETTLE_S)
        before = self._cpu_s()
        time.sleep(IDLE_S)
        self._note(idle_title(size), 1_000 * (self._cpu_s() - before) / IDLE_S)

    def _lose(self, zookeeper: KazooClient, title: str, *, office: bool) -> None:
        before = self._system.broker_pids()
        began = self._system.lose(zookeeper, office=office)
        broker = _the_dead(before)
        others = [server for server, one in zip(self._servers(), before, strict=True) if one != broker]
        self._wait(",".join(others), self._topics, dead=broker)
        self._note(title, time.monotonic() - began)
        back = time.monotonic()
        self._system.revive(broker)
        self._wait(self._system.bootstrap, self._topics, in_sync=3)
        self._note(title.replace("all led again", "back in every ISR"), time.monotonic() - back)
        self._hand_back()

    def _hand_back(self) -> None:
        """Preferred leaders lead, so that the next one to be lost leads a third again."""
        admin = AdminClient(quiet(self._system.bootstrap))
        admin.elect_leaders(ElectionType.PREFERRED, None).result(TIMEOUT_S)
        time.sleep(2)

    def _servers(self) -> list[str]:
        return self._system.bootstrap.split(",")

    def _create(self, count: int, partitions: int) -> None:
        names = [f"many-{partitions}-{len(self._topics) + number}" for number in range(count)]
        admin = AdminClient(quiet(self._system.bootstrap))
        topics = [NewTopic(name, partitions, 3) for name in names]
        for done in admin.create_topics(
            topics, operation_timeout=TIMEOUT_S, request_timeout=TIMEOUT_S
        ).values():
            done.result(TIMEOUT_S)
        self._wait(self._system.bootstrap, names, in_sync=3)
        self._topics += names

    def _wait(self, servers: str, topics: Sequence[str], *, dead: int = -1, in_sync: int = 0) -> None:
        """One topic after the other: asking for all of them again and again would be a load of its own."""
        admin = AdminClient(quiet(servers))
        for topic in topics:
            wait_until(lambda topic=topic: _is_led(admin, topic, dead, in_sync), TIMEOUT_S, f"{topic} is led")

    @contextlib.contextmanager
    def _event(self, title: str):  # noqa: ANN202 (a context manager)
        began, before = time.monotonic(), self._cpu_s()
        yield
        self._note(title, time.monotonic() - began)
        self.cpu[title] = self._cpu_s() - before

    def _cpu_s(self) -> float:
        """Of all brokers, so far."""
        return sum(_cpu_s(pid) for pid in self._system.broker_pids().values())

    def _note(self, title: str, value: float) -> None:
        self.found[title] = value
        say(f"partitions {self._system.name}, {title}: {value:.2f}")


def idle_title(size: int) -> str:
    return f"CPU of all idle brokers with {size:,} partitions"


def _is_led(admin: AdminClient, topic: str, dead: int, in_sync: int) -> bool:
    try:
        found = admin.list_topics(topic, timeout=10).topics[topic]
    except KafkaException:
        return False
    parts = found.partitions.values()
    return bool(parts) and all(part.leader not in (-1, dead) and len(part.isrs) >= in_sync for part in parts)


def _the_dead(pids: dict[int, int]) -> int:
    """Which of the brokers has ended."""
    return next(broker for broker, pid in pids.items() if not _is_alive(pid))


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def partitions(pair: Pair, scale: Scale) -> PartResult:
    pair.stop()  # what else runs here would be measured too
    measured: dict[str, Measured] = {}
    for kind in [Ours, Theirs] if pair.with_kafka else [Ours]:
        system = kind()
        try:
            measured[kind.name] = Measured(system)
            measured[kind.name].run(scale.real_partitions, scale.topics)
        finally:
            system.stop()
    ours, kafka = measured[Ours.name], measured.get(Theirs.name)
    rows = [
        Row(
            title,
            _unit(title),
            value,
            kafka.found[title] if kafka else None,
            more_is_better=False,
            note=_cpu_note(title, ours, kafka),
        )
        for title, value in ours.found.items()
    ]
    return PartResult(
        rows, [f"Topics of {PARTITIONS_PER_TOPIC} partitions; times of losses without the session."]
    )


def _unit(title: str) -> str:
    if title.startswith("CPU"):
        return "ms/s"
    return "MB" if "memory" in title else "s"


def _cpu_note(title: str, ours: Measured, kafka: Measured | None) -> str:
    if title.startswith("CPU"):
        few = idle_title(FEW_PARTITIONS)
        return f"{ours.found[title] / ours.found[few]:.2f} of it with {FEW_PARTITIONS}; aim at most 1.5"
    if title not in ours.cpu:
        return "aim below 250 MB with 1,000" if "memory" in title else ""
    theirs = f", Kafka's {kafka.cpu[title]:.1f} s" if kafka else ""
    return f"CPU of all brokers {ours.cpu[title]:.1f} s{theirs}"
