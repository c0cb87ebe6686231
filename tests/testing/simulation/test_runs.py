"""Whole runs: calm ones, troubled ones, the same one twice."""

import os
import subprocess
import sys

import pytest

from sparklog.testing.simulation.plan import draw_plan
from sparklog.testing.simulation.simulation import simulate

DIGESTS = """
from sparklog.testing.simulation.plan import draw_plan
from sparklog.testing.simulation.simulation import simulate

for seed in (3, 12):
    outcome = simulate(draw_plan(seed), is_told=True)
    print(seed, outcome.violation, outcome.steps, len(outcome.lines), outcome.digest)
"""


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_cluster_that_nothing_happens_to_breaks_no_rule_and_comes_to_rest(seed):
    outcome = simulate(draw_plan(seed, without_faults=True))
    assert outcome.violation is None, outcome
    assert outcome.acknowledged > 20


@pytest.mark.parametrize("first", range(1, 201, 20))
def test_a_troubled_cluster_breaks_no_rule_and_comes_to_rest_once_it_is_mended(first):
    outcomes = [simulate(draw_plan(seed)) for seed in range(first, first + 20)]
    assert [outcome for outcome in outcomes if outcome.violation is not None] == []
    assert sum(outcome.faults for outcome in outcomes) > 100
    assert sum(outcome.acknowledged for outcome in outcomes) > 1_000


def test_the_same_seed_is_the_same_run_byte_for_byte_whatever_python_hashes():
    def digests(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", DIGESTS], capture_output=True, text=True, check=True, env=environment
        )
        return done.stdout

    assert len({digests(hash_seed) for hash_seed in ("0", "1", "4711")}) == 1


def test_a_run_told_as_a_story_is_the_run_that_was_checked():
    plan = draw_plan(5)
    quiet, told = simulate(plan), simulate(plan, is_told=True)
    assert (quiet.steps, quiet.simulated_ms, quiet.acknowledged) == (
        told.steps,
        told.simulated_ms,
        told.acknowledged,
    )
    assert told.lines


def test_a_limit_of_steps_heals_the_cluster_earlier():
    short, whole = simulate(draw_plan(1, steps_max=1_500)), simulate(draw_plan(1))
    assert short.violation is None
    assert short.faults < whole.faults
