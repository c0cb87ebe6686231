"""The page about testing shows a job and its tests: they run, as they stand there, with a real Spark."""

import re

import pytest

from tests.pages import DOCS, blocks_of

pytestmark = pytest.mark.integration

PAGE = DOCS / "testing.md"
PROGRAMS = [block.text for block in blocks_of(PAGE) if block.kind == "python"]
NAME = re.compile(r"# (\w+\.py)\n")


@pytest.mark.proof
def test_the_job_and_its_tests_run_as_they_stand_there(run_pytest) -> None:
    files = {name[1]: text for text in PROGRAMS if (name := NAME.match(text))}
    assert set(files) == {"thermometers.py", "test_thermometers.py"}
    result = run_pytest("-W", "default", **{name.replace(".", "__"): text for name, text in files.items()})
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 passed" in result.stdout


def test_the_clusters_without_pytest_run_as_they_stand_there(capsys) -> None:
    blocks = [text for text in PROGRAMS if "with InProcessCluster" in text]
    assert len(blocks) == 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert re.fullmatch(r"127\.0\.0\.1:\d+\n", capsys.readouterr().out)


def test_every_helper_of_the_page_exists() -> None:
    from sparklog.testing import InProcessCluster

    table = PAGE.read_text().partition("| `bootstrap_servers`")[2].partition("\n\n")[0]
    named = re.findall(r"^\| `(\w+)|, `(\w+)` \|", "| `bootstrap_servers`" + table, re.MULTILINE)
    names = [first or second for first, second in named]
    assert len(names) >= 11
    assert [name for name in names if not hasattr(InProcessCluster, name)] == []
