"""What docs/performance.md draws from the results: shares by layer, and what was aimed at.

<!-- drawn: NAME -->
a block, which is written anew with each result
<!-- end -->
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench.aims import aim_of, is_reached, judged
from bench.layers import VIEWS
from bench.report import LAYERS, RESULTS, STORE, Row, figure

PAGE: Final = RESULTS.parents[1] / "docs/performance.md"
BAR: Final = "#"
BAR_SHARE: Final = 0.02
"""What one character of a bar stands for."""

AIMS: Final = "aims"
SPARK: Final = "spark"
NOT_YET: Final = "Not measured yet: `make bench BENCH_OPTIONS='{part} --write'` does."
KAFKA: Final = "times as fast as Kafka's connector"
EMPTY: Final = "of the empty source"
AIMED: Final = (
    ("write, tuned, lz4", KAFKA, 2.0),
    ("read, all columns", EMPTY, 0.7),
    ("AvailableNow, long", KAFKA, 2.0),
)
"""Work of the part ``spark``, how it is compared, and the least that it should come to."""

OTHER_AIMS: Final = "other aims"
WITH_AIMS: Final = (
    "producer",
    "clients",
    "groups",
    "typed",
    "typed_start",
    "tls",
    "security",
    "operating",
    "overview",
)
"""Parts whose rows say in their remarks what they should come to."""

CLAUSE: Final = ", "
"""Between what was done and its circumstances, in a row's name."""

LATENCY: Final = "latency"
_SPELL: Final = re.compile(
    r"(?P<kind>.+), best spell .*: p50 (?P<p50>[\d,]+) ms, p99 (?P<p99>[\d,]+) ms; "
    r"median trigger in ms: (?P<parts>.+); CPU ms a micro-batch: (?P<cpu>.+)\."
)
"""A note of the part ``latency``; parts and programs are pairs of name and figure."""

_BLOCK: Final = re.compile(r"(<!-- drawn: (?P<name>[^>]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def write() -> None:
    PAGE.write_text(page(PAGE.read_text(), json.loads(STORE.read_text())))


def page(text: str, kept: Mapping[str, Any]) -> str:
    """The page with its blocks from these results."""
    blocks = {
        AIMS: _aims(_rows(kept, SPARK), kept[SPARK]["stamp"]) if SPARK in kept else NOT_YET.format(part=SPARK)
    }
    blocks[LATENCY] = _delays(kept[LATENCY]) if LATENCY in kept else NOT_YET.format(part=LATENCY)
    blocks[OTHER_AIMS] = _other_aims(kept)
    blocks |= {view: _bars(view, _rows(kept, LAYERS)) for view in VIEWS}
    blocks["circumstances"] = "\n".join([f"Measured {kept[LAYERS]['stamp']}.", "", *_notes(kept)])
    return _BLOCK.sub(lambda found: f"{found[1]}{blocks[found['name']]}\n{found[3]}", text)


def _rows(kept: Mapping[str, Any], part: str) -> list[Row]:
    return [Row(**row) for row in kept[part]["rows"]]


def _notes(kept: Mapping[str, Any]) -> list[str]:
    return [f"- {note}" for note in kept[LAYERS]["notes"]]


def _bars(view: str, rows: Sequence[Row]) -> str:
    """The layers of one view in the order in which a row meets them."""
    prefix = f"{view}: "
    mine = {row.work.removeprefix(prefix): row.ours for row in rows if row.work.startswith(prefix)}
    width = max(map(len, mine))
    lines = [
        f"{layer:{width}} {share:4.0%}  {BAR * round(share / BAR_SHARE)}".rstrip()
        for layer, share in mine.items()
    ]
    return "\n".join(["```", *lines, "```"])


def _delays(part: Mapping[str, Any]) -> str:
    """Layers of a micro-batch down, kinds of streams across, without layers that take no millisecond."""
    columns: dict[str, dict[str, str]] = {}
    for found in filter(None, map(_SPELL.fullmatch, part["notes"])):
        trigger, cpu = (
            dict(pair.rsplit(" ", 1) for pair in found[name].split(", ")) for name in ("parts", "cpu")
        )
        column = {"latency, p50": found["p50"], "latency, p99": found["p99"]}
        column |= {f"trigger: {name}": ms for name, ms in trigger.items()}
        columns[found["kind"]] = column | {f"CPU: {program}": ms for program, ms in cpu.items()}
    layers = [
        name for name in next(iter(columns.values())) if any(one[name] != "0" for one in columns.values())
    ]
    lines = [f"| ms | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    lines += [f"| {layer} | {' | '.join(one[layer] for one in columns.values())} |" for layer in layers]
    return "\n".join([*lines, "", f"Measured {part['stamp']}."])


def _other_aims(kept: Mapping[str, Any]) -> str:
    """Rows that miss the aim in their remark, in brief; parts that were not measured are named."""
    parts = list(filter(kept.__contains__, WITH_AIMS))
    aimed = [(part, row) for part in parts for row in _rows(kept, part) if aim_of(row)]
    missed = [(part, row) for part, row in aimed if not is_reached(row)]
    lines = [f"{len(aimed) - len(missed)} of {len(aimed)} are reached. Missed:", ""]
    lines += ["| work | aim | found |", "|---|---:|---:|"]
    clauses = [row.work.split(CLAUSE) for _, row in missed]
    for clause, (_, row) in zip(clauses, missed, strict=True):
        alike = sum(other[0] == clause[0] for other in clauses)
        brief = clause[0] if alike == 1 else CLAUSE.join((clause[0], clause[-1]))
        busy = " (busy)" if row.busy else ""
        lines.append(f"| {brief} | {aim_of(row)} | {figure(judged(row))}{busy} |")
    missing = [part for part in WITH_AIMS if part not in kept]
    notes = [NOT_YET.format(part=" ".join(missing))] if missing else []
    return "\n".join(notes if len(missing) == len(WITH_AIMS) else [*lines, *([""] if notes else []), *notes])


def _aims(rows: Sequence[Row], stamp: str) -> str:
    found = {row.work.removeprefix("Spark: "): row for row in rows}
    lines = ["| work | aim | found | |", "|---|---:|---:|---|"]
    for work, beside, aim in AIMED:
        row = found[work]
        ratio = row.ratio if beside == KAFKA else float(row.note.split()[0])
        verdict = "not measured" if ratio is None else "reached" if ratio >= aim else "**missed**"
        shown = "–" if ratio is None else figure(ratio)
        lines.append(f"| {work}, {beside} | {aim:g} | {shown} | {verdict} |")
    return "\n".join([*lines, "", f"Measured {stamp}."])
