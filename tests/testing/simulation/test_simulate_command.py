"""``sparklog simulate`` from the command line's side."""

import argparse
import json

import pytest

from sparklog.cli.command import DONE, FAILED, Command
from sparklog.model.errors import ConfigError, SparklogError
from sparklog.testing.simulation import command
from sparklog.testing.simulation.mutants import MUTANTS


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args(arguments))


def test_the_entry_point_is_a_command():
    assert isinstance(command.simulate_command, Command)
    assert command.simulate_command.name == "simulate"


def test_seeds_end_with_one_line_and_status_0(capsys):
    assert run("--seeds", "1-2", "--steps", "300") == DONE
    assert capsys.readouterr().out.splitlines()[-1].startswith("2 seeds, 0 violations, ")


def test_a_violation_names_seed_and_invariant_and_gives_status_1(capsys):
    assert run("--seeds", "1-1", "--mutant", "ack-on-append") == FAILED
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("seed 1 violates AcknowledgedIsCommitted: ")
    assert last.startswith("1 seeds, 1 violation, ")


def test_a_replay_tells_the_shrunk_run(capsys):
    assert run("--replay", "1", "--mutant", "ack-on-append") == FAILED
    lines = capsys.readouterr().out.splitlines()
    assert "VIOLATION" in lines[-2]
    assert lines[-1].startswith("seed 1 violates AcknowledgedIsCommitted with 0 of its ")


def test_a_replay_of_a_good_seed_says_so(capsys):
    assert run("--replay", "2", "--steps", "300", "--json") == DONE
    document = json.loads(capsys.readouterr().out)
    assert (document["seed"], document["invariant"]) == (2, None)


def test_mutants_are_listed(capsys):
    assert run("--list-mutants") == DONE
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [one.name for one in MUTANTS]
    run("--list-mutants", "--json")
    rows = json.loads(capsys.readouterr().out)["mutants"]
    assert {"name", "origin", "damage"} <= rows[0].keys()


def test_a_run_goes_on_where_its_file_says_it_stopped(tmp_path, capsys):
    file = tmp_path / "night.json"
    run("--seeds", "1-3", "--steps", "200", "--resume", str(file))
    kept = json.loads(file.read_text())
    assert (kept["next_seed"], kept["violations"]) == (4, [])
    assert kept["simulated_ms"] > 0
    file.write_text(json.dumps(kept | {"next_seed": 3}))
    run("--seeds", "1-3", "--steps", "200", "--resume", str(file))
    assert json.loads(file.read_text())["next_seed"] == 4


def test_a_file_of_another_run_is_refused(tmp_path):
    file = tmp_path / "night.json"
    run("--seeds", "1-1", "--steps", "200", "--resume", str(file))
    with pytest.raises(SparklogError, match="last seed 1, this one has 5"):
        run("--seeds", "1-5", "--steps", "200", "--resume", str(file))


def test_a_run_goes_on_at_another_commit_of_the_same_code_and_at_no_other_code(tmp_path):
    file = tmp_path / "night.json"
    run("--seeds", "1-2", "--steps", "200", "--resume", str(file))
    kept = json.loads(file.read_text())
    file.write_text(json.dumps(kept | {"next_seed": 2, "commit": "0123456"}))
    run("--seeds", "1-2", "--steps", "200", "--resume", str(file))
    assert json.loads(file.read_text())["next_seed"] == 3
    assert json.loads(file.read_text())["seconds"] >= kept["seconds"]
    file.write_text(json.dumps(kept | {"code": "0123456789abcdef"}))
    with pytest.raises(SparklogError, match="a run with code 0123456789abcdef, this one has"):
        run("--seeds", "1-2", "--steps", "200", "--resume", str(file))


@pytest.mark.parametrize("foreign", ["[]", "{}", "a,b", "17", '{"violations": 1}'])
def test_a_file_that_no_run_wrote_is_refused_and_left_as_it_is(tmp_path, foreign):
    file = tmp_path / "precious.csv"
    file.write_text(foreign)
    with pytest.raises(SparklogError, match=r"no run of .* wrote that file; give the file"):
        run("--seeds", "1-1", "--resume", str(file))
    assert file.read_text() == foreign


def test_a_run_that_is_through_says_that_nothing_is_left(tmp_path, capsys):
    for _ in range(2):
        run("--seeds", "1-1", "--steps", "200", "--resume", str(tmp_path / "night.json"))
    assert "night.json has all these seeds; there is nothing left to run" in capsys.readouterr().err


@pytest.mark.parametrize(("seed", "words"), [("1-3", "'1-3' is a range"), ("x", "'x' is not a whole number")])
def test_a_replay_takes_one_seed(seed, words, capsys):
    with pytest.raises(SystemExit):
        run("--replay", seed)
    assert f"{words}; a replay tells of one seed, as in --replay 17" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [
        ["--seeds", "5-1"],
        ["--seeds", "many"],
        ["--seeds", "1-2", "--mutant", "unknown"],
        ["--replay", "1", "--resume", "file"],
        ["--seeds", "1-2", "--steps", "0"],
        ["--seeds", "1-2", "--processes", "0"],
    ],
)
def test_wrong_usage_is_said_with_the_value(wrong):
    with pytest.raises(ConfigError, match="--"):
        run(*wrong)
