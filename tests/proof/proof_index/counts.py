"""Counts that the code decides, as a page: ``python -m proof_index --write``."""

from collections import Counter
from typing import Final

from crash_points.scenarios import SCENARIOS
from proof_index.markers import ROOT, WITHOUT_TEST, Marker
from simulation.mutants import MUTANTS
from simulation.mutants.security import CHECKED
from simulation.plans.faults import ALL_KINDS
from simulation.plans.operations import ALL_OPERATIONS

PAGE: Final = ROOT / "tests/proof/docs/counts.md"
COSTS: Final = {
    "records": "committed records could be lost, doubled, put out of order or shown too early",
    "away": "a replica, partition or broker is unavailable for longer than necessary",
    "words": "a false or missing message",
}


def counts_page(marks: list[Marker]) -> str:
    """The page, from the marks of tests and from what the simulation and the crash points have."""
    told = {one.number: one.says for one in marks if one.says}
    costs = Counter(says[0] for number, says in told.items() if number.startswith("B"))
    by_plot = sum(bool(one.hunt and one.hunt.plot) for one in MUTANTS)
    unaided = sum(one.hunt is None for one in MUTANTS)
    rows = {
        "bugs of shipped code that the proof found": costs.total(),
        **{f"- *{cost}*: {words}": costs[cost] for cost, words in COSTS.items()},
        "bugs that Kafka had, played again": sum(number.startswith("K") for number in told),
        "situations that Kafka's tests demand": sum(
            number.startswith("S") for number in (*told, *WITHOUT_TEST)
        ),
        "mutants": len(MUTANTS),
        "- met by the seeds of every run": unaided,
        "- hunted by kinds of fault": len(MUTANTS) - unaided - by_plot,
        "- hunted by a plot": by_plot,
        "- that bring a numbered bug back": sum(bool(one.brings_back) for one in MUTANTS),
        "mutants, holes of security among them, that a check of their own finds": len(CHECKED),
        "kinds of simulated fault": len(ALL_KINDS),
        "kinds of administrators' request": len(ALL_OPERATIONS),
        "scenarios of crash points": len(SCENARIOS),
    }
    lines = [
        "# Counts",
        "",
        "Written by `python -m proof_index --write`; a test compares.",
        "",
        "| what | count |",
        "|---|---:|",
        *(f"| {what} | {count} |" for what, count in rows.items()),
    ]
    return "\n".join(lines) + "\n"
