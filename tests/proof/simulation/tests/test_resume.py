"""``scripts/simulate --resume FILE``: a long run goes on where it stopped, or says why it may not."""

import contextlib
import json
import multiprocessing.connection
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from simulation import command
from simulation.seeds import progress_file, provenance
from simulation.seeds.fleet import Summary

CLONE = Path(__file__).parents[4]
SCRIPT = str(CLONE / "scripts" / "simulate")
WITH_OUR_PYTHON = {**os.environ, "PYTHON": sys.executable}
DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130
SHORT = ("--steps", "200")
MUTANT = ("--mutant", "ack-on-append")


def run(*arguments):
    return command.main(list(map(str, arguments)))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "night.json"


@pytest.fixture
def kept(file, capsys):
    """A document that a run of the seeds 1 to 3 has written, without its last one."""
    assert run("--seeds", "1-3", *SHORT, "--resume", file) == DONE
    document = json.loads(file.read_text())
    keep(file, document | {"next_seed": 3})
    capsys.readouterr()
    return document | {"next_seed": 3}


def keep(file, document):
    file.write_text(json.dumps(document))


@pytest.fixture
def nothing_runs(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a seed was run")

    monkeypatch.setattr(command, "summaries", refuse)


def test_a_run_goes_on_where_its_file_says_it_stopped(file, kept, capsys):
    assert kept["simulated_ms"] > 0
    assert run("--seeds", "1-3", *SHORT, "--resume", file) == DONE
    assert capsys.readouterr().out.startswith("3 seeds, 0 violations, ")
    assert json.loads(file.read_text())["next_seed"] == 4


def test_a_run_goes_on_at_another_commit_of_the_same_code(file, kept):
    keep(file, kept | {"commit": "0123456"})
    assert run("--seeds", "1-3", *SHORT, "--resume", file) == DONE
    gone_on = json.loads(file.read_text())
    assert (gone_on["next_seed"], gone_on["commit"]) == (4, "0123456")
    assert gone_on["seconds"] >= kept["seconds"]


def test_going_on_names_what_was_violated_before(file, capsys):
    run("--seeds", "1-2", *MUTANT, "--resume", file)
    at_first = capsys.readouterr().out.splitlines()
    assert at_first[0].startswith("seed 1 violates AcknowledgedIsCommitted: ")
    assert run("--seeds", "1-2", *MUTANT, "--resume", file) == FAILED
    again = capsys.readouterr().out.splitlines()
    assert again[:-2] == at_first[:-1]
    assert again[-2] == f"{file} has all these seeds; there is nothing left to run"
    assert again[-1] == re.sub(r"\S+ seeds/s$", "0.0 seeds/s", at_first[-1])


def test_a_run_that_is_through_leaves_standard_output_to_json(file, capsys):
    for _ in range(2):
        assert run("--seeds", "1", *SHORT, "--resume", file, "--json") == DONE
    told = capsys.readouterr()
    assert json.loads(told.out.splitlines()[-1])["seeds"] == 1
    assert "has all these seeds; there is nothing left to run" in told.err


# ---- refusals: nothing is run, and the status is 2 ---------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            ("--seeds", "1-5", *SHORT),
            "is of the seeds 1-3, and this run has --seeds 1-5; give --seeds 1-3, or",
        ),
        (
            ("--seeds", "1-3", *SHORT, *MUTANT),
            "is of a run without --mutant, and this one is with --mutant ack-",
        ),
        (
            ("--seeds", "1-3"),
            "is of a run with --steps 200, and this one is without --steps; give the same as",
        ),
        (("--seeds", "1-3", "--steps", "9"), "is of a run with --steps 200, and this one is with --steps 9;"),
    ],
)
def test_a_file_of_another_run_is_refused(options, why, file, kept, nothing_runs, capsys):
    assert run(*options, "--resume", file) == WRONG_USAGE
    told = capsys.readouterr().err
    assert told.startswith(f"simulate: --resume {file}: that file {why}")
    assert "None" not in told
    assert json.loads(file.read_text()) == kept


