"""A verdict for people, and as JSON."""

from collections.abc import Iterator
from typing import Any

from histories.check import Verdict
from histories.figures import Figures
from histories.findings import Judgement, told_reasons

SHOWN_MAX = 5
"""Findings of one rule that people are shown in full."""


def word_of(verdict: Verdict) -> str:
    if verdict.findings:
        return "VIOLATED"
    return "INVALID" if verdict.invalid else "clean"


def as_json(verdict: Verdict) -> dict[str, Any]:
    figures = verdict.figures
    return {
        "verdict": word_of(verdict).lower(),
        "invalid": list(verdict.invalid),
        "rules": [_rule_as_json(one) for one in verdict.judgements],
        "findings": [
            {"rule": one.rule, "where": one.where, "what": one.what, "evidence": list(one.evidence)}
            for one in verdict.findings
        ],
        "sends": figures.sends,
        "polls": figures.polls,
        "records_read": figures.records_read,
        "ends": figures.ends,
        "partitions": figures.partitions,
        "finals": figures.finals,
        "dumps": figures.dumps,
        "lag_max_ms": figures.lag_max_ns / 1e6,
        "not_judged": figures.not_judged,
        "faults": [
            {
                "kind": one.kind,
                "windows": one.windows,
                "with_traffic": one.with_traffic,
                "longest_unavailable_ms": one.longest_ns / 1e6,
                "median_unavailable_ms": one.median_ns / 1e6,
            }
            for one in figures.faults
        ],
        "not_run": [{"kind": kind, "why": why} for kind, why in figures.not_run],
    }


def _rule_as_json(one: Judgement) -> dict[str, Any]:
    """``why_not_judged`` is null for a rule that was judged."""
    return {
        "rule": one.rule.name,
        "number": one.rule.number,
        "matter": one.rule.matter,
        "judged": one.judged.count,
        "left_out": one.judged.left_out,
        "why_not_judged": one.why_not_judged or None,
        "findings": len(one.findings),
    }


def as_lines(verdict: Verdict) -> Iterator[str]:
    yield from _rules(verdict)
    yield ""
    yield from _figures(verdict.figures)
    for missing in verdict.invalid:
        yield f"INVALID: {missing}"
    judged = sum(one.is_judged for one in verdict.judgements)
    yield f"{word_of(verdict)}: {judged} of {len(verdict.judgements)} rules judged"


def _rules(verdict: Verdict) -> Iterator[str]:
    for judgement in verdict.judgements:
        yield f"{judgement.rule.number:<4} {judgement.rule.name:<32} {_told(judgement)}"
        for one in judgement.findings[:SHOWN_MAX]:
            yield f"       {one.where}: {one.what}"
            yield from (f"           {line}" for line in one.evidence)


def _told(one: Judgement) -> str:
    if one.findings:
        return str(len(one.findings))
    if not one.is_judged:
        return f"not judged: {one.why_not_judged}"
    told = f"ok, {one.judged.count:,} {one.rule.matter}"
    return f"{told}; not judged: {told_reasons(one.judged.left_out)}" if one.judged.left_out else told


def _figures(figures: Figures) -> Iterator[str]:
    for acks, counts in figures.sends.items():
        told = ", ".join(f"{counts.get(outcome, 0)} {outcome}" for outcome in ("ok", "info", "fail"))
        yield f"sends with acks={acks}: {told}"
    yield f"polls: {figures.polls}, records read: {figures.records_read}, ends asked for: {figures.ends}"
    yield f"partitions: {figures.partitions}, final reads: {figures.finals}, dumps: {figures.dumps}"
    if figures.not_judged:
        yield f"acknowledged with acks=all, and not judged: {told_reasons(figures.not_judged)}"
    yield f"longest from an acknowledgement to the first poll: {figures.lag_max_ns / 1e6:.0f} ms"
    if figures.faults:
        yield ""
        yield f"{'fault':<28} {'windows':>8} {'with traffic':>13} {'longest ms':>11} {'median ms':>10}"
    for one in figures.faults:
        longest, middle = one.longest_ns / 1e6, one.median_ns / 1e6
        yield f"{one.kind:<28} {one.windows:>8} {one.with_traffic:>13} {longest:>11.0f} {middle:>10.0f}"
    for kind, why in figures.not_run:
        yield f"{kind:<28} not run: {why}"
