"""Cases of bad input: what each shows goes into one table, and after each the brokers must serve as before.

A case makes the mistake, and hands what one sees to ``case``, with where and what to do. docs/bad-input.md is
made from these (test_page.py), so no message on it was made up, and none can change unseen.
"""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException

from sparklog.model.errors import SparklogError
from sparklog.network.dialing.connection import Connection
from sparklog.testing import InProcessCluster

HERE = Path(__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "bad-input.md"
WRITE = "SPARKLOG_WRITE_BAD_INPUT_PAGE"
COMMAND = "python tests/bad_input/test_page.py"

WHERE = (
    "Spark read",
    "Spark write",
    "Spark stream",
    "command line",
    "Kafka client",
    "produce response",
    "ApiVersions response",
    "sparklog's client",
    "broker's log",
    "controller's log",
    "broker's start",
    "`sparklog start`",
    "`sparklog submit`",
    "`sparklog conf`",
)
"""Places where one sees an error, in the order of the page."""

HEAD = f"""# Bad input

What goes wrong, what one sees then, and what to do where the message does not say it. Each line is a test in
`tests/bad_input` that makes the mistake, reads the message, writes one more record and reads all: the brokers
serve on, and nothing acknowledged is lost. Ports, paths and process ids are made up (`{COMMAND}`
writes this page).

Under Spark the message is the last line of a Python traceback. Bare error codes have librdkafka's words.

| what goes wrong | where | what one sees | what to do |
|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Row:
    wrong: str
    where: str
    sees: str
    do: str

    @property
    def line(self) -> str:
        ticks = "``" if "`" in self.sees else "`"
        sees = f"{ticks}{_escaped(self.sees)}{ticks}"
        return f"| {_escaped(self.wrong)} | {self.where} | {sees} | {_escaped(self.do)} |\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


@dataclass(slots=True)
class Table:
    """The cases of this run."""

    servers: Mapping[str, str]
    """The shared cluster's addresses, and what stands for them."""
    rows: list[Row] = field(default_factory=list)

    def page(self) -> str:
        ordered = sorted(self.rows, key=lambda row: WHERE.index(row.where))
        return HEAD + "".join(row.line for row in ordered)

    def add(
        self, wrong: str, where: str, sees: object, do: str = "", hide: Mapping[object, str] | None = None
    ) -> str:
        """Take down a case; the message as it was put down. ``hide``: what differs from run to run."""
        text = text_of(sees)
        for real, instead in {
            **{str(real): word for real, word in (hide or {}).items()},
            **self.servers,
        }.items():
            text = text.replace(real, instead)
        row = Row(wrong, where, " ".join(text.split()), do)
        self.rows.append(row)
        if WRITE not in os.environ:
            assert row.line in PAGE.read_text(), f"is the message better now? Then: {COMMAND}"
        return row.sees


def text_of(seen: object) -> str:
    """An error as its user sees it: without the traceback that Spark puts before the words."""
    if isinstance(seen, KafkaException):
        return f"{seen.args[0].name()}: {seen.args[0].str()}"
    text = str(seen)
    if "Traceback (most recent call last)" not in text:
        return text
    last = re.findall(r"^(?:pyspark_)?sparklog[\w.]*\.[A-Z]\w+: (.*)$", text, re.MULTILINE)
    assert last, text
    return str(last[-1])


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    """The three brokers that are treated badly. Topic t has two partitions and two records in the first."""
    settings = {"auto.create.topics.enable": "false", "log.retention.check.interval.ms": "50"}
    with InProcessCluster(tmp_path_factory.mktemp("bad-input"), settings=settings) as running:
        running.create_topic("t", partitions=2)
        running.produce("t", ["a", "b"], partition=0)
        yield running


@pytest.fixture(scope="session")
def table(brokers: InProcessCluster) -> Table:
    ports = zip(brokers.bootstrap_servers.split(","), range(9092, 9095), strict=True)
    return Table({server: f"127.0.0.1:{port}" for server, port in ports})


@pytest.fixture
def case(table: Table) -> Callable[..., str]:
    """``case(wrong, where, sees, do)`` puts a line on the page. No ``do``: the message says it."""
    return table.add


class Kept:
    """Records that were acknowledged, and must be there whatever happens."""

    def __init__(self, cluster: InProcessCluster) -> None:
        self.values: list[bytes] = []
        self._cluster = cluster
        cluster.create_topic("kept", configs={"min.insync.replicas": "2"})

    def check(self) -> None:
        """One more is written, and all are read."""
        self.values.append(b"%d" % len(self.values))
        self._cluster.produce("kept", [self.values[-1]])
        found = self._cluster.consume("kept", at_least=len(self.values))
        assert [record.value for record in found] == self.values


@pytest.fixture(scope="session")
def kept() -> type[Kept]:
    """For tests with a cluster of their own."""
    return Kept


@pytest.fixture(scope="session")
def shared_kept(brokers: InProcessCluster) -> Kept:
    kept = Kept(brokers)
    kept.check()
    return kept


@pytest.fixture(autouse=True)
def _brokers_go_on_serving(shared_kept: Kept) -> Iterator[None]:
    yield
    shared_kept.check()


@pytest.fixture
def connection(brokers: InProcessCluster) -> Iterator[Connection]:
    """To the leader of t-0, for requests that no well-behaved client sends."""
    leader = brokers.brokers[brokers.wait_for_leader("t")].node
    with Connection.open(leader.host, leader.port, client_id="bad-input", timeout_ms=5_000) as connection:
        yield connection


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[str], str]:
    """The line of the log that has these words; waits for it, as a broker's threads write it."""

    def find(words: str) -> str:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            for record in list(caplog.records):
                if words in record.getMessage():
                    return record.getMessage()
            time.sleep(0.01)
        pytest.fail(f"nobody logged {words!r}: {caplog.messages}")

    return find


@pytest.fixture
def refused() -> Callable[[Callable[[], Any]], Exception]:
    """The error that a call ends with."""

    def call(what: Callable[[], Any]) -> Exception:
        with pytest.raises((SparklogError, OSError, KafkaException)) as caught:
            what()
        return caught.value

    return call


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The page is compared when all its cases have run."""
    items.sort(key=lambda item: item.path == HERE / "test_page.py")


def pytest_deselected(items: list[pytest.Item]) -> None:
    global is_part
    is_part = is_part or any(item.path.parent == HERE for item in items)


is_part = False


@pytest.fixture
def all_ran(request: pytest.FixtureRequest) -> bool:
    """Whether every case of this folder is in this run."""
    files = {item.path for item in request.session.items}
    singled_out = any("::" in argument for argument in request.config.args)
    return not is_part and not singled_out and files.issuperset(HERE.glob("test_*.py"))
