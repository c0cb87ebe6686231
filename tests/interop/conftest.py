"""One cluster for all clients, a driver process for each, and the table that the run writes.

make clients                                   everything, and docs/clients.md
pytest -m clients tests/interop -k kafkajs     one client
pytest -m clients tests/interop --against-kafka   the same cases upon Apache Kafka 3.9
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from sparklog.testing import InProcessCluster
from tests.interop.clients import BY_NAME, CLIENTS, HERE
from tests.interop.driver import Driver
from tests.interop.known import BY_CHANCE, OF_CLIENTS, OF_OURS
from tests.interop.table import Table
from tests.interop.targets import OFFSETS_PARTITIONS, KafkaTarget, SparklogTarget, Target

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "transaction.state.log.num.partitions": str(OFFSETS_PARTITIONS),
    "auto.create.topics.enable": "false",
    "log.cleaner.enable": "false",
}
_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--against-kafka", action="store_true", help="tests/interop: upon Apache Kafka 3.9")
    parser.addoption("--clients-table", help="tests/interop: write the table to this file")
    parser.addoption("--clients-results", help="tests/interop: keep results in this file, over several runs")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--clients-table", None) or config.getoption("--clients-results", None):
        table = Table(config.getoption("--clients-results"), config.getoption("--clients-table"))
        config.pluginmanager.register(table, "clients-table")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a case that asks for ``client`` or its driver with each client, unless the case names some.

    A file with ``IN_MAKE_TEST`` runs with these clients in ``make test``, and with all in ``make clients``.
    """
    named = any("client" in marker.args[0] for marker in metafunc.definition.iter_markers("parametrize"))
    if "client" not in metafunc.fixturenames or named:
        return
    names = [client.name for client in CLIENTS]
    in_make_test = getattr(metafunc.module, "IN_MAKE_TEST", None)
    if in_make_test is None:
        metafunc.parametrize("client", names)
    elif metafunc.config.option.markexpr == "clients":
        metafunc.parametrize("client", [pytest.param(name, marks=pytest.mark.clients) for name in names])
    else:
        metafunc.parametrize("client", in_make_test)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for (case, name), reason in (OF_CLIENTS | OF_OURS).items():
            if item.name.partition("[")[0] == f"test_{case}" and name in item.name:
                item.add_marker(pytest.mark.xfail(reason=reason, strict=reason not in BY_CHANCE))


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Three brokers, ours or Apache Kafka's."""
    with ExitStack() as closing:
        if request.config.getoption("--against-kafka"):
            yield closing.enter_context(KafkaTarget(SETTINGS))
        else:
            cluster = InProcessCluster(tmp_path_factory.mktemp("interop"), settings=SETTINGS)
            yield SparklogTarget(closing.enter_context(cluster))


@pytest.fixture(scope="session")
def start_driver(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Driver]]:
    """Starts another process of a client, at the target or at other addresses; it ends with the session at
    the latest.
    """
    logs = tmp_path_factory.mktemp("drivers")
    with ExitStack() as closing:

        def start(client: str, servers: str | None = None) -> Driver:
            one = BY_NAME[client]
            if one.why_missing is not None:
                pytest.skip(one.why_missing)
            log = logs / f"{client.replace(' ', '-')}-{next(_numbers)}.log"
            return closing.enter_context(
                Driver(one.command(), servers or target.bootstrap_servers, log, HERE)
            )

        yield start


REFERENCE: Final = "reference"
"""Its key beside those of the clients under test."""


@pytest.fixture(scope="session")
def _drivers() -> dict[str, Driver]:
    return {}


@pytest.fixture
def driver(
    client: str,
    start_driver: Callable[..., Driver],
    _drivers: dict[str, Driver],
    record_property: Callable[[str, object], None],
) -> Driver:
    """The client's process, which its cases share; a new one if the last case has lost it."""
    if client not in _drivers or not _drivers[client].is_alive:
        _drivers[client] = start_driver(client)
        if client in {one.name for one in CLIENTS}:
            record_property(client, _drivers[client].hello())
    return _drivers[client]


@pytest.fixture
def reference(start_driver: Callable[..., Driver], _drivers: dict[str, Driver]) -> Driver:
    """A client that prepares what a case needs and judges what another one did; as ``driver``, a new one if
    the last case has lost it: librdkafka crashed once, and 400 cases failed with it.
    """
    if REFERENCE not in _drivers or not _drivers[REFERENCE].is_alive:
        _drivers[REFERENCE] = start_driver("confluent-kafka")
    return _drivers[REFERENCE]


@pytest.fixture
def topic(reference: Driver) -> str:
    """A new topic with one partition and three replicas."""
    return new_topic(reference)


def new_topic(reference: Driver, partitions: int = 1, **configs: str) -> str:
    name = f"topic-{next(_numbers)}"
    reference.create_topic(topic=name, partitions=partitions, configs=configs)
    return name


@pytest.fixture
def make_topic(reference: Driver) -> Callable[..., str]:
    return lambda partitions=1, **configs: new_topic(reference, partitions, **configs)


@pytest.fixture
def group() -> str:
    return f"group-{next(_numbers)}"
