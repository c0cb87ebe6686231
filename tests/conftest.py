"""What tests of several parts share, one per session: a real ZooKeeper, a cluster, a Spark session."""

import gc
import itertools
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from kazoo.client import KazooClient
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from sparklog.testing import InProcessCluster
from sparklog.zookeeper.embedded import EmbeddedZooKeeper
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper
from tests.flakes import record

TESTS = Path(__file__).parent
BAD_INPUT = "tests/bad_input/"
SPARK = re.compile(r"tests/(datasource/(batch/)?test_(spark_|source_over_tls)|remote/test_clients_on_)")
TYPED_SPARK = re.compile(r"tests/datasource/test_spark_(columns|evolution|readme|schemas|typed|types|where)")
LONG_ROOMS = ("runtime", "datasource", "proof", "bad_input", "zookeeper")
SESSION_TIMEOUT_MS = 6_000
SHARED_SESSION_TIMEOUT_MS = 30_000
START_TIMEOUT_MS = 15_000
EXPIRE_WAIT_S = 3.0
EXPIRE_ATTEMPTS_MAX = 5
DESCRIPTORS_MAX = 500

# Several test processes at once are told that their terminal has 80 columns, which would narrow each table.
os.environ.pop("COLUMNS", None)

LIGHT_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""What a JVM's optimising compiler would gain is less than it takes in processes that live this short."""

SPARK_SETTINGS = {
    "spark.master": "local[2]",
    "spark.app.name": "sparklog-tests",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}

SPARK_CLASSES = Path(sys.prefix) / "spark-classes.jsa"
"""Spark's classes as a JVM has loaded them, if `make proof` made it (scripts/spark-classes).

A JVM with other classes ignores it, without a word (``-Xlog:disable``).
"""

_chroots = itertools.count()
_shared_clusters: list[InProcessCluster] = []


def pytest_configure(config: pytest.Config) -> None:
    """A shell that runs the tests in the background ignores SIGINT, and so would every process they start.

    Property tests must not judge the speed of a machine that is shared. All JVMs are light, masters, workers
    and executors included.
    """
    has_classes = SPARK_CLASSES.exists() and SPARK_CLASSES.stat().st_size > 0
    of_archive = f" -XX:SharedArchiveFile={SPARK_CLASSES} -Xlog:disable" if has_classes else ""
    os.environ.setdefault("JDK_JAVA_OPTIONS", LIGHT_JVM + of_archive)
    settings.register_profile(
        "shared machine",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize="CI" in os.environ,
        print_blob=True,
    )
    settings.load_profile("shared machine")
    record.register(config)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class FilesTogether(LoadScopeScheduling):
    """Each of several processes (``-n``) runs whole files, because the tests of a file share what they start.

    The cases of bad input share the table that becomes a page, so one process runs all of them. Files that
    use the session's Spark are for two processes: each Spark takes half a minute of CPU until it is warm.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file.startswith(BAD_INPUT) or TYPED_SPARK.match(file):
            return BAD_INPUT
        return "Spark" if SPARK.match(file) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FilesTogether:
    return FilesTogether(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with a test of some minutes begin, then the rooms with many: a long file that begins last runs
    beside nothing. Tests with the mark ``timeout`` are long by their own word, and sort by it.
    """
    longest_s: dict[Path, float] = {}
    for item in items:
        mark = item.get_closest_marker("timeout")
        longest_s[item.path] = max(longest_s.get(item.path, 0), mark.args[0] if mark is not None else 0)
    in_long_room = {path: path.relative_to(TESTS).parts[0] in LONG_ROOMS for path in longest_s}
    items.sort(key=lambda item: (-longest_s[item.path], not in_long_room[item.path]))


def pytest_collection_finish() -> None:
    """Fourteen thousand tests live to the end: searching them for cycles, again and again, frees nothing."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def signals_mean_afterwards_what_they_meant_before() -> Iterator[None]:
    """A handler that a test leaves behind would swallow the Ctrl-C that a later test sends."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    assert [signal.getsignal(number) for number in numbers] == before


@pytest.fixture(scope="module", autouse=True)
def descriptors_of_earlier_files_are_closed() -> None:
    """What earlier tests left in cycles keeps its files open, and PySpark can select 1,023 at most."""
    if len(os.listdir("/proc/self/fd")) > DESCRIPTORS_MAX:
        gc.collect()


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
    patient = {
        # Other work may stop this process for seconds, and a broker whose session has ended does not return.
        "zookeeper.session.timeout.ms": str(SHARED_SESSION_TIMEOUT_MS),
        # Records of many tests are of 1970: retention would delete them between two reads of a test.
        "log.retention.check.interval.ms": str(24 * 60 * 60 * 1_000),
    }
    with InProcessCluster(tmp_path_factory.mktemp("cluster"), zookeeper="real", settings=patient) as running:
        _shared_clusters.append(running)
        yield running
        _shared_clusters.remove(running)


@pytest.fixture(scope="module", autouse=True)
def topics_of_a_file_end_with_it() -> Iterator[None]:
    """Brokers that all tests share begin each file without topics: else a file that uses the name of another
    one's topic passes alone, and fails in whichever process both of them run.
    """
    yield
    for cluster in _shared_clusters:
        names = cluster.admin.list_topics()
        if names:
            cluster.admin.delete_topics(names)


@pytest.fixture(autouse=True)
def brokers_that_all_tests_share_live_on() -> Iterator[None]:
    """One that ended fails the test in which it did, with the reason, and no later one."""
    yield
    for cluster in _shared_clusters:
        failures = cluster.failures
        for broker_id in failures:
            cluster.revive(broker_id)
        assert not failures


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A quiet local session whose Python workers are this interpreter."""
    os.environ.update(
        PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1"
    )
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    # pytest adds its handler to loggers that do not propagate, and PySpark's would give it their JSON format,
    # in which every later test of this process would find its log.
    PySparkLogger.addHandler = logging.Logger.addHandler
    builder = SparkSession.builder
    for name, value in SPARK_SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.config(
        "spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse"))
    ).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
