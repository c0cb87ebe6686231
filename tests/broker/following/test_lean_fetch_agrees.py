"""Followers with the lean fetch are, after every event, where followers that fetch by Fetch alone are."""

import random
import time

import pytest

from sparklog.wire.messages.data.fetch import FetchRequest
from sparklog.wire.messages.data.lean_fetch import LeanFetchRequest
from tests.broker.following.twins import LIMITS, Cluster, draw_event

EVENTS = 150
LEAST_SEEDS = 20


def run(folder, seed):
    """The kinds of requests that the cluster with the lean form has sent."""
    dice = random.Random(f"twins {seed}")
    partitions, settings = dice.randint(1, 5), dice.choice(LIMITS)
    plain, lean = (
        Cluster(folder / name, partitions, settings, has_lean=name == "lean") for name in ("plain", "lean")
    )
    for nth in range(EVENTS):
        event = draw_event(dice, partitions)
        event(plain)
        event(lean)
        assert plain.state() == lean.state(), f"seed {seed}, event {nth}"
    assert plain.contents() == lean.contents(), f"seed {seed}"
    assert LeanFetchRequest not in {form for member in plain.members.values() for form in member.forms}
    return [form for member in lean.members.values() for form in member.forms]


def run_for(folder, seconds, first_seed):
    forms = []
    end, seed = time.monotonic() + seconds, first_seed
    while time.monotonic() < end or seed < first_seed + LEAST_SEEDS:
        forms += run(folder / str(seed), seed)
        seed += 1
    assert forms.count(LeanFetchRequest) > forms.count(FetchRequest) / 2


def test_two_clusters_that_the_same_happens_to_agree_whatever_the_form_of_their_fetches(tmp_path) -> None:
    run_for(tmp_path, 20, 0)


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_they_agree_for_minutes(tmp_path) -> None:
    run_for(tmp_path, 240, 1_000_000)
