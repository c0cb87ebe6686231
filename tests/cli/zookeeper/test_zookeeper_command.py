"""``sparklog zookeeper`` against a real ZooKeeper: what it changes, prints, and ends with."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sparklog.cli.command import DONE, FAILED, WRONG_USAGE
from sparklog.cli.main import main
from sparklog.core.controller.state.node_acls import closed_acl
from sparklog.model.zookeeper import AccessRefused
from sparklog.model.zookeeper_access import NodeAccess
from sparklog.zookeeper.kazoo_admin import KazooAdmin
from tests.closed_files import write_closed

pytestmark = pytest.mark.integration

TIMEOUT_MS = 15_000

Run = Callable[[str, Path], tuple[int, str, str]]


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Brokers' settings, whose password is in another file."""
    secrets = tmp_path / "secrets.properties"
    write_closed(secrets, "zookeeper=broker:right\n")
    file = tmp_path / "server.properties"
    file.write_text(
        f"listeners=PLAINTEXT://:9092\nzookeeper.connect=elsewhere:2181\nzookeeper.set.acl=true\n"
        f"zookeeper.digest=${{file:{secrets}:zookeeper}}\n"
    )
    return file


@pytest.fixture
def run(zookeeper_address: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def run_it(action: str, settings: Path) -> tuple[int, str, str]:
        status = main(["zookeeper", action, "--zookeeper", zookeeper_address, "--settings", str(settings)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run_it


@pytest.fixture
def stranger(zookeeper_address: str) -> KazooAdmin:
    client = KazooAdmin(zookeeper_address, TIMEOUT_MS)
    client.start(TIMEOUT_MS)
    return client


def test_a_tree_is_closed_and_opened(run: Run, stranger: KazooAdmin, settings: Path) -> None:
    with stranger:
        stranger.create("/controller_epoch", b"1")
        stranger.ensure_path("/config/users/alice")
        assert run("secure", settings) == (DONE, "5 nodes are closed now, 0 were before\n", "")
        for refused in (lambda: stranger.create("/controller"), lambda: stranger.children("/config/users")):
            with pytest.raises(AccessRefused):
                refused()
        assert run("secure", settings) == (DONE, "0 nodes are closed now, 5 were before\n", "")
        assert run("open", settings) == (DONE, "5 nodes are opened now, 0 were before\n", "")
        stranger.create("/config/users/bob")


def test_what_is_left_is_named(
    run: Run, stranger: KazooAdmin, settings: Path, zookeeper_address: str
) -> None:
    theirs = KazooAdmin(zookeeper_address, TIMEOUT_MS, access=NodeAccess(lambda: "eve:1", closed_acl))
    with stranger, theirs:
        stranger.create("/controller_epoch", b"1")
        theirs.start(TIMEOUT_MS)
        for number in range(25):
            theirs.create(f"/theirs-{number:02}")
        status, out, err = run("secure", settings)
    assert (status, out) == (FAILED, "2 nodes are closed now, 0 were before\n")
    lines = err.splitlines()
    assert lines[:2] == [
        "sparklog: 25 nodes are not closed:",
        "sparklog:   /theirs-00: it belongs to user 'eve', with a password of its own",
    ]
    assert lines[-1] == "sparklog:   and 5 more"


def test_an_address_without_a_cluster_is_none(run: Run, settings: Path, zookeeper_server: object) -> None:
    status, out, err = run("secure", settings)
    assert (status, out) == (FAILED, "")
    assert "no cluster has its nodes at" in err


def test_a_chroot_that_is_not_there_is_not_made(
    stranger: KazooAdmin, settings: Path, zookeeper_address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with stranger:
        missing = f"{zookeeper_address}/missing"
        assert main(["zookeeper", "open", "--zookeeper", missing, "--settings", str(settings)]) == FAILED
        assert "no cluster has its nodes at" in capsys.readouterr().err
        assert stranger.children("/") == []


def test_settings_must_name_a_user_and_nothing_unknown(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    for text, expected in (
        ("num.io.threads=2\n", "has no zookeeper.digest"),
        ("zookeeper.digest=broker:literal\n", "zookeeper.digest=[hidden]: it is a secret"),
        ("zookeeper.set.acls=true\n", "unknown broker setting 'zookeeper.set.acls'"),
        ("zookeeper.digest=${file:/none:zookeeper}\n", "/none cannot be read here"),
    ):
        file.write_text(text)
        status, out, err = run("secure", file)
        assert (status, out, expected in err) == (WRONG_USAGE, "", True), err
        assert "literal" not in err
    missing = run("secure", tmp_path / "none.properties")
    assert missing[0] == WRONG_USAGE
    assert "No such file" in missing[2]


def test_both_options_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zookeeper", "secure", "--zookeeper", "127.0.0.1:2181"]) == WRONG_USAGE
    assert "--settings" in capsys.readouterr().err
