"""What a run was and what it found: counts, the table of faults with their unavailability, the verdict.

Unavailability is what acks=all producers felt: for each partition the time from one acknowledgement to the
next, whoever sent. Of a fault's window the longest such gap counts that reaches into it.
"""

import re
import statistics
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

PAIRED = " + "
UNBROKEN = re.compile(r"[LTW]\S+ +\w+ +(ok|not judged)\b")
"""What the checker says of a rule that is not broken."""


@dataclass
class Window:
    """One fault, from its beginning until everything was whole again; times as in the history."""

    number: int
    name: str
    what: str
    begin_ns: int
    ended_ns: int
    """When the fault was taken away."""
    whole_ns: int
    """When everything was led and in sync again."""
    unavailable_s: float = 0.0
    acks: int = 0
    """Of acks=all sends within it."""


@dataclass(frozen=True)
class CrashPoint:
    """A call before which a broker was to end."""

    call: str
    how: str
    """SIGKILL or power cut."""
    phase: str
    """``running``; ``starting``: not registered yet; ``catching up``: in the first seconds after that."""
    is_reached: bool
    path: str = ""


@dataclass
class Part:
    """One cluster's life within a run."""

    seed: int
    seconds: float
    windows: list[Window] = field(default_factory=list)
    not_run: dict[str, str] = field(default_factory=dict)
    missed: dict[str, int] = field(default_factory=dict)
    """How often each kind was to strike and could not, as its aim was gone."""
    crash_points: list[CrashPoint] = field(default_factory=list)
    sends: dict[str, int] = field(default_factory=dict)
    """How many ended as ok, info, fail."""
    not_judged: dict[str, int] = field(default_factory=dict)
    """Of the acknowledged ones those that the checker could not look for, by reason."""
    records: int = 0
    """In the final reads."""
    polled: int = 0
    dumps: int = 0
    """Replicas whose files were read."""
    only_in_store: int = 0
    """Offsets of the final reads that no broker had on its disk, at least."""
    client_crashes: int = 0
    client_restarts: dict[str, int] = field(default_factory=dict)
    """How often each client stood still, and was restarted."""
    admin_done: dict[str, int] = field(default_factory=dict)
    admin_refused: dict[str, int] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)
    """How operators' operations ended, and how often."""
    findings: list[str] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)
    """Why it proves nothing even if nothing was found."""
    spark: str = "workers"
    """What the brokers were in, as the command's option says it."""
    is_secured: bool = False
    denied: int = 0
    """Sends of a secured cluster's clients that were denied, as they had to be."""

    @property
    def verdict(self) -> str:
        return "VIOLATED" if self.findings else "INVALID" if self.invalid else "CLEAN"


@dataclass(frozen=True)
class Ack:
    """An acknowledged acks=all send."""

    topic: str
    partition: int
    at_ns: int


def measure(windows: Iterable[Window], acks: Sequence[Ack], topics: Iterable[str]) -> None:
    """Fill in what each window made clients wait, over the partitions of ``topics``."""
    wanted = set(topics)
    times: dict[tuple[str, int], list[int]] = {}
    for ack in acks:
        if ack.topic in wanted:
            times.setdefault((ack.topic, ack.partition), []).append(ack.at_ns)
    for some in times.values():
        some.sort()
    for window in windows:
        window.acks = sum(
            bisect_left(some, window.whole_ns) - bisect_left(some, window.begin_ns) for some in times.values()
        )
        window.unavailable_s = max(
            (longest_gap(some, window.begin_ns, window.whole_ns) / 1e9 for some in times.values()),
            default=0.0,
        )


def longest_gap(times: Sequence[int], begin: int, end: int) -> int:
    """The longest time between neighbours in ``times`` of which some lies between ``begin`` and ``end``."""
    first = max(bisect_left(times, begin) - 1, 0)
    last = min(bisect_left(times, end), len(times) - 1)
    return max((times[at + 1] - times[at] for at in range(first, last)), default=0)


