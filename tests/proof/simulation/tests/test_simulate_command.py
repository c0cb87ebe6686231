"""``scripts/simulate``: its options, its output, its exit statuses."""

import argparse
import json
import re
from pathlib import Path

import pytest

from simulation import command
from simulation.marks import ALL_MARKS
from simulation.mutants import MUTANTS
from simulation.mutants.security import CHECKED
from simulation.seeds.fleet import Summary, summary_of
from sparklog.cli.command import DONE, FAILED, WRONG_USAGE
from sparklog.model.errors import ConfigError


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args(arguments))


def test_seeds_end_with_one_line_and_status_0(capsys):
    assert run("--seeds", "1-2", "--steps", "300") == DONE
    assert capsys.readouterr().out.splitlines()[-1].startswith("2 seeds, 0 violations, ")


def test_a_violation_names_seed_and_invariant_and_gives_status_1(capsys):
    assert run("--seeds", "1-1", "--mutant", "ack-on-append") == FAILED
    told = capsys.readouterr()
    first, last = told.out.splitlines()
    assert first.startswith("seed 1 violates AcknowledgedIsCommitted: ")
    assert last.startswith("1 seeds, 1 violation, ")
    assert told.err == "its story: scripts/simulate --replay 1 --mutant ack-on-append\n"


@pytest.fixture
def many(monkeypatch):
    """Seeds without a run behind them; ``many(*marks)`` says which marks the last of them reaches."""

    def seeds_that_reach(*marks):
        def summaries(seeds, **unused):
            for seed in seeds:
                yield Summary(seed, None, "", 1, 1, 0, 0, 0, 0, 0, marks if seed == seeds[-1] else ())

        monkeypatch.setattr(command, "summaries", summaries)

    return seeds_that_reach


def test_so_many_seeds_fail_if_none_reached_a_mark_and_say_which(many, capsys):
    many(*ALL_MARKS[2:])
    assert run("--seeds", f"1-{command.MARKS_FROM}") == FAILED
    *missed, last = capsys.readouterr().out.splitlines()
    assert missed == [f"no seed reached: {mark}" for mark in ALL_MARKS[:2]]
    assert last.startswith(f"{command.MARKS_FROM} seeds, 0 violations, ")
    assert run("--seeds", f"1-{command.MARKS_FROM}", "--json") == FAILED
    assert json.loads(capsys.readouterr().out)["missed"] == list(ALL_MARKS[:2])


def test_with_every_mark_they_are_done(many):
    many(*ALL_MARKS)
    assert run("--seeds", f"1-{command.MARKS_FROM}") == DONE


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["--seeds", f"1-{command.MARKS_FROM - 1}"], id="fewer seeds"),
        pytest.param(["--seeds", f"1-{command.MARKS_FROM}", "--steps", "9"], id="runs that are cut short"),
        pytest.param(["--seeds", f"1-{command.MARKS_FROM}", "--mutant", "ack-on-append"], id="a mutant"),
    ],
)
def test_of_others_no_mark_is_asked(words, many, capsys):
    many()
    assert run(*words) == DONE
    assert "no seed reached" not in capsys.readouterr().out


@pytest.mark.parametrize(("seeds", "first"), [("3", 3), ("0", 0), ("0-0", 0)])
def test_one_seed_alone_is_a_range_of_one_and_0_is_a_seed(seeds, first, capsys):
    assert run("--seeds", seeds, "--steps", "200", "--json") == DONE
    document = json.loads(capsys.readouterr().out)
    assert (document["first_seed"], document["last_seed"], document["seeds"]) == (first, first, 1)


def test_the_help_says_what_seeds_may_be(capsys):
    with pytest.raises(SystemExit):
        run("--help")
    told = " ".join(capsys.readouterr().out.split())
    assert "run the seeds from A to B, both included, or A alone; whole numbers from 0 on" in told


def test_a_replay_tells_the_shrunk_run(capsys):
    assert run("--replay", "1", "--mutant", "ack-on-append") == FAILED
    lines = capsys.readouterr().out.splitlines()
    assert "VIOLATION" in lines[-2]
    assert lines[-1].startswith("seed 1 violates AcknowledgedIsCommitted with 0 of its ")


