"""What tests of several parts share: one real ZooKeeper per session, and a fresh corner of it per test."""

import itertools
import threading
from collections.abc import Callable, Iterator

import pytest
from kazoo.client import KazooClient

from sparklog.testing import InProcessCluster
from sparklog.zookeeper.embedded import EmbeddedZooKeeper
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper

SESSION_TIMEOUT_MS = 6_000
START_TIMEOUT_MS = 15_000
EXPIRE_WAIT_S = 3.0
EXPIRE_ATTEMPTS_MAX = 5

_chroots = itertools.count()


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    """A running server that all tests of the session share. A test that stops one starts its own."""
    with EmbeddedZooKeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
def zookeeper_address(zookeeper_server: EmbeddedZooKeeper) -> str:
    """A connect string with a chroot that no other test uses."""
    return f"{zookeeper_server.connect_string}/test-{next(_chroots)}"


@pytest.fixture
def zookeeper(zookeeper_address: str) -> Iterator[KazooZooKeeper]:
    """A session in a chroot of its own, closed at the end."""
    with KazooZooKeeper(zookeeper_address, SESSION_TIMEOUT_MS) as client:
        client.start(START_TIMEOUT_MS)
        yield client


@pytest.fixture
def expire_session() -> Callable[[KazooZooKeeper], None]:
    """Ends somebody's session on the server, as an expiry would; returns when its owner was told.

    A second client takes the session over and closes it. The owner reconnects at once, and if it is quicker
    than the close, the session lives on: then once more.
    """

    def expire(client: KazooZooKeeper) -> None:
        expired = threading.Event()
        client.on_session(lambda event: expired.set() if event == "expired" else None)
        for _ in range(EXPIRE_ATTEMPTS_MAX):
            client.exists("/")  # waits for the connection
            thief = KazooClient(hosts=client.connect_string.partition("/")[0], client_id=client.credentials)
            thief.start(START_TIMEOUT_MS / 1000)
            thief.stop()
            thief.close()
            if expired.wait(EXPIRE_WAIT_S):
                return
        pytest.fail(
            f"the session at {client.connect_string} survived {EXPIRE_ATTEMPTS_MAX} attempts to end it"
        )

    return expire


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    """Three brokers that all tests of the session share. A test that kills one starts its own cluster."""
    with InProcessCluster(tmp_path_factory.mktemp("cluster"), zookeeper="real") as running:
        yield running
