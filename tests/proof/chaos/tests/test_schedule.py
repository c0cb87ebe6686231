"""Which fault comes when."""

from itertools import islice

import pytest

from chaos.schedule import TRIES, in_order, turns

WEIGHTS = {"kill": 2, "pause": 1, "wipe": 1}


def _first(count, seed=7, weights=WEIGHTS, pairs=0.0):
    return list(islice(turns(seed, weights, pairs), count))


def test_the_same_seed_gives_the_same_turns_and_another_seed_others():
    assert _first(50, pairs=0.3) == _first(50, pairs=0.3)
    assert [turn.kinds for turn in _first(50)] != [turn.kinds for turn in _first(50, seed=8)]


def test_every_kind_comes_as_often_as_it_weighs_before_any_comes_again():
    for at in range(0, 40, 4):
        kinds = sorted(turn.kinds[0] for turn in _first(40)[at : at + 4])
        assert kinds == ["kill", "kill", "pause", "wipe"]


def test_some_turns_are_two_faults_of_different_kinds():
    found = _first(200, pairs=0.5)
    pairs = [turn for turn in found if len(turn.kinds) == 2]
    assert 0 < len(pairs) < 200
    assert all(turn.kinds[0] != turn.kinds[1] for turn in pairs)
    assert pairs[0].name == " + ".join(pairs[0].kinds)


def test_a_fault_that_comes_second_counts_as_dealt():
    dealt = [kind for turn in _first(400, pairs=0.5) for kind in turn.kinds]
    assert abs(dealt.count("pause") - dealt.count("wipe")) <= 1


def test_turns_are_numbered_and_draw_from_seeds_of_their_own():
    found = _first(30)
    assert [turn.number for turn in found] == list(range(1, 31))
    assert len({turn.seed for turn in found}) == 30


def test_a_schedule_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no kind of fault is left"):
        next(turns(1, {}))


def test_what_is_to_be_alone_is_of_no_pair():
    some = list(islice(turns(7, WEIGHTS, pairs=1.0, alone={"kill"}), 60))
    assert {turn.kinds for turn in some if "kill" in turn.kinds} == {("kill",)}
    assert any(len(turn.kinds) == 2 for turn in some)


def test_turns_are_counted_on_from_those_that_were_in_order():
    assert [turn.number for turn in islice(turns(7, WEIGHTS, after=2), 2)] == [3, 4]


def test_kinds_in_order_come_as_given_each_once_if_it_strikes():
    struck = set()
    came = []
    for turn in in_order(7, ["wipe", "kill", "pause"], struck):
        came.append((turn.number, turn.kinds))
        struck.update(turn.kinds)
    assert came == [(1, ("wipe",)), (2, ("kill",)), (3, ("pause",))]


def test_a_kind_in_order_that_misses_comes_again_after_the_others_and_not_for_ever():
    struck = set()
    came = []
    for turn in in_order(7, ["kill", "wipe"], struck):
        came.append(turn)
        struck.update(set(turn.kinds) - {"kill"})
    assert [turn.name for turn in came] == ["kill", "wipe"] + ["kill"] * (TRIES - 1)
    assert len({turn.seed for turn in came}) == len(came)


def test_the_same_seed_gives_the_same_turns_in_order():
    assert list(in_order(7, ["kill"], set())) == list(in_order(7, ["kill"], set()))
    assert list(in_order(7, ["kill"], set())) != list(in_order(8, ["kill"], set()))
