"""Followers with the lean fetch are, after every event, where followers that fetch by Fetch alone are."""

import random
import time
from contextlib import contextmanager, nullcontext

import pytest

from sparklog.broker.following.session_with_leader import SessionWithLeader
from sparklog.broker.waiting.fetch_sessions import FetchSessions
from sparklog.broker.waiting.lean_wait import LeanWait
from sparklog.broker.waiting.session_partitions import SessionPartitions
from sparklog.core.replication.leader import Leader
from sparklog.wire.messages.data.fetch import FetchRequest
from sparklog.wire.messages.data.lean_fetch import LeanFetchRequest
from tests.broker.following.twins import LIMITS, Cluster, draw_event

EVENTS = 150
LEAST_SEEDS = 20


def run(folder, seed, mutant=nullcontext):
    """The kinds of requests that the cluster with the lean form has sent. ``mutant`` is in that one alone."""
    dice = random.Random(f"twins {seed}")
    partitions, settings = dice.randint(1, 5), dice.choice(LIMITS)
    plain, lean = (
        Cluster(folder / name, partitions, settings, has_lean=name == "lean") for name in ("plain", "lean")
    )
    for nth in range(EVENTS):
        event = draw_event(dice, partitions)
        event(plain)
        with mutant():
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
    run_for(tmp_path, 0, 0)


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_they_agree_for_longer(tmp_path) -> None:
    run_for(tmp_path, 90, 1_000_000)


# Mutants


def slots_are_places(patch) -> None:
    """A leader takes slots for places in its order of reading, which changes with each answer."""
    patch(SessionPartitions, "_key_of", lambda self, slot: list(self._all)[slot])
    patch(SessionPartitions, "slot_of", lambda self, key: list(self._all).index(key))
    patch(
        SessionPartitions, "has_slots", lambda self, all_of: all(one.slot < len(self._all) for one in all_of)
    )


def a_lost_answer_counts_as_read(patch) -> None:
    """A follower goes on in the session, and sends no position again."""
    positions, put_into = SessionWithLeader.lean_positions, SessionWithLeader.put_into_lean
    begin = FetchSessions.begin_lean

    def lean_positions(self, *asked):
        self._is_in_doubt = False
        return positions(self, *asked)

    def put_into_lean(self, request, asked) -> None:
        put_into(self, request, asked)
        self._known |= self._said

    def begin_lean(self, session_id, epoch, *rest):
        if (session := self._sessions.get(session_id)) is not None:
            session.epoch = epoch
        return begin(self, session_id, epoch, *rest)

    patch(SessionWithLeader, "lean_positions", lean_positions)
    patch(SessionWithLeader, "put_into_lean", put_into_lean)
    patch(FetchSessions, "begin_lean", begin_lean)


def rest_hides_a_change(patch) -> None:
    """A change while no fetch of the session waits wakes nothing."""
    wake = SessionPartitions.wake
    patch(SessionPartitions, "wake", lambda self, token: self._join is not None and wake(self, token))


def a_wake_up_of_the_earlier_request_answers_the_next(patch) -> None:
    wake, park = LeanWait.wake, LeanWait._park

    def wake_or_note(self, token) -> None:
        self.is_late = self._parked is None
        wake(self, token)

    def answer_or_park(self, asked) -> None:
        if self.__dict__.pop("is_late", False):
            asked.answer(asked)
        else:
            park(self, asked)

    patch(LeanWait, "wake", wake_or_note)
    patch(LeanWait, "_park", answer_or_park)


def a_session_keeps_a_dead_follower_in_sync(patch) -> None:
    """Its last fetch counts as one that still is in progress."""
    on_tick = Leader.on_tick

    def judged(self, now_ms, waiting_since):
        last = {follower: known.last_fetch_ms for follower, known in self.followers.items()}
        return on_tick(self, now_ms, last)

    patch(Leader, "on_tick", judged)


MUTANTS = (
    slots_are_places,
    a_lost_answer_counts_as_read,
    rest_hides_a_change,
    a_wake_up_of_the_earlier_request_answers_the_next,
    a_session_keeps_a_dead_follower_in_sync,
)
SEEDS_MAX = 20


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_bug_of_the_lean_form_makes_them_differ(mutant, tmp_path, monkeypatch) -> None:
    @contextmanager
    def at_work():
        with monkeypatch.context() as context:
            mutant(context.setattr)
            yield

    def differs(seed) -> bool:
        try:
            run(tmp_path / str(seed), seed, at_work)
        except AssertionError:
            return True
        return False

    assert any(map(differs, range(SEEDS_MAX)))
