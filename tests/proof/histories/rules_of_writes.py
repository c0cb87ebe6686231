"""Rules about atomic writes. Each try at a version is a transaction, so that T1 to T7 judge it as well."""

from collections import defaultdict
from collections.abc import Mapping

from histories.facts import Facts
from histories.findings import Found, Judged, seconds, told_send
from histories.model import Send, Written
from histories.transactions import Transaction


def versions_are_written_once(facts: Facts, judged: Judged) -> Found:
    """Of all tries at a version at most one is there at the end; one is, if a driver was told so."""
    tries = _tries_of(facts)
    told: dict[str, Written] = {}
    for one in facts.history.written:
        told.setdefault(one.write, one)
    for write in sorted({*tries, *told}):
        places = [
            facts.partition(send.topic, send.partition) for one in tries.get(write, ()) for send in one.sends
        ]
        lacking = [place.why_no_final for place in places if place.final is None]
        if lacking:
            judged.leave_out(lacking[0], 1)
            continue
        judged.add(1)
        shown = [found for one in tries.get(write, ()) if (found := _shown(facts, one)) is not None]
        if len(shown) > 1:
            yield write, f"{len(shown)} tries at it are there", tuple(map(told_send, shown))
        if write in told and not shown:
            answer = told[write]
            what = f"{answer.process} was told that it is committed, and nothing of it is there"
            yield write, what, (f"told at {seconds(answer.done_ns)}",)


def _tries_of(facts: Facts) -> Mapping[str, list[Transaction]]:
    """By version."""
    found: defaultdict[str, list[Transaction]] = defaultdict(list)
    for one in facts.transactions.values():
        for write in {finish.write for finish in one.finishes if finish.write}:
            found[write].append(one)
    return found


def _shown(facts: Facts, one: Transaction) -> Send | None:
    """A record of it that is there at the end."""
    return next((send for send in one.sends if send.value in facts.final_values), None)
