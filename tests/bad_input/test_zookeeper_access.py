"""A wrong password for ZooKeeper, and nodes of others: what is refused is not done, brokers serve on."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sparklog.broker.life.server import BrokerOptions, BrokerServer
from sparklog.cli.main import main
from sparklog.core.controller.state.node_acls import closed_acl
from sparklog.model.ids import BrokerId
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper_access import NodeAccess
from sparklog.testing import InProcessCluster
from sparklog.zookeeper.kazoo_admin import KazooAdmin
from sparklog_runtime.start.prepared_zookeeper import prepare_zookeeper
from tests.closed_files import write_closed
from tests.waiting import until

pytestmark = pytest.mark.integration

Case = Callable[..., str]
Refused = Callable[[Callable[[], Any]], Exception]

ZOOKEEPER = "127.0.0.1:2181"
ADVISED = "[ZooKeeper](security.md#zookeeper)"
TIMEOUT_MS = 15_000


def settings_of(secrets: Path, password: str) -> dict[str, str]:
    write_closed(secrets, f"zookeeper=broker:{password}\n")
    return {"zookeeper.set.acl": "true", "zookeeper.digest": f"${{file:{secrets}:zookeeper}}"}


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secrets") / "secrets.properties"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, secrets: Path) -> Iterator[InProcessCluster]:
    with InProcessCluster(
        tmp_path_factory.mktemp("closed"),
        brokers=2,
        zookeeper="real",
        settings=settings_of(secrets, "right"),
    ) as running:
        yield running


@pytest.fixture(scope="module")
def acknowledged(cluster: InProcessCluster, kept: Any) -> Any:
    return kept(cluster)


@pytest.fixture
def wrong(tmp_path: Path) -> dict[str, str]:
    return settings_of(tmp_path / "secrets.properties", "wrong")


def test_a_wrong_password_at_the_start(
    cluster: InProcessCluster, acknowledged: Any, case: Case, refused: Refused, wrong: dict[str, str]
) -> None:
    replaced = {cluster.zookeeper: ZOOKEEPER}
    for what, settings in (("another password", wrong), ("no password", {})):
        config = BrokerConfig.parse(settings)

        def start(config: BrokerConfig = config) -> None:
            prepare_zookeeper(cluster.zookeeper, config, is_own=False, warn=pytest.fail)

        if settings:
            case(
                f"{what} than the one that has closed ZooKeeper's nodes",
                "`sparklog start`",
                refused(start),
                ADVISED,
                replaced,
            )
        options = BrokerOptions(
            broker_id=BrokerId(9),
            host="127.0.0.1",
            log_dirs=(str(cluster.root / f"broker-of-{len(settings)}"),),
            zookeeper=cluster.zookeeper,
            config=config,
        )
        seen = refused(BrokerServer(options).start)
        case(f"a broker with {what} for ZooKeeper's closed nodes", "broker's start", seen, ADVISED, replaced)
    acknowledged.check()


def test_a_password_that_is_wrong_after_a_reconnect(
    cluster: InProcessCluster,
    acknowledged: Any,
    case: Case,
    secrets: Path,
    expire_session: Callable[[Any], None],
) -> None:
    controller = cluster.controller
    assert controller is not None
    session = controller._zookeeper
    settings_of(secrets, "wrong")
    expire_session(session)
    until(lambda: controller.failure is not None, "the refusal")
    seen = str(controller.failure)
    case(
        "ZooKeeper's password is changed in its file, and the controller connects anew",
        "controller's log",
        seen,
        "put the right one there; reads and writes go on meanwhile",
        {cluster.zookeeper: ZOOKEEPER},
    )
    acknowledged.check()
    settings_of(secrets, "right")
    expire_session(session)
    until(lambda: controller.is_active, "the office", timeout_s=90)
    cluster.create_topic("after")
    acknowledged.check()


def test_a_node_of_another_owner(
    cluster: InProcessCluster, case: Case, tmp_path: Path, secrets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chroot = f"{cluster.zookeeper}/other"
    theirs = NodeAccess(lambda: "eve:secret", closed_acl)
    with KazooAdmin(chroot, TIMEOUT_MS, access=NodeAccess(lambda: "broker:right")) as ours:
        ours.start(TIMEOUT_MS)
        ours.create("/controller_epoch", b"1")
    with KazooAdmin(chroot, TIMEOUT_MS, access=theirs) as eve:
        eve.start(TIMEOUT_MS)
        eve.create("/brokers")
    file = tmp_path / "server.properties"
    settings = settings_of(secrets, "right")
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    assert main(["zookeeper", "secure", "--zookeeper", chroot, "--settings", str(file)]) == 1
    case(
        "a node in ZooKeeper that belongs to another user",
        "command line",
        capsys.readouterr().err,
        "let that user, or ZooKeeper's administrator, delete it; run the command again",
    )
