"""``sparklog events``: what the controller decided and saw, a line for each event.

The controller keeps the newest ones of its term, and the drivers write all to DIR/logs/events.jsonl. A
follower asks again every second and names the last event that it has, so that it repeats none. It says where
events are missing, and where a term begins.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.cli.cluster.status.report_source import ReportSource
from sparklog.cli.command import DONE, Command
from sparklog.cli.connect import add_cluster_arguments, add_json_argument, wants_json
from sparklog.cli.progress import patience, say
from sparklog.cli.signals import end_as_flag
from sparklog.core.controller.events.cluster_event import EventKind
from sparklog.model.errors import SparklogError
from sparklog.wire.messages.discovery.cluster_report import (
    ClusterReportRequest,
    ClusterReportResponse,
    ReportedEvent,
)

ASK_EVERY_S: Final = 1.0
EVENTS_PER_ASK: Final = 1_000
MILLISECONDS: Final = 1_000


@dataclass(slots=True)
class EventPrinter:
    """Prints the events that the options choose, and remembers the last one, printed or not."""

    as_json: bool
    broker: int | None = None
    kind: str | None = None
    term: int = -1
    number: int = 0

    def request(self) -> ClusterReportRequest:
        return ClusterReportRequest(after_term=self.term, after_number=self.number, events_max=EVENTS_PER_ASK)

    def show(self, events: Sequence[ReportedEvent]) -> None:
        for event in events:
            self._say_gap(event)
            self.term, self.number = event.term, event.number
            if self._is_chosen(event):
                print(_json_line(event) if self.as_json else _line(event), flush=True)

    def has_all(self, report: ClusterReportResponse) -> bool:
        """Whether nothing is left to ask for now."""
        return not report.events or (self.term == report.term and self.number >= report.last_number)

    def _say_gap(self, event: ReportedEvent) -> None:
        """Say that a term ended, or that events are no longer kept, where the numbers do not go on."""
        expected = self.number + 1 if event.term == self.term else 1
        if self.term not in (-1, event.term):
            say(f"term {self.term} of the controller is over; term {event.term} begins")
        if event.number > expected and self.term != -1:
            missing = event.number - expected
            say(f"{missing} events of term {event.term} are not kept any more: see DIR/logs/events.jsonl")

    def _is_chosen(self, event: ReportedEvent) -> bool:
        is_of_broker = self.broker is None or self.broker in event.brokers
        return is_of_broker and self.kind in (None, event.kind)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cluster_arguments(parser)
    add_json_argument(parser)
    parser.add_argument("--follow", action="store_true", help="go on with new events, until Ctrl-C")
    parser.add_argument("--broker", type=int, metavar="N", help="only events about this broker")
    parser.add_argument("--kind", choices=[kind.value for kind in EventKind], help="only events of this kind")


def run(arguments: argparse.Namespace) -> int:
    printer = EventPrinter(wants_json(arguments), arguments.broker, arguments.kind)
    with ReportSource(arguments) as source:
        _show_kept(source, printer)
        if arguments.follow:
            _follow(source, printer)
    return DONE


def _show_kept(source: ReportSource, printer: EventPrinter) -> None:
    while True:
        with patience("waiting for the report of the cluster"):
            report = source.ask(printer.request())
        if report is None:
            raise source.failure or SparklogError("nobody gave a report of the cluster")
        printer.show(report.events)
        if printer.has_all(report):
            return


def _follow(source: ReportSource, printer: EventPrinter) -> None:
    """Ask again and again; silence is no end, because a cluster may come back."""
    is_silent = False
    with end_as_flag() as ended:
        while not ended.wait(ASK_EVERY_S):
            report = source.ask(printer.request())
            if report is None and not is_silent:
                say(f"nobody answers; trying again: {source.failure}")
            is_silent = report is None
            if report is not None:
                printer.show(report.events)


def _line(event: ReportedEvent) -> str:
    moment = time.strftime("%H:%M:%S", time.localtime(event.time_ms / MILLISECONDS))
    return f"{moment} {event.words}" + (f" ({event.cause})" if event.cause else "")


def _json_line(event: ReportedEvent) -> str:
    names = ("term", "number", "time_ms", "kind", "subject", "cause", "words")
    return json.dumps({name: getattr(event, name) for name in names})


COMMAND = Command(
    name="events",
    summary="what happened in the cluster: elections, brokers, topics, moves, losses",
    description="Prints what the controller in office has decided and seen, a line for each event, oldest "
    "first:\nelections, changes of ISRs, brokers that come and go, topics, moves, and losses.\n\n"
    "It keeps the newest 10,000 of its term. With --follow new ones are printed as they come, until Ctrl-C.",
    add_arguments=add_arguments,
    run=run,
    examples=(
        "sparklog events --root /tmp/sparklog",
        "sparklog events --follow --broker 3 --bootstrap-server 127.0.0.1:9092",
        "sparklog events --kind loss --json --root /tmp/sparklog",
    ),
)
