"""``/doctor``: what ``sparklog doctor`` finds, the worst first, with the remedy."""

from collections import Counter
from dataclasses import asdict
from typing import Final

from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts
from sparklog.cli.cluster.doctor.examination import examine
from sparklog.cli.cluster.doctor.gathering import FactsGathering, facts_without_brokers
from sparklog.client.errors import ClusterUnavailable
from sparklog.web.shown_commands import shown
from sparklog.web.view_question import Question
from sparklog.web.viewer import Viewer

KEPT_MS: Final = 30_000
"""An examination asks every leader and every coordinator, so tabs share it for that long."""


def doctor(viewer: Viewer, _: Question) -> dict[str, object]:
    """Findings, as ``sparklog doctor --json`` has them; what this user may not see is a note."""
    facts = viewer.shared.get("doctor", KEPT_MS, lambda: _facts(viewer))
    findings = examine(facts)
    return {
        "findings": [asdict(finding) for finding in findings],
        "counts": Counter(finding.severity for finding in findings),
        "time_ms": facts.now_ms,
        "commands": [shown(viewer.options, "doctor")],
    }


def _facts(viewer: Viewer) -> ClusterFacts:
    try:
        return FactsGathering(viewer.cluster, viewer.options).gather()
    except ClusterUnavailable as error:
        now_ms = viewer.cluster.clock.wall_ms()
        return facts_without_brokers(viewer.report(), viewer.options, now_ms, str(error))
