"""The events of a controller in a file, an object a line."""

import json
from pathlib import Path

from sparklog.core.controller.events.cluster_event import ClusterEvent, EventKind
from sparklog.core.controller.events.event_log import EventLog
from sparklog.model.ids import ControllerEpoch
from sparklog_runtime.life.events_file import EventsFile


def log_of(term: int, count: int) -> EventLog:
    log = EventLog(ControllerEpoch(term))
    for number in range(1, count + 1):
        log.add(ClusterEvent(EventKind.topic, "t", f"event {number}"), 1_000)
    return log


def ids(path: Path) -> list[tuple[int, int]]:
    lines = map(json.loads, path.read_text().splitlines())
    return [(line["term"], line["number"]) for line in lines]


def test_each_event_is_written_once_over_terms(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    written = EventsFile(path)
    written.write(())
    log = log_of(4, 2)
    written.write(log.kept)
    written.write(log.kept)
    log.add(ClusterEvent(EventKind.topic, "t", "event 3"), 1_000)
    written.write(log.kept)
    written.write(log_of(6, 1).kept)
    written.close()
    assert ids(path) == [(4, 1), (4, 2), (4, 3), (6, 1)]


def test_a_line_has_the_fields_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    written = EventsFile(path)
    written.write(log_of(4, 1).kept)
    written.close()
    assert json.loads(path.read_text()) == {
        "term": 4,
        "number": 1,
        "time_ms": 1_000,
        "kind": "topic",
        "subject": "t",
        "cause": "",
        "words": "event 1",
    }
