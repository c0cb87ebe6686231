"""Whether the cluster is well: one sentence, and what is wrong with it, the worst first.

PURE. Records that may be lost come first, then partitions that nobody leads, then disks that refuse writes,
then brokers that do not serve, then replicas out of sync. Each finding has the view that shows it and the
command for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from sparklog.client.possible_losses import PossibleLoss
from sparklog.core.controller.events.cluster_event import count_of
from sparklog.web.disks import Disk
from sparklog.wire.messages.discovery.cluster_report import ClusterReportResponse, ReportedBroker

BAD: Final = "bad"
WARNING: Final = "warning"
WELL: Final = "well"
OLD_MS: Final = 10_000
"""From this age on a report is no news."""
NAMED_MAX: Final = 3

SERVING: Final = "serving"
WANTED_AWAY: Final = ("stopped", "drained")
"""Wishes by which a broker is rightly away."""


@dataclass(frozen=True, slots=True)
class Finding:
    """``severity`` is BAD or WARNING; ``view`` a path of the page, ``command`` what to run."""

    severity: str
    words: str
    command: str
    view: str


@dataclass(frozen=True, slots=True)
class Verdict:
    level: str
    sentence: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known; ``silence`` says why there is no report, ``options`` how commands name the cluster."""

    report: ClusterReportResponse | None
    options: str
    silence: str = ""
    losses: Sequence[PossibleLoss] = ()
    disks: Sequence[Disk] = field(default_factory=tuple)


def verdict_of(facts: Facts) -> Verdict:
    report = facts.report
    if report is None:
        finding = Finding(BAD, facts.silence, f"sparklog status {facts.options}", "brokers")
        return Verdict(BAD, "Not reached: no broker and no controller answers.", (finding,))
    findings = [
        *_losses(facts),
        *_leaderless(report, facts.options),
        *_office(report, facts.options),
        *_disks(facts),
        *_brokers(report, facts.options),
        *_out_of_sync(report, facts.options),
    ]
    findings.sort(key=lambda finding: finding.severity != BAD)  # stable: the order above within a severity
    if not findings:
        return Verdict(WELL, _well(report))
    level = findings[0].severity
    intro = "Unwell" if level == BAD else "Serving, with a warning"
    rest = f", and {len(findings) - 1} more" if len(findings) > 1 else ""
    return Verdict(level, f"{intro}: {findings[0].words}{rest}.", tuple(findings))


def _well(report: ClusterReportResponse) -> str:
    serving = sum(broker.state == SERVING for broker in report.brokers)
    partitions = count_of(report.partitions, "partition")
    moving = f"; {count_of(report.moving, 'partition')} moving" if report.moving else ""
    return f"Well: {count_of(serving, 'broker')}, {partitions} led and in sync{moving}."


def _losses(facts: Facts) -> list[Finding]:
    if not facts.losses:
        return []
    named = ", ".join(f"{one.topic}-{one.partition}" for one in facts.losses[:NAMED_MAX])
    more = f" and {len(facts.losses) - NAMED_MAX} more" if len(facts.losses) > NAMED_MAX else ""
    words = f"acknowledged records may be lost in {named}{more}"
    return [Finding(BAD, words, f"sparklog status {facts.options}", "events?kind=loss")]


def _leaderless(report: ClusterReportResponse, options: str) -> list[Finding]:
    if not report.leaderless:
        return []
    words = f"{count_of(report.leaderless, 'partition')} of {report.partitions} without a leader"
    return [Finding(BAD, words, f"sparklog topics describe {options}", "topics?only=unwell")]


def _office(report: ClusterReportResponse, options: str) -> list[Finding]:
    if report.age_ms < OLD_MS:
        return []
    words = f"no controller has answered for {report.age_ms // 1_000} s"
    return [Finding(BAD, words, f"sparklog status {options}", "brokers")]


def _disks(facts: Facts) -> list[Finding]:
    findings = []
    for disk in facts.disks:
        view = f"brokers/{disk.broker_id}"
        command = f"sparklog status {facts.options}"
        if disk.is_offline:
            words = f"log directory {disk.log_dir} of broker {disk.broker_id} has failed"
            findings.append(Finding(BAD, words, command, view))
        elif disk.is_low:
            words = f"broker {disk.broker_id} refuses writes: {disk.log_dir} is nearly full"
            findings.append(Finding(BAD, words, command, view))
    return findings


def _brokers(report: ClusterReportResponse, options: str) -> list[Finding]:
    missing = [one for one in report.brokers if one.state != SERVING and one.wish not in WANTED_AWAY]
    if len(missing) > NAMED_MAX:
        words = f"{len(missing)} of {count_of(len(report.brokers), 'broker')} do not serve"
        return [Finding(WARNING, words, f"sparklog status {options}", "brokers")]
    return [
        Finding(WARNING, _broker_words(one), f"sparklog status {options}", f"brokers/{one.broker_id}")
        for one in missing
    ]


def _broker_words(broker: ReportedBroker) -> str:
    where = f" on {broker.host}" if broker.host else ""
    reason = f" ({broker.reason})" if broker.reason else ""
    return f"broker {broker.broker_id}{where} is {broker.state or 'not serving'}{reason}"


def _out_of_sync(report: ClusterReportResponse, options: str) -> list[Finding]:
    if not report.under_replicated:
        return []
    have = "has" if report.under_replicated == 1 else "have"
    words = f"{count_of(report.under_replicated, 'partition')} {have} replicas out of sync"
    return [Finding(WARNING, words, f"sparklog topics describe {options}", "topics?only=unwell")]