def kinds_table(windows: Sequence[Window], not_run: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Rows: kind, times, longest and median unavailability, longest until whole, or why it was not run."""
    rows: list[tuple[str, ...]] = [
        ("fault", "times", "longest s without acks", "median", "longest s until whole", "")
    ]
    by_name: dict[str, list[Window]] = {}
    for window in windows:
        by_name.setdefault("two at once" if PAIRED in window.name else window.name, []).append(window)
    for name in sorted(by_name, key=lambda name: (name == "two at once", name)):
        some = by_name[name]
        felt = [window.unavailable_s for window in some]
        whole = max((window.whole_ns - window.ended_ns) / 1e9 for window in some)
        rows.append(
            (name, str(len(some)), f"{max(felt):.1f}", f"{statistics.median(felt):.1f}", f"{whole:.1f}", "")
        )
    rows += [(kind, "not run", "", "", "", why) for kind, why in sorted(not_run.items())]
    return rows


POINT_COLUMNS = (
    ("running", "SIGKILL"),
    ("running", "power cut"),
    ("starting", "SIGKILL"),
    ("starting", "power cut"),
    ("catching up", "SIGKILL"),
    ("catching up", "power cut"),
)


def points_table(points: Sequence[CrashPoint]) -> list[tuple[str, ...]]:
    """Rows: before which call how often a broker really ended, and how often nobody came to it."""
    heads = (f"{phase}: {how}" for phase, how in POINT_COLUMNS)
    rows = [("ended before", *heads, "not run: never reached")]
    calls = sorted({point.call for point in points})
    for name in [*calls, "all"]:
        some = [point for point in points if name in (point.call, "all")]
        counts = [
            sum(point.is_reached and (point.phase, point.how) == column for point in some)
            for column in POINT_COLUMNS
        ]
        rows.append((name, *map(str, counts), str(sum(not point.is_reached for point in some))))
    return rows


CLUSTERS: Mapping[str, str] = {
    "workers": "with an executor for each broker",
    "local": "with all brokers in one JVM",
    "none": "with brokers outside of Spark",
}


def windows_by_cluster(parts: Iterable[Part]) -> dict[str, int]:
    """How many windows met brokers of which kind."""
    total: Counter[str] = Counter()
    for part in parts:
        total[CLUSTERS[part.spark]] += len(part.windows)
    return dict(total)


LOST = ("AcknowledgedWritesStay", "LeadersLoseWithAnElectionOnly")
"""The checker's rules that look for what was acknowledged, with acks=all and with acks=1."""


def not_judged(said: Mapping[str, Any]) -> dict[str, int]:
    """Of what the checker said as JSON: which acknowledged sends it could not look for, by reason."""
    rules = {rule["rule"]: rule for rule in said["rules"]}
    total: Counter[str] = Counter()
    for name in LOST:
        total.update(rules[name]["left_out"])
    return dict(total)


def told_sends(sends: Mapping[str, int], unjudged: Mapping[str, int]) -> str:
    """``3 ok, 1 info; 2 acknowledged and not judged (2 topic deleted)``; the second half is always there."""
    told = f"{counted(sends)}; {sum(unjudged.values()):,} acknowledged and not judged"
    return f"{told} ({counted(unjudged)})" if unjudged else told


def counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items())) or "none"


def violated_rules(said: str) -> str:
    """Of what the checker said the rules that were broken, with its examples."""
    rules, _, _ = said.partition("\n\n")
    return "\n".join(line for line in rules.splitlines() if not UNBROKEN.match(line))


def as_markdown(rows: Sequence[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)


def as_text(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    )


def summed(parts: Sequence[Part]) -> dict[str, Any]:
    """The run as a whole."""

    def counts(name: str) -> dict[str, int]:
        total: dict[str, int] = {}
        for part in parts:
            for key, value in getattr(part, name).items():
                total[key] = total.get(key, 0) + value
        return total

    verdicts = [part.verdict for part in parts]
    ran = {kind for part in parts for window in part.windows for kind in window.name.split(PAIRED)}
    not_run = {kind: why for part in parts for kind, why in part.not_run.items() if kind not in ran}
    return {
        "verdict": next((one for one in ("VIOLATED", "INVALID", "CLEAN") if one in verdicts), "INVALID"),
        "parts": len(parts),
        "seeds": [part.seed for part in parts],
        "minutes": round(sum(part.seconds for part in parts) / 60, 1),
        "windows": sum(len(part.windows) for part in parts),
        "clusters": windows_by_cluster(parts),
        "secured_parts": sum(part.is_secured for part in parts),
        "denied": sum(part.denied for part in parts),
        "sends": counts("sends"),
        "not_judged": counts("not_judged"),
        "records": sum(part.records for part in parts),
        "polled": sum(part.polled for part in parts),
        "dumps": sum(part.dumps for part in parts),
        "only_in_store": sum(part.only_in_store for part in parts),
        "client_crashes": sum(part.client_crashes for part in parts),
        "client_restarts": counts("client_restarts"),
        "admin_done": counts("admin_done"),
        "admin_refused": counts("admin_refused"),
        "operations": counts("operations"),
        "not_run": not_run,
        "missed": counts("missed"),
        "crash_points": [asdict(point) for part in parts for point in part.crash_points],
        "findings": [finding for part in parts for finding in part.findings],
        "invalid": [why for part in parts for why in part.invalid],
    }