def test_a_file_of_other_code_is_refused_with_the_commit_that_has_it(file, kept, nothing_runs, capsys):
    keep(file, kept | {"code": "0123456789abcdef", "commit": "89abcde", "marks": {"of other days": 1}})
    assert run("--seeds", "1-3", *SHORT, "--resume", file) == WRONG_USAGE
    assert "(digest 0123456789abcdef, begun at commit 89abcde; here " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("was", "told"),
    [
        ({"python": "CPython 3.11.1"}, "its seeds ran with CPython 3.11.1, and here is "),
        ({"libraries": {"kazoo": "0.4.0"}}, "its seeds ran with kazoo 0.4.0, and here is "),
    ],
)
def test_a_file_of_another_python_or_library_is_refused(was, told, file, kept, nothing_runs, capsys):
    changed = {name: kept[name] | one if isinstance(one, dict) else one for name, one in was.items()}
    keep(file, kept | changed)
    assert run("--seeds", "1-3", *SHORT, "--resume", file) == WRONG_USAGE
    complaint = capsys.readouterr().err
    assert told in complaint
    assert "or run --seeds 3-3 with a file that is not there yet" in complaint


def test_a_file_that_does_not_say_which_python_ran_is_gone_on_with(file, kept, capsys):
    keep(file, {name: one for name, one in kept.items() if name not in ("python", "libraries")})
    assert run("--seeds", "1-3", *SHORT, "--resume", file) == DONE
    assert (
        f"{file} does not say which Python and which libraries ran its first 2 seeds"
        in capsys.readouterr().err
    )
    gone_on = json.loads(file.read_text())
    assert (gone_on["next_seed"], gone_on["python"], gone_on["libraries"]) == (4, None, {})


@pytest.mark.parametrize(
    "foreign", [b"[]", b"{}", b"a,b", b"17", b'{"violations": 1}', b"", b"\xff\xfe", b"[" * 100_000]
)
def test_a_file_that_no_run_wrote_is_refused_and_left_as_it_is(foreign, file, nothing_runs, capsys):
    file.write_bytes(foreign)
    assert run("--seeds", "1", "--resume", file) == WRONG_USAGE
    assert re.search(
        r"--resume .*night.json: .*no run of .* wrote that file; give the file", capsys.readouterr().err
    )
    assert file.read_bytes() == foreign


