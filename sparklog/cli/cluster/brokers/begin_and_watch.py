"""Begin an operation on brokers, and watch it until it ends.

The controller carries it out: Ctrl-C, or the end of this command, ends the watching only.
"""

import argparse
import uuid
from typing import Final

from sparklog.cli.cluster.brokers.listing import RUNNING, show_operations, waiting_for
from sparklog.cli.cluster.brokers.room import check_room
from sparklog.cli.cluster.status.report_source import ReportSource
from sparklog.cli.command import DONE, FAILED
from sparklog.cli.connect import cluster_words, wants_json
from sparklog.cli.progress import patience, say
from sparklog.cli.signals import end_as_flag
from sparklog.model.errors import SparklogError
from sparklog.wire.messages.admin.operate_brokers import OperateBrokersRequest
from sparklog.wire.messages.discovery.cluster_report import ClusterReportRequest, ReportedOperation

ASK_EVERY_S: Final = 0.5
SILENCE_REPORTED_AFTER: Final = 10
"""How many answers may be missing before that is said."""


def begin(arguments: argparse.Namespace) -> int:
    """``start``, ``stop``, ``restart``, ``drain``, ``fill``, ``remove``: what ``arguments`` name."""
    action: str = arguments.action
    request = OperateBrokersRequest(
        action=action,
        brokers=list(getattr(arguments, "brokers", ())),
        is_all=getattr(arguments, "all", False),
        request=str(uuid.uuid4()),
        accepts_unavailable=getattr(arguments, "accept_unavailable", False),
        throttle=getattr(arguments, "throttle", None) or 0,
    )
    with ReportSource(arguments) as source:
        if action in ("drain", "fill"):
            with patience("comparing the size of replicas with the free space"):
                check_room(source.cluster, action, arguments.brokers)
        with patience("waiting for the controller"):
            operation = source.operate(request).operation
        say(f"operation {operation} begins: {action} {_what(request)}")
        return _watch(source, arguments, operation, waits=not getattr(arguments, "no_wait", False))


def cancel(arguments: argparse.Namespace) -> int:
    with ReportSource(arguments) as source:
        with patience("waiting for the controller"):
            source.operate(OperateBrokersRequest(action="cancel", operation=arguments.operation))
        say(f"operation {arguments.operation} is being cancelled")
        return _watch(source, arguments, arguments.operation, waits=True, wanted="cancelled")


def _what(request: OperateBrokersRequest) -> str:
    return "all brokers" if request.is_all else f"broker {', '.join(map(str, request.brokers))}"


def _watch(
    source: ReportSource, arguments: argparse.Namespace, operation: int, *, waits: bool, wanted: str = "done"
) -> int:
    """Until it has ended, or with ``waits`` false until a report shows it."""
    said, missing = "", 0
    with end_as_flag() as ended:
        while not ended.is_set():
            found = _find(source, operation)
            missing = missing + 1 if found is None else 0
            if missing == SILENCE_REPORTED_AFTER:
                say(f"nobody reports operation {operation} now: {source.failure or 'it is not known yet'}")
            if found is not None:
                if not waits or found.state != RUNNING:
                    return _conclude(arguments, found, waits=waits, wanted=wanted)
                text = _how_far(found)
                if text != said:
                    said = text
                    say(text)
            ended.wait(ASK_EVERY_S)
    say(f"interrupted; operation {operation} goes on. {_how_to_go_on(arguments, operation)}")
    return FAILED


def _find(source: ReportSource, operation: int) -> ReportedOperation | None:
    try:
        report = source.ask(ClusterReportRequest())
    except SparklogError as error:
        source.failure = error
        return None
    found = () if report is None else report.operations
    return next((one for one in found if one.id_ == operation), None)


def _how_far(one: ReportedOperation) -> str:
    units = {"drain": "replicas", "fill": "replicas", "reassign": "partitions"}
    unit = units.get(one.kind, "brokers")
    text = f"operation {one.id_}: {one.done} of {one.total} {unit} done"
    waits = waiting_for(one)
    return f"{text}; waiting for: {'; '.join(waits)}" if waits else text


def _conclude(arguments: argparse.Namespace, one: ReportedOperation, *, waits: bool, wanted: str) -> int:
    if wants_json(arguments):
        show_operations(arguments, [one])
    elif one.state == RUNNING:
        print(f"operation {one.id_} goes on. {_how_to_go_on(arguments, one.id_)}")
    else:
        print(f"operation {one.id_} is {one.state}" + (f": {one.reason}" if one.reason else ""))
    return DONE if one.state == wanted or (not waits and one.state in (RUNNING, "done")) else FAILED


def _how_to_go_on(arguments: argparse.Namespace, operation: int) -> str:
    words = cluster_words(arguments)
    return (
        f"`sparklog brokers operations {words}` shows how far it is, "
        f"`sparklog brokers cancel {operation} {words}` cancels it"
    )
