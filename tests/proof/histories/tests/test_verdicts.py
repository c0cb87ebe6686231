"""A run that proves nothing is invalid; figures say what clients got; the command tells it all."""

import json

import pytest

from histories import Limits, Writer, check
from histories.__main__ import main
from histories.check import RULES
from histories.facts import SECOND


def test_too_few_acknowledgements_prove_nothing(scribe):
    scribe.send("a", 0)
    scribe.final((0, "a"))
    assert check(scribe.history, Limits(acks_min=1)).is_clean
    (missing,) = check(scribe.history, Limits(acks_min=2)).invalid
    assert missing == "1 sends were acknowledged; a run must have 2"


def test_faults_without_traffic_prove_nothing(scribe):
    scribe.fault("kill", 5)
    scribe.tick(10)
    scribe.send("a", 0)
    scribe.final((0, "a"))
    limits = Limits(windows_min=1)
    assert check(scribe.history, limits).invalid == ("0 faults met traffic; a run must have 1",)
    scribe.history.faults[0].end_ns = scribe.now_ns
    assert check(scribe.history, limits).is_clean


def test_acknowledged_sends_without_a_final_read_are_not_proven(scribe):
    scribe.send("a", 0)
    assert "t-0 has acknowledged sends, and no final read" in check(scribe.history).invalid


def test_a_value_that_is_sent_twice_names_nothing(scribe):
    scribe.send("a", 0)
    scribe.send("a", 1)
    scribe.final((0, "a"))
    assert check(scribe.history).invalid == ("the value a was sent twice",)


def test_figures_count_by_acks_and_outcome(scribe):
    scribe.send("a", 0)
    scribe.send("b", 1, acks=1)
    scribe.answer(scribe.begin("c", acks=1), "fail")
    scribe.begin("d", acks=0)
    scribe.poll(0, (0, "a"), (1, "b"))
    figures = check(scribe.history).figures
    assert figures.sends == {"all": {"ok": 1}, "1": {"ok": 1, "fail": 1}, "0": {"info": 1}}
    assert (figures.polls, figures.records_read) == (1, 2)


def test_the_lag_is_from_the_answer_to_the_first_poll(scribe):
    scribe.send("a", 0)
    scribe.tick(7)
    scribe.poll(0, (0, "a"))
    scribe.poll(0, (0, "a"), process="late")
    assert check(scribe.history).figures.lag_max_ns == 9 * SECOND


def test_unavailability_is_the_longest_wait_for_an_acknowledgement_that_touches_a_fault(scribe):
    scribe.send("a", 0)
    waiting = scribe.begin("b")
    scribe.fault("kill", 3)
    scribe.tick(19)
    scribe.answer(waiting, offset=1)
    scribe.tick(100)  # nobody waits meanwhile
    scribe.send("c", 2)
    scribe.fault("pause", 1)
    (kill, pause) = check(scribe.history).figures.faults
    assert (kill.kind, kill.windows, kill.with_traffic, kill.longest_ns) == ("kill", 1, 0, 21 * SECOND)
    assert (pause.kind, pause.longest_ns) == ("pause", 0)


def test_sends_that_are_never_acknowledged_count_as_waiting(scribe):
    scribe.send("a", 0)
    scribe.fault("kill", 100)
    for number in range(10):
        scribe.answer(scribe.begin(str(number)), "info")
    (kill,) = check(scribe.history).figures.faults
    assert kill.longest_ns == 19 * SECOND


@pytest.fixture
def written(tmp_path):
    """A file with one acknowledged send in a fault, and what the final read is told to have."""

    def write(*records):
        path = tmp_path / "history.jsonl"
        with Writer(path) as writer:
            writer.event("h", "fault", kind="kill", target="1", phase="begin", id="1")
            op = writer.send("p", "t", 0, "a", acks="all", session="s", seq=0, idempotent=True)
            writer.sent("p", op, offset=0)
            writer.event("h", "fault", kind="kill", target="1", phase="end", id="1")
            writer.event("h", "not_run", kind="power cut", why="no loop devices")
            writer.final("r", "t", 0, start=0, end=1, records=records)
        return str(path)

    return write


def test_the_command_tells_a_clean_history_from_others(written, capsys):
    assert main([written((0, "a")), "--min-acks", "1"]) == 0
    told = capsys.readouterr().out
    assert told.endswith(f"\nclean: 4 of {len(RULES)} rules judged\n")
    assert "power cut                    not run: no loop devices" in told


def test_the_command_tells_a_violation(written, capsys):
    assert main([written(), "--min-acks", "1"]) == 1
    told = capsys.readouterr().out
    assert "acknowledged a is lost" in told
    assert told.endswith(f"\nVIOLATED: 1 of {len(RULES)} rules judged\n")


def test_the_command_tells_what_proves_nothing(written, capsys):
    assert main([written((0, "a"))]) == 2
    assert "INVALID: 1 sends were acknowledged; a run must have 100" in capsys.readouterr().out


def test_the_command_gives_json(written, capsys):
    assert main([written(), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "violated"
    assert [one["rule"] for one in told["findings"]] == ["AcknowledgedWritesStay"]
    assert told["faults"][0]["with_traffic"] == 1


def test_the_command_refuses_what_is_no_history(tmp_path, capsys):
    path = tmp_path / "history.jsonl"
    path.write_text("{}\n")
    assert main([str(path)]) == 2
    assert "line 1: t_ns is absent" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "given", "complaint"),
    [
        ("--min-acks", "-1", "'-1' is not a whole number from 0 on"),
        ("--min-acks", "1.5", "'1.5' is not a whole number from 0 on"),
        ("--min-faults", "-1", "'-1' is not a whole number from 0 on"),
        ("--settle", "-1", "'-1' is not a number of seconds from 0 on"),
        ("--settle", "inf", "'inf' is not a number of seconds from 0 on"),
        ("--stale", "nan", "'nan' is not a number of seconds from 0 on"),
        ("--stale", "soon", "'soon' is not a number of seconds from 0 on"),
    ],
)
def test_limits_that_mean_nothing_are_refused(written, capsys, option, given, complaint):
    with pytest.raises(SystemExit) as ended:
        main([written((0, "a")), option, given])
    assert ended.value.code == 2
    assert f"argument {option}: {complaint}" in capsys.readouterr().err


def test_limits_may_be_nothing(written):
    nothing = [f"{option}=0" for option in ("--min-acks", "--min-faults", "--settle", "--stale")]
    assert main([written((0, "a")), *nothing]) == 0


def test_the_command_writes_its_json_beside_the_text(written, tmp_path, capsys):
    path = tmp_path / "checker.json"
    assert main([written(), "--json-file", str(path)]) == 1
    assert f"VIOLATED: 1 of {len(RULES)} rules judged" in capsys.readouterr().out
    told = json.loads(path.read_text())
    assert told["verdict"] == "violated"
    assert [one["rule"] for one in told["rules"] if one["findings"]] == ["AcknowledgedWritesStay"]


def test_a_place_for_the_json_that_is_not_there_is_told(written, tmp_path, capsys):
    assert main([written(), "--json-file", str(tmp_path / "no" / "folder")]) == 2
    assert "no verdict: " in capsys.readouterr().err
