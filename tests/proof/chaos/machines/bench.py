"""The cluster under test: ZooKeeper, Spark's master and workers, an application with the brokers, candidates.

    ZooKeeper          one server; started again when it dies
    Spark              a standalone master and a worker for each broker; or all in one JVM (``spark="local"``)
    the application    driver, supervisor, a controller candidate; its executors are the brokers
    candidates         controllers without brokers (`--brokers 0`), so that killing one kills nothing else

Who is who is read from what the cluster writes for everybody: ``cluster.json`` and ZooKeeper's nodes.
"""

import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import ZnodeStat

from chaos.access import Access
from chaos.machines import store
from chaos.machines.places import Places, PlainPlaces
from chaos.machines.processes import Kept, is_alive, parent_of, send, sweep
from chaos.machines.secured_changes import Changing
from chaos.machines.store import Store
from chaos.nemesis import (
    APPLICATION,
    CRASH_POINTS,
    DISKS,
    EXECUTORS,
    INJECTION,
    LOGINS,
    ROOM,
    STORE,
    STORE_DISK,
    SYNCED,
    Broker,
    Controller,
)
from chaos.teams import Right
from sparklog.zookeeper.embedded import EmbeddedZooKeeper
from sparklog_runtime.start.session import spark_home

START_TIMEOUT_S = 240.0
STOP_TIMEOUT_S = 70.0
LIGHT_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
DRIVER = "driver"
REPLICAS_MAX = 3
"""Of any topic."""
STEADY_S = 1.0
_POLL_S = 0.2
_ZOOKEEPER_TIMEOUT_S = 60.0
_ANSWER_S = 3.0


@dataclass(frozen=True)
class BenchOptions:
    """What to run."""

    folder: Path
    brokers: int = 3
    spark: str = "workers"
    """``workers``: a standalone Spark with a worker for each broker; ``local``: all brokers of one JVM;
    ``none``: brokers without Spark (``bare.py``)."""
    candidates: int = 2
    session_timeout_s: float = 4.0
    settings: Mapping[str, str] = field(default_factory=dict)
    has_store: bool = False
    """A remote store, which brokers' settings name."""
    rights: Mapping[str, Sequence[Right]] | None = None
    """What each team may do on a secured cluster; None: it is open."""
    mutant: str | None = None
    """A bug that brokers without Spark have (``bugs.py``)."""


