"""Who may do nothing with a topic, from when to when, and what a history shows of it all the same.

A denial begins once every broker must know it: not with the change of a rule, but when its time is up.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from histories.model import History, Poll

FOREVER: Final = 2**63
SHOWN_MAX: Final = 5
"""Breaches that are told of each denial."""


@dataclass(slots=True)
class Denial:
    """Times as in the history. ``who`` is a client's name, without the number of its life."""

    who: str
    topics: frozenset[str]
    since_ns: int
    until_ns: int = FOREVER

    def covers(self, process: str, topic: str, begun_ns: int, done_ns: int) -> bool:
        """Whether this was asked for and answered within it; what is half outside may be allowed."""
        is_theirs = process.partition("/")[0] == self.who and topic in self.topics
        return is_theirs and self.since_ns <= begun_ns and done_ns < self.until_ns


def breaches(history: History, denials: Iterable[Denial]) -> list[str]:
    """What was written or read although it was denied, in words."""
    found = []
    for denial in denials:
        some = list(_of(history, denial))
        found += some[:SHOWN_MAX]
        if len(some) > SHOWN_MAX:
            found.append(f"{denial.who}: {len(some) - SHOWN_MAX} more that were denied")
    return found


def _of(history: History, denial: Denial) -> Iterator[str]:
    for send in history.sends:
        if send.is_ok and denial.covers(send.process, send.topic, send.invoked_ns, send.done_ns):
            yield f"{send.process} may not write to {send.topic}, and {send.value} was acknowledged"
    for read in history.reads:
        if not isinstance(read, Poll) or not read.records:
            continue
        if denial.covers(read.process, read.topic, read.invoked_ns, read.done_ns):
            where = f"{read.topic}/{read.partition} from {read.start}"
            yield f"{read.process} may not read {read.topic}, and was given {len(read.records)} of {where}"


def refusals(history: History, denials: Iterable[Denial]) -> int:
    """How many sends were denied, for certain, within these times."""
    return sum(
        send.outcome == "fail" and denial.covers(send.process, send.topic, send.invoked_ns, send.done_ns)
        for denial in denials
        for send in history.sends
    )
