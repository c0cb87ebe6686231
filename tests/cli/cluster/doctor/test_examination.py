"""All checks together: each says something, the worst first, and a part that is unknown is named."""

from collections import Counter
from dataclasses import replace

import pytest

from sparklog.cli import table
from sparklog.cli.cluster.doctor import doctor_text
from sparklog.cli.cluster.doctor.doctor_facts import Part
from sparklog.cli.cluster.doctor.doctor_finding import Finding, Severity, listed, named
from sparklog.cli.cluster.doctor.doctor_text import render_findings
from sparklog.cli.cluster.doctor.examination import CHECKS, examine
from tests.cli.cluster.doctor.given import WELL, broker, topic


def test_of_a_cluster_that_is_well_each_check_says_so() -> None:
    findings = examine(WELL)
    assert [(one.check, one.severity) for one in findings] == [(check.name, Severity.ok) for check in CHECKS]
    assert all(one.value and not one.harm and not one.remedy for one in findings)


def test_the_worst_findings_are_first() -> None:
    loose = topic(settings={"min.insync.replicas": "1"}, leader=9)
    findings = examine(replace(WELL, topics=(loose,), unknown={Part.groups: "no right"}))
    kinds = [(one.check, one.severity.value) for one in findings[:3]]
    assert kinds == [("isr", "grave"), ("topics", "warning"), ("groups", "note")]


@pytest.mark.parametrize("part", list(Part))
def test_what_is_unknown_is_a_note_and_no_check_takes_it_for_well(part: Part) -> None:
    findings = examine(replace(WELL, unknown={part: "user u has no right to it"}))
    notes = [one for one in findings if "no right" in one.value]
    if part is Part.topics:
        assert [one.check for one in notes] == ["topics"], "isrs are known by the controller's counts"
    else:
        assert (
            {one.check for one in notes} == {check.name for check in CHECKS if part in check.needs} != set()
        )
    assert {one.severity for one in notes} == {Severity.note}


def test_every_check_is_for_one_name() -> None:
    assert Counter(check.name for check in CHECKS).most_common(1)[0][1] == 1


def test_names_are_bounded() -> None:
    assert named("topic", ["a"]) == "topic a"
    assert named("topic", ["a", "b", "c"]) == "topics a, b, c"
    assert named("topic", list(range(20_000))) == "topics 0, 1, 2 and 19997 more"
    assert listed([1, 2]) == "1, 2"


def test_the_findings_of_20000_topics_are_few() -> None:
    loose = tuple(topic(f"t{i:05}", settings={"min.insync.replicas": "1"}) for i in range(20_000))
    findings = examine(replace(WELL, topics=loose))
    assert len(findings) == len(CHECKS)
    assert "t00000, t00001, t00002 and 19997 more" in findings[0].subject


def test_text_has_harm_and_remedy_of_problems_and_a_line_for_what_is_well() -> None:
    findings = [
        Finding("isr", Severity.grave, "partition t-0", "no live broker leads", "it stands", "start one"),
        Finding("topics", Severity.warning, "topic t", "one replica", "it may be lost", "another"),
        Finding("disks", Severity.ok, "cluster", "every disk has room"),
    ]
    assert render_findings(findings) == (
        "grave: isr: partition t-0\n"
        "  seen    no live broker leads\n"
        "  harm    it stands\n"
        "  remedy  start one\n\n"
        "warning: topics: topic t\n"
        "  seen    one replica\n"
        "  harm    it may be lost\n"
        "  remedy  another\n\n"
        "ok: disks: every disk has room\n"
        "findings: 1 grave, 1 warning, 1 ok"
    )


def test_text_has_no_character_that_a_terminal_obeys() -> None:
    text = render_findings([Finding("groups", Severity.note, "a\x1b[2J", "b\r", "c\u202e", "d\n")])
    assert "group" in text
    assert all(line.isprintable() for line in text.splitlines())
    assert "groups: a\\x1b[2J" in text


def test_text_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_text, "terminal_width", lambda: 40)
    assert table.terminal_width() == 0
    long = Finding("isr", Severity.grave, "t", "many words " * 20, "harm", "remedy")
    lines = render_findings([long]).splitlines()
    assert max(map(len, lines)) <= 40
    assert lines[2].startswith(" " * 10)


def test_a_broker_that_is_silent_hides_no_others() -> None:
    silent = broker(2, settings={}, silence="timed out", log_dirs={})
    findings = examine(replace(WELL, brokers=(broker(1), silent, broker(3))))
    assert [one.check for one in findings if one.severity is not Severity.ok] == ["brokers"]
    assert "timed out" in findings[0].value
