"""``/events``: what the controller decided and saw, the newest first."""

from sparklog.core.controller.events.cluster_event import EventKind
from sparklog.web.shown_commands import shown
from sparklog.web.view_question import Question, page_of
from sparklog.web.viewer import Viewer
from sparklog.wire.messages.discovery.cluster_report import ReportedEvent


def events(viewer: Viewer, question: Question) -> dict[str, object]:
    kind = question.choice("kind", ("", *EventKind))
    broker = question.number_or_none("broker", most=2**31 - 1)
    search = question.text("search").casefold()
    chosen = [
        event
        for event in reversed(viewer.events().kept)
        if kind in ("", event.kind)
        and (broker is None or broker in event.brokers)
        and search in f"{event.subject} {event.words} {event.cause}".casefold()
    ]
    found = page_of(chosen, question)
    rows = found["rows"]
    assert isinstance(rows, list)
    return {
        **found,
        "rows": [event_row(event) for event in rows],
        "kinds": list(EventKind),
        "commands": [shown(viewer.options, "events")],
    }


def event_row(event: ReportedEvent) -> dict[str, object]:
    """As ``sparklog events --json`` prints it, with the brokers and topics that it is about."""
    return {
        "term": event.term,
        "number": event.number,
        "time_ms": event.time_ms,
        "kind": event.kind,
        "subject": event.subject,
        "cause": event.cause,
        "words": event.words,
        "brokers": event.brokers,
        "topics": event.topics[:10],
    }
