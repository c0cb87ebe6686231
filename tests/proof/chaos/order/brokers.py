"""Three brokers as processes, which can be killed and paused, with a controller in this process."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self

from sparklog.client.admin import Admin, NewTopic
from sparklog.client.cluster import ClusterClient
from sparklog.controller.controller_server import ControllerServer
from sparklog.model.ids import BrokerEpoch, BrokerId
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.settings.coordinator_settings import of_a_start
from sparklog.network.clock import SystemClock
from sparklog.zookeeper.embedded import EmbeddedZooKeeper
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper

HOST: Final = "127.0.0.1"
IDS: Final = (1, 2, 3)
TIMEOUT_S: Final = 60.0
CONTROLLER_SESSION_MS: Final = 30_000
STEP_S: Final = 0.05
BROKER: Final = Path(__file__).parents[1] / "machines" / "broker_process.py"
SETTINGS: Final = {
    "min.insync.replicas": "1",
    "log.dirs.free.min.bytes": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}


def wait_for(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {TIMEOUT_S:.0f} s still not: {what}")
        time.sleep(STEP_S)


class Brokers:
    """A context manager. ``bugs``, of ``chaos.bugs``, are in every broker. Everything is below ``root``."""

    def __init__(self, root: Path, *, session_ms: int, bugs: tuple[str, ...] = ()) -> None:
        self.session_ms: Final = session_ms
        self._root, self._bugs = root, bugs
        self._settings = of_a_start(
            {**SETTINGS, "zookeeper.session.timeout.ms": str(session_ms)}, brokers=len(IDS)
        )
        self._ports = dict(zip(IDS, _free_ports(len(IDS)), strict=True))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            server = undo.enter_context(EmbeddedZooKeeper(self._root / "zookeeper"))
            self._address = server.connect_string
            self._zookeeper = undo.enter_context(KazooZooKeeper(self._address, CONTROLLER_SESSION_MS))
            self._zookeeper.start(CONTROLLER_SESSION_MS)
            self._controller = ControllerServer(
                zookeeper=self._zookeeper,
                host=HOST,
                port=0,
                cluster_config=BrokerConfig.parse(self._settings),
                clock=SystemClock(),
                pid=os.getpid(),
                application="order",
            )
            self._controller.start()
            undo.callback(self._controller.stop)
            undo.callback(self._end_processes)
            for broker in IDS:
                self._start(broker)
            wait_for(lambda: self._registered() == set(IDS), "all brokers are registered")
            self._closing = undo.pop_all()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._closing.close()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self._ports.values())

    def create_topic(self, name: str, partitions: int) -> None:
        with ClusterClient(self.bootstrap, client_id="order") as client:
            wanted = NewTopic(name=name, partitions=partitions, replication_factor=len(IDS))
            Admin(client).create_topics([wanted])
        self.wait_in_sync(name, partitions)

    def leader_of(self, topic: str, partition: int = 0) -> int:
        return int(self._state(topic, partition).get("leader", -1))

    def wait_in_sync(self, topic: str, partitions: int) -> None:
        wait_for(
            lambda: all(len(self._state(topic, one).get("isr", ())) == len(IDS) for one in range(partitions)),
            f"all replicas of {topic} are in sync",
        )

    def kill(self, broker: int) -> None:
        """SIGKILL, which the controller is told at once, as by a supervisor."""
        epoch = self._epoch(broker)
        self._processes[broker].kill()
        self._processes[broker].wait()
        self._controller.broker_died(BrokerId(broker), BrokerEpoch(epoch))

    def revive(self, broker: int) -> None:
        self._start(broker)

    def pause(self, broker: int, seconds: float) -> None:
        """SIGSTOP, and SIGCONT so much later."""
        self._processes[broker].send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._processes[broker].send_signal(signal.SIGCONT)

    def _state(self, topic: str, partition: int) -> Mapping[str, Any]:
        node = self._zookeeper.get(f"/brokers/topics/{topic}/partitions/{partition}/state")
        return {} if node is None else json.loads(node.data)

    def _registered(self) -> set[int]:
        if self._zookeeper.exists("/brokers/ids") is None:
            return set()
        return set(map(int, self._zookeeper.children("/brokers/ids")))

    def _epoch(self, broker: int) -> int:
        node = self._zookeeper.get(f"/brokers/ids/{broker}")
        assert node is not None, f"broker {broker} is not registered"
        return node.stat.czxid

    def _start(self, broker: int) -> None:
        folder = self._root / f"broker-{broker}"
        folder.mkdir(parents=True, exist_ok=True)
        options = folder / "broker.json"
        options.write_text(
            json.dumps(
                {
                    "id": broker,
                    "host": HOST,
                    "port": self._ports[broker],
                    "log_dirs": [str(folder / "0")],
                    "zookeeper": self._address,
                    "settings": self._settings,
                    "mutant": "+".join(self._bugs),
                    "log": str(folder / "broker.log"),
                }
            )
        )
        self._processes[broker] = subprocess.Popen(
            [sys.executable, "-P", str(BROKER), str(options)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _end_processes(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