def test_a_replay_of_a_good_seed_says_so(capsys):
    assert run("--replay", "2", "--steps", "300", "--json") == DONE
    document = json.loads(capsys.readouterr().out)
    assert (document["seed"], document["invariant"]) == (2, None)


def test_a_hole_that_no_seed_shows_is_refused_with_the_test_that_finds_it():
    with pytest.raises(ConfigError, match=r"test_checked_mutants\.py -k deny-after-allow"):
        run("--seeds", "1-2", "--mutant", "deny-after-allow")


def test_mutants_are_listed(capsys):
    assert run("--list-mutants") == DONE
    named = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert named == [one.name for one in (*MUTANTS, *CHECKED)]
    run("--list-mutants", "--json")
    rows = json.loads(capsys.readouterr().out)["mutants"]
    assert {"name", "origin", "damage"} <= rows[0].keys()
    assert rows[-1]["caught_by"].startswith("pytest tests/proof/")
    assert {tuple(row["brings_back"]) for row in rows} >= {(), ("B63",), ("K1", "K2")}


@pytest.mark.parametrize(
    ("seed", "words"),
    [
        ("1-3", "'1-3' is a range"),
        ("x", "'x' is not a whole number from 0 on"),
        ("-1", "'-1' is not a whole number from 0 on"),
    ],
)
def test_a_replay_takes_one_seed(seed, words, capsys):
    with pytest.raises(SystemExit):
        run("--replay", seed)
    assert f"{words}; a replay tells of one seed, as in --replay 17" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("--replay", "'1-3' is a range; a replay tells of one seed, as in --replay 17"),
        ("--steps", "'1-3' is not a whole number"),
    ],
)
def test_an_option_with_a_wrong_number_ends_with_status_2_and_names_it(option, complaint, capsys):
    assert command.main(["--seeds", "1", option, "1-3"]) == WRONG_USAGE
    expected = f"scripts/simulate: {option}: {complaint}; see scripts/simulate --help\n"
    assert capsys.readouterr().err.endswith(expected)


@pytest.mark.parametrize(
    "wrong",
    [
        ["--seeds", "5-1"],
        ["--seeds", "many"],
        ["--seeds", "-1"],
        ["--seeds", "١-٣"],
        ["--seeds", "1-2", "--mutant", "unknown"],
        ["--replay", "1", "--resume", "file"],
        ["--seeds", "1-2", "--steps", "0"],
        ["--seeds", "1-2", "--processes", "0"],
        ["--list-mutants", "--mutant", "x"],
        ["--list-mutants", "--mutant", "ack-on-append"],
        ["--list-mutants", "--resume", "file"],
    ],
)
def test_wrong_usage_is_said_with_the_value(wrong):
    with pytest.raises(ConfigError, match="--"):
        run(*wrong)


DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = re.compile(r"^(?:\$ )?scripts/simulate --replay (\d+) --mutant (\S+)", re.MULTILINE)
EXAMPLES = [
    *(("simulation.md", *found) for found in EXAMPLE.findall((DOCS / "simulation.md").read_text())),
    *(("--help", *found) for found in EXAMPLE.findall("\n".join(command.COMMAND.examples))),
]


def test_the_page_and_the_help_have_an_example():
    assert {where for where, _, _ in EXAMPLES} == {"simulation.md", "--help"}


@pytest.mark.parametrize(("seed", "mutant"), sorted({(int(seed), name) for _, seed, name in EXAMPLES}))
def test_a_replay_that_is_an_example_breaks_a_rule(seed, mutant):
    assert summary_of(seed, mutant=mutant).invariant is not None


def test_an_acknowledgement_that_is_not_true_is_told_as_a_sentence():
    what = summary_of(1, mutant="ack-on-append").what
    assert re.search(
        r"producer \d+ was told that its batch \d+ is at offset \d+, where nothing is committed$", what
    )
