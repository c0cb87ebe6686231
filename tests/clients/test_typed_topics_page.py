"""docs/typed-topics.md: the commands that create topics and change their columns, as they stand there."""

import shlex
from types import SimpleNamespace
from typing import Final

import pytest

from sparklog.cli.main import main
from sparklog.testing import InProcessCluster
from tests.pages import DOCS, blocks_of

pytestmark = pytest.mark.integration

PAGE: Final = DOCS / "typed-topics.md"
FLIGHTS: Final = "id bigint, distance int"


def follow(section: str, cluster: InProcessCluster) -> None:
    """Run each block of a section: commands with status 0, Python with a DataFrame ``df``."""
    names = {"df": SimpleNamespace(schema=FLIGHTS)}
    for block in (block for block in blocks_of(PAGE) if block.section == section):
        text = block.text.replace("127.0.0.1:9092", cluster.bootstrap_servers)
        if block.kind == "python":
            exec(compile("import pyspark_sparklog\n" + text, str(PAGE), "exec"), names)
            continue
        for line in text.splitlines():
            words = shlex.split(
                line.replace("--root cluster", f"--bootstrap-server {cluster.bootstrap_servers}")
            )
            assert main(words[1:]) == 0, line


def schema_of(topic: str, cluster: InProcessCluster, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    main(["topics", "describe", topic, "--schema", "--bootstrap-server", cluster.bootstrap_servers])
    return capsys.readouterr().out.splitlines()[0]


def test_each_command_that_creates_and_changes_columns_runs_on_the_pages_own_topics(
    cluster: InProcessCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    follow("Creating one", cluster)
    assert schema_of("quakes", cluster, capsys) == "schema: id bigint NOT NULL, mag double, at timestamp"
    follow("Changing columns", cluster)
    assert schema_of("quakes", cluster, capsys) == "schema: id bigint, at timestamp, depth double"
    assert schema_of("flights", cluster, capsys) == f"schema: {FLIGHTS}, gate string"
