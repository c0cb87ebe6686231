"""``/operations``: operations on brokers, as ``sparklog brokers operations`` has them, and what moves now."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sparklog.cli.cluster.brokers.listing import RUNNING, operation_json
from sparklog.client.changes import ClusterChanges, OngoingMove
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.model.ids import TopicPartition
from sparklog.web.shown_commands import Shown, shown
from sparklog.web.view_question import Question, page_of
from sparklog.web.viewer import SLOW_MS, Viewer
from sparklog.wire.messages.discovery.cluster_report import ReportedOperation

CANCELS_SHOWN: Final = 3
UNITS: Final[Mapping[str, str]] = {
    OperationKind.drain: "replica",
    OperationKind.fill: "replica",
    OperationKind.reassign: "partition",
}
BROKER: Final = "broker"
"""What the other operations count, which work on one after the other."""


def operations(viewer: Viewer, question: Question) -> dict[str, object]:
    def ask() -> dict[TopicPartition, OngoingMove]:
        return ClusterChanges(viewer.cluster).ongoing_moves(timeout_ms=SLOW_MS)

    report = viewer.report()
    moves = viewer.shared.get("moves", SLOW_MS, ask)
    rows = [
        {
            "topic": one.topic,
            "partition": one.partition,
            "adding": list(moves[one].adding),
            "removing": list(moves[one].removing),
        }
        for one in sorted(moves)
    ]
    return {
        **page_of(rows, question),
        "moving": report.moving,
        "operations": operation_rows(report.operations),
        "commands": [
            shown(viewer.options, "brokers operations"),
            *_cancels(viewer.options, report.operations),
        ],
    }


def operation_rows(reported: Sequence[ReportedOperation]) -> list[dict[str, Any]]:
    """Those under way in the order in which they began, then those that ended, the last one first.

    ``unit``: what ``done`` and ``total`` count. ``now`` and ``then``: which broker is worked on, and which
    follow; null and none where all are worked on at once.
    """
    running = [one for one in reported if one.state == RUNNING]
    ended = [one for one in reversed(reported) if one.state != RUNNING]
    return [_row(one) for one in (*running, *ended)]


def _row(one: ReportedOperation) -> dict[str, Any]:
    unit = UNITS.get(one.kind, BROKER)
    in_turn = one.brokers[one.done :] if unit == BROKER and one.state == RUNNING else []
    return {
        **operation_json(one),
        "unit": unit,
        "now": in_turn[0] if in_turn else None,
        "then": in_turn[1:],
    }


def _cancels(options: str, reported: Sequence[ReportedOperation]) -> list[Shown]:
    running = [one for one in reported if one.state == RUNNING]
    return [
        shown(options, f"brokers cancel {one.id_}", does=f"To cancel operation {one.id_}")
        for one in running[:CANCELS_SHOWN]
    ]
