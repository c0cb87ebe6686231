"""Brokers, and whole clusters, that cannot start: refused with the reason, and nobody else is disturbed."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparklog.broker.life.server import BrokerOptions, BrokerServer
from sparklog.cli.command import WRONG_USAGE
from sparklog.cli.main import main
from sparklog.credentials.secret_files import ROOT
from sparklog.model.cluster_facts import DEFAULT_LISTENER
from sparklog.model.ids import BrokerId
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.settings.jaas import PLAIN_MODULE
from sparklog.testing import InProcessCluster
from sparklog_runtime.start.cluster_folders import Layout, RootLock

pytestmark = pytest.mark.integration

Case = Callable[..., str]
Refused = Callable[[Callable[[], Any]], Exception]

START_TIMEOUT_S = 60
SOMEBODY = 1_000


@pytest.fixture(scope="module")
def cluster_of_two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    """With a real ZooKeeper, so that another broker can come."""
    root = tmp_path_factory.mktemp("start")
    with InProcessCluster(root, brokers=2, zookeeper="real") as running:
        yield running


@pytest.fixture(scope="module")
def kept_there(cluster_of_two: InProcessCluster, kept: Any) -> Any:
    return kept(cluster_of_two)


@pytest.fixture
def options(cluster_of_two: InProcessCluster, tmp_path: Path) -> BrokerOptions:
    """Of a third broker, with which nothing is wrong."""
    return BrokerOptions(
        broker_id=BrokerId(3), host="127.0.0.1", log_dirs=(str(tmp_path / "logs"),),
        zookeeper=cluster_of_two.zookeeper,
        config=BrokerConfig.parse(
            {"zookeeper.session.timeout.ms": "6000", "zookeeper.connection.timeout.ms": "1000"}
        ),
    )  # fmt: skip


def start(options: BrokerOptions) -> None:
    broker = BrokerServer(options)
    broker.start()
    broker.stop()


def test_a_second_broker_with_an_id_that_lives(
    options: BrokerOptions, cluster_of_two: InProcessCluster, kept_there: Any, case: Case, refused: Refused
) -> None:
    holder = cluster_of_two.brokers[1].node
    case(
        "a second broker with a live id",
        "broker's start",
        refused(lambda: start(replace(options, broker_id=BrokerId(1)))),
        "the first one goes on",
        {holder.port: "9092", f"epoch {holder.epoch}": "epoch 27"},
    )
    kept_there.check()


def test_log_directories_that_another_broker_uses(
    options: BrokerOptions, cluster_of_two: InProcessCluster, kept_there: Any, case: Case, refused: Refused
) -> None:
    taken = cluster_of_two.root / "broker-1" / "0"
    case(
        "a log directory in use",
        "broker's start",
        refused(lambda: start(replace(options, log_dirs=(str(taken),)))),
        "",
        {cluster_of_two.root: "/data/sparklog", f"process {os.getpid()}": "process 4711"},
    )
    kept_there.check()


def test_a_port_that_another_broker_listens_on(
    options: BrokerOptions, cluster_of_two: InProcessCluster, kept_there: Any, case: Case, refused: Refused
) -> None:
    port = cluster_of_two.brokers[1].node.port
    case(
        "a port in use",
        "broker's start",
        refused(lambda: start(replace(options, ports={DEFAULT_LISTENER: port}))),
        "",
        {port: "9092"},
    )
    kept_there.check()


def test_data_of_another_broker(
    options: BrokerOptions, cluster_of_two: InProcessCluster, kept_there: Any, case: Case, refused: Refused
) -> None:
    start(options)
    (folder,) = options.log_dirs
    case(
        "a log directory that belongs to another broker",
        "broker's start",
        refused(lambda: start(replace(options, broker_id=BrokerId(4)))),
        "",
        {folder: "/data/sparklog/broker-3/0"},
    )
    kept_there.check()


def test_a_zookeeper_that_is_not_there(
    options: BrokerOptions, kept_there: Any, case: Case, refused: Refused
) -> None:
    case(
        "a ZooKeeper that is not there",
        "broker's start",
        refused(lambda: start(replace(options, zookeeper="127.0.0.1:1"))),
        "a start waits for `zookeeper.connection.timeout.ms`",
    )
    kept_there.check()


# `sparklog start`


@pytest.fixture
def told(tmp_path: Path) -> Callable[..., str]:
    """``sparklog start --root ROOT WORDS``; what is told on standard error when it gives up."""

    def run(*words: str, status: int) -> str:
        command = [sys.executable, "-m", "sparklog.cli.main", "start", "--brokers", "1"]
        ended = subprocess.run(
            [*command, "--root", str(tmp_path), *words],
            capture_output=True,
            text=True,
            timeout=START_TIMEOUT_S,
            check=False,
        )
        assert (ended.returncode, ended.stdout) == (status, ""), ended.stderr
        assert not (tmp_path / "cluster.json").exists()
        return ended.stderr.splitlines()[-1]

    return run


@pytest.fixture
def complained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """As ``told``, in this process: for what is refused before anything is started."""

    def run(*settings: str) -> str:
        words = [word for setting in settings for word in ("-c", setting)]
        assert main(["start", "--brokers", "1", "--root", str(tmp_path), *words]) == WRONG_USAGE
        seen = capsys.readouterr()
        assert (seen.out, list(tmp_path.glob("cluster.json"))) == ("", [])
        return seen.err.splitlines()[-1]

    return run


def test_a_root_directory_in_use(told: Callable[..., str], tmp_path: Path, case: Case) -> None:
    with RootLock(Layout.at(tmp_path)):
        seen = told("--port", "0", status=1)
    hidden = {tmp_path: "/data/sparklog", f"process {os.getpid()}": "process 4711"}
    case("a root directory in use", "`sparklog start`", seen, "the first one goes on", hidden)


def test_a_port_in_use(told: Callable[..., str], case: Case) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        seen = told("--port", str(port), status=1)
    case("a port in use", "`sparklog start`", seen, "or `--port 0`", {port: "9092"})


def test_a_machine_without_java(
    told: Callable[..., str], case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    case("no Java", "`sparklog start`", told("--port", "0", status=1))


def test_a_java_home_without_java(
    told: Callable[..., str], case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/opt/java")
    case("a JAVA_HOME without Java", "`sparklog start`", told("--port", "0", status=1))


def test_a_zookeeper_that_is_not_there_at_the_start(told: Callable[..., str], case: Case) -> None:
    words = ("--zookeeper", "127.0.0.1:1", "-c", "zookeeper.connection.timeout.ms=1000")
    case(
        "a ZooKeeper that is not there",
        "`sparklog start`",
        told("--port", "0", *words, status=1),
    )


def test_a_misspelt_setting(told: Callable[..., str], case: Case) -> None:
    case(
        "a misspelt setting",
        "`sparklog start`",
        told("-c", "message.max.byte=2000000", status=2),
        "[the list](settings.md)",
    )


ADVISED = "[listeners](settings.md#listeners)"
ADVISED_TLS = "[references](settings.md)"
ADVISED_LOGIN = "[logins](security.md#logins)"
ADVISED_ZOOKEEPER = "[ZooKeeper](security.md#zookeeper)"
LISTENERS = "listeners=PLAINTEXT://:9092,SASL_PLAINTEXT://:9093"
JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
LITERAL = f'{JAAS}={PLAIN_MODULE} required user_alice="secret";'
OF_REFERENCE = f"{JAAS}=${{file:/etc/sparklog/secrets.properties:users}}"


@pytest.mark.parametrize(
    ("wrong", "words", "do"),
    [
        ("a listener that is not NAME://HOST:PORT", ["listeners=PLAINTEXT:9092"], ADVISED),
        ("two listeners of one name", ["listeners=PLAINTEXT://:9092,PLAINTEXT://:9093"], ""),
        (
            "two listeners on one port",
            ["listeners=PLAINTEXT://:9092,INSIDE://:9092",
             "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT"],
            "",
        ),
        (
            "a listener without a security protocol",
            ["listeners=PLAINTEXT://:9092,INSIDE://:9093"],
            "",
        ),
        ("an unknown security protocol", ["listener.security.protocol.map=PLAINTEXT:TLS"], ""),
        (
            "a listener on all addresses that is advertised nowhere",
            ["listeners=PLAINTEXT://0.0.0.0:9092"],
            "",
        ),
        (
            "an advertised listener that is no listener",
            ["advertised.listeners=INSIDE://broker-1:9092",
             "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT"],
            "",
        ),
        ("a brokers' listener that is none", ["inter.broker.listener.name=INSIDE"], ""),
        ("a login by Kafka's default, which is Kerberos", [LISTENERS], ADVISED_LOGIN),
        ("PLAIN without encryption", [LISTENERS, "sasl.enabled.mechanisms=PLAIN", OF_REFERENCE], ""),
        ("PLAIN without users", [LISTENERS, "sasl.enabled.mechanisms=PLAIN"], ""),
        (
            "a login between brokers without a user",
            ["listeners=SASL_PLAINTEXT://:9092", "security.inter.broker.protocol=SASL_PLAINTEXT",
             "sasl.enabled.mechanisms=SCRAM-SHA-512", "sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512"],
            "",
        ),
        ("TLS without a certificate", ["listeners=PLAINTEXT://:9092,SSL://:9093"], ""),
        ("super users, without an authorizer", ["super.users=User:admin"], ""),
        ("a password that everybody sees", ["ssl.key.password=secret"], ADVISED_TLS),
        ("TLS of a listener that there is not", ["listener.name.outside.ssl.client.auth=required"], ""),
        ("an old version of TLS", ["ssl.enabled.protocols=TLSv1.1"], ""),
        ("some cipher suites of TLS 1.3", ["ssl.cipher.suites=TLS_AES_256_GCM_SHA384"], ""),
        ("a choice among Java's implementations", ["ssl.provider=BCFIPS"], ""),
        ("passwords of clients that everybody sees", [LISTENERS, LITERAL], ADVISED_TLS),
        ("users of a listener that there is not", [OF_REFERENCE], ""),
        ("nodes of ZooKeeper that are closed to everybody", ["zookeeper.set.acl=true"], ADVISED_ZOOKEEPER),
        ("ZooKeeper's password, for everybody to see", ["zookeeper.digest=broker:secret"], ADVISED_ZOOKEEPER),
        ("a limit of a listener that there is not", ["listener.name.outside.max.connections=20"], ""),
        ("a rate of connections that is none", ["max.connection.creation.rate=-1"], ""),
        ("metrics over TLS without a certificate", ["metrics.ssl.enable=true"], ""),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_kept(
    complained: Callable[..., str], case: Case, wrong: str, words: list[str], do: str
) -> None:
    case(wrong, "`sparklog start`", complained(*words), do)


def test_a_file_of_passwords_that_others_may_open(
    told: Callable[..., str], case: Case, tmp_path: Path
) -> None:
    file = tmp_path / "secrets.properties"
    file.write_text("alice=wonder\n")
    file.chmod(0o644)
    if os.geteuid() == ROOT:
        os.chown(file, SOMEBODY, -1)
    settings = (
        LISTENERS,
        "sasl.enabled.mechanisms=PLAIN",
        "sasl.plain.without.tls=true",
        f'{JAAS}={PLAIN_MODULE} required user_alice="${{file:{file}:alice}}";',
    )
    seen = told(*(word for setting in settings for word in ("-c", setting)), status=2)
    case(
        "a file of passwords that others may open", "`sparklog start`", seen, "", {tmp_path: "/etc/sparklog"}
    )


def test_an_authorizer_that_lets_no_broker_in(told: Callable[..., str], case: Case) -> None:
    authorizer = "authorizer.class.name=kafka.security.authorizer.AclAuthorizer"
    seen = told("--port", "0", "-c", authorizer, status=2)
    case("an authorizer, and brokers that nobody knows", "`sparklog start`", seen)


def test_a_port_for_several_brokers_of_one_machine(told: Callable[..., str], case: Case) -> None:
    seen = told("-c", "listeners=PLAINTEXT://:9092", "--brokers", "3", status=2)
    case(
        "one port for several brokers",
        "`sparklog start`",
        seen,
    )
