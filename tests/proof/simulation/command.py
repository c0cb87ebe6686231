"""``scripts/simulate``: run seeds, replay one as a story, list the bugs that can be switched back on.

Exit status: 0 nothing was violated, 1 an invariant broke or a file could not be written, 2 wrong usage, 130
Ctrl-C cut it short.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Final

from simulation.marks import ALL_MARKS
from simulation.mutants import MUTANTS, Mutant, find_mutant
from simulation.mutants.security.registry import CHECKED, find_checked
from simulation.plans.plan import draw_plan
from simulation.run import Outcome, simulate
from simulation.seeds.fleet import processes_for, summaries
from simulation.seeds.progress_file import Progress, Violated, claim, load, save
from simulation.seeds.provenance import (
    code_digest,
    current_commit,
    library_versions,
    python_version,
)
from simulation.seeds.shrink import shrink
from sparklog.cli.command import DONE, FAILED, WRONG_USAGE, Command, build_parser
from sparklog.cli.main import INTERRUPTED
from sparklog.cli.program import exit_status_of
from sparklog.cli.values import whole_number
from sparklog.model.errors import ConfigError, SparklogError

MARKS_FROM: Final = 2_000
"""How many seeds must have reached every mark among them. The rarest comes in one of some 250, so it is
missed by chance once in 3,000 such runs."""

PROGRESS_SECONDS: Final = 2.0
"""Between two words on standard error."""

SEEDS: Final = re.compile(r"([0-9]+)-([0-9]+)|([0-9]+)")

CHECKING_TEST = "pytest tests/proof/simulation/tests/test_checked_mutants.py"
"""What catches bugs that seeds cannot, such as holes of security: the simulation has no users."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--seeds",
        metavar="A-B",
        help="run the seeds from A to B, both included, or A alone; whole numbers from 0 on",
    )
    what.add_argument("--replay", metavar="SEED", type=_one_seed, help="run one seed and tell its story")
    what.add_argument("--list-mutants", action="store_true", help="show the bugs that can be switched on")
    parser.add_argument(
        "--steps", metavar="N", type=whole_number, help="end every run after N steps, come to rest or not"
    )
    parser.add_argument(
        "--processes",
        metavar="N",
        type=whole_number,
        help="run seeds in N processes (default: one for each CPU)",
    )
    parser.add_argument("--mutant", metavar="NAME", help="switch a historical bug back on")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--resume",
        metavar="FILE",
        type=Path,
        help="write to FILE what is done; if it is there, go on where the run that wrote it stopped",
    )


