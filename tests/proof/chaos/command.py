"""Faults upon a real cluster for as long as you like, and the verdict of what its clients saw: `make chaos`.

    python tests/proof/chaos/run.py --minutes 60 --seed 7

A run goes in parts, each with a cluster of its own. Exit status: 0 clean, 1 something was found, 2 wrong
usage, or the run proves nothing (too little traffic, too few windows). Ctrl-C ends it early, with the verdict
so far.
"""

import argparse
import dataclasses
import json
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from chaos.bugs import BUGS
from chaos.clients.workload import KINDS
from chaos.machines.walls import WalledPlaces
from chaos.nemesis import LOGINS
from chaos.part import run_part
from chaos.planned import minutes_of, nemeses, part_options, windows_of
from chaos.report import (
    CLUSTERS,
    CrashPoint,
    Part,
    Window,
    as_markdown,
    as_text,
    counted,
    kinds_table,
    points_table,
    summed,
    told_sends,
)
from chaos.schedule import PAIRS

FOLDER = Path("build/chaos")
PART_MINUTES = 15.0
WINDOWS_MAX = 1_000_000
CLEAN, FOUND, UNUSABLE = 0, 1, 2
MAY_CHANGE = ("minutes", "windows", "out", "resume", "keep", "list")
"""Options that do not make another run of it."""
CLIENT_LIBRARIES = ("confluent-kafka", "kafka-python", "aiokafka", "pyspark", "kazoo")


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="chaos", description="faults upon a real cluster, judged by its clients"
    )
    add = parser.add_argument
    add("--minutes", type=float, default=60.0, help="how long faults go on (default: %(default)s)")
    add("--part-minutes", type=float, default=PART_MINUTES, help="how long one cluster lives (%(default)s)")
    add("--seed", type=int, default=1, help="draws the schedule (default: %(default)s)")
    add("--only", nargs="+", metavar="KIND", help="these faults only; see --list")
    add("--without", nargs="+", metavar="KIND", default=[], help="all but these faults")
    add("--in-order", action="store_true", help="the faults of --only in that order, each once, and no more")
    add("--out", type=Path, help=f"the run's folder (default: the next in {FOLDER})")
    add("--resume", action="store_true", help="go on with the run in the folder, after its last whole part")
    add("--rate", type=float, default=120.0, help="records a second, of all producers (default: %(default)s)")
    add(
        "--spark",
        choices=("workers", "local", "none"),
        default="workers",
        help="an executor for each broker, all in one JVM, or brokers without Spark (default: %(default)s)",
    )
    add("--pairs", type=float, default=PAIRS, help="share of faults that come in twos (default: %(default)s)")
    add("--windows", type=int, default=WINDOWS_MAX, metavar="N", help="end after so many faults")
    add(
        "--places",
        choices=("walled", "plain"),
        default="walled",
        help="brokers on machines of their own, where those can be had, or on one (default: %(default)s)",
    )
    add(
        "--clients",
        nargs="+",
        choices=KINDS,
        default=list(KINDS),
        help="plain producers and consumers, a consumer group, transactions, atomic writes, "
        "typed rows (default: all)",
    )
    add(
        "--secured",
        action="store_true",
        help="every cluster with TLS, logins and access rules, which change among the faults (default: some)",
    )
    add("--keep", action="store_true", help="keep the folders of clean parts, too")
    add("-c", dest="settings", nargs="+", default=[], metavar="KEY=VALUE", help="broker settings")
    add(
        "--mutant",
        metavar="NAME",
        help="put this bug into every broker; with the faults that bring it out, unless --only names others",
    )
    add("--list", action="store_true", help="tell which faults there are, and which this machine allows")
    args = parser.parse_args(arguments)
    for name in ("minutes", "part_minutes", "rate", "windows"):
        if getattr(args, name) <= 0:
            parser.error(f"--{name.replace('_', '-')} is {getattr(args, name)}: give more than 0")
    if args.in_order and args.only is None:
        parser.error("--in-order takes its order from --only, which is missing")
    if args.mutant is not None and args.mutant not in BUGS:
        parser.error(f"--mutant {args.mutant} cannot be put into real brokers: these can: {', '.join(BUGS)}")
    if args.mutant is not None and args.spark != "none":
        parser.error(f"--mutant {args.mutant} needs --spark none, where brokers are processes of their own")
    if args.mutant is not None and args.only is None:
        args.only = list(BUGS[args.mutant].faults)
        args.settings = [*(f"{k}={v}" for k, v in BUGS[args.mutant].settings.items()), *args.settings]
    if args.mutant is not None and args.secured:
        parser.error(f"--mutant {args.mutant} is caught on open clusters: leave --secured out")
    every = nemeses(WalledPlaces())
    known = {nemesis.kind for nemesis in every}
    unknown = [kind for kind in [*(args.only or []), *args.without] if kind not in known]
    if unknown:
        parser.error(f"there is no fault {', '.join(unknown)}; --list tells which there are")
    of_logins = {nemesis.kind for nemesis in every if LOGINS in nemesis.needs}
    if not args.secured and (wanted := sorted(of_logins.intersection(args.only or ()))):
        parser.error(f"{', '.join(wanted)}: an open cluster has no logins: add --secured")
    return args


