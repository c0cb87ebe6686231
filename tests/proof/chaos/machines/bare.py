"""A cluster without Spark: brokers are plain processes, each on its machine. Candidates are its controllers.

It starts in seconds, and so does a broker that was killed: hundreds of windows in the time of a few dozen.
What is left out is Spark, and the supervisor with its early news of deaths: ZooKeeper's timeout tells.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from chaos.machines.bench import DRIVER, Bench
from chaos.machines.processes import Kept
from chaos.nemesis import DISKS, SPARES, SYNCED, Broker, Controller
from sparklog.authority.folder_texts import BROKERS_LISTENER, CLIENTS_LISTENER
from sparklog.model.cluster_facts import DEFAULT_LISTENER

STOP_TIMEOUT_S = 70.0
BROKER_PORT = 19_092
SPARE_PORT = 20
"""So much higher is the port of a broker's spare place."""
AMONG_BROKERS = 100
"""So much higher is the port that brokers of a secured cluster use among themselves."""


def _ports(broker_id: int) -> tuple[int, int]:
    return BROKER_PORT + broker_id, BROKER_PORT + broker_id + SPARE_PORT


class BareBench(Bench):
    """See ``Bench``."""

    _kept: dict[int, Kept]
    _lives: dict[int, int]
    """How often a broker was launched elsewhere; each time it has another disk, and the other one of its two
    ports. Clients are told of both: where no broker answers, librdkafka goes back to the addresses that it
    was started with, and a client that is started then knows no others.
    """

    @property
    def features(self) -> frozenset[str]:
        own = {SYNCED} if self.options.settings.get("log.flush.acks") == "fsync" else set()
        if DISKS not in self.places.features:  # a disk for each broker; a second one would be nobody's
            own.add(SPARES)
        return self.places.features | own | self._features_of_store() | self._features_of_security()

    def brokers(self) -> Mapping[int, Broker]:
        return {
            broker_id: Broker(
                broker_id,
                kept.pid,
                self.places.address(broker_id),
                self._port(broker_id),
                (self.log_dir(broker_id),),
            )
            for broker_id, kept in self._kept.items()
        }

    def what_is_missing(self) -> str | None:
        """ZooKeeper keeps the registration of a killed broker for a while: that of its process counts."""
        launched_at = {broker_id: kept.launched_at for broker_id, kept in self._kept.items()}
        missing = super().what_is_missing()
        if missing is not None:
            return missing
        for broker_id, at in launched_at.items():
            registered_at = self._registered_at(broker_id)
            if registered_at is None or registered_at < at:
                return f"broker {broker_id} has not registered since its process was started"
        return None

    def log_dir(self, broker_id: int) -> Path:
        life = self._lives.get(broker_id, 0)
        if life:
            return self.root / f"broker-{broker_id}" / str(life)
        return super().log_dir(broker_id)

    def launch_elsewhere(self, broker_id: int) -> int:
        first = self._kept[broker_id]
        first.let_go()
        self._lives[broker_id] = self._lives.get(broker_id, 0) + 1
        self._kept[broker_id] = self._start_broker(broker_id)
        return first.pid

    def executor_pid(self, broker_id: int) -> int:
        raise NotImplementedError("there are no executors")

    def controllers(self) -> list[Controller]:
        active = self._read("/controller")
        active_pid = None if active is None else json.loads(active).get("pid")
        return [Controller(one.pid, one.pid == active_pid, False) for one in self._candidates]

    def stop_application(self) -> bool:
        """Brokers first, while there is a controller to help them."""
        kept, self._kept = [*self._kept.values(), *self._candidates], {}
        self._candidates = []
        ended = [process.stop(STOP_TIMEOUT_S) for process in kept]
        return all(ended)

    def _start(self) -> None:
        self._kept, self._lives = {}, {}
        self._start_services()
        # The address of a master that nobody calls tells candidates that brokers are on other hosts.
        master = f"spark://{self.places.service_address(DRIVER)}:7077"
        numbers = range(1, self.options.candidates + 1)
        self._candidates = [self._start_candidate(number, master) for number in numbers]
        for broker_id in self.broker_ids():
            self._kept[broker_id] = self._start_broker(broker_id)
        self._await(lambda: self.what_is_missing() is None, "all brokers")
        self._bootstrap = ",".join(
            f"{one.host}:{port}" for one in self.brokers().values() for port in _ports(one.id)
        )
        self._let_in()

    def _port(self, broker_id: int) -> int:
        return _ports(broker_id)[self._lives.get(broker_id, 0) % 2]

    def _ports(self, broker_id: int) -> Mapping[str, int]:
        """By listener."""
        port = self._port(broker_id)
        if self.is_secured:
            return {CLIENTS_LISTENER: port, BROKERS_LISTENER: port + AMONG_BROKERS}
        return {DEFAULT_LISTENER: port}

    def _start_broker(self, broker_id: int) -> Kept:
        folder = self.root / f"broker-{broker_id}"
        folder.mkdir(parents=True, exist_ok=True)
        (self.root / "logs").mkdir(exist_ok=True)
        options = folder / "broker.json"
        options.write_text(
            json.dumps(
                {
                    "id": broker_id,
                    "host": self.places.address(broker_id),
                    "ports": self._ports(broker_id),
                    "log_dirs": [str(folder / str(self._lives.get(broker_id, 0)))],
                    "zookeeper": self.zookeeper,
                    "settings": self._settings(),
                    "mutant": self.options.mutant,
                    "log": str(self.root / "logs" / f"broker-{broker_id}.log"),
                },
                indent=1,
            )
        )
        command = [sys.executable, str(Path(__file__).with_name("broker_process.py")), str(options)]
        return Kept(
            f"broker-{broker_id}",
            self.places.command(broker_id, command),
            self.folder,
            self._broker_environment(broker_id),
            self._say,
        )
