"""A strike that cannot be made: an aim that is gone is a miss, a mistake of the harness is a finding."""

from itertools import islice
from random import Random
from types import SimpleNamespace

import pytest

from chaos.nemesis import Nemesis
from chaos.part import PartOptions, _judge, _Life, strike
from chaos.report import Part
from histories import Writer


class Failing(Nemesis):
    """A fault that fails to begin, unless there is no error."""

    kind = "failing"

    def __init__(self, error):
        self._error = error

    def begin(self, cluster, rng):
        if self._error is not None:
            raise self._error
        return "broker 2"

    def end(self):
        pass


@pytest.fixture
def part():
    return Part(seed=1, seconds=0.0)


def test_a_fault_that_begins_has_struck(part):
    assert strike(Failing(None), None, Random(1), part) == ("failing: broker 2", True)
    assert part.missed == {}
    assert part.findings == []


@pytest.mark.parametrize("error", [ProcessLookupError(), RuntimeError("ZooKeeper is not running")])
def test_a_fault_whose_aim_is_gone_has_missed_and_is_no_finding(part, error):
    told, has_struck = strike(Failing(error), None, Random(1), part)
    assert not has_struck
    assert "did not strike" in told
    assert part.missed == {"failing": 1}
    assert part.findings == []


@pytest.mark.parametrize("error", [TypeError("no such argument"), AttributeError("gone"), AssertionError()])
def test_a_mistake_of_the_harness_is_a_finding_and_no_miss(part, error):
    told, has_struck = strike(Failing(error), None, Random(1), part)
    assert not has_struck
    assert part.missed == {}
    assert part.findings == [told]


def _turns(tmp_path, struck, **options):
    """Of a part with three kinds."""
    usable = {kind: Failing(None) for kind in ("kill", "pause", "wipe")}
    life = SimpleNamespace(_options=PartOptions(tmp_path, 1, 60.0, [], pairs=0.0, **options), _struck=struck)
    return _Life._turns(life, usable)


def test_what_is_to_come_first_comes_before_the_deck_and_turns_are_counted_on(tmp_path):
    turns = list(islice(_turns(tmp_path, {"wipe"}, first=["pause", "meteor"]), 6))
    assert [turn.name for turn in turns[:3]] == ["pause"] * 3, "it never strikes; meteors cannot be had"
    assert {turn.name for turn in turns[3:]} == {"kill", "pause", "wipe"}
    assert [turn.number for turn in turns] == [1, 2, 3, 4, 5, 6]


def test_a_part_may_be_over_when_those_that_come_first_have_struck(tmp_path):
    struck = set()
    turns = _turns(tmp_path, struck, first=["wipe", "kill"], is_over_then=True)
    came = [next(turns).name]
    struck.add("wipe")
    came.append(next(turns).name)
    struck.add("kill")
    assert came == ["wipe", "kill"]
    assert list(turns) == []


def test_what_the_checker_cannot_look_for_is_counted_by_reason(tmp_path):
    (histories := tmp_path / "histories").mkdir()
    with Writer(histories / "clients.jsonl") as writer:

        def send(topic, partition, acks, seq):
            value = f"{topic}/{partition}/{seq}"
            op = writer.send("p", topic, partition, value, acks=acks, session="s", seq=seq, idempotent=True)
            writer.sent("p", op, offset=0)

        send("scratch-1", 0, "all", 0)
        send("scratch-1", 0, 1, 1)
        writer.event("harness", "topic", topic="scratch-1", what="deleted")
        send("plain", 0, "all", 2)
        send("plain", 1, 1, 3)
        send("plain", 2, "all", 4)
        writer.final("final-reader", "plain", 0, start=0, end=1, records=[(0, "plain/0/2")])
    part = Part(1, 60.0)
    _judge(part, histories, lambda text: None)
    assert part.sends == {"ok": 5}
    assert part.not_judged == {"topic deleted": 2, "no final read": 2}
    checked = (tmp_path / "checker.txt").read_text()
    assert "acknowledged with acks=all, and not judged: topic deleted (1), no final read (1)" in checked
    assert "EverythingIsSeen                 not judged: no heal (3)" in checked
    assert not part.findings


def test_a_history_that_cannot_be_judged_has_no_count_of_what_was_not(tmp_path):
    (histories := tmp_path / "histories").mkdir()
    (histories / "clients.jsonl").write_text("")
    part = Part(1, 60.0)
    _judge(part, histories, lambda text: None)
    assert (part.sends, part.not_judged, part.findings) == ({}, {}, [])
    assert "the checker gave no verdict" in part.invalid[-1]