def main(arguments: Sequence[str] | None = None) -> int:
    args = parsed(arguments)
    if args.list:
        for nemesis in nemeses(WalledPlaces()):
            print(f"{nemesis.kind:28}{nemesis.probe() or 'can be run'}")
        return CLEAN
    out: Path = (args.out or default_folder(args.resume)).absolute()
    if not args.resume and out.exists() and any(out.iterdir()):
        print(f"chaos: {out} is not empty: add --resume, or name another folder with --out", file=sys.stderr)
        return UNUSABLE
    if (refusal := begin(out, args)) is not None:
        print(f"chaos: {refusal}", file=sys.stderr)
        return UNUSABLE
    parts = known_parts(out)
    began = time.monotonic()
    with _signals_that_stop() as stop:
        while not stop.is_set() and _is_more_to_do(args, parts):
            parts.append(_next_part(args, out, parts, stop, began))
            write_report(out, parts)
        write_report(out, parts)
    total = summed(parts)
    print((out / "report.txt").read_text())
    if total["verdict"] == "CLEAN":
        return CLEAN
    print(f"chaos: what there is to look at is in {out}", file=sys.stderr)
    return FOUND if total["verdict"] == "VIOLATED" else UNUSABLE


def begin(out: Path, args: argparse.Namespace) -> str | None:
    """Write down what this run is of, or say what is different in the run that is to be gone on with.

    Parts of another code, or under other options, add up to no run. How long it goes on may change.
    """
    path = out / "run.json"
    given = {name: value for name, value in vars(args).items() if name not in MAY_CHANGE}
    now = {"commit": surroundings()["commit"], **given}
    if path.exists():
        before = json.loads(path.read_text())
        different = [
            f"{name} was {before.get(name)}, and is {value}"
            for name, value in now.items()
            if before.get(name) != value
        ]
        if different:
            return f"{out} is another run: {'; '.join(different)}: begin a new one with --out"
        return None
    if known_parts(out):
        return f"{path} is missing, so nobody knows what the parts are of: begin a new run with --out"
    out.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(now, indent=1))
    return None


@contextmanager
def _signals_that_stop() -> Iterator[threading.Event]:
    """Set by SIGINT and SIGTERM, which mean what they meant before when this is left."""
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def default_folder(is_resumed: bool) -> Path:
    """``build/chaos/run-N``: a new one, or the last one to go on with."""
    known = [int(path.name.removeprefix("run-")) for path in FOLDER.glob("run-[0-9]*")]
    return FOLDER / f"run-{max(known, default=0) + (0 if is_resumed and known else 1)}"


def _is_more_to_do(args: argparse.Namespace, parts: Sequence[Part]) -> bool:
    """A finding ends the run: what is there is to be looked at."""
    has_found = any(part.findings for part in parts)
    if args.in_order:
        return not parts
    return not has_found and minutes_of(parts) < args.minutes and windows_of(parts) < args.windows


