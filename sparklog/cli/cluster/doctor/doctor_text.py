"""The doctor's findings as text for people: problems with harm and remedy, and a line for what is well."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from sparklog.cli.cluster.doctor.doctor_finding import WORST_FIRST, Finding, Severity
from sparklog.cli.printable import printable
from sparklog.cli.table import terminal_width
from sparklog.core.controller.events.cluster_event import count_of

INDENT: Final = " " * 10


def render_findings(findings: Sequence[Finding]) -> str:
    lines: list[str] = []
    for finding in findings:
        if finding.severity is not Severity.ok:
            lines += [*_problem(finding), ""]
    well = [finding for finding in findings if finding.severity is Severity.ok]
    lines += [f"ok: {finding.check}: {finding.value}" for finding in well]
    counts = Counter(finding.severity for finding in findings)
    return "\n".join([*lines, _closing_line(counts)])


def _problem(finding: Finding) -> Iterator[str]:
    yield f"{finding.severity}: {finding.check}: {printable(finding.subject)}"
    for title, said in (("seen", finding.value), ("harm", finding.harm), ("remedy", finding.remedy)):
        text = printable(said)
        begin = f"  {title:<{len(INDENT) - 2}}"
        width = terminal_width()
        if width <= 2 * len(INDENT):
            yield begin + text
        else:
            yield from textwrap.wrap(
                text, width, initial_indent=begin, subsequent_indent=INDENT, break_long_words=False
            )


def _closing_line(counts: Counter[Severity]) -> str:
    found = [_counted(severity, counts[severity]) for severity in WORST_FIRST if counts[severity]]
    return f"findings: {', '.join(found)}"


def _counted(severity: Severity, count: int) -> str:
    is_noun = severity in (Severity.warning, Severity.note)
    return count_of(count, severity) if is_noun else f"{count} {severity}"