def _one_seed(text: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    what = f"{text!r} is a range" if SEEDS.fullmatch(text) else f"{text!r} is not a whole number from 0 on"
    raise argparse.ArgumentTypeError(f"{what}; a replay tells of one seed, as in --replay 17")


def run(arguments: argparse.Namespace) -> int:
    if arguments.list_mutants:
        _refuse_what_lists_nothing(arguments)
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


def _refuse_what_lists_nothing(arguments: argparse.Namespace) -> None:
    for option in ("mutant", "steps", "processes", "resume"):
        value = getattr(arguments, option)
        if value is not None:
            raise ConfigError(
                f"--{option} {value}: this goes with --seeds or --replay; leave it out, as "
                "--list-mutants runs nothing"
            )


def _mutant(name: str | None) -> Mutant | None:
    if name is None:
        return None
    mutant = find_mutant(name)
    if find_checked(name) is not None:
        raise ConfigError(f"--mutant {name}: no seed catches it, but {CHECKING_TEST} -k {name}")
    if mutant is None:
        raise ConfigError(
            f"--mutant {name}: there is no such mutant; known are {', '.join(one.name for one in MUTANTS)}"
        )
    return mutant


def _list_mutants(*, as_json: bool) -> int:
    if as_json:
        rows = [
            {
                "name": one.name,
                "origin": one.origin,
                "damage": one.damage,
                "seeds_max": one.seeds_max,
                "brings_back": one.brings_back,
            }
            for one in MUTANTS
        ]
        rows += [
            {
                "name": one.name,
                "origin": one.origin,
                "damage": one.damage,
                "seeds_max": 0,
                "brings_back": (),
                "caught_by": CHECKING_TEST,
            }
            for one in CHECKED
        ]
        print(json.dumps({"mutants": rows}))
        return DONE
    width = max(len(one.name) for one in MUTANTS)
    for one in MUTANTS:
        numbers = [number for number in one.brings_back if number not in one.origin]
        origin = f"{one.origin} ({', '.join(numbers)})" if numbers else one.origin
        print(f"{one.name:<{width}}  {origin}: {one.damage}; caught within {one.seeds_max} seeds")
    for checked in CHECKED:
        print(f"{checked.name:<{width}}  {checked.origin}: {checked.damage}; caught by {CHECKING_TEST}")
    return DONE


# ---- many seeds --------------------------------------------------------------------------------------------


def _seeds(text: str) -> tuple[int, int]:
    match = SEEDS.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"--seeds {text}: give a range such as 1-2000, or one seed such as 17, in whole numbers from 0 on"
        )
    first, last = (int(match[3]), int(match[3])) if match[3] else (int(match[1]), int(match[2]))
    if last < first:
        raise ConfigError(f"--seeds {text}: the range is empty; the smaller number comes first")
    return first, last


def _run_seeds(arguments: argparse.Namespace) -> int:
    first, last = _seeds(arguments.seeds)
    progress = Progress(
        current_commit(),
        code_digest(),
        first,
        last,
        first,
        arguments.mutant,
        arguments.steps,
        python=python_version(),
        libraries=library_versions(),
    )
    if arguments.resume is not None:
        progress = load(arguments.resume, progress)
        if progress.next_seed <= last:
            claim(arguments.resume, progress)
        _tell_of_before(progress, arguments.resume, as_json=arguments.json)
    done_before, began = progress.seeds, time.monotonic()
    if progress.next_seed <= last:
        progress = _run_rest(progress, arguments)
    per_second = (progress.seeds - done_before) / max(time.monotonic() - began, 1e-9)
    missed = _missed(progress)
    _report(progress, missed, per_second, as_json=arguments.json)
    if progress.violations:
        print(f"its story: {_replay_command(progress)}", file=sys.stderr)
    return FAILED if progress.violations or missed else DONE


def _missed(progress: Progress) -> list[str]:
    """The situations that so many seeds must reach and did not: then they prove less than they say. A mutant
    may prevent some, and runs that are cut short come to few.
    """
    if progress.mutant is not None or progress.steps_max is not None or progress.seeds < MARKS_FROM:
        return []
    return [mark for mark in ALL_MARKS if mark not in progress.marks]


def _tell_of_before(progress: Progress, file: Path, *, as_json: bool) -> None:
    """What the file has: whoever goes on reads the same as whoever ran all seeds at once."""
    if progress.python is None and progress.seeds:
        print(
            f"{file} does not say which Python and which libraries ran its first {_count(progress.seeds)}",
            file=sys.stderr,
        )
    if not as_json:
        for violated in progress.violations:
            _tell(violated)
    if progress.next_seed > progress.last_seed:
        print(
            f"{file} has all these seeds; there is nothing left to run",
            file=sys.stderr if as_json else sys.stdout,
        )