def _next_part(
    args: argparse.Namespace, out: Path, parts: Sequence[Part], stop: threading.Event, began: float
) -> Part:
    number = len(parts) + 1
    folder = out / f"part-{number}"
    shutil.rmtree(folder, ignore_errors=True)  # one that was cut short
    story = (out / "story.txt").open("a", encoding="utf-8")

    def say(text: str) -> None:
        line = f"{time.monotonic() - began:8.1f} s  part {number}: {text}"
        print(line, file=sys.stderr, flush=True)
        print(line, file=story, flush=True)

    options = part_options(args, folder, parts)
    cluster = f"{CLUSTERS[options.spark]}{', secured' if options.is_secured else ''}"
    say(f"seed {options.seed}, {options.seconds / 60:.1f} minutes {cluster}, in {folder}")
    with story:
        part = run_part(options, say, stop)
        say(f"{part.verdict}: {len(part.windows)} windows, sends: {told_sends(part.sends, part.not_judged)}")
    if part.verdict == "CLEAN" and not args.keep:
        for heavy in ("cluster", "zookeeper", "work", "machines", "histories"):
            shutil.rmtree(folder / heavy, ignore_errors=True)
    return part


def known_parts(out: Path) -> list[Part]:
    """The parts that a run before has finished."""
    parts: list[Part] = []
    while (path := out / f"part-{len(parts) + 1}" / "part.json").exists():
        fields = json.loads(path.read_text())
        del fields["verdict"]
        fields["windows"] = [Window(**window) for window in fields["windows"]]
        fields["crash_points"] = [CrashPoint(**point) for point in fields["crash_points"]]
        parts.append(Part(**fields))
    return parts


def write_report(out: Path, parts: Sequence[Part]) -> None:
    """report.json, report.txt and report.md."""
    total = {**summed(parts), **surroundings()}
    windows = [window for part in parts for window in part.windows]
    rows = kinds_table(windows, total["not_run"])
    facts = _facts(total)
    (out / "report.json").write_text(
        json.dumps({**total, "windows_in_full": [dataclasses.asdict(window) for window in windows]}, indent=1)
    )
    tables = [rows]
    if points := [point for part in parts for point in part.crash_points]:
        tables.append(points_table(points))
    text = [line for table in tables for line in (as_text(table), "")]
    (out / "report.txt").write_text("\n".join([*text, *facts]) + "\n")
    markdown = [line for table in tables for line in (as_markdown(table), "")]
    (out / "report.md").write_text("\n".join([*markdown, *(f"- {fact}" for fact in facts)]) + "\n")


def _facts(total: dict[str, object]) -> list[str]:
    def counts(name: str) -> str:
        some = total[name]
        assert isinstance(some, dict)
        return counted(some)

    sends, unjudged = total["sends"], total["not_judged"]
    assert isinstance(sends, dict)
    assert isinstance(unjudged, dict)
    found, invalid = total["findings"], total["invalid"]
    assert isinstance(found, list)
    assert isinstance(invalid, list)
    return [
        f"{total['verdict']}: {total['minutes']} minutes in {total['parts']} parts, "
        f"{total['windows']} windows, seeds {total['seeds']}, commit {total['commit']}",
        f"windows: {counts('clusters')}",
        f"secured parts: {total['secured_parts']}, with {total['denied']:,} sends denied",
        f"sends: {told_sends(sends, unjudged)}; {total['records']:,} records in final reads, "
        f"{total['polled']:,} polled, {total['dumps']} replicas compared; "
        f"{total['client_crashes']} clients crashed",
        f"offsets of the final reads that only the remote store had: {total['only_in_store']:,}",
        f"clients that stood still and were restarted: {counts('client_restarts')}",
        f"strikes that missed, as their aim was gone: {counts('missed')}",
        f"administrators: done {counts('admin_done')}; refused {counts('admin_refused')}",
        f"operators: {counts('operations')}",
        f"versions: {counts_of_text(total['versions'])}",
        *(f"found: {finding}" for finding in found),
        *(f"proves nothing: {why}" for why in invalid),
    ]


def counts_of_text(versions: object) -> str:
    assert isinstance(versions, dict)
    return ", ".join(f"{name} {number}" for name, number in versions.items())


def surroundings() -> dict[str, object]:
    """The commit, and the versions of what takes part."""
    here = Path(__file__).parent
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=here, check=False
    ).stdout.strip()
    changed = subprocess.run(
        [
            "git",
            "status",
            "--porcelain",
            "--untracked-files=no",
            "--",
            "../../../sparklog",
            "../../../broker_runtime",
        ],
        capture_output=True,
        text=True,
        cwd=here,
        check=False,
    ).stdout.strip()
    versions = {name: version(name) for name in CLIENT_LIBRARIES}
    return {
        "commit": f"{commit} with changes" if changed else commit,
        "versions": {"Python": platform.python_version(), "Linux": platform.release(), **versions},
    }