WRONG = [
    {"commit": 7},
    {"code": ""},
    {"first_seed": True},
    {"first_seed": -1},
    {"last_seed": 0},
    {"last_seed": "3"},
    {"mutant": 1},
    {"steps_max": 0},
    {"next_seed": 99},
    {"next_seed": 5},
    {"next_seed": 0},
    {"next_seed": -5},
    {"next_seed": "x"},
    {"next_seed": 2.0},
    {"next_seed": 1},
    {"simulated_ms": -1},
    {"steps": "many"},
    {"faults": None},
    {"acknowledged": 1.5},
    {"operations": False},
    {"spared": -1},
    {"accepted": "all"},
    {"seconds": -0.1},
    {"seconds": "1"},
    {"seconds": True},
    {"seconds": float("nan")},
    {"seconds": float("inf")},
    {"marks": 3},
    {"marks": {"no such mark": 1}},
    {"marks": {"an ISR of one": 3}},
    {"marks": {"an ISR of one": 0}},
    {"marks": {"an ISR of one": "1"}},
    {"violations": {}},
    {"violations": [1]},
    {"violations": [{"seed": 1}]},
    {"violations": [{"seed": 3, "invariant": "ComesToRest", "what": ""}]},
    {"violations": [{"seed": "1", "invariant": "ComesToRest", "what": ""}]},
    {"violations": [{"seed": 1, "invariant": "", "what": ""}]},
    {"violations": [{"seed": 1, "invariant": "ComesToRest", "what": 5}]},
    {"violations": [{"seed": one, "invariant": "ComesToRest", "what": ""} for one in (2, 1)]},
    {"violations": [{"seed": one, "invariant": "ComesToRest", "what": ""} for one in (1, 1)]},
    {"python": 3},
    {"python": None},
    {"libraries": []},
    {"libraries": {}},
    {"libraries": {"kazoo": 5}},
    {"more": 1},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_field_that_no_run_writes_is_named_and_nothing_is_run(wrong, file, kept, nothing_runs, capsys):
    keep(file, kept | wrong)
    before = file.read_text()
    assert run("--seeds", "1-3", *SHORT, "--resume", file) == WRONG_USAGE
    told = capsys.readouterr().err
    assert told.startswith(f"simulate: --resume {file}: ")
    assert "no run of `scripts/simulate --seeds A-B --resume FILE` wrote that file" in told
    assert file.read_text() == before


def test_every_field_is_missed(file, kept, nothing_runs):
    missed = []
    for name in kept:
        keep(file, {other: one for other, one in kept.items() if other != name})
        if run("--seeds", "1-3", *SHORT, "--resume", file) == WRONG_USAGE:
            missed.append(name)
    assert missed == list(kept)


def test_a_file_of_nothing_done_has_no_sums(file, kept, capsys, nothing_runs):
    keep(file, kept | {"next_seed": 1, "marks": {}, "violations": []})
    assert run("--seeds", "1-3", *SHORT, "--resume", file) == WRONG_USAGE
    assert '"simulated_ms" is ' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("", "this is a directory; give the name of a file"),
        (
            "missing/night.json",
            "cannot be written (No such file or directory); give a file in a directory that",
        ),
        ("taken.json/night.json", "cannot be "),
        ("x" * 300, "cannot be "),
    ],
)
def test_a_file_that_cannot_be_is_refused_before_a_seed_is_run(place, why, tmp_path, nothing_runs, capsys):
    (tmp_path / "taken.json").write_text("{}")
    assert run("--seeds", "1-2", "--resume", tmp_path / place) == WRONG_USAGE
    told = capsys.readouterr().err
    assert told.startswith(f"simulate: --resume {tmp_path / place}: {why}")
    assert ".tmp" not in told.replace(str(tmp_path), "")


def test_what_is_no_plain_file_is_not_read(file, nothing_runs, capsys):
    os.mkfifo(file)
    assert run("--seeds", "1-2", "--resume", file) == WRONG_USAGE
    assert "this is no plain file; give the name of a file" in capsys.readouterr().err


# ---- while it runs -----------------------------------------------------------------------------------------


def three_seeds(then):
    """In the place of ``summaries``: three seeds, the second of which fails, and then ``then`` is raised."""
    for seed in (1, 2, 3):
        invariant = "ComesToRest" if seed == 2 else None
        yield Summary(seed, invariant, "it did not", 10, 5, 1, 3, 2, 1, 1, {"an ISR of one": 4})
    raise then


def test_ctrl_c_says_how_far_it_came_and_that_the_file_has_it(file, monkeypatch, capsys):
    monkeypatch.setattr(command, "summaries", lambda *_, **__: three_seeds(KeyboardInterrupt()))
    assert run("--seeds", "1-9", "--resume", file) == INTERRUPTED
    told = capsys.readouterr().err
    assert f"stopped after 3 of 9 seeds, 1 violation; {file} has these, and the same command goes on" in told
    kept = json.loads(file.read_text())
    assert (kept["next_seed"], kept["marks"]) == (4, {"an ISR of one": 3})
    assert (kept["faults"], kept["spared"], kept["operations"], kept["accepted"]) == (9, 6, 3, 3)
    assert kept["violations"] == [{"seed": 2, "invariant": "ComesToRest", "what": "it did not"}]