@dataclass(frozen=True)
class Replicas:
    """What ZooKeeper says about a partition."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    assigned: tuple[int, ...]


class Bench:
    """A running cluster; a context manager. See ``nemesis.Cluster`` for what faults use of it."""

    def __init__(
        self,
        options: BenchOptions,
        places: Places | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.options = options
        self.folder = options.folder
        self.places: Places = places or PlainPlaces()
        self.topics: dict[str, int] = {}
        """Topics that clients use, with their numbers of partitions."""
        self._say = say
        self._zookeeper: EmbeddedZooKeeper | None = None
        self._store: Store | None = None
        self._security: Changing | None = None
        self._zookeeper_may_run = threading.Event()
        self._leave = threading.Event()
        self._keeper: threading.Thread | None = None
        self._spark: list[Kept] = []
        self._candidates: list[Kept] = []
        self._application: Kept | None = None
        self._kazoo: KazooClient | None = None
        self._looking = threading.Lock()
        # What ZooKeeper last said, for faults that strike while it is away itself.
        self._leaders: dict[tuple[str, int], int] = {}
        self._active_pid: int | None = None

    # What faults and clients see

    @property
    def features(self) -> frozenset[str]:
        own = frozenset({APPLICATION, EXECUTORS} if self.options.spark == "workers" else {APPLICATION})
        synced = self.options.settings.get("log.flush.acks") == "fsync"
        # Nothing is preloaded into brokers that share a JVM's process tree.
        lacking = frozenset({CRASH_POINTS, INJECTION} if self.options.spark == "local" else ())
        features = own | (self.places.features - lacking) | frozenset({SYNCED} if synced else ())
        room = frozenset({ROOM} if self.options.brokers > REPLICAS_MAX else ())
        return features | room | self._features_of_store() | self._features_of_security()

    def _features_of_security(self) -> frozenset[str]:
        return frozenset({LOGINS} if self.is_secured else ())

    def _features_of_store(self) -> frozenset[str]:
        if not self.options.has_store:
            return frozenset()
        return frozenset({STORE, STORE_DISK} if DISKS in self.places.features else {STORE})

    @property
    def session_timeout_s(self) -> float:
        return self.options.session_timeout_s

    @property
    def zookeeper(self) -> str:
        assert self._zookeeper is not None, "not started"
        return self._zookeeper.connect_string

    @property
    def root(self) -> Path:
        """The application's root directory."""
        return self.folder / "cluster"

    @property
    def is_secured(self) -> bool:
        return self.options.rights is not None

    @property
    def security(self) -> Changing:
        assert self._security is not None, "the cluster is open, or not started"
        return self._security

    @property
    def access(self) -> Access:
        """How administrators connect. All brokers' addresses stay, as each keeps its port."""
        return self.security.admin if self.is_secured else Access(self._bootstrap)

    def access_of(self, team: str) -> Access:
        """How the team's clients connect; as everybody, where the cluster is open."""
        return self.security.access_of(team) if self.is_secured else Access(self._bootstrap)

    @property
    def driver_pid(self) -> int:
        assert self._application is not None, "not started"
        return self._application.pid

    def broker_ids(self) -> list[int]:
        return list(range(1, self.options.brokers + 1))

    def brokers(self) -> Mapping[int, Broker]:
        return {
            entry["id"]: Broker(
                entry["id"],
                entry["pid"],
                entry["host"],
                entry["port"],
                (self.log_dir(entry["id"]),),
            )
            for entry in self._cluster_file()["brokers"]
        }

    def log_dir(self, broker_id: int) -> Path:
        """Where its data is, as seen from outside."""
        return self.places.log_dir(self.folder, broker_id)

    def registration(self, broker_id: int) -> int | None:
        found = self._registered(broker_id)
        return None if found is None else int(found.creation_transaction_id)

    def _registered_at(self, broker_id: int) -> float | None:
        found = self._registered(broker_id)
        return None if found is None else float(found.created)

    def _registered(self, broker_id: int) -> ZnodeStat | None:
        """The broker's node; None if there is none, or ZooKeeper does not answer."""
        assert self._kazoo is not None
        with self._looking, contextlib.suppress(KazooException, KazooTimeoutError):
            return self._kazoo.exists_async(f"/brokers/ids/{broker_id}").get(timeout=_ANSWER_S)
        return None

    def launch_elsewhere(self, broker_id: int) -> int:
        raise NotImplementedError("Spark's workers have no spares")

    def executor_pid(self, broker_id: int) -> int:
        return parent_of(parent_of(self.brokers()[broker_id].pid))

    def controllers(self) -> list[Controller]:
        with contextlib.suppress(KazooException, KazooTimeoutError):
            said = self._read("/controller")
            self._active_pid = None if said is None else json.loads(said).get("pid")
        driver = self.driver_pid
        return [
            Controller(pid, pid == self._active_pid, pid == driver)
            for pid in [driver, *(candidate.pid for candidate in self._candidates)]
        ]

    def zookeeper_pid(self) -> int:
        assert self._zookeeper is not None
        pid = self._zookeeper.pid
        if pid is None:
            raise RuntimeError("ZooKeeper is not running")
        return pid

    def hold_zookeeper(self) -> None:
        """Keep it down once it has died."""
        self._zookeeper_may_run.clear()

    def release_zookeeper(self) -> None:
        self._zookeeper_may_run.set()

    @property
    def store(self) -> Store:
        assert self._store is not None, "not started"
        return self._store

    def store_pid(self) -> int:
        return self.store.kept.pid

    def hold_store(self) -> None:
        self.store.kept.hold()

    def release_store(self) -> None:
        self.store.kept.release()

    def fill_store(self) -> None:
        assert self.store.disk is not None
        self.store.disk.fill()

    def free_store(self) -> None:
        assert self.store.disk is not None
        self.store.disk.free()

    def leaders(self) -> Mapping[tuple[str, int], int]:
        with contextlib.suppress(KazooException, KazooTimeoutError):
            self._leaders = {key: found.leader for key, found in self.replicas().items() if found.leader >= 0}
        return self._leaders

    def replicas(self) -> dict[tuple[str, int], Replicas]:
        """Every partition that clients use, as ZooKeeper has it; those that it does not know are left out."""
        found = {}
        for topic, partitions in list(self.topics.items()):
            assignment = self._read(f"/brokers/topics/{topic}")
            if assignment is None:
                continue
            assigned = json.loads(assignment)["partitions"]
            for partition in range(partitions):
                state = self._read(f"/brokers/topics/{topic}/partitions/{partition}/state")
                if state is not None:
                    said = json.loads(state)
                    found[topic, partition] = Replicas(
                        said["leader"],
                        said["leader_epoch"],
                        tuple(said["isr"]),
                        tuple(assigned[str(partition)]),
                    )
        return found

    def what_is_missing(self) -> str | None:
        """Why the cluster is not whole: a broker without registration, a partition not led, an ISR short."""
        dead = [broker.id for broker in self.brokers().values() if not is_alive(broker.pid)]
        if dead:
            return f"the processes of brokers {dead} are dead"
        try:
            registered = set(map(int, self._children("/brokers/ids")))
            missing = [broker for broker in self.broker_ids() if broker not in registered]
            if missing:
                return f"brokers {missing} are not registered"
            found = self.replicas()
        except (KazooException, KazooTimeoutError) as error:
            return f"ZooKeeper does not answer: {type(error).__name__}"
        for topic, partitions in self.topics.items():
            for partition in range(partitions):
                replicas = found.get((topic, partition))
                if replicas is None or replicas.leader < 0:
                    return f"{topic}/{partition} has no leader"
                if set(replicas.isr) != set(replicas.assigned):
                    return (
                        f"{topic}/{partition} led by {replicas.leader} has ISR {sorted(replicas.isr)} "
                        f"of replicas {sorted(replicas.assigned)}"
                    )
        return None

    def wait_whole(self, timeout_s: float) -> str | None:
        """Wait until every partition is led and every ISR is full, and stays so for a moment: what has just
        happened may not have been noticed yet. What is still missing after the time.
        """
        deadline = time.monotonic() + timeout_s
        since: float | None = None
        while not self._leave.wait(_POLL_S):
            missing = self.what_is_missing()
            now = time.monotonic()
            since = None if missing is not None else now if since is None else since
            if (since is not None and now - since >= STEADY_S) or (missing is not None and now > deadline):
                break
        return missing

    def wait_replaced(self, broker_id: int, old_pid: int, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            broker = self.brokers().get(broker_id)
            if broker is not None and broker.pid != old_pid:
                return True
            time.sleep(_POLL_S)
        return False

    # Life

    def __enter__(self) -> "Bench":
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        self._start_services()
        master = self._start_spark() if self.options.spark == "workers" else None
        numbers = range(1, self.options.candidates + 1)
        self._candidates = [self._start_candidate(number, master) for number in numbers]
        self._await(lambda: self._read("/controller") is not None or not self._candidates, "a controller")
        self._start_application(master)
        self._await((self.root / "cluster.json").exists, "sparklog is ready")
        self._bootstrap = str(self._cluster_file()["bootstrap_servers"])
        self._let_in()

    def _let_in(self) -> None:
        """Make users and their rules, where there are any."""
        if self.options.rights is not None:
            self._say("the administrator makes users and rules")
            self.security.open_to(self._bootstrap, self.options.rights)

    def _start_services(self) -> None:
        """Places, and ZooKeeper in them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        sweep()
        self.places.set_up(self.folder, self.broker_ids())
        if self.is_secured:
            self._security = Changing(self.folder / "security", self._hosts())
        self._zookeeper = self.places.zookeeper(self.folder / "zookeeper")
        self._zookeeper.start()
        self._zookeeper_may_run.set()
        self._keeper = threading.Thread(target=self._keep_zookeeper, name="keep-zookeeper", daemon=True)
        self._keeper.start()
        if self.options.has_store:
            self._store = Store(
                self.folder.absolute(),
                self.places.service_address(store.NODE),
                lambda command: self.places.service_command(store.NODE, command),
                self._say,
                has_disk=DISKS in self.places.features,
                port=self.places.store_port(),
            )
        self._kazoo = KazooClient(self.zookeeper, timeout=_ZOOKEEPER_TIMEOUT_S)
        self._kazoo.start(30)

    def _hosts(self) -> list[str]:
        """At which brokers and controllers are dialled."""
        services = [DRIVER, *(f"candidate-{number}" for number in range(1, self.options.candidates + 1))]
        brokers = map(self.places.address, self.broker_ids())
        return [*brokers, *map(self.places.service_address, services)]

    def stop_application(self) -> bool:
        """End brokers and controllers in good order; whether they ended by themselves."""
        kept = [*([self._application] if self._application else []), *self._candidates]
        self._application, self._candidates = None, []
        ended = [process.stop(STOP_TIMEOUT_S) for process in kept]
        return all(ended)

    def stop(self) -> None:
        """End everything, whatever state it is in."""
        self._leave.set()
        self.release_zookeeper()
        self.stop_application()
        for process in reversed(self._spark):
            process.stop(10)
        if self._store is not None:
            self._store.stop()
        if self._kazoo is not None:
            self._kazoo.stop()
            self._kazoo.close()
        if self._keeper is not None:
            self._keeper.join()
        if self._zookeeper is not None:
            if self._zookeeper.pid is not None:
                send(self._zookeeper.pid, 18)
            self._zookeeper.stop()
        sweep(self.folder)
        self.places.tear_down()

    # Inside

    def _await(self, is_so: Callable[[], bool], what: str) -> None:
        began = told = time.monotonic()
        while not is_so():
            now = time.monotonic()
            if now - told > 10:
                told = now
                self._say(f"waiting for: {what} ({now - began:.0f} s)")
            if now - began > START_TIMEOUT_S:
                raise RuntimeError(f"not within {START_TIMEOUT_S:.0f} s: {what}; see {self.folder / 'logs'}")
            time.sleep(_POLL_S)

    def _settings(self) -> dict[str, str]:
        return {
            "zookeeper.session.timeout.ms": str(int(self.options.session_timeout_s * 1000)),
            "replica.lag.time.max.ms": "4000",
            "min.insync.replicas": "2",
            "default.replication.factor": "3",
            "auto.create.topics.enable": "false",
            "log.segment.delete.delay.ms": "5000",
            "offsets.topic.num.partitions": "5",
            "transaction.state.log.num.partitions": "5",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
            "group.initial.rebalance.delay.ms": "500",
            "replica.high.watermark.checkpoint.interval.ms": "1000",
            **(self.security.broker_settings if self.is_secured else {}),
            **self.options.settings,
        }

    def _start_spark(self) -> str:
        host, port = self.places.service_address(DRIVER), self.places.master_port()
        spark_class = str(spark_home() / "bin" / "spark-class")
        environment = {
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": LIGHT_JVM,
            # Executors that are killed over and over are no reason to give the application up, and a lost
            # connection none to keep a dead one on the books: as conf/spark-defaults.conf says.
            "SPARK_MASTER_OPTS": "-Dspark.deploy.maxExecutorRetries=-1",
            "SPARK_WORKER_OPTS": "-Dspark.rpc.askTimeout=10s",
            "PYSPARK_PYTHON": sys.executable,
        }
        own = ["--properties-file", str(self.security.write_spark_file())] if self.is_secured else []
        command = [spark_class, "org.apache.spark.deploy.master.Master", *own, "--host", host]
        command += ["--port", str(port), "--webui-port", "0"]
        local = {"SPARK_LOCAL_IP": host}
        self._run("spark-master", self.places.service_command(DRIVER, command), {**environment, **local})
        url = f"spark://{host}:{port}"
        for broker_id in self.broker_ids():
            worker = [spark_class, "org.apache.spark.deploy.worker.Worker", *own, "-c", "1", "-m", "1g"]
            worker += ["--host", self.places.address(broker_id), "--webui-port", "0"]
            worker += ["--work-dir", str(self.folder / "work" / str(broker_id)), url]
            self._run(
                f"spark-worker-{broker_id}",
                self.places.command(broker_id, worker),
                {**environment, **self._broker_environment(broker_id)},
            )
        return url

    def _broker_environment(self, broker_id: int) -> dict[str, str]:
        return {**self.places.environment(broker_id), **self._store_environment()}

    def _store_environment(self) -> Mapping[str, str]:
        return {} if self._store is None else self._store.environment

    def _run(self, name: str, command: list[str], environment: Mapping[str, str]) -> None:
        self._spark.append(Kept(name, command, self.folder, environment, self._say))

    def _start_candidate(self, number: int, master: str | None) -> Kept:
        name = f"candidate-{number}"
        command = [sys.executable, "-m", "sparklog.cli.main", "start", "--brokers", "0"]
        command += ["--root", str(self.folder / name), "--zookeeper", self.zookeeper]
        if master is not None:
            command += ["--master", master]  # tells it whether brokers are on other hosts
        settings = self._settings()
        if self.is_secured:  # a command line may name no secret, not even by a reference
            file = self.security.write_settings(settings)
            command += ["--settings", str(file)]
        else:
            command += ["-c", *(f"{name}={value}" for name, value in settings.items())]
        return Kept(name, self.places.service_command(name, command), self.folder, None, self._say)

    def _start_application(self, master: str | None) -> None:
        options = self.folder / "application.json"
        options.write_text(
            json.dumps(
                {
                    "root": str(self.root),
                    "brokers": self.options.brokers,
                    "port": self.places.broker_port,
                    "zookeeper": self.zookeeper,
                    "master": master,
                    "settings": self._settings(),
                    "spark_conf": self._spark_conf() if master else {},
                    "log_dir_patterns": [],
                    "application": "chaos",
                },
                indent=1,
            )
        )
        command = [sys.executable, "-P", str(Path(__file__).with_name("application.py")), str(options)]
        self._application = Kept(
            "application",
            self.places.service_command(DRIVER, command),
            self.folder,
            {"SPARK_LOCAL_IP": self.places.service_address(DRIVER), **self._store_environment()},
            self._say,
        )

    def _spark_conf(self) -> dict[str, str]:
        host = self.places.service_address(DRIVER)
        return {
            "spark.driver.host": host,
            "spark.driver.bindAddress": host,
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": LIGHT_JVM,
            "spark.driver.extraJavaOptions": LIGHT_JVM,
            "spark.network.timeout": "20s",
            "spark.executor.heartbeatInterval": "3s",
            "spark.network.timeoutInterval": "5s",
            **(self.security.spark_conf if self.is_secured else {}),
        }

    def _keep_zookeeper(self) -> None:
        server = self._zookeeper
        assert server is not None
        while not self._leave.wait(_POLL_S):
            if server.pid is None and self._zookeeper_may_run.wait(_POLL_S) and not self._leave.is_set():
                self._say("ZooKeeper has died; it is started again")
                server.start()

    def _cluster_file(self) -> dict[str, Any]:
        """The application's ``cluster.json``; while it is down, what it last said."""
        with contextlib.suppress(FileNotFoundError):
            self._last: dict[str, Any] = json.loads((self.root / "cluster.json").read_text())
        return self._last

    def _read(self, path: str) -> bytes | None:
        assert self._kazoo is not None
        with self._looking:
            try:
                return bytes(self._kazoo.get_async(path).get(timeout=_ANSWER_S)[0])
            except NoNodeError:
                return None

    def _children(self, path: str) -> list[str]:
        assert self._kazoo is not None
        with self._looking:
            return list(self._kazoo.get_children_async(path).get(timeout=_ANSWER_S))
