"""The cluster that the clients talk to: ours, or Apache Kafka beside which a case in doubt is run."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, Self

import pytest

from sparklog.client.admin import Admin
from sparklog.client.cluster import ClusterClient
from sparklog.testing import InProcessCluster

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench.clusters import Kafka

from tests.appended_transactions import AppendedTransactions
from tests.clients.typed_rows import create_with_rows

WAIT_SECONDS = 60.0


class Target(Protocol):
    name: str

    @property
    def bootstrap_servers(self) -> str: ...

    def addresses(self) -> dict[int, tuple[str, int]]:
        """Where each broker is."""

    def stop_broker(self, broker_id: int) -> None:
        """In good order: its leaderships move first."""

    def kill_broker(self, broker_id: int) -> None: ...

    def revive_broker(self, broker_id: int) -> None: ...

    def log_files(self, topic: str, partition: int) -> list[Path]:
        """Segments of one replica."""

    def leader(self, topic: str, partition: int) -> int: ...

    def coordinator_partition(self, name: str) -> int: ...

    def coordinator(self, group: str) -> int:
        """The broker that coordinates the group."""

    def transaction_coordinator(self, transactional_id: str) -> int:
        """The broker that coordinates the transactional id."""

    def wait_in_sync(self, topic: str) -> None: ...

    def begin_hanging(self, topic: str, value: bytes) -> None: ...

    def create_typed(self, topic: str) -> None:
        """Create the topic of tests/clients/typed_rows.py, with its rows."""


OFFSETS_PARTITIONS = 5
"""``offsets.topic.num.partitions`` and ``transaction.state.log.num.partitions`` of the target."""


class _Described:
    """What both targets learn by our own client."""

    @staticmethod
    def coordinator_partition(name: str) -> int:
        """The partition of its internal topic that holds a group or a transactional id: Java's hash of it."""
        code = 0
        for character in name:
            code = (31 * code + ord(character)) & 0xFFFFFFFF
        signed = code - (1 << 32) if code >> 31 else code
        return abs(signed) % OFFSETS_PARTITIONS

    def coordinator(self, group: str) -> int:
        return self.leader("__consumer_offsets", self.coordinator_partition(group))

    def transaction_coordinator(self, transactional_id: str) -> int:
        return self.leader("__transaction_state", self.coordinator_partition(transactional_id))

    @property
    def bootstrap_servers(self) -> str:
        raise NotImplementedError

    def leader(self, topic: str, partition: int) -> int:
        with ClusterClient(self.bootstrap_servers) as client:
            return Admin(client).describe_topics([topic])[0].partitions[partition].leader

    def addresses(self) -> dict[int, tuple[str, int]]:
        with ClusterClient(self.bootstrap_servers) as client:
            brokers = Admin(client).describe_cluster().brokers
            return {one.id: (one.host, one.port) for one in brokers}

    def wait_in_sync(self, topic: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        with ClusterClient(self.bootstrap_servers) as client:
            while True:
                parts = Admin(client).describe_topics([topic])[0].partitions
                if all(part.leader > 0 and len(part.isr) == len(part.replicas) for part in parts):
                    return
                if time.monotonic() > deadline:
                    raise TimeoutError(f"not in sync after {WAIT_SECONDS:.0f} s: {parts}")
                time.sleep(0.05)


class SparklogTarget(_Described):
    name = "sparklog"

    def __init__(self, cluster: InProcessCluster) -> None:
        self._cluster = cluster
        self._servers = cluster.bootstrap_servers

    @property
    def bootstrap_servers(self) -> str:
        return self._servers

    def stop_broker(self, broker_id: int) -> None:
        self._cluster.shut_down(broker_id)

    def kill_broker(self, broker_id: int) -> None:
        self._cluster.kill(broker_id)

    def revive_broker(self, broker_id: int) -> None:
        self._cluster.revive(broker_id)

    def begin_hanging(self, topic: str, value: bytes) -> None:
        """Create the topic with an open transaction, of 1970, that no coordinator knows of."""
        AppendedTransactions(self._cluster, topic).write(4_000_000, value, sequence=0)

    def create_typed(self, topic: str) -> None:
        create_with_rows(self._cluster, topic)

    def log_files(self, topic: str, partition: int) -> list[Path]:
        return sorted(self._cluster.root.glob(f"broker-1/*/{topic}-{partition}/*.log"))


class KafkaTarget(_Described):
    name = "Apache Kafka"

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._kafka = Kafka({"zookeeper.session.timeout.ms": "6000", **settings})

    def __enter__(self) -> Self:
        self._kafka.start()
        self._kafka.wait_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self._kafka.stop()

    @property
    def bootstrap_servers(self) -> str:
        return self._kafka.bootstrap

    def stop_broker(self, broker_id: int) -> None:
        self._kafka.ask_to_stop(broker_id)

    def kill_broker(self, broker_id: int) -> None:
        self._kafka.kill(broker_id)

    def revive_broker(self, broker_id: int) -> None:
        self._kafka.revive(broker_id)

    def begin_hanging(self, topic: str, value: bytes) -> None:
        pytest.skip("from outside nothing hangs at Apache Kafka 3.9")

    def create_typed(self, topic: str) -> None:
        pytest.skip(f"Apache Kafka has no columns, so no {topic}")

    def log_files(self, topic: str, partition: int) -> list[Path]:
        return sorted(self._kafka.log_directory(1).glob(f"{topic}-{partition}/*.log"))
