"""Figures of both systems, taken in turns, and the brokers' CPU beside them.

On a shared machine CPU is the measure: the user and system time that all brokers spend on one row, request or
megabyte. Other work can only add to it, so the lower quartile of its rounds counts. Rates are medians.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Final

from bench.clusters import Cluster, Kafka, Pair, Sparklog
from bench.machine import cpu_of
from bench.report import Row, figure, percentile
from bench.scale import say

LOWER_QUARTILE: Final = 0.25

Whole = Callable[[Sequence[float]], float]
"""One figure out of those of all rounds."""


def in_turns(pair: Pair, rounds: int) -> Iterator[tuple[int, Cluster]]:
    """Each cluster once a round, with the round's number; the order is flipped each round."""
    for number in range(rounds):
        for cluster in pair.all()[:: -1 if number % 2 else 1]:
            yield number, cluster


def ways_in_turn(
    rounds: int, ways: tuple[str, str], measure: Callable[[int, str], float]
) -> dict[str, list[float]]:
    """Figures of two ways to do our half of something, whose order flips each round."""
    found: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds):
        for way in ways if number % 2 else reversed(ways):
            found[way].append(measure(number, way))
            say(f"{way}: {found[way][-1]:.3f}")
    return found


def ratio_row(work: str, found: dict[str, list[float]], unit: str, note: str = "") -> Row:
    """The median of the first way against that of the second."""
    one, other = (median(figures) for figures in found.values())
    told = f"{one:.3g} {unit} against {other:.3g} {unit}"
    return Row(work, "ratio", one / other, more_is_better=False, note=f"{told}; {note}" if note else told)


def gain_row(work: str, seconds: Sequence[float], others: Sequence[float], note: str = "") -> Row:
    """How many times as fast something is, by medians of ``seconds`` against those of the ``others``."""
    one, other = median(seconds), median(others)
    told = f"{one:.3g} s against {other:.3g} s"
    return Row(work, "times as fast", other / one, note=f"{note}; {told}" if note else told)


def pairs_row(work: str, found: Mapping[str, Sequence[float]], unit: str, note: str = "") -> Row:
    """The median of the pairs' ratios, the first way's figure to the second's."""
    ones, others = found.values()
    ratios = [one / other for one, other in zip(ones, others, strict=True)]
    told = f"{figure(median(ones))} {unit} against {figure(median(others))} {unit}, {len(ratios)} pairs"
    return Row(work, "ratio", median(ratios), note=f"{note}; {told}" if note else told)


@dataclass(slots=True)
class Spent:
    """What a piece of work took, once it is over."""

    seconds: float = 0.0
    brokers_cpu_s: float = 0.0


@contextmanager
def spending(cluster: Cluster) -> Iterator[Spent]:
    """Measures what is done within: the time, and the CPU of the cluster's brokers."""
    spent = Spent()
    before, began = cpu_of(cluster.broker_pids().values()), time.monotonic()
    yield spent
    spent.seconds = time.monotonic() - began
    spent.brokers_cpu_s = cpu_of(cluster.broker_pids().values()) - before


class Tally:
    """Figures by work and system, and the rows made of them."""

    def __init__(self) -> None:
        self._figures: dict[tuple[str, str], list[float]] = {}
        self._cpu_us: dict[tuple[str, str], list[float]] = {}

    def note(self, work: str, cluster: Cluster, figure: float) -> None:
        self._figures.setdefault((work, cluster.name), []).append(figure)

    def note_cpu(self, work: str, cluster: Cluster, spent: Spent, count: float) -> None:
        """The work was done ``count`` times, or came to ``count`` of its unit."""
        self._cpu_us.setdefault((work, cluster.name), []).append(spent.brokers_cpu_s * 1e6 / count)

    def note_rate(self, work: str, cluster: Cluster, spent: Spent, count: float) -> None:
        """So much a second, and the CPU of each."""
        self.note(work, cluster, count / spent.seconds)
        self.note_cpu(work, cluster, spent, count)

    def row(
        self,
        title: str,
        unit: str,
        *,
        work: str = "",
        kafka_work: str = "",
        more_is_better: bool = True,
        note: str = "",
        whole: Whole = median,
    ) -> Row | None:
        """The row of ``work``, else of ``title``; None without ours. ``kafka_work``: Kafka's, if another."""
        ours = work or title, Sparklog.name
        kafka = kafka_work or ours[0], Kafka.name
        if ours not in self._figures:
            return None
        return Row(
            title,
            unit,
            float(whole(self._figures[ours])),
            float(whole(self._figures[kafka])) if kafka in self._figures else None,
            more_is_better=more_is_better,
            note=note,
            cpu_us=quartile_of(self._cpu_us.get(ours)),
            kafka_cpu_us=quartile_of(self._cpu_us.get(kafka)),
        )


def quartile_of(figures: Sequence[float] | None) -> float | None:
    """The lower one; None of no figures."""
    return percentile(figures, LOWER_QUARTILE) if figures else None


def found(*rows: Row | None) -> list[Row]:
    """The rows that could be made."""
    return [row for row in rows if row is not None]
