"""What the ``sparklog`` program says to what it cannot do, and that it ends with the status for it."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sparklog.cli.command import FAILED, WRONG_USAGE
from sparklog.cli.main import main
from sparklog.model.settings.jaas import PLAIN_MODULE
from sparklog.testing import InProcessCluster

Case = Callable[..., str]
Run = Callable[..., str]


@pytest.fixture
def run(
    brokers: InProcessCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Run:
    """Runs ``sparklog WORDS``; its last line on standard error."""

    def program(words: list[str], status: int, stdin: bytes = b"") -> str:
        (tmp_path / "stdin").write_bytes(stdin)
        named = "--bootstrap-server" in words or "--root" in words or "--nowhere" in words
        server = [] if named else ["--bootstrap-server", brokers.bootstrap_servers]
        with (tmp_path / "stdin").open() as source:
            monkeypatch.setattr(sys, "stdin", source)
            assert main([*(word for word in words if word != "--nowhere"), *server]) == status
        out, err = capfdbinary.readouterr()
        assert out == b""
        return err.decode().splitlines()[-1]

    return program


COMMANDS = [
    ("a mistyped command", "topcis --nowhere", WRONG_USAGE, "`sparklog --help`"),
    (
        "a host with its port, of which a certificate shall be made",
        "security init x --host a:9092 --nowhere",
        WRONG_USAGE,
        "",
    ),
    ("a folder without certificates", "security renew nothing --nowhere", FAILED, ""),
    ("no cluster named", "topics list --nowhere", WRONG_USAGE, ""),
    ("a root that no cluster runs on", "status --root nothing", FAILED, ""),
    (
        "an address that is none",
        "status --bootstrap-server nonsense",
        WRONG_USAGE,
        "",
    ),
    ("a misspelt option", "topics list --jsn", WRONG_USAGE, ""),
    ("an unknown topic", "topics describe evnts", FAILED, ""),
    ("an operation on a broker that there is not", "brokers stop 99", FAILED, ""),
    ("a drain that would leave no broker", "brokers drain 1 2 3", FAILED, ""),
    ("a restart of no broker", "brokers restart --nowhere", WRONG_USAGE, ""),
    ("an operation that there is not", "brokers cancel 99", FAILED, ""),
    ("deletion of an unknown topic", "topics delete evnts", FAILED, ""),
    ("an invalid topic name", "topics create my.events!", WRONG_USAGE, ""),
    (
        "a topic that there is already",
        "topics create t",
        FAILED,
        "or `--if-not-exists`",
    ),
    (
        "a replication factor above the number of brokers",
        "topics create new --replication-factor 4",
        FAILED,
        "",
    ),
    ("no partitions", "topics create new --partitions 0", WRONG_USAGE, ""),
    (
        "more partitions than make sense",
        "topics create new --partitions 1000000",
        FAILED,
        "",
    ),
    (
        "a misspelt setting",
        "topics create new -c retenton.ms=60000",
        WRONG_USAGE,
        "[the list](settings.md#of-a-topic)",
    ),
    (
        "a setting's value that cannot be",
        "topics create new -c retention.ms=tomorrow",
        WRONG_USAGE,
        "[what it may be](settings.md)",
    ),
    ("a column's type that there is not", "topics create new --schema `id`bigit", WRONG_USAGE, ""),
    ("a key that is no column", "topics create new --schema `id`int --key ID", WRONG_USAGE, ""),
    ("columns of a topic that has none", "topics describe t --schema", FAILED, ""),
    ("a changed column without a type", "topics alter t --add-column x", WRONG_USAGE, ""),
    (
        "columns and partitions in one change",
        "topics alter t --drop-column x --partitions 2",
        WRONG_USAGE,
        "",
    ),
    ("no such partition", "produce --topic t --partition 9", FAILED, ""),
    ("acks that there are not", "produce --topic t --acks 2", WRONG_USAGE, ""),
    ("a topic left out", "produce", WRONG_USAGE, ""),
    ("a misspelt option, where another is missing", "produce --topc t", WRONG_USAGE, ""),
    (
        "a broker's name for a topic's setting",
        "configs alter --topic t --set log.retention.ms=60000",
        WRONG_USAGE,
        "[the topic's name](settings.md#of-a-topic)",
    ),
    ("a directory to be dumped", "dump-log --nowhere --files .", WRONG_USAGE, ""),
    (
        "settings for a broker that there never was",
        "configs alter --broker 9 --set log.retention.ms=60000",
        FAILED,
        "or start it first",
    ),
    (
        "an offset out of range",
        "consume --topic t --partition 0 --offset 99999",
        FAILED,
        "or `--from-beginning`",
    ),
    (
        "an offset without its partition",
        "consume --topic t --offset 1",
        WRONG_USAGE,
        "",
    ),
    (
        "a partition for a member of a group",
        "consume --topic t --group g --partition 0",
        WRONG_USAGE,
        "",
    ),
    ("deletion of an unknown group", "groups delete billng", FAILED, "`sparklog groups list`"),
    (
        "a reset that does not say to where",
        "groups reset-offsets g --all-topics",
        WRONG_USAGE,
        "[the ways](groups.md#reading-again)",
    ),
    (
        "a reset that does not say of which partitions",
        "groups reset-offsets g --to-earliest",
        WRONG_USAGE,
        "",
    ),
    (
        "a reset of a group without offsets",
        "groups reset-offsets g --all-topics --to-earliest",
        FAILED,
        "",
    ),
    (
        "a time that is none",
        "groups reset-offsets g --topic t --to-datetime yesterday",
        WRONG_USAGE,
        "",
    ),
    (
        "a shift of offsets that there are not",
        "groups reset-offsets g --topic t --shift-by -10",
        FAILED,
        "",
    ),
    (
        "a plan that cannot be read",
        "groups reset-offsets g --from-file nothing.csv",
        FAILED,
        "",
    ),
    (
        "an abort of an unknown transactional id",
        "transactions abort billng",
        FAILED,
        "",
    ),
    (
        "an abort that does not say of what",
        "transactions abort",
        WRONG_USAGE,
        "`sparklog transactions find-hanging` names both",
    ),
    (
        "an abort where no transaction is open",
        "transactions abort --topic t --partition 0 --start-offset 0",
        FAILED,
        "`sparklog transactions find-hanging`",
    ),
    (
        "an abort of an id and in a partition at once",
        "transactions abort billing --topic t --partition 0",
        WRONG_USAGE,
        "",
    ),
    (
        "hanging transactions of a broker that does not live",
        "transactions find-hanging --broker-id 9",
        FAILED,
        "",
    ),
    (
        "a misspelt state of transactions",
        "transactions list --state Runing",
        WRONG_USAGE,
        "",
    ),
    (
        "a store's URL with a password in it",
        "remote check --nowhere s3://AKIA:secret@bucket/history",
        WRONG_USAGE,
        "[where keys come from](remote-stores.md#urls-and-keys)",
    ),
    (
        "a kind of store that there is not",
        "remote check --nowhere gs://bucket",
        WRONG_USAGE,
        "",
    ),
]


@pytest.mark.parametrize(("wrong", "command", "status", "do"), COMMANDS, ids=[row[0] for row in COMMANDS])
def test_a_command_is_refused(
    wrong: str,
    command: str,
    status: int,
    do: str,
    run: Run,
    case: Case,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    seen = run(command.split(), status, b"x\n")
    case(wrong, "command line", seen, do)


@pytest.mark.parametrize(
    ("wrong", "url", "do"),
    [
        ("a store that is not there", "webhdfs://127.0.0.1:1/history", "start it, or correct its address"),
        (
            "a store where nothing can be written",
            "file:///proc/history",
            "allow it, or choose another folder",
        ),
    ],
)
def test_a_store_cannot_be_used(wrong: str, url: str, do: str, run: Run, case: Case) -> None:
    seen = run(["remote", "check", "--nowhere", url, "--timeout", "5"], FAILED)
    case(wrong, "command line", re.sub(r"\.probe/\w+", ".probe/4c1e", seen), do)


def test_a_line_is_larger_than_a_message_may_be(run: Run, case: Case) -> None:
    case(
        "a message larger than `message.max.bytes`",
        "command line",
        run(["produce", "--topic", "t", "--partition", "0"], FAILED, b"x" * 2_000_000),
    )


def test_a_line_without_its_key(run: Run, brokers: InProcessCluster, case: Case) -> None:
    brokers.create_topic("keyed")
    case(
        "a line without the key separator",
        "command line",
        run(["produce", "--topic", "keyed", "--key-separator", ":"], FAILED, b"k:1\n2\nk:3\n"),
        "correct it, and send it with the rest",
    )
    assert [(record.key, record.value) for record in brokers.consume("keyed")] == [(b"k", b"1")]


CONFIGS = [
    ("a misspelt name in a client's properties", "security.protocl=SSL\n"),
    ("a login by Kerberos", "security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\n"),
    (
        "a login whose password has no end",
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN_MODULE} required username="a" password="b;\n',
    ),
    ("a client's properties with a line that is no setting", "security.protocol=SSL\nMIIEvQIBADAN\n"),
    ("a client's properties that are not there", ""),
]


@pytest.mark.parametrize(("wrong", "text"), CONFIGS, ids=[row[0] for row in CONFIGS])
def test_a_clients_properties_are_refused(
    wrong: str, text: str, run: Run, case: Case, tmp_path: Path
) -> None:
    path = tmp_path / "client.properties"
    if text:
        path.write_text(text)
    says = run(["topics", "list", "--command-config", str(path)], WRONG_USAGE)
    case(wrong, "command line", says, hide={path: "client.properties"})


def test_brokers_that_are_not_there(run: Run, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparklog.cli.connect.REACH_TIMEOUT_MS", 200, raising=False)
    monkeypatch.setattr("sparklog.cli.connect.RETRY_TIMEOUT_MS", 200)
    case(
        "brokers that are not there",
        "command line",
        run(["topics", "list", "--bootstrap-server", "127.0.0.1:1"], FAILED),
    )
