"""What tests of several parts share: one real ZooKeeper per session, and a fresh corner of it per test."""

import itertools
from collections.abc import Callable, Iterator

import pytest
from kazoo.client import KazooClient

from sparklog.zookeeper.embedded import EmbeddedZooKeeper
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper

SESSION_TIMEOUT_MS = 6_000
START_TIMEOUT_MS = 15_000

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
    """Ends somebody's session on the server, as an expiry would: a second client takes it over and closes."""

    def expire(client: KazooZooKeeper) -> None:
        thief = KazooClient(hosts=client.connect_string.partition("/")[0], client_id=client.credentials)
        thief.start(START_TIMEOUT_MS / 1000)
        thief.stop()
        thief.close()

    return expire
