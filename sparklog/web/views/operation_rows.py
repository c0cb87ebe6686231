"""``/operations``: what moves now, and the operations on brokers."""

from sparklog.client.changes import ClusterChanges, OngoingMove
from sparklog.model.ids import TopicPartition
from sparklog.web.shown_commands import shown
from sparklog.web.view_question import Question, page_of
from sparklog.web.viewer import SLOW_MS, Viewer


def operations(viewer: Viewer, question: Question) -> dict[str, object]:
    """Partitions that are being moved."""

    def ask() -> dict[TopicPartition, OngoingMove]:
        return ClusterChanges(viewer.cluster).ongoing_moves(timeout_ms=SLOW_MS)

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
    commands = [shown(viewer.options, "brokers operations")]
    return {**page_of(rows, question), "moving": viewer.report().moving, "commands": commands}
