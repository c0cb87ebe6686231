"""docs/security.md, from an open cluster to a closed one: two restarts, while idempotent producers go on."""

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from tests.pages import DOCS, Block, Person, blocks_of
from tests.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.proof, pytest.mark.timeout(900)]

TOPIC = "sales-orders"
SECTION = "From an open cluster to a closed one"
PATIENCE_S = 240


class Load:
    """Numbered records through one idempotent producer that retries, as Kafka's do, for minutes."""

    def __init__(self, first: int, **properties: str) -> None:
        self.acknowledged: list[int] = []
        self.failures: list[str] = []
        self._first = first
        self._ends = threading.Event()
        self._producer = Producer({**properties, "enable.idempotence": "true", "linger.ms": "5"})
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def wait_for_more(self) -> None:
        count = len(self.acknowledged)
        until(lambda: len(self.acknowledged) > count + 50, lambda: f"more than {count} records", PATIENCE_S)

    def end(self) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        number = self._first
        while not self._ends.is_set():
            self._producer.produce(TOPIC, str(number), partition=0, on_delivery=self._delivered)
            number += 1
            self._producer.poll(0)
            self._ends.wait(0.01)  # the rate of the load
        if self._producer.flush(PATIENCE_S):
            self.failures.append("not all is delivered")

    def _delivered(self, error: object, message: Any) -> None:
        if error is None:
            self.acknowledged.append(int(message.value()))
        else:
            self.failures.append(str(error))


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Person]:
    reader = Person(tmp_path, ".")
    yield reader
    reader.interrupt()


@pytest.fixture
def loads() -> Iterator[list[Load]]:
    begun: list[Load] = []
    yield begun
    for load in begun:
        load.end()


def servers(reader: Person, listener: int) -> str:
    """Addresses of the listener that has this place in the settings."""
    first = reader.first_port + 3 * listener
    return ",".join(f"127.0.0.1:{port}" for port in range(first, first + 3))


def of_alice(reader: Person) -> Mapping[str, str]:
    return {
        "bootstrap.servers": servers(reader, 1),
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(reader.folder / "security" / "ca.pem"),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": "of-alice",
    }


def test_two_restarts_close_a_cluster_while_producers_go_on(reader: Person, loads: list[Load]) -> None:
    opened, folder, both, users, closed, digest_alone, again, opened_nodes = (
        block for block in blocks_of(DOCS / "security.md") if block.section == SECTION
    )
    follow(reader, opened)
    reader.follow(Block("", "bash", f"sparklog topics create {TOPIC} --partitions 1 --root open"))
    loads.append(Load(0, **{"bootstrap.servers": servers(reader, 0)}))
    loads[0].wait_for_more()
    reader.follow(folder)
    reader.interrupt()
    follow(reader, both)
    loads[0].wait_for_more()
    reader.follow(users)
    loads.append(Load(1_000_000, **of_alice(reader)))
    for load in loads:
        load.wait_for_more()
    loads[0].end()
    reader.interrupt()
    follow(reader, closed)
    loads[1].wait_for_more()
    loads[1].end()
    assert [load.failures for load in loads] == [[], []]
    values = values_of_topic(reader)
    for load in loads:
        mine = [value for value in values if value // 1_000_000 == load.acknowledged[0] // 1_000_000]
        assert mine == load.acknowledged
    assert len(values) == sum(len(load.acknowledged) for load in loads)
    assert_it_is_closed(reader)
    reader.interrupt()
    reader.follow(digest_alone)
    follow(reader, again)
    assert re.search(r"[1-9]\d* nodes are opened now", reader.follow(opened_nodes))
    with stranger_in_zookeeper(reader) as zookeeper:
        zookeeper.create("/brokers/topics/anything", b"{}")


def follow(reader: Person, block: Block) -> None:
    assert block.kind == "bash instead"
    reader.follow(Block(block.section, "bash stays", block.text))


def values_of_topic(reader: Person) -> list[int]:
    words = f"""
sed "s|/PATH/TO|$PWD/security|; s|NAME|alice|; s|PASSWORD|of-alice|" security/client.properties > alice
sparklog consume --topic {TOPIC} --from-beginning --timeout-ms 15000 --root open --command-config alice"""
    return [int(line) for line in reader.follow(Block("", "bash", words)).splitlines()]


def assert_it_is_closed(reader: Person) -> None:
    """For a stranger, for alice where she has no rule, and for whoever writes to ZooKeeper."""
    stranger = f"! sparklog topics list --bootstrap-server {servers(reader, 0)} 2>&1"
    assert "sparklog: " in reader.follow(Block("", "bash", stranger))
    refused = "! sparklog topics create stock-moves --root open --command-config alice 2>&1"
    assert "AUTHORIZATION_FAILED" in reader.follow(Block("", "bash", refused))
    with stranger_in_zookeeper(reader) as zookeeper:
        for node in ("/brokers/topics/anything", "/kafka-acl/Topic/anything", "/anything"):
            with pytest.raises(NoAuthError):
                zookeeper.create(node, b"{}")


@contextmanager
def stranger_in_zookeeper(reader: Person) -> Iterator[KazooClient]:
    where = "python -c \"import json; print(json.load(open('open/cluster.json'))['zookeeper'])\""
    zookeeper = KazooClient(reader.follow(Block("", "bash", where)).strip())
    zookeeper.start()
    try:
        yield zookeeper
    finally:
        zookeeper.stop()
        zookeeper.close()
