"""Brokers that do not serve, controllers that are away, partitions that lack leaders or replicas."""

import pytest

from sparklog.cli.cluster.doctor.doctor_facts import Part
from sparklog.cli.cluster.doctor.doctor_finding import Severity
from tests.cli.cluster.doctor.given import found, report, reported, the_one, topic


@pytest.mark.parametrize(
    ("state", "severity"),
    [
        ("away", Severity.warning),
        ("starting", Severity.note),
        ("recovering", Severity.note),
        ("no executor", Severity.grave),
        ("crash loop", Severity.grave),
    ],
)
def test_a_broker_that_should_serve_and_does_not(state: str, severity: Severity) -> None:
    away = reported(2, state, reason="the disk is full")
    finding = the_one("brokers", report=report(reported(1), away, reported(3)))
    assert (finding.severity, finding.subject) == (severity, "broker 2")
    assert state in finding.value
    assert "the disk is full" in finding.value
    assert "sparklog events --broker 2 --root R" in finding.remedy


@pytest.mark.parametrize("wish", ["stopped", "drained"])
def test_a_broker_that_somebody_stopped_is_a_note(wish: str) -> None:
    stopped = reported(2, wish, wish=wish, replicas=3, reason="start it with: sparklog brokers start 2")
    finding = the_one("brokers", report=report(reported(1), stopped, reported(3)))
    assert finding.severity is Severity.note
    assert finding.value == f"is {wish}, as somebody wished"
    assert "out of sync" in finding.harm
    assert finding.remedy == "sparklog brokers start 2 --root R"


def test_a_drained_broker_harms_nothing_and_is_removed_or_filled() -> None:
    finding = the_one(
        "brokers", report=report(reported(1), reported(2, "drained", wish="drained"), reported(3))
    )
    assert (finding.severity, finding.harm) == (Severity.note, "none")
    assert finding.value == "is drained, as somebody wished; it holds no replicas"
    assert (
        finding.remedy
        == "sparklog brokers remove 2 --root R; or sparklog brokers start 2 --root R, then fill 2"
    )


def test_a_broker_that_stops_by_a_wish_says_what_it_does() -> None:
    finding = the_one(
        "brokers", report=report(reported(1), reported(2, "stopping", wish="stopped", replicas=3))
    )
    assert finding.value == "is stopping, and somebody wished it stopped"


def test_a_report_that_is_old_means_that_no_controller_answers() -> None:
    finding = the_one("brokers", report=report(age_ms=42_000))
    assert (finding.severity, finding.subject) == (Severity.grave, "controller")
    assert "42 s" in finding.value
    assert found("brokers", report=report(age_ms=2_000)) == []


def test_while_no_broker_answers_the_controllers_report_is_examined() -> None:
    unknown = dict.fromkeys(set(Part) - {Part.report}, "no broker answers")
    away = report(*(reported(one, "away") for one in (1, 2, 3)), leaderless=1, under_replicated=1)
    changes = {"silence": "refused", "unknown": unknown, "report": away, "topics": (), "nodes": ()}
    findings = found("brokers", **changes)
    assert [one.subject for one in findings] == ["cluster", "broker 1", "broker 2", "broker 3"]
    assert findings[0].severity is Severity.grave
    leaderless, short = found("isr", **changes)
    assert (leaderless.subject, leaderless.severity) == ("1 of 1 partitions", Severity.grave)
    assert short.severity is Severity.warning


def test_without_report_and_topics_isrs_are_unknown() -> None:
    finding = the_one("isr", report=None, unknown={Part.topics: "no right"}, topics=())
    assert (finding.severity, "no right" in finding.value) == (Severity.note, True)


def test_a_partition_without_a_leader_is_grave() -> None:
    finding = the_one("isr", topics=(topic(leader=-1), topic("well")))
    assert (finding.severity, finding.subject) == (Severity.grave, "partition orders-0")
    assert "sparklog elect-leaders --unclean --topic orders --root R" in finding.remedy


def test_a_partition_below_its_minimum_refuses_writes() -> None:
    below, missing = found("isr", topics=(topic(isr=(1,), settings={"min.insync.replicas": "3"}),))[:2]
    assert (below.severity, below.subject) == (Severity.grave, "partition orders-0")
    assert (missing.severity, missing.subject) == (Severity.warning, "broker 2")


def test_a_minimum_above_the_factor_is_another_checks_matter() -> None:
    changed = topic(replicas=(1, 2), settings={"min.insync.replicas": "3"})
    assert found("isr", topics=(changed,)) == []


def test_a_broker_that_is_missing_in_many_isrs_is_one_finding() -> None:
    many = tuple(topic(f"t{number:03}", isr=(1, 2)) for number in range(200))
    finding = the_one("isr", topics=many, report=report(moving=3))
    assert (finding.severity, finding.subject) == (Severity.warning, "broker 3")
    assert "200 of its partitions (partitions t000-0, t001-0, t002-0 and 197 more)" in finding.value
    assert "3 partitions move" in finding.value
