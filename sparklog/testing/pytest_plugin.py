"""A cluster for each test, or for all of them: the pytest fixture ``sparklog_cluster``.

pytest finds this module by itself where sparklog is installed. What the fixture gives is an
``InProcessCluster`` that has started. Settings, in ``pytest.ini`` or ``[tool.pytest.ini_options]``:

    sparklog_cluster_scope = function        or class, module, package, session
    sparklog_cluster_brokers = 3
    sparklog_cluster_zookeeper = memory      or real; --sparklog-zookeeper on the command line goes first
    sparklog_cluster_secure = false          or true
    sparklog_cluster_settings =              brokers' settings, one a line
        min.insync.replicas=2

A test that needs something else has ``InProcessCluster`` as a context manager. Nothing of sparklog is
imported before a test asks for the fixture.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import pytest

if TYPE_CHECKING:
    from sparklog.testing.cluster import InProcessCluster

Scope = Literal["session", "package", "module", "class", "function"]
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
ZOOKEEPERS: Final = ("memory", "real")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("sparklog").addoption(
        "--sparklog-zookeeper",
        choices=ZOOKEEPERS,
        help="ZooKeeper of sparklog_cluster: in memory, or a real server (needs Java)",
    )
    parser.addini(
        "sparklog_cluster_scope", f"how long a sparklog_cluster lives: {SCOPES}", default="function"
    )
    parser.addini("sparklog_cluster_brokers", "how many brokers a sparklog_cluster has", default="3")
    parser.addini("sparklog_cluster_zookeeper", f"its ZooKeeper: {ZOOKEEPERS}", default="memory")
    parser.addini("sparklog_cluster_secure", "with TLS, users and access rules", type="bool", default=False)
    parser.addini("sparklog_cluster_settings", "brokers' settings, name=value", type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Settings that cannot work stop pytest at once, rather than the first test that asks for a cluster."""
    cluster_scope("sparklog_cluster", config)
    cluster_options(config)


def cluster_scope(fixture_name: str, config: pytest.Config) -> Scope:
    """The scope that the settings give the fixture."""
    named = str(config.getini(f"{fixture_name}_scope"))
    for scope in SCOPES:
        if scope == named:
            return scope
    raise pytest.UsageError(f"{fixture_name}_scope = {named}: must be one of {', '.join(SCOPES)}")


@pytest.fixture(scope=cluster_scope)
def sparklog_cluster(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[InProcessCluster]":
    """A cluster of real brokers in this process, started and empty."""
    from sparklog.testing.cluster import InProcessCluster

    root = tmp_path_factory.mktemp("sparklog-cluster")
    with InProcessCluster(root, **cluster_options(pytestconfig)) as cluster:
        yield cluster


def cluster_options(config: pytest.Config) -> dict[str, Any]:
    """What the settings say about the cluster, as arguments of ``InProcessCluster``."""
    brokers = str(config.getini("sparklog_cluster_brokers"))
    zookeeper = config.getoption("--sparklog-zookeeper") or config.getini("sparklog_cluster_zookeeper")
    if not brokers.isdecimal() or int(brokers) < 1:
        raise pytest.UsageError(f"sparklog_cluster_brokers = {brokers}: must be a number from 1 up")
    if zookeeper not in ZOOKEEPERS:
        raise pytest.UsageError(f"sparklog_cluster_zookeeper = {zookeeper}: must be 'memory' or 'real'")
    return {
        "brokers": int(brokers),
        "zookeeper": zookeeper,
        "settings": _settings(config),
        "secure": bool(config.getini("sparklog_cluster_secure")),
    }


def _settings(config: pytest.Config) -> dict[str, str]:
    settings = {}
    for line in config.getini("sparklog_cluster_settings"):
        name, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"sparklog_cluster_settings: {line!r} must be name=value")
        settings[name.strip()] = value.strip()
    return settings
