"""The table of results: a row is one piece of work, with the ratio first and each side's own figure after."""

import itertools
import json
import math
import os
import platform
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

RESULTS: Final = Path(__file__).parent.parent / "RESULTS.md"
STORE: Final = RESULTS.with_name("results.json")
"""What RESULTS.md is written from; a part that is measured on another machine leaves the others' figures."""
LAYERS: Final = "layers"
"""The part whose shares are drawn in docs/performance.md."""
OF_THE_PROOF: Final = "\n# What the proof measured\n"
"""The heading in RESULTS.md from which on no benchmark writes."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line; figures of both sides in ``unit``. ``more_is_better`` decides which way the ratio is put."""

    work: str
    unit: str
    ours: float
    kafka: float | None = None
    more_is_better: bool = True
    note: str = ""
    cpu_us: float | None = None
    """CPU of all our brokers for one of ``unit`` (a row, a request, a megabyte); None if not measured."""
    kafka_cpu_us: float | None = None
    busy: str = ""
    """The circumstances, if others used the machine; empty if it was quiet."""

    @property
    def ratio(self) -> float | None:
        """How many times as good as Kafka we are."""
        if self.kafka is None or not self.ours or not self.kafka:
            return None
        return self.ours / self.kafka if self.more_is_better else self.kafka / self.ours

    def line(self) -> str:
        ratio = "–" if self.ratio is None else f"**{figure(self.ratio)}**"
        cells = [self.work, ratio, figure(self.ours), _or_dash(self.kafka), self.unit, self._cpu()]
        busy = f"*busy*: {self.busy}" if self.busy else ""
        return f"| {' | '.join(cells)} | {'; '.join(filter(None, [self.note, busy]))} |"

    def _cpu(self) -> str:
        if self.cpu_us is None and self.kafka_cpu_us is None:
            return "–"
        return f"{_or_dash(self.cpu_us)} / {_or_dash(self.kafka_cpu_us)}"


@dataclass(slots=True)
class PartResult:
    """What one part of a run found."""

    rows: list[Row]
    notes: list[str] = field(default_factory=list)
    stamp: str = ""

    def mark_busy(self) -> None:
        """Others used the machine while this was measured."""
        self.rows = [replace(row, busy=self.stamp) for row in self.rows]


HEAD: Final = """\
| work | times as good as Kafka | sparklog | Apache Kafka | unit | CPU of brokers, µs | remarks |
|---|---:|---:|---:|---|---:|---|"""


def _or_dash(value: float | None) -> str:
    return "–" if value is None else figure(value)


def figure(value: float) -> str:
    """Three digits that count."""
    if value == 0:
        return "0"
    return f"{value:,.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def percentile(values: Iterable[float], share: float) -> float:
    """The value that ``share`` of all do not exceed."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values, so no percentile of them")
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]


def longest_gap(acks: Sequence[float], since: float, until: float) -> float:
    """Longest time without an acknowledgement between two moments; what reaches over one counts whole."""
    before = max((at for at in acks if at <= since), default=since)
    after = min((at for at in acks if at >= until), default=until)
    times = [before, *sorted(at for at in acks if since < at < until), after]
    return max(late - early for early, late in itertools.pairwise(times))


def table(rows: Sequence[Row]) -> str:
    return "\n".join([HEAD, *(row.line() for row in rows)])


def stamp(others_cores: float | None) -> str:
    """When and on which state of the code; a modified working tree is said. ``others_cores``: CPU that others
    used just before; None if nobody looked.
    """
    root = RESULTS.parent.parent
    commit = _output("git", "-C", str(root), "rev-parse", "--short", "HEAD")
    shipped = ("sparklog", "datasource", "broker_runtime")
    changed = _output("git", "-C", str(root), "status", "--porcelain", "--", *shipped)
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    code = f"commit {commit}{' with changes' if changed else ''}"
    others = "" if others_cores is None else f", others used {others_cores:.2f} cores just before"
    return f"{when} UTC, {code}{others}"


def keep(part: str, result: PartResult) -> None:
    """Put a part's result beside those of the others."""
    kept = json.loads(STORE.read_text()) if STORE.exists() else {}
    kept[part] = asdict(merged(_result(kept[part]), result) if part in kept else result)
    STORE.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def beside_kraft(part: str) -> str:
    """The name under which a part's figures beside Kafka without ZooKeeper are kept."""
    return f"{part} beside KRaft"


