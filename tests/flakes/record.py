"""Tests that failed, kept so that they can be run again: a landing must not depend on one unlucky moment.

``.ci/run`` names a file in ``SPARKLOG_FAILED_TESTS``. Each of its pytest runs then writes its failed tests
there, a JSON object a line, and ends as if they had passed. ``tests.flakes.again`` runs them again at the end
and decides. Without the variable, as in ``make test``, each failure fails the run.

A run fails at once where a second run has nothing to say:

- a test gives the same result each time: simulated seeds and mutants;
- the failure is none of a test: collecting, an internal error, an interrupt;
- more than ``FLAKY_MAX`` tests have failed: something is broken.
"""

import json
import os
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

VARIABLE = "SPARKLOG_FAILED_TESTS"
FLAKY_MAX = 5
SAME_EACH_TIME = ("tests/proof/simulation/",)
TRACEBACK_LINES_MAX = 60
NO_SEED = "none"
_SEED = re.compile(r"@reproduce_failure\([^\n]+|\bseed\b\W{1,3}\d+", re.IGNORECASE)


@dataclass(frozen=True)
class FailedTest:
    """One failure, with all that a second run and its reader need."""

    name: str
    """pytest's node id, from the directory of the project."""
    seed: str
    """As the failure's text or output names it, or ``NO_SEED``."""
    load: float
    """The machine's load average of one minute, when the failure was reported."""
    traceback: str
    """The last ``TRACEBACK_LINES_MAX`` lines."""
    command: tuple[str, ...]
    """Runs this test alone: the same interpreter and options, one process."""


def read(path: Path) -> list[FailedTest]:
    """Failures in the order of their reports; none without the file."""
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [FailedTest(**line | {"command": tuple(line["command"])}) for line in lines]


def register(config: pytest.Config) -> None:
    """Keep this run's failures if the environment asks for it. Workers of xdist report to the main one."""
    if hasattr(config, "workerinput"):
        return
    # Tests that start a pytest of their own expect its failures.
    path = os.environ.pop(VARIABLE, None)
    if path is not None:
        config.pluginmanager.register(Recorder(Path(path)), "sparklog-failed-tests")


class Recorder:
    """Collects failures and writes them when the session ends; it passes if a second run decides."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failed: dict[str, tuple[str, str, float]] = {}
        self._was_collected = True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._was_collected &= not report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            # A test that fails may fail once more in its teardown: the first failure is the cause.
            self._failed.setdefault(report.nodeid, (*_shown(report), os.getloadavg()[0]))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus != pytest.ExitCode.TESTS_FAILED or not self._was_collected:
            return
        if any(name.startswith(SAME_EACH_TIME) for name in self._failed):
            return
        if not self._failed or len(read(self._path)) + len(self._failed) > FLAKY_MAX:
            return
        alone = (sys.executable, "-m", "pytest", *_options(session.config), "-n", "0")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            for name, (seed, traceback, load) in self._failed.items():
                failed = FailedTest(name, seed, load, traceback, (*alone, name))
                file.write(json.dumps(asdict(failed)) + "\n")
        session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._failed:
            terminalreporter.write_line("failed tests may be run again: tests.flakes.again decides")


def _options(config: pytest.Config) -> list[str]:
    """The arguments of this run without the files and directories to collect."""
    collected = set(config.args)
    return [argument for argument in config.invocation_params.args if argument not in collected]


def _shown(report: pytest.TestReport) -> tuple[str, str]:
    text = report.longreprtext
    found = _SEED.search("\n".join([text, *(content for _, content in report.sections)]))
    lines = text.splitlines()[-TRACEBACK_LINES_MAX:]
    return (found.group() if found else NO_SEED, "\n".join(lines))
