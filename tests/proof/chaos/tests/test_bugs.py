"""Chaos finds bugs that are put into real brokers."""

import subprocess
import sys
from pathlib import Path

import pytest

from chaos.bugs import BUGS, OF_ORDER, put_in
from chaos.command import parsed
from chaos.machines import walls
from chaos.machines.walls import WalledPlaces
from chaos.planned import nemeses
from simulation.mutants import MUTANTS

RUN = Path(__file__).parents[1] / "run.py"
FOUND = 1
MINUTES = "4"


def test_each_is_a_mutant_of_the_simulation_with_faults_that_there_are() -> None:
    assert set(BUGS) <= {mutant.name for mutant in MUTANTS}
    kinds = {nemesis.kind for nemesis in nemeses(WalledPlaces())}
    for bug in BUGS.values():
        assert set(bug.faults) <= kinds


@pytest.mark.parametrize("name", [*BUGS, "+".join(OF_ORDER)])
def test_each_leaves_the_simulated_zookeeper_alone(name) -> None:
    """As there is none: in a process of its own, which has it for good."""
    code = f"from chaos.bugs import put_in; put_in({name!r})"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=RUN.parents[1])


def test_what_is_no_bug_of_brokers_cannot_be_put_there() -> None:
    with pytest.raises(StopIteration):
        put_in("no-such-bug")


def test_a_mutant_brings_its_own_faults_and_settings_unless_others_are_named() -> None:
    args = parsed(["--spark", "none", "--mutant", "acknowledges-before-its-fsync", "-c", "a=b"])
    assert args.only == ["power-cut-of-all"]
    assert args.settings == ["log.flush.acks=fsync", "a=b"]
    args = parsed(["--spark", "none", "--mutant", "ack-on-append", "--only", "kill-all"])
    assert (args.only, args.settings) == (["kill-all"], [])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mutant", "ack-on-append"], "ack-on-append needs --spark none"),
        (["--mutant", "roles-before-elections", "--spark", "none"], "cannot be put into real brokers"),
    ],
)
def test_one_that_cannot_be_put_there_is_refused_in_words(arguments, words, capsys) -> None:
    with pytest.raises(SystemExit):
        parsed(arguments)
    assert words in capsys.readouterr().err


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", BUGS)
def test_chaos_finds_it(name, tmp_path) -> None:
    if BUGS[name].needs_machines and (why := walls.probe()) is not None:
        pytest.skip(f"not run: {why}")
    places = "walled" if BUGS[name].needs_machines else "plain"
    command = [sys.executable, str(RUN), "--spark", "none", "--places", places, "--mutant", name]
    command += ["--minutes", MINUTES, "--out", str(tmp_path / "run")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == FOUND, ended.stdout + ended.stderr
