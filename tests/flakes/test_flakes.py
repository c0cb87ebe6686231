"""Runs of pytest on small projects, as ``.ci/run`` runs the real one."""

import sys
from pathlib import Path

import pytest

from tests.flakes import again
from tests.flakes.record import FLAKY_MAX, VARIABLE, read

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[2]
CONFTEST = "from tests.flakes import record\n\ndef pytest_configure(config):\n    record.register(config)\n"
FAILS_ONCE = """
from pathlib import Path

def test_that_is_unlucky_once():
    print("plan of seed 4711")
    seen = Path(__file__).with_suffix(".seen")
    was_seen = seen.exists()
    seen.touch()
    assert was_seen, "the first run is unlucky"
"""
FAILS = "def test_that_is_broken():\n    assert 1 + 1 == 3\n"
PASSES = "def test_that_passes():\n    pass\n"


class Project:
    """A directory with tests, and what CI does with it."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self._pytester, self._environment = pytester, monkeypatch
        self.failed = pytester.path / "build" / "failed.jsonl"
        self.flaky = pytester.path / "build" / "flaky.txt"
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        self.write("conftest.py", CONFTEST)
        self.write("pytest.ini", "[pytest]\n")

    def write(self, name: str, text: str) -> None:
        path = self._pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *arguments: str, is_kept: bool = True) -> int:
        if is_kept:
            self._environment.setenv(VARIABLE, str(self.failed))
        return int(self._pytester.runpytest("-p", "no:cacheprovider", *arguments).ret)

    def run_again(self, capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
        self._environment.setenv(VARIABLE, str(self.failed))
        capfd.readouterr()
        code = again.main([str(self.failed), str(self.flaky)])
        return code, capfd.readouterr().out


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(pytester, monkeypatch)


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_test_that_fails_once_is_run_again_and_named_as_flaky(
    project: Project, processes: str, capfd: pytest.CaptureFixture[str]
) -> None:
    project.write("test_unlucky.py", FAILS_ONCE + PASSES)
    assert project.run("-n", processes, "--strict-markers", "test_unlucky.py") == 0
    (failed,) = read(project.failed)
    assert failed.name == "test_unlucky.py::test_that_is_unlucky_once"
    assert failed.command[:3] == (sys.executable, "-m", "pytest")
    assert "--strict-markers" in failed.command
    assert "test_unlucky.py" not in failed.command
    assert failed.command[-3:] == ("-n", "0", failed.name)
    code, output = project.run_again(capfd)
    assert code == 0
    block = output[output.index("flaky:") :]
    assert block == project.flaky.read_text()
    assert "1, each passed when it was run again" in block
    assert "test_unlucky.py::test_that_is_unlucky_once" in block
    assert "seed: seed 4711" in block
    assert "load: " in block
    assert "| E       AssertionError: the first run is unlucky" in block


def test_a_test_that_fails_twice_fails_the_landing(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    project.write("test_both.py", FAILS_ONCE + FAILS)
    assert project.run() == 0
    code, output = project.run_again(capfd)
    assert code == 1
    assert "failed twice: test_both.py::test_that_is_broken" in output
    assert "test_that_is_broken" not in output[output.index("flaky:") :]


def test_several_runs_of_a_landing_keep_their_failures_together(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    project.write("test_one.py", FAILS_ONCE)
    project.write("test_two.py", FAILS_ONCE)
    assert project.run("test_one.py") == project.run("test_two.py") == 0
    assert [failed.name.partition("::")[0] for failed in read(project.failed)] == [
        "test_one.py",
        "test_two.py",
    ]
    code, output = project.run_again(capfd)
    assert code == 0
    assert "flaky: 2" in output


def test_more_failures_than_flakes_explain_fail_at_once(project: Project) -> None:
    many = "import pytest\n\n@pytest.mark.parametrize('number', range({}))\ndef test(number):\n    assert 0\n"
    project.write("test_some.py", many.format(FLAKY_MAX))
    project.write("test_more.py", FAILS)
    assert project.run("test_some.py") == 0
    assert project.run("test_more.py") == 1


def test_what_gives_the_same_result_each_time_is_not_run_again(project: Project) -> None:
    project.write("tests/proof/simulation/tests/test_many_seeds.py", FAILS_ONCE)
    assert project.run("tests") == 1
    assert read(project.failed) == []


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_file_that_cannot_be_collected_fails_at_once(project: Project, processes: str) -> None:
    project.write("test_unlucky.py", FAILS_ONCE)
    project.write("test_broken.py", "import nothing_of_this_name\n")
    assert project.run("-n", processes, "--continue-on-collection-errors") != 0
    assert read(project.failed) == []


def test_without_the_variable_each_failure_is_the_users_to_see(project: Project) -> None:
    project.write("test_unlucky.py", FAILS_ONCE)
    assert project.run(is_kept=False) == 1
    assert not project.failed.exists()


def test_a_landing_without_failures_says_so(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    project.write("test_passes.py", PASSES)
    assert project.run() == 0
    assert project.run_again(capfd) == (0, "flaky: none\n")
    assert project.flaky.read_text() == "flaky: none\n"