def merged(before: PartResult, now: PartResult) -> PartResult:
    """What is kept of two results of a part: the later one, but no busy row in place of a quiet one."""
    quiet = [row for row in before.rows if not row.busy]
    if not quiet or not any(row.busy for row in now.rows):
        return now
    kept = {row.work for row in quiet}
    return PartResult(
        [*quiet, *(row for row in now.rows if row.work not in kept)], before.notes, before.stamp
    )


def _result(kept: Mapping[str, Any]) -> PartResult:
    return PartResult([Row(**row) for row in kept["rows"]], list(kept["notes"]), kept["stamp"])


def write(
    order: Sequence[str], limits: Sequence[str], kraft: Sequence[str], versions: dict[str, str]
) -> None:
    """RESULTS.md from all results that were kept; ``limits``, and ``kraft`` of the parts, are sections."""
    kept = json.loads(STORE.read_text())
    newer = [beside_kraft(part) for part in kraft]
    results = {part: _result(kept[part]) for part in (*order, *limits, *newer) if part in kept}
    in_table = [part for part in order if part != LAYERS]
    lines = [
        "# Figures",
        "",
        "Written by `make bench` (`benchmarks/run.py`); how each is measured is told there. Absolute figures "
        "move by half from run to run; a ratio is of one run of its part, whose circumstances are below.",
        "",
        f"- Machine: {machine()}",
        f"- Versions: {', '.join(f'{k} {v}' for k, v in versions.items())}",
    ]
    lines += [
        "- Three brokers each, all on this machine beside the load; topics of three replicas, acks=all, "
        "min.insync.replicas=2; settings are the defaults where nothing is said.",
        "- CPU is the measure on a shared machine: user and system time of all three brokers, ours / "
        "Kafka's, for one of the unit (a row, a request, a MB). Where it is given, rounds were in turns: of "
        "the CPU it is the lower quartile, of rates and delays the median.",
        "- *busy*: others used more than 0.3 cores just before. Such a row replaces no quiet one.",
        "- Where the time of a write and of a read goes: [performance](../docs/performance.md).",
        "",
        table([row for part, result in results.items() if part in in_table for row in result.rows]),
    ]
    for part in filter(results.__contains__, in_table):
        lines += ["", f"## {part}", "", *_circumstances(results[part])]
    there = [part for part in newer if part in results]
    if there:
        lines += ["", "# Beside Apache Kafka without ZooKeeper", "", KRAFT_HEAD, ""]
        lines += [table([row for part in there for row in results[part].rows])]
    for part in there:
        lines += ["", f"## {part}", "", *_circumstances(results[part])]
    if any(part in results for part in limits):
        lines += ["", "# Faults, operations, many partitions, the disk alone", "", LIMITS_HEAD]
    for part in filter(results.__contains__, limits):
        lines += ["", f"## {part}", "", table(results[part].rows), "", *_circumstances(results[part])]
    before = RESULTS.read_text() if RESULTS.exists() else ""
    _, heading, of_the_proof = before.partition(OF_THE_PROOF)
    RESULTS.write_text("\n".join(lines) + "\n" + heading + of_the_proof)


KRAFT_HEAD: Final = (
    "By `make bench BENCH_OPTIONS='--kafka 4.1 --write'`: the column of Apache Kafka is of a release whose "
    "three brokers vote on the controller themselves (KRaft)."
)
LIMITS_HEAD: Final = (
    "By `make bench BENCH_OPTIONS='limits --write'`. Sessions of ZooKeeper are of 6 s where it matters; "
    "CPU seconds say more than seconds where the machine was busy."
)


def _circumstances(result: PartResult) -> list[str]:
    notes = ["", *(f"- {note}" for note in result.notes)] if result.notes else []
    return [f"Measured {result.stamp}.", *notes]


def machine() -> str:
    cpu = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor() or platform.machine(),
    )
    kib = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    system = f"{platform.system()} {platform.release()}"
    return f"{os.cpu_count()} cores ({cpu}), {kib * 1024 / 1e9:.0f} GB, {system}"


def versions() -> dict[str, str]:
    java = subprocess.run(
        ["java", "-version"], capture_output=True, text=True, check=False
    ).stderr.splitlines()
    found = {name: version(name) for name in ("sparklog", "pyspark", "pyarrow", "confluent-kafka")}
    return {"Python": platform.python_version(), "Java": java[0].split('"')[1] if java else "none", **found}


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
