"""The secured cluster of this room, and a process of each client that goes on from user to user."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.interop.clients import BY_NAME, HERE
from tests.interop.conftest import SETTINGS
from tests.interop.driver import Driver
from tests.interop.security.secured import LOGINS, SecuredCluster, Security, secured_cluster

Connect = Callable[..., Driver]


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with secured_cluster(tmp_path_factory.mktemp("secured"), SETTINGS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def drivers_of_secured(
    secured: SecuredCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Connect]:
    """The process of a client; it ends with the file: some clients try what was refused again for ever."""
    logs, running = tmp_path_factory.mktemp("drivers"), dict[str, Driver]()
    with ExitStack() as closing:

        def of(client: str) -> Driver:
            one = BY_NAME[client]
            if one.why_missing is not None:
                pytest.skip(one.why_missing)
            if client not in running or not running[client].is_alive:
                log = logs / f"{client.replace(' ', '-')}.log"
                started = Driver(one.command(), secured.servers(), log, HERE)
                running[client] = closing.enter_context(started)
            return running[client]

        yield of


@pytest.fixture
def connect(secured: SecuredCluster, drivers_of_secured: Connect, client: str) -> Connect:
    """The client under test, from now on at a listener as a user."""

    def as_user(security: Security, listener: str = LOGINS) -> Driver:
        driver = drivers_of_secured(client)
        driver.connect(servers=secured.servers(listener), security=security)
        return driver

    return as_user
