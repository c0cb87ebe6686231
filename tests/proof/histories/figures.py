"""Figures of a history: what clients got, how late readers were, for how long nothing was acknowledged."""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from histories.facts import FOREVER, Facts, PartitionFacts
from histories.model import ACKS_ALL, FaultWindow, Poll, Send
from histories.rules_of_readers import seen_at

ACKS_NAMES: Final = {-1: "all", 1: "1", 0: "0"}

Gap = tuple[int, int]
"""From when to when sends with acks=all waited and none was acknowledged."""


@dataclass(frozen=True, slots=True)
class FaultFigures:
    """``longest_ns`` and ``median_ns`` are of the windows' longest times without an acknowledgement."""

    kind: str
    windows: int
    with_traffic: int
    longest_ns: int
    median_ns: int


@dataclass(frozen=True, slots=True)
class Figures:
    sends: dict[str, dict[str, int]]
    """By acks, then by outcome."""
    polls: int = 0
    records_read: int = 0
    ends: int = 0
    partitions: int = 0
    finals: int = 0
    dumps: int = 0
    lag_max_ns: int = 0
    """From an acknowledgement to the first poll that had the record, at most."""
    not_judged: dict[str, int] = field(default_factory=dict)
    """Sends acknowledged with acks=all that nobody could look for: how many for which reason."""
    faults: list[FaultFigures] = field(default_factory=list)
    not_run: list[tuple[str, str]] = field(default_factory=list)

    @property
    def acknowledged(self) -> int:
        return sum(by_outcome.get("ok", 0) for acks, by_outcome in self.sends.items() if acks != "0")

    @property
    def windows_with_traffic(self) -> int:
        return sum(one.with_traffic for one in self.faults)


def figures_of(facts: Facts) -> Figures:
    history = facts.history
    sends: dict[str, Counter[str]] = {name: Counter() for name in ACKS_NAMES.values()}
    for send in history.sends:
        sends[ACKS_NAMES[send.acks]][send.outcome] += 1
    polls = [read for read in history.reads if isinstance(read, Poll)]
    not_judged: Counter[str] = Counter()
    for one in facts.partitions.values():
        not_judged.update(one.left_out)
    return Figures(
        {name: dict(counts) for name, counts in sends.items() if counts},
        polls=len(polls),
        records_read=sum(len(poll.records) for poll in polls),
        ends=len(history.ends),
        partitions=len(facts.partitions),
        finals=len(history.finals),
        dumps=len(history.dumps),
        lag_max_ns=max((_lag_ns(one) for one in facts.partitions.values()), default=0),
        not_judged=dict(not_judged),
        faults=_fault_figures(facts),
        not_run=history.not_run,
    )


def _lag_ns(one: PartitionFacts) -> int:
    first_seen = seen_at(one)
    lags = [first_seen[send.value] - send.done_ns for send in one.acked if send.value in first_seen]
    return max(lags, default=0)


# ---- unavailability ------------------------------------------------------------------------------------


def _fault_figures(facts: Facts) -> list[FaultFigures]:
    by_kind: dict[str, list[FaultWindow]] = {}
    for window in facts.history.faults:
        by_kind.setdefault(window.kind, []).append(window)
    traffic = [_Traffic(one) for one in facts.partitions.values() if one.sends]
    return [_of_kind(kind, windows, traffic) for kind, windows in sorted(by_kind.items())]


def _of_kind(kind: str, windows: list[FaultWindow], traffic: "list[_Traffic]") -> FaultFigures:
    longest: list[int] = []
    busy = 0
    for window in windows:
        end_ns = window.end_ns if window.end_ns >= 0 else FOREVER
        busy += any(one.has_sends(window.begin_ns, end_ns) for one in traffic)
        longest.append(max((one.longest_ns(window.begin_ns, end_ns) for one in traffic), default=0))
    return FaultFigures(kind, len(windows), busy, max(longest), round(median(longest)))


class _Traffic:
    """The sends of a partition by time."""

    def __init__(self, one: PartitionFacts) -> None:
        self._invoked = sorted(send.invoked_ns for send in one.sends)
        self._gaps = gaps_of(one.sends)
        self._gap_ends = [end for _, end in self._gaps]

    def has_sends(self, begin_ns: int, end_ns: int) -> bool:
        at = bisect_left(self._invoked, begin_ns)
        return at < len(self._invoked) and self._invoked[at] <= end_ns

    def longest_ns(self, begin_ns: int, end_ns: int) -> int:
        longest = 0
        for at in range(bisect_left(self._gap_ends, begin_ns), len(self._gaps)):
            begin, end = self._gaps[at]
            if begin > end_ns:
                break
            longest = max(longest, end - begin)
        return longest


def gaps_of(sends: list[Send]) -> list[Gap]:
    """Times between one acknowledgement and the next, without those in which nobody waited for one."""
    asked = [send for send in sends if send.acks == ACKS_ALL]
    times = [(send.invoked_ns, 1, False) for send in asked]
    times += [(max(send.done_ns, send.invoked_ns), -1, send.outcome == "ok") for send in asked]
    times.sort()
    gaps: list[Gap] = []
    waiting, begin_ns = 0, -1
    for at_ns, change, is_ack in times:
        if begin_ns < 0:
            begin_ns = at_ns
        waiting += change
        if is_ack:
            gaps.append((begin_ns, at_ns))
            begin_ns = at_ns if waiting else -1
    if begin_ns >= 0:
        gaps.append((begin_ns, times[-1][0]))
    return gaps
