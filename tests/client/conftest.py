"""Fixtures: a fake cluster over real sockets, and a client of it with short patience."""

import importlib.util
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sparklog.client.cluster import ClusterClient
from sparklog.network.dialing.connection import Connection
from sparklog.network.dialing.connector import Connector
from sparklog.network.dialing.peer_refused import TlsRefused
from sparklog.records.payload import payload
from sparklog.records.payload_kinds import PayloadKind


def load_fake_cluster() -> Any:
    """The module beside this file; test folders are no packages, so it is found by its path."""
    name = "sparklog_tests_fake_cluster"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("fake_cluster.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture
def start_fake() -> Iterator[Callable[..., Any]]:
    clusters: list[Any] = []

    def start(broker_count: int = 1, tls: Any = None) -> Any:
        clusters.append(load_fake_cluster().FakeCluster(broker_count, tls))
        return clusters[-1]

    yield start
    for cluster in clusters:
        cluster.stop()


@pytest.fixture
def client_of() -> Iterator[Callable[..., ClusterClient]]:
    clients: list[ClusterClient] = []

    def connect(fake: Any, **settings: Any) -> ClusterClient:
        settings = {"request_timeout_ms": 5_000, "retry_timeout_ms": 10_000, **settings}
        clients.append(ClusterClient(fake.bootstrap_servers, **settings))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


class Gate(Connector):
    """Dials in the clear, but for ports that refuse for good; counts how often each was dialled."""

    def __init__(self) -> None:
        super().__init__()
        self.refusing: set[int] = set()
        self.dialled: Counter[int] = Counter()

    def open(self, host: str, port: int, **terms: Any) -> Connection:
        self.dialled[port] += 1
        if port in self.refusing:
            raise TlsRefused(f"{host}:{port} does not trust this client")
        return super().open(host, port, **terms)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def batch_of() -> Callable[..., bytes]:
    """A batch of values, as a producer hands it over."""

    def build(*values: str, kind: PayloadKind = PayloadKind.RECORDS, now_ms: int = 1_000) -> bytes:
        columns = pa.record_batch({"value": pa.array([value.encode() for value in values], pa.binary())})
        return payload(kind).from_columns(columns, now_ms=now_ms)

    return build