def _run_rest(progress: Progress, arguments: argparse.Namespace) -> Progress:
    seeds = range(progress.next_seed, progress.last_seed + 1)
    runs = summaries(
        seeds,
        mutant=arguments.mutant,
        steps_max=arguments.steps,
        processes=arguments.processes or processes_for(len(seeds)),
    )
    told = time.monotonic()
    began = told - progress.seconds
    try:
        with closing(runs):
            for summary in runs:
                progress = progress.after(summary, seconds=round(time.monotonic() - began, 1))
                if summary.invariant is not None and not arguments.json:
                    _tell(progress.violations[-1])
                if time.monotonic() - told > PROGRESS_SECONDS:
                    told = time.monotonic()
                    print(f"{progress.seeds} of {_count(progress.seeds_wanted)}", file=sys.stderr)
                    _keep(progress, arguments.resume)
        _keep(progress, arguments.resume)
    except KeyboardInterrupt:
        _tell_of_interrupt(progress, arguments.resume)
        raise
    return progress


def _keep(progress: Progress, file: Path | None) -> None:
    if file is None:
        return
    try:
        save(file, progress)
    except OSError as error:
        raise SparklogError(
            f"--resume {file}: could not be written any more ({error.strerror}) after {progress.seeds} of "
            f"{_count(progress.seeds_wanted)}; mend that, and the same command goes on "
            "from the last state that it has"
        ) from None


def _tell_of_interrupt(progress: Progress, file: Path | None) -> None:
    far = f"stopped after {progress.seeds} of {_count(progress.seeds_wanted)}, {_violations(progress)}"
    if file is None:
        print(f"{far}; what is to go on later needs --resume FILE", file=sys.stderr)
        return
    _keep(progress, file)
    print(f"{far}; {file} has these, and the same command goes on from there", file=sys.stderr)


def _replay_command(progress: Progress) -> str:
    """The command that tells the story of the first seed that broke a rule."""
    command = f"scripts/simulate --replay {progress.violations[0].seed}"
    command += f" --mutant {progress.mutant}" if progress.mutant is not None else ""
    return command + (f" --steps {progress.steps_max}" if progress.steps_max is not None else "")


def _count(seeds: int) -> str:
    return f"{seeds} seed{'' if seeds == 1 else 's'}"


def _violations(progress: Progress) -> str:
    count = len(progress.violations)
    return f"{count} violation{'' if count == 1 else 's'}"


def _tell(violated: Violated) -> None:
    print(f"seed {violated.seed} violates {violated.invariant}: {violated.what}", flush=True)


def _report(progress: Progress, missed: list[str], per_second: float, *, as_json: bool) -> None:
    """The last line is for tools, too: always ``seeds``, also of one."""
    if as_json:
        document = asdict(progress) | {
            "seeds": progress.seeds,
            "seeds_per_second": round(per_second, 1),
            "missed": missed,
        }
        print(json.dumps(document))
        return
    for mark in missed:
        print(f"no seed reached: {mark}")
    print(f"{progress.seeds} seeds, {_violations(progress)}, {per_second:.1f} seeds/s")


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


COMMAND: Final = Command(
    name="simulate",
    summary="run seeded simulations of the shipped core and storage",
    description=(
        "Run simulated clusters of three to five brokers and two controllers under crashes, pauses, message "
        "loss, delay and reordering, ZooKeeper session loss and disk faults, with administrators at work, "
        "and check what must hold after every step. The same seed gives the same run."
    ),
    add_arguments=add_arguments,
    run=run,
    examples=(
        "scripts/simulate --seeds 1-2000",
        "scripts/simulate --replay 17",
        "scripts/simulate --replay 1 --mutant ack-on-append",
    ),
)


def main(argv: Sequence[str]) -> int:
    """Run the command with these arguments; its exit status."""
    try:
        return exit_status_of(lambda: _parse_and_run(argv), program=COMMAND.name)
    except KeyboardInterrupt:
        print(f"{COMMAND.name}: interrupted", file=sys.stderr)
        return INTERRUPTED


def _parse_and_run(argv: Sequence[str]) -> int:
    try:
        arguments = build_parser(COMMAND, "scripts/").parse_args(argv)
    except SystemExit as stop:  # argparse has printed its help or its complaint
        return stop.code if isinstance(stop.code, int) else WRONG_USAGE
    return COMMAND.run(arguments)
