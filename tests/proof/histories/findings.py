"""What a rule has to say, and how operations are told in words."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from histories.facts import Facts, PartitionFacts
from histories.model import Poll, Send

ACKS: Final = {-1: "acks=all", 0: "acks=0", 1: "acks=1"}


@dataclass(frozen=True, slots=True)
class Finding:
    """``evidence`` are the operations that contradict each other."""

    rule: str
    where: str
    what: str
    evidence: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.rule}: {self.where}: {self.what}" + "".join(f"\n    {line}" for line in self.evidence)


Found = Iterator[tuple[PartitionFacts | str, str, tuple[str, ...]]]
"""Where, what, and the evidence."""


@dataclass(slots=True)
class Judged:
    """What a rule looked at, counted by the rule itself as it goes: of a rule that counted nothing nobody may
    say that it is kept.
    """

    count: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    """What it would have looked at, and could not judge: how many for which reason."""

    def add(self, count: int) -> None:
        self.count += count

    def leave_out(self, why: str, count: int) -> None:
        if count:
            self.left_out[why] = self.left_out.get(why, 0) + count

    def leave_out_all(self, counts: Mapping[str, int]) -> None:
        for why, count in counts.items():
            self.leave_out(why, count)


@dataclass(frozen=True, slots=True)
class Rule:
    """``look`` goes over the facts once, counts what it judges, and gives where, what and the evidence of
    every breach.
    """

    name: str
    number: str
    """In the list of invariants: L1 to L14."""
    says: str
    matter: str
    """What it counts, in the plural: ``no`` before it says why a rule was not judged."""
    look: Callable[[Facts, Judged], Found]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What came of one rule."""

    rule: Rule
    judged: Judged
    findings: tuple[Finding, ...]

    @property
    def is_judged(self) -> bool:
        return self.judged.count > 0 or bool(self.findings)

    @property
    def why_not_judged(self) -> str:
        """Empty if it was judged."""
        if self.is_judged:
            return ""
        return told_reasons(self.judged.left_out) or f"no {self.rule.matter}"


def told_reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{why} ({count:,})" for why, count in counts.items())


def seconds(ns: int) -> str:
    return f"{ns / 1e9:.6f} s"


def told_send(send: Send) -> str:
    kind = "idempotent, " if send.is_idempotent else ""
    text = f"{send.process} sent {send.value} ({kind}{ACKS[send.acks]}) at {seconds(send.invoked_ns)}"
    if send.done_ns < 0:
        return f"{text}, no answer"
    if send.outcome != "ok":
        return f"{text}, {send.outcome} at {seconds(send.done_ns)}: {send.error}"
    where = f", offset {send.offset}" if send.offset >= 0 else ""
    return f"{text}, ok at {seconds(send.done_ns)}{where}"


def told_poll(poll: Poll) -> str:
    records = poll.records
    got = "nothing" if not records else f"{records[0][0]} to {records[-1][0]}"
    return f"{poll.process} polled from {poll.start} and got {got} at {seconds(poll.done_ns)}"


def told_final(one: PartitionFacts) -> str:
    final = one.final
    if final is None:
        return "there is no final read"
    return f"the final read has {len(final.records)} records from {final.start} to before {final.end}"
