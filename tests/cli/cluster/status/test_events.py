"""``sparklog events``: what is printed of the controller's events."""

import json
from typing import Any

import pytest

from sparklog.cli.cluster.status.events import EventPrinter
from sparklog.wire.messages.discovery.cluster_report import ClusterReportResponse, ReportedEvent


def event(number: int, term: int = 4, **fields: Any) -> ReportedEvent:
    known = {"time_ms": 1_700_000_000_000, "kind": "topic", "subject": "t", "words": f"event {number}"}
    return ReportedEvent(term=term, number=number, **{**known, **fields})


def shown(printer: EventPrinter, events: list[ReportedEvent], capsys: pytest.CaptureFixture[str]) -> Any:
    printer.show(events)
    return capsys.readouterr()


def test_a_line_has_the_time_the_words_and_the_cause(capsys: pytest.CaptureFixture[str]) -> None:
    died = event(1, kind="broker", words="broker 3 on node-4 died", cause="SIGKILL")
    line = shown(EventPrinter(as_json=False), [died], capsys).out
    assert line[2::3][:2] == "::"
    assert line[8:] == " broker 3 on node-4 died (SIGKILL)\n"


def test_json_has_an_object_a_line_with_the_fields_of_the_contract(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = shown(EventPrinter(as_json=True), [event(1, brokers=[3]), event(2)], capsys).out
    first, _ = map(json.loads, out.splitlines())
    assert first == {
        "term": 4,
        "number": 1,
        "time_ms": 1_700_000_000_000,
        "kind": "topic",
        "subject": "t",
        "cause": "",
        "words": "event 1",
    }


def test_only_chosen_events_are_printed_and_all_are_remembered(capsys: pytest.CaptureFixture[str]) -> None:
    printer = EventPrinter(as_json=False, broker=3, kind="broker")
    events = [event(1, kind="broker", brokers=[3]), event(2, kind="broker", brokers=[1]), event(3)]
    assert shown(printer, events, capsys).out[9:] == "event 1\n"
    assert (printer.request().after_term, printer.request().after_number) == (4, 3)


def test_where_a_term_ends_and_events_are_missing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    printer = EventPrinter(as_json=True)
    assert shown(printer, [event(8), event(9)], capsys).err == "", "nobody had the first ones before"
    assert shown(printer, [event(12)], capsys).err == (
        "sparklog: 2 events of term 4 are not kept any more: see DIR/logs/events.jsonl\n"
    )
    assert shown(printer, [event(1, term=6)], capsys).err == (
        "sparklog: term 4 of the controller is over; term 6 begins\n"
    )


def test_all_kept_events_are_printed_before_the_command_ends() -> None:
    printer = EventPrinter(as_json=True)
    report = ClusterReportResponse(term=4, last_number=3, events=[event(1)])
    printer.show(report.events)
    assert not printer.has_all(report)
    printer.show([event(2), event(3)])
    assert printer.has_all(ClusterReportResponse(term=4, last_number=3, events=[event(2), event(3)]))
