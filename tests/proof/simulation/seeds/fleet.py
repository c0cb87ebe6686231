"""Runs many seeds, in one process or in several. The result is the same, in the order of the seeds.

A process gets a few seeds at a time and gives back summaries. A run depends on nothing but its plan, so which
process it takes place in, and what ran there before, changes nothing.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import connection
from typing import Final

from simulation.mutants import find_mutant
from simulation.plans.plan import draw_plan
from simulation.run import simulate

SEEDS_AT_A_TIME: Final = 10
"""How many seeds a process is given: it takes some seconds."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What became of one seed; ``invariant`` is None if nothing was violated."""

    seed: int
    invariant: str | None
    what: str
    simulated_ms: int
    steps: int
    acknowledged: int
    faults: int
    spared: int
    operations: int
    accepted: int
    marks: Mapping[str, int]


def summary_of(seed: int, *, mutant: str | None = None, steps_max: int | None = None) -> Summary:
    """Run one seed."""
    bug = None if mutant is None else find_mutant(mutant)
    assert (bug is None) == (mutant is None), mutant
    plan = draw_plan(seed, steps_max=steps_max, hunt=None if bug is None else bug.hunt)
    outcome = simulate(plan, mutant=bug)
    violation = outcome.violation
    return Summary(
        seed,
        None if violation is None else violation.invariant,
        "" if violation is None else violation.what,
        outcome.simulated_ms,
        outcome.steps,
        outcome.acknowledged,
        outcome.faults,
        outcome.spared,
        outcome.operations,
        outcome.accepted,
        outcome.marks,
    )


def processes_for(seeds: int) -> int:
    """As many as there are CPUs for us, as long as each has enough to do to repay its start."""
    return max(1, min(len(os.sched_getaffinity(0)), seeds // SEEDS_AT_A_TIME))


def summaries(
    seeds: Sequence[int], *, mutant: str | None = None, steps_max: int | None = None, processes: int = 1
) -> Generator[Summary]:
    """Each seed's summary, in their order, as they come."""
    if processes == 1:
        yield from (summary_of(seed, mutant=mutant, steps_max=steps_max) for seed in seeds)
        return
    chunks = [
        _Chunk(tuple(seeds[at : at + SEEDS_AT_A_TIME]), mutant, steps_max)
        for at in range(0, len(seeds), SEEDS_AT_A_TIME)
    ]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_begin) as pool:
        # Not by `map`, which cancels what it has begun: a pool whose processes end of Ctrl-C at that moment
        # would fail over the cancelled chunks, with a traceback among the last words (Python 3.11).
        begun = [pool.submit(_run_chunk, chunk) for chunk in chunks]
        try:
            for chunk in begun:
                yield from chunk.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """In each process, before its first seeds."""
    _end_on_interrupt()
    threading.Thread(target=_end_with_the_first_process, daemon=True).start()


def _end_with_the_first_process() -> None:
    """One that is killed tells nobody, and its pool would wait for more seeds for ever."""
    first = multiprocessing.parent_process()
    assert first is not None, "this is no process of a pool"
    connection.wait([first.sentinel])
    os._exit(1)


def _end_on_interrupt() -> None:
    """Ctrl-C reaches every process of a terminal. As an exception it would end a chunk, and the next one
    would begin; what is to be said of it the first process says. Where it is ignored, it stays so.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass(frozen=True, slots=True)
class _Chunk:
    seeds: tuple[int, ...]
    mutant: str | None
    steps_max: int | None


def _run_chunk(chunk: _Chunk) -> list[Summary]:
    return [summary_of(seed, mutant=chunk.mutant, steps_max=chunk.steps_max) for seed in chunk.seeds]
