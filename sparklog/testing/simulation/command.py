"""``sparklog simulate``: run seeds, replay one as a story, list the bugs that can be switched back on.

``simulate_command`` joins the command line through the entry-point group ``sparklog.commands``. Commands and
simulation do not import each other; the object is made when the command line asks for it by name.
"""

import argparse
import importlib
import json
import re
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from sparklog.model.errors import ConfigError
from sparklog.testing.simulation.fleet import Summary, processes_for, summaries
from sparklog.testing.simulation.mutants import MUTANTS, Mutant, find_mutant
from sparklog.testing.simulation.plan import draw_plan
from sparklog.testing.simulation.progress_file import (
    Progress,
    Violated,
    code_digest,
    current_commit,
    load,
    save,
)
from sparklog.testing.simulation.shrink import shrink
from sparklog.testing.simulation.simulation import Outcome, simulate

DONE: Final = 0
FAILED: Final = 1

PROGRESS_SECONDS: Final = 2.0
"""Between two words on standard error."""

SEEDS: Final = re.compile(r"(\d+)-(\d+)|(\d+)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--seeds", metavar="A-B", help="run these seeds, both included")
    what.add_argument("--replay", metavar="SEED", type=_one_seed, help="run one seed and tell its story")
    what.add_argument("--list-mutants", action="store_true", help="show the bugs that can be switched on")
    parser.add_argument(
        "--steps", metavar="N", type=int, help="end every run after N steps, come to rest or not"
    )
    parser.add_argument(
        "--processes", metavar="N", type=int, help="run seeds in N processes (default: one for each CPU)"
    )
    parser.add_argument("--mutant", metavar="NAME", help="switch a historical bug back on")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--resume", metavar="FILE", type=Path, help="go on where the run that wrote FILE stopped"
    )