def test_ctrl_c_without_a_file_says_what_would_have_kept_the_seeds(monkeypatch, capsys):
    monkeypatch.setattr(command, "summaries", lambda *_, **__: three_seeds(KeyboardInterrupt()))
    assert run("--seeds", "1-9") == INTERRUPTED
    assert (
        "stopped after 3 of 9 seeds, 1 violation; what is to go on later needs --resume"
        in capsys.readouterr().err
    )


@pytest.mark.proof
def test_ctrl_c_in_a_terminal_ends_all_processes_without_a_traceback(file):
    line = [SCRIPT, "--seeds", "1-9999", "--processes", "2"]
    with subprocess.Popen(
        [*line, *SHORT, "--resume", str(file)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=WITH_OUR_PYTHON,
    ) as ran:
        first = ran.stderr.readline()
        os.killpg(ran.pid, signal.SIGINT)
        rest = ran.stderr.read()
    assert re.fullmatch(r"\d+ of 9999 seeds\n", first)
    assert ran.returncode == INTERRUPTED
    far = re.search(r"^stopped after (\d+) of 9999 seeds, 0 violations; .* has these, ", rest, re.MULTILINE)
    assert json.loads(file.read_text())["next_seed"] == int(far[1]) + 1
    assert rest.endswith("simulate: interrupted\n")
    assert "Traceback" not in rest


@pytest.mark.proof
def test_a_run_that_is_killed_leaves_no_process_behind(file):
    line = [SCRIPT, "--seeds", "1-9999", "--processes", "2"]
    with subprocess.Popen(
        [*line, "--resume", str(file)],
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=WITH_OUR_PYTHON,
    ) as ran:
        try:
            ran.stderr.readline()
            ran.kill()
            ends = multiprocessing.connection.wait([ran.stderr], timeout=60)
            while ends and ran.stderr.read1():
                ends = multiprocessing.connection.wait([ran.stderr], timeout=60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(ran.pid, signal.SIGKILL)
    assert ends, "somebody still holds the standard error that all of its processes share"


def test_a_disk_that_fills_while_seeds_run_is_told_with_how_far_they_came(file, monkeypatch, capsys):
    def fill(*_):
        raise OSError(28, "No space left on device")

    def and_then_the_disk_is_full():
        monkeypatch.setattr(progress_file.os, "replace", fill)
        yield from three_seeds(AssertionError("nobody noticed"))

    monkeypatch.setattr(command, "summaries", lambda *_, **__: and_then_the_disk_is_full())
    monkeypatch.setattr(command, "PROGRESS_SECONDS", -1.0)
    assert run("--seeds", "1-9", "--resume", file) == FAILED
    told = capsys.readouterr().err
    assert "could not be written any more (No space left on device) after 1 of 9 seeds;" in told
    assert [one.name for one in file.parent.iterdir()] == ["night.json"]


# ---- what ran ----------------------------------------------------------------------------------------------

LOADED = """
import sys
from importlib.metadata import packages_distributions
from simulation.seeds.fleet import summary_of
summary_of(1, steps_max=200)
packages = packages_distributions()
print(*sorted({one for name in sys.modules for one in packages.get(name, ())}))
"""


def test_the_libraries_that_are_written_down_are_those_that_a_run_loads():
    project = tomllib.loads((CLONE / "pyproject.toml").read_text())["project"]
    needed = {re.match(r"[\w-]+", one)[0] for one in project["dependencies"]}
    loaded = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=CLONE / "tests/proof", capture_output=True, text=True, check=True
    )
    assert tuple(sorted(needed & set(loaded.stdout.split()))) == provenance.LIBRARIES


def test_python_and_libraries_are_told(file, capsys):
    assert run("--seeds", "1", *SHORT, "--json", "--resume", file) == DONE
    told, kept = json.loads(capsys.readouterr().out), json.loads(file.read_text())
    assert told["python"] == kept["python"] == provenance.python_version()
    assert told["libraries"] == kept["libraries"] == provenance.library_versions()
    assert set(told["libraries"]) == set(provenance.LIBRARIES)
