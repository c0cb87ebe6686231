"""`sparklog submit` and `sparklog conf`: refused before Spark starts, with the reason and what to change."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sparklog.cli.command import build_parser
from sparklog_runtime.submission.conf_command import conf_command
from sparklog_runtime.submission.submit_command import submit_command

Case = Callable[..., str]
Refused = Callable[[Callable[[], Any]], Exception]


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that is bound, and on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def told(tmp_path: Path, refused: Refused) -> Callable[..., str]:
    """The line on standard error of ``sparklog submit``, with good settings but for the words given."""
    settings = tmp_path / "server.properties"
    settings.write_text("zookeeper.connect=127.0.0.1:2181/c\nlog.dirs=/data/1\nhosts.file=hosts\n")
    (tmp_path / "hosts").write_text("* rack=a\n")

    def run(*words: str) -> str:
        given = ["--master", "spark://spark-1:7077", "--settings", str(settings), "--brokers", "3"]
        args = build_parser(submit_command).parse_args([*given, "--root", str(tmp_path / "root"), *words])
        text = f"sparklog: {refused(lambda: submit_command.run(args))}"
        assert not (tmp_path / "root").exists()
        return text

    return run


@pytest.mark.parametrize(
    ("wrong", "word", "do"),
    [
        ("a setting of brokers among those of Spark", "min.insync.replicas=2", ""),
        ("a driver that would run elsewhere", "spark.submit.deployMode=cluster", ""),
        ("too few cores for the brokers", "spark.cores.max=2", "or start fewer brokers"),
        ("a setting of Spark that ends brokers", "spark.speculation=true", ""),
    ],
)
def test_settings_of_spark_with_which_no_broker_could_run(
    told: Callable[..., str], case: Case, wrong: str, word: str, do: str
) -> None:
    case(wrong, "`sparklog submit`", told("--conf", word), do)


def test_a_master_that_does_not_answer(told: Callable[..., str], closed_port: int, case: Case) -> None:
    case(
        "a master that does not answer",
        "`sparklog submit`",
        told("--master", f"spark://127.0.0.1:{closed_port}"),
        "",
        {str(closed_port): "7077"},
    )


def test_a_line_of_the_hosts_file_that_says_nothing(
    told: Callable[..., str], tmp_path: Path, case: Case
) -> None:
    (tmp_path / "hosts").write_text("# racks\nspark-2 zone=a\n")
    case(
        "a hosts file with a word that it does not know",
        "`sparklog submit`",
        told(),
        "[racks and addresses](on-your-cluster.md#settings)",
        {tmp_path: "/etc/sparklog"},
    )


def test_settings_files_that_are_there_already(tmp_path: Path, case: Case, refused: Refused) -> None:
    (tmp_path / "server.properties").touch()
    args = build_parser(conf_command).parse_args([str(tmp_path)])
    case(
        "a directory that has settings files",
        "`sparklog conf`",
        f"sparklog: {refused(lambda: conf_command.run(args))}",
        "",
        {tmp_path: "/etc/sparklog"},
    )