def _one_seed(text: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    what = f"{text!r} is a range" if SEEDS.fullmatch(text) else f"{text!r} is not a whole number"
    raise argparse.ArgumentTypeError(f"{what}; a replay tells of one seed, as in --replay 17")


def run(arguments: argparse.Namespace) -> int:
    if arguments.list_mutants:
        return _list_mutants(as_json=arguments.json)
    if arguments.steps is not None and arguments.steps < 1:
        raise ConfigError(f"--steps {arguments.steps}: give at least 1")
    if arguments.processes is not None and arguments.processes < 1:
        raise ConfigError(f"--processes {arguments.processes}: give at least 1")
    mutant = _mutant(arguments.mutant)
    if arguments.replay is not None:
        if arguments.resume is not None:
            raise ConfigError("--resume goes with --seeds: a replay is one run")
        return _replay(arguments.replay, arguments.steps, mutant, as_json=arguments.json)
    return _run_seeds(arguments)


def _mutant(name: str | None) -> Mutant | None:
    if name is None:
        return None
    mutant = find_mutant(name)
    if mutant is None:
        raise ConfigError(
            f"--mutant {name}: there is no such mutant; known are {', '.join(one.name for one in MUTANTS)}"
        )
    return mutant


def _list_mutants(*, as_json: bool) -> int:
    if as_json:
        rows = [
            {"name": one.name, "origin": one.origin, "damage": one.damage, "seeds_max": one.seeds_max}
            for one in MUTANTS
        ]
        print(json.dumps({"mutants": rows}))
        return DONE
    width = max(len(one.name) for one in MUTANTS)
    for one in MUTANTS:
        print(f"{one.name:<{width}}  {one.origin}: {one.damage}; caught within {one.seeds_max} seeds")
    return DONE


# ---- many seeds --------------------------------------------------------------------------------------------


def _seeds(text: str) -> tuple[int, int]:
    match = SEEDS.fullmatch(text)
    if match is None:
        raise ConfigError(f"--seeds {text}: give a range such as 1-2000")
    first, last = (int(match[3]), int(match[3])) if match[3] else (int(match[1]), int(match[2]))
    if last < first:
        raise ConfigError(f"--seeds {text}: the range is empty; the smaller number comes first")
    return first, last


def _run_seeds(arguments: argparse.Namespace) -> int:
    first, last = _seeds(arguments.seeds)
    progress = Progress(
        current_commit(), code_digest(), first, last, first, arguments.mutant, arguments.steps
    )
    if arguments.resume is not None:
        progress = load(arguments.resume, progress)
        if progress.next_seed > last:
            print(f"{arguments.resume} has all these seeds; there is nothing left to run", file=sys.stderr)
    began_at, began = progress.next_seed, time.monotonic()
    seconds_before = progress.seconds
    told = began
    seeds = range(progress.next_seed, last + 1)
    for summary in summaries(
        seeds,
        mutant=arguments.mutant,
        steps_max=arguments.steps,
        processes=arguments.processes or processes_for(len(seeds)),
    ):
        _note(progress, summary, arguments.json)
        progress.seconds = round(seconds_before + time.monotonic() - began, 1)
        if time.monotonic() - told > PROGRESS_SECONDS:
            told = time.monotonic()
            print(f"{progress.seeds} of {last - first + 1} seeds", file=sys.stderr)
            if arguments.resume is not None:
                save(arguments.resume, progress)
    if arguments.resume is not None:
        save(arguments.resume, progress)
    per_second = (progress.next_seed - began_at) / max(time.monotonic() - began, 1e-9)
    _report(progress, per_second, as_json=arguments.json)
    return FAILED if progress.violations else DONE


def _note(progress: Progress, summary: Summary, as_json: bool) -> None:
    progress.next_seed = summary.seed + 1
    progress.simulated_ms += summary.simulated_ms
    progress.steps += summary.steps
    progress.faults += summary.faults
    progress.operations += summary.operations
    progress.acknowledged += summary.acknowledged
    for mark in summary.marks:
        progress.marks[mark] = progress.marks.get(mark, 0) + 1
    if summary.invariant is not None:
        violated = Violated(summary.seed, summary.invariant, summary.what)
        progress.violations.append(violated)
        if not as_json:
            print(f"seed {violated.seed} violates {violated.invariant}: {violated.what}")


def _report(progress: Progress, per_second: float, *, as_json: bool) -> None:
    if as_json:
        document = asdict(progress) | {"seeds": progress.seeds, "seeds_per_second": round(per_second, 1)}
        print(json.dumps(document))
        return
    count = len(progress.violations)
    violations = f"{count} violation{'' if count == 1 else 's'}"
    print(f"{progress.seeds} seeds, {violations}, {per_second:.1f} seeds/s")


# ---- one seed ----------------------------------------------------------------------------------------------


def _replay(seed: int, steps_max: int | None, mutant: Mutant | None, *, as_json: bool) -> int:
    plan = draw_plan(seed, steps_max=steps_max, hunt=None if mutant is None else mutant.hunt)
    outcome = simulate(plan, mutant=mutant)
    if outcome.violation is not None:
        print(
            f"seed {seed} fails; looking for the shortest list of faults and operations that does",
            file=sys.stderr,
        )
        plan = shrink(outcome, mutant=mutant).plan
    told = simulate(plan, mutant=mutant, is_told=True)
    if as_json:
        print(json.dumps(_as_document(told, len(outcome.plan.steps))))
    else:
        for line in told.lines:
            print(line)
        print(_last_line(told, len(outcome.plan.steps)))
    return DONE if told.violation is None else FAILED


def _as_document(told: Outcome, drawn: int) -> dict[str, object]:
    violation = told.violation
    return {
        "seed": told.plan.seed,
        "invariant": violation.invariant if violation is not None else None,
        "what": violation.what if violation is not None else None,
        "drawn": drawn,
        "faults": [asdict(fault) for fault in told.plan.faults],
        "operations": [asdict(operation) for operation in told.plan.operations],
        "simulated_ms": told.simulated_ms,
        "digest": told.digest,
        "story": list(told.lines),
    }


def _last_line(told: Outcome, drawn: int) -> str:
    if told.violation is None:
        end = "" if told.is_complete else ", where it was cut short"
        return (
            f"seed {told.plan.seed}: nothing violated in {told.simulated_ms} ms and {told.steps} steps{end}"
        )
    return (
        f"seed {told.plan.seed} violates {told.violation.invariant} "
        f"with {len(told.plan.steps)} of its {drawn} faults and operations"
    )


DESCRIPTION: Final = (
    "Run simulated clusters of three to five brokers and two controllers under crashes, pauses, message "
    "loss, delay and reordering, ZooKeeper session loss and disk faults, with administrators at work, and "
    "check what must hold after every step. The same seed gives the same run."
)
EXAMPLES: Final = (
    "sparklog simulate --seeds 1-2000",
    "sparklog simulate --replay 17",
    "sparklog simulate --replay 3 --mutant ack-on-append",
)


def __getattr__(name: str) -> Any:
    if name != "simulate_command":
        raise AttributeError(name)
    return importlib.import_module("sparklog.cli.command").Command(
        name="simulate",
        summary="run seeded simulations of the shipped core and storage",
        description=DESCRIPTION,
        add_arguments=add_arguments,
        run=run,
        examples=EXAMPLES,
    )
