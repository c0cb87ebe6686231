"""A sample of the crash points with every run of the tests; `python -m crash_points` has all.

The work is done in a process of its own: it forks, and traces what it forks.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from crash_points.__main__ import parsed

pytestmark = pytest.mark.integration

PROOF = Path(__file__).parents[2]
CANNOT_TRACE = 3


def run(*command: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *command], cwd=PROOF, capture_output=True, text=True, timeout=170, check=False
    )
    if done.returncode == CANNOT_TRACE:
        pytest.skip(done.stdout.strip())
    return done


@pytest.mark.parametrize(
    "scenarios",
    [
        ("first start", "produce", "roll", "clean stop", "delete"),
        ("truncate", "begin anew", "retention", "start after SIGKILL", "start on another boot"),
        ("compaction", "truncate during compaction", "start of a suspect"),
        ("transactions", "start with transactions"),
    ],
)
def test_what_was_promised_is_there_after_sigkill_and_power_cuts(scenarios: tuple[str, ...]) -> None:
    only = [argument for name in scenarios for argument in ("--only", name)]
    sample = ("--every", "13", "--first", "5", "--kill-every", "39", "--states", "3", "--recoveries", "0")
    done = run("-m", "crash_points", *only, *sample)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_recovery_that_is_interrupted_at_any_of_its_calls_is_completed_by_the_next() -> None:
    sample = ("--every", "17", "--first", "9", "--kill-every", "20", "--states", "2", "--recoveries", "1")
    done = run("-m", "crash_points", "--only", "start after SIGKILL", *sample)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--only", "rolll"],
        ["--only", "flush"],  # an operation of the table, and no scenario
        ["--every", "0"],
        ["--every", "20", "--first", "20"],
        ["--kill-every", "0"],
        ["--states", "0"],
        ["--recoveries", "-1"],
    ],
)
def test_what_would_try_nothing_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(arguments)
    assert ended.value.code == 2
    assert arguments[-1].strip("'") in capsys.readouterr().err


LYING_DISK = """
import sys
from crash_points.explore import Effort, Explorer, Report
from crash_points.scenarios import SCENARIOS
from crash_points.tracer import CannotTrace
from sparklog.storage.disk import LocalFile
from sparklog.storage.segments.segment import Segment

{breakage}
report = Report()
explorer = Explorer(report, Effort(every=9, first=4, states_max=4, really_every=1_000, in_recovery=False))
try:
    explorer.explore(next(one for one in SCENARIOS if one.name == "{scenario}"))
except CannotTrace as reason:
    print(reason)
    sys.exit(3)
finally:
    explorer.close()
print(len(report.troubles), report.troubles[:1])
sys.exit(5 if report.troubles else 0)
"""


@pytest.mark.parametrize(
    ("breakage", "scenario"),
    [
        ("LocalFile.fsync = lambda self: None", "produce"),
        ("Segment.remove = lambda self: None", "truncate"),
        (
            "from sparklog.storage.segments.transaction_index import TransactionIndex\n"
            "TransactionIndex.save = lambda self: None",
            "transactions",
        ),
    ],
)
def test_storage_that_does_not_do_what_it_says_is_found_out(breakage: str, scenario: str) -> None:
    done = run("-c", LYING_DISK.format(breakage=breakage, scenario=scenario))
    assert done.returncode == 5, done.stdout + done.stderr
