"""Transactions of a history: what belongs to each, and what is certain of its end.

A transaction *is committed* if a commit was answered, and *may be* if one was asked for and nobody knows. One
whose producer never asked for a commit, or was refused, is not committed, whatever brokers did with it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from histories.model import Finish, History, Init, Send


@dataclass(slots=True, eq=False)
class Transaction:
    """``session`` is the identity of its producer, as of its sends."""

    name: str
    sends: list[Send] = field(default_factory=list)
    finishes: list[Finish] = field(default_factory=list)

    @property
    def session(self) -> str:
        return self.sends[0].session

    @property
    def is_committed(self) -> bool:
        return any(one.is_commit and one.is_ok for one in self.finishes)

    @property
    def may_be_committed(self) -> bool:
        return any(one.is_commit and one.outcome != "fail" for one in self.finishes)

    @property
    def commit_invoked_ns(self) -> int:
        """When a commit was asked for first; -1: never."""
        return min((one.invoked_ns for one in self.finishes if one.is_commit), default=-1)

    @property
    def open_until_ns(self) -> int:
        """Until when it was open for certain, as its end was answered; -1: nobody knows."""
        if not any(one.is_ok for one in self.finishes):
            return -1
        return min(one.invoked_ns for one in self.finishes)


def transactions_of(history: History) -> dict[str, Transaction]:
    """Those with sends, by name."""
    found: dict[str, Transaction] = {}
    for send in history.sends:
        if send.transaction is not None:
            found.setdefault(send.transaction, Transaction(send.transaction)).sends.append(send)
    for finish in history.finishes:
        if finish.transaction in found:
            found[finish.transaction].finishes.append(finish)
    return found


def fenced_from_ns(inits: Iterable[Init]) -> Mapping[str, Init]:
    """By session: the first answer to an init of another session that asked for the same transactional id
    after this one had it.
    """
    by_id: dict[str, list[Init]] = {}
    for init in inits:
        if init.is_ok:
            by_id.setdefault(init.transactional_id, []).append(init)
    fences: dict[str, Init] = {}
    for some in by_id.values():
        for old in some:
            later = [new for new in some if new.session != old.session and new.invoked_ns > old.done_ns]
            if later:
                fences[old.session] = min(later, key=lambda one: one.done_ns)
    return fences
