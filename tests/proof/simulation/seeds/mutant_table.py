"""Measures how soon each mutant is caught, and writes it into benchmarks/RESULTS.md.

    python -m simulation.seeds.mutant_table [NAME...] [--write] [--starts N] [--processes N]

For each of five starts (seeds 1, 10001, 20001, ...) seeds run until one of them breaks a rule, at most as
many as the mutant's budget. With ``--write`` the rows of the mutants that were measured are put into the
page, and those of mutants that are no more go; rows of others stay as they were measured.
"""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from simulation.mutants import MUTANTS, Mutant, find_mutant
from simulation.plans.plan import draw_plan
from simulation.run import simulate

PAGE = Path(__file__).resolve().parents[4] / "benchmarks" / "RESULTS.md"
STARTS = (1, 10_001, 20_001, 30_001, 40_001)
HEAD = "| mutant | caught as | seeds, median | seeds, most | budget |"
RULE = "|---|---|---:|---:|---:|"


@dataclass(frozen=True)
class Catch:
    """``seeds`` were needed from one start; one more than the budget if that did not do. A seed that breaks a
    rule without the mutant as well does not count.
    """

    seeds: int
    invariant: str


def catch_from(mutant: Mutant, start: int) -> Catch:
    for count in range(1, mutant.seeds_max + 1):
        plan = draw_plan(start + count - 1, hunt=mutant.hunt)
        violation = simulate(plan, mutant=mutant).violation
        if violation is None:
            continue
        if simulate(plan).violation is None:
            return Catch(count, violation.invariant)
        print(f"{mutant.name}: seed {plan.seed} breaks a rule without it, too", file=sys.stderr, flush=True)
    return Catch(mutant.seeds_max + 1, "")


def catches_of(name: str, starts: int) -> list[Catch]:
    """From each of the first ``starts``; by name, as its functions do not go from process to process."""
    mutant = find_mutant(name)
    assert mutant is not None, name
    return [catch_from(mutant, start) for start in STARTS[:starts]]


def row(mutant: Mutant, catches: list[Catch]) -> str:
    """The mutant's row of the page, from one catch for each start. Only all starts together have a median."""
    names = list(dict.fromkeys(f"`{one.invariant}`" for one in catches if one.invariant))
    cells = (
        f"`{mutant.name}`",
        "<br>".join(names),
        _told(median(one.seeds for one in catches), mutant) if len(catches) == len(STARTS) else "–",
        _told(max(one.seeds for one in catches), mutant),
        str(mutant.seeds_max),
    )
    return f"| {' | '.join(cells)} |"


def _told(seeds: float, mutant: Mutant) -> str:
    return f"> {mutant.seeds_max}" if seeds > mutant.seeds_max else f"{seeds:g}"


def merged(page: str, measured: dict[str, str]) -> str:
    """The page with the rows that were ``measured``, in the order of the registry."""
    before, rest = page.split(HEAD, 1)
    lines = rest.split("\n")
    end = next(number for number, line in enumerate(lines) if number > 0 and not line.startswith("|"))
    known = {line.split("`")[1]: line for line in lines[2:end]}
    known.update(measured)
    rows = [known[mutant.name] for mutant in MUTANTS if mutant.name in known]
    return before + "\n".join([HEAD, RULE, *rows, *lines[end:]])


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure how soon mutants are caught.")
    parser.add_argument("names", metavar="NAME", nargs="*", help="mutants; all of them without any")
    parser.add_argument(
        "--write", action="store_true", help=f"put what was measured into benchmarks/{PAGE.name}"
    )
    parser.add_argument(
        "--starts", metavar="N", type=int, default=len(STARTS), help="of the five, the first N"
    )
    parser.add_argument("--processes", metavar="N", type=int, default=1, help="mutants at a time (1)")
    arguments = parser.parse_args(words)
    unknown = [name for name in arguments.names if find_mutant(name) is None]
    if unknown:
        parser.error(
            f"no such mutant: {', '.join(unknown)}; known are {', '.join(one.name for one in MUTANTS)}"
        )
    wanted = [mutant for mutant in MUTANTS if not arguments.names or mutant.name in arguments.names]
    with ProcessPoolExecutor(arguments.processes, mp_context=get_context("spawn")) as pool:
        asked = [pool.submit(catches_of, mutant.name, arguments.starts) for mutant in wanted]
        for answer in as_completed(asked):
            mutant, catches = wanted[asked.index(answer)], answer.result()
            line = row(mutant, catches)
            print(line, flush=True)
            if arguments.write:
                PAGE.write_text(
                    merged(PAGE.read_text(encoding="utf-8"), {mutant.name: line}), encoding="utf-8"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
