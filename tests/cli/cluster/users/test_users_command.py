"""``sparklog users`` against a broker: who has a password, and what is refused with which words."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparklog.cli.command import DONE, FAILED, WRONG_USAGE
from sparklog.cli.main import main
from sparklog.cli.zookeeper.command_session import settings_of
from sparklog.core.security.login.scram import SHA_512, credential_of, parse_credential
from sparklog.testing import InProcessCluster
from sparklog.testing.memory_zookeeper import MemoryZooKeeper
from sparklog.zookeeper.configured_session import node_access
from tests.closed_files import write_closed

Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    with InProcessCluster(tmp_path_factory.mktemp("users"), brokers=1) as running:
        yield running


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    path = tmp_path / "password.txt"
    write_closed(path, "pässword of alice\nand a second line\n")
    return path


@pytest.fixture
def run(cluster: InProcessCluster, capsys: pytest.CaptureFixture[str]) -> Run:
    """Status and output of ``sparklog users``, errors as well."""

    def run_it(*words: object, where: tuple[str, ...] | None = None) -> tuple[int, str]:
        to = ("--bootstrap-server", cluster.bootstrap_servers) if where is None else where
        status = main(["users", *map(str, words), *to])
        captured = capsys.readouterr()
        return status, captured.out + captured.err

    return run_it


def of(zookeeper: MemoryZooKeeper, user: str) -> dict[str, str]:
    node = zookeeper.get(f"/config/users/{user}")
    assert node is not None
    found: dict[str, str] = json.loads(node.data)["config"]
    return found


def test_a_password_that_others_may_read_is_taken_with_a_warning(run: Run, password_file: Path) -> None:
    password_file.chmod(0o644)
    status, said = run("add", "carol", "--mechanism", "SCRAM-SHA-512", "--password-file", password_file)
    assert status == DONE
    assert f"warning: --password-file: others may open {password_file}, as its mode is 0644" in said
    assert run("delete", "carol")[0] == DONE


def test_a_user_is_added_altered_listed_and_deleted(run: Run, password_file: Path) -> None:
    terms = ("--mechanism", "SCRAM-SHA-512", "--password-file", password_file)
    assert run("add", "alice", *terms) == (DONE, "user 'alice' has a password for SCRAM-SHA-512\n")
    assert run("add", "alice", *terms, "--iterations", 4096) == (
        FAILED,
        "sparklog: user 'alice' has a password for SCRAM-SHA-512 already; change it with: sparklog users "
        "alter\n",
    )
    altered = run("alter", "alice", *terms, "--iterations", 4096)
    assert altered == (DONE, "user 'alice' has another password for SCRAM-SHA-512\n")
    assert run("add", "alice", "--mechanism", "SCRAM-SHA-256", "--password-file", password_file)[0] == DONE
    status, listed = run("list", "--json")
    infos = [
        {"mechanism": "SCRAM-SHA-256", "iterations": 8192},
        {"mechanism": "SCRAM-SHA-512", "iterations": 4096},
    ]
    assert (status, json.loads(listed)) == (
        DONE,
        {"users": [{"user": "alice", "credential_infos": infos}]},
    )
    assert run("list")[1].splitlines()[1].split() == ["alice", "SCRAM-SHA-256", "8192"]
    assert run("delete", "alice", "--mechanism", "SCRAM-SHA-256") == (
        DONE,
        "user 'alice' has no password any more for SCRAM-SHA-256\n",
    )
    assert run("delete", "alice")[0] == DONE
    assert json.loads(run("list", "--json")[1]) == {"users": []}


def test_what_is_wrong_is_said_and_changes_nothing(run: Run, password_file: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\nsecond line\n")
    for words, expected in (
        (("alter", "bob", "--mechanism", "SCRAM-SHA-256", "--password-file", password_file),
         (FAILED, "user 'bob' has no password for SCRAM-SHA-256; give one with: sparklog users add")),
        (("delete", "bob"), (FAILED, "user 'bob' has no password for any mechanism")),
        (("add", "bob", "--mechanism", "SCRAM-SHA-256", "--password-file", empty),
         (FAILED, "its first line is empty; write the password into it")),
        (("add", "bob", "--mechanism", "SCRAM-SHA-256", "--password-file", tmp_path / "none"),
         (FAILED, "No such file or directory")),
        (("add", "bob", "--mechanism", "SCRAM-SHA-256", "--iterations", 9, "--password-file", password_file),
         (FAILED, "Too few iterations")),
        (("add", "bob", "--mechanism", "SCRAM-SHA-256", "--iterations", 16385, "--password-file",
          password_file),
         (FAILED, "Too many iterations")),
        (("add", "a\nb", "--mechanism", "SCRAM-SHA-256", "--password-file", password_file),
         (FAILED, "characters that cannot be printed")),
        (("add", "bob", "--mechanism", "SCRAM-SHA-256"),
         (WRONG_USAGE, "which password? give --password-file FILE, whose first line has it")),
    ):  # fmt: skip
        status, out = run(*words)
        assert (status, expected[1] in out) == (expected[0], True), out
    assert json.loads(run("list", "--json")[1]) == {"users": []}


def test_a_password_is_asked_for_twice_on_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = iter(["one", "another", "same", "same"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", lambda _: next(typed))
    words = ("add", "carol", "--mechanism", "SCRAM-SHA-256")
    assert run(*words) == (FAILED, "sparklog: the two passwords differ; nothing is changed\n")
    assert run(*words)[0] == DONE
    assert run("delete", "carol")[0] == DONE


def test_a_user_is_written_into_zookeeper_before_the_first_start(
    run: Run, password_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets, settings = tmp_path / "secrets.properties", tmp_path / "server.properties"
    write_closed(secrets, "zookeeper=broker:right\n")
    settings.write_text(f"zookeeper.set.acl=true\nzookeeper.digest=${{file:{secrets}:zookeeper}}\n")
    cluster = InProcessCluster(tmp_path / "later", brokers=1)
    zookeeper = cluster._memory.client(access=node_access(settings_of(settings)))
    monkeypatch.setattr(
        "sparklog.cli.zookeeper.command_session.new_session",
        lambda _, settings, timeout_ms: MemoryZooKeeper(cluster._memory, access=node_access(settings)),
    )
    words = ("add", "broker", "--mechanism", "SCRAM-SHA-512", "--password-file", password_file)
    there = ("--zookeeper", "zk1:2181/log", "--settings", str(settings))
    assert run(*words, where=there) == (
        DONE,
        "user 'broker' has a password for SCRAM-SHA-512, in ZooKeeper\n",
    )
    stored = parse_credential(SHA_512, of(zookeeper, "broker")["SCRAM-SHA-512"])
    assert stored is not None
    password = SHA_512.salted("pässword of alice".encode(), stored.salt, stored.iterations)
    assert credential_of(SHA_512, password, stored.salt, stored.iterations) == stored
    status, out = run(*words, where=there)
    assert (status, "user 'broker' has a password for SCRAM-SHA-512 already" in out) == (FAILED, True)
    as_a_stranger = run("add", "eve", *words[2:], where=there[:2])
    assert (as_a_stranger[0], "lacks" in as_a_stranger[1]) == (FAILED, True), "the nodes are closed"
    assert run(*words, where=(*there, "--root", "/tmp"))[0] == WRONG_USAGE
    assert run(*words, "--settings", settings)[0] == WRONG_USAGE
    zookeeper.close()
