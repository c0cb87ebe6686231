"""Rules about transactions: all or nothing, nothing early, nothing of fenced producers, nothing for ever.

A final read of a topic with transactions is one that reads committed.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate

from histories.facts import Facts, PartitionFacts
from histories.findings import Found, Judged, seconds, told_final, told_poll, told_send
from histories.model import Finish, Init, Poll, Send
from histories.rules_of_readers import NO_HEAL
from histories.transactions import Transaction, fenced_from_ns

COMMITTED = "committed"


def transactions_are_atomic(facts: Facts, judged: Judged) -> Found:
    """Of a committed transaction everything is there at the end, of one that is not committed nothing, and of
    one of which nobody knows all or nothing.
    """
    for one in facts.transactions.values():
        places = [facts.partition(send.topic, send.partition) for send in one.sends]
        lacking = [place.why_no_final for place in places if place.final is None]
        if lacking:
            judged.leave_out(lacking[0], 1)
            continue
        judged.add(1)
        due = [send for send, place in zip(one.sends, places, strict=True) if _must_show(facts, place, send)]
        there = [send for send in due if send.value in facts.final_values]
        if one.is_committed and len(there) < len(due):
            gone = next(send for send in due if send.value not in facts.final_values)
            what = f"committed transaction {one.name} lacks {len(due) - len(there)} of {len(due)} records"
            yield str(facts.partition(gone.topic, gone.partition)), what, _told(one, gone)
        elif there and not one.may_be_committed:
            what = f"transaction {one.name} is not committed, and {len(there)} of its records are there"
            yield str(facts.partition(there[0].topic, there[0].partition)), what, _told(one, there[0])
        elif there and len(there) < len(due):
            what = f"transaction {one.name} is torn: {len(there)} of its {len(due)} records are there"
            gone = next(send for send in due if send.value not in facts.final_values)
            yield str(facts.partition(gone.topic, gone.partition)), what, _told(one, gone, there[0])


def _must_show(facts: Facts, place: PartitionFacts, send: Send) -> bool:
    """Whether it is there if its transaction is: neither refused nor perhaps deleted."""
    return send.outcome != "fail" and not place.may_lack(place.offset_min(send), send.key, send.is_tombstone)


def nothing_uncommitted_is_read(facts: Facts, judged: Judged) -> Found:
    """Readers of committed records are given no record of a transaction before its commit was asked for, and
    none of one that is not committed.
    """
    for place, poll in _committed_polls(facts):
        for _, value in poll.records:
            send = facts.send_of.get(value)
            one = None if send is None or send.transaction is None else facts.transactions[send.transaction]
            if send is None or one is None:
                continue
            judged.add(1)
            if not one.may_be_committed:
                what = f"{poll.process} was given {value} of {one.name}, which is not committed"
                yield place, what, (told_poll(poll), *_told(one, send))
            elif one.commit_invoked_ns > poll.done_ns:
                what = f"{poll.process} was given {value} before the commit of {one.name} was asked for"
                yield place, what, (told_poll(poll), *_told(one, send))


def _committed_polls(facts: Facts) -> Iterator[tuple[PartitionFacts, Poll]]:
    for place in facts.partitions.values():
        for read in place.reads:
            if isinstance(read, Poll) and read.isolation == COMMITTED:
                yield place, read


def readers_stop_at_the_last_stable_offset(facts: Facts, judged: Judged) -> Found:
    """No reader of committed records passes the first record of a transaction that is open for certain: one
    whose end was asked for later, and was answered.
    """
    opened: defaultdict[tuple[str, int], dict[str, Send]] = defaultdict(dict)
    for one in facts.transactions.values():
        if one.open_until_ns < 0:
            continue
        for send in one.sends:
            if send.is_ok and send.offset >= 0:
                first = opened[send.topic, send.partition].setdefault(one.name, send)
                if send.offset < first.offset:
                    opened[send.topic, send.partition][one.name] = send
    for (topic, number), firsts in opened.items():
        place = facts.partition(topic, number)
        sends = sorted(
            (send for send in firsts.values() if place.life_of_send(send) == place.last_life),
            key=lambda send: send.offset,
        )
        yield from _passes(facts, place, sends, judged)


def _passes(facts: Facts, place: PartitionFacts, firsts: list[Send], judged: Judged) -> Found:
    """``firsts``: of each transaction its first record in the partition, in the order of offsets."""

    def later(one: Send, other: Send) -> Send:
        return one if _open_until_ns(facts, one) >= _open_until_ns(facts, other) else other

    offsets = [send.offset for send in firsts]
    longest = list(accumulate(firsts, later))
    for read in place.reads:
        if not isinstance(read, Poll) or read.isolation != COMMITTED or not read.records:
            continue
        if place.life_of_read(read) != place.last_life:
            continue
        last = read.records[-1][0]
        below = bisect_left(offsets, last)
        judged.add(1)
        if below and _open_until_ns(facts, longest[below - 1]) > read.done_ns:
            first = longest[below - 1]
            one = facts.transactions[first.transaction or ""]
            what = f"{read.process} was given {last} when {one.name} was open since {first.offset}"
            yield place, what, (told_poll(read), *_told(one, first))


def _open_until_ns(facts: Facts, send: Send) -> int:
    return facts.transactions[send.transaction or ""].open_until_ns


def fenced_producers_have_no_effect(facts: Facts, judged: Judged) -> Found:
    """Once a later producer has its transactional id, a producer neither commits nor sends."""
    fences = fenced_from_ns(facts.history.inits)
    for one in facts.transactions.values():
        fence = fences.get(one.session)
        if fence is None:
            continue
        for finish in one.finishes:
            if finish.invoked_ns > fence.done_ns and finish.is_commit:
                judged.add(1)
                if finish.is_ok:
                    what = f"{one.session} committed {one.name}, and {fence.session} had replaced it"
                    yield one.session, what, (_told_init(fence), _told_finish(finish))
        for send in one.sends:
            if send.invoked_ns > fence.done_ns:
                judged.add(1)
                if send.is_ok:
                    what = f"{send.value} was acknowledged, and {fence.session} had replaced {one.session}"
                    yield one.session, what, (_told_init(fence), told_send(send))


def pipelines_copy_once(facts: Facts, judged: Judged) -> Found:
    """A pipeline writes one record for each record that it reads: at the end each record of a partition from
    which it has copied any has one copy, committed.
    """
    copies: Counter[str] = Counter()
    sources: set[tuple[str, int]] = set()
    for send in facts.history.sends:
        if send.source is not None and (origin := facts.send_of.get(send.source)) is not None:
            sources.add((origin.topic, origin.partition))
            copies[send.source] += send.value in facts.final_values
    for topic, number in sorted(sources):
        place = facts.partition(topic, number)
        if place.final is None or facts.history.healed_ns < 0:
            judged.leave_out(NO_HEAL if place.final is not None else place.why_no_final, 1)
            continue
        judged.add(len(place.value_at))
        for offset, value in place.final.records:
            if copies[value] != 1:
                told = "has no copy" if not copies[value] else f"has {copies[value]} copies"
                made = [told_send(send) for send in facts.history.sends if send.source == value]
                yield place, f"{value} at {offset} {told}", (told_final(place), *made)
    for value, count in copies.items():
        origin = facts.send_of[value]
        if count and facts.partition(origin.topic, origin.partition).final is not None:
            judged.add(1)
            if value not in facts.final_values and not _may_be_gone(facts, origin):
                what = f"{value} has a copy, and is not there itself"
                yield facts.partition(origin.topic, origin.partition), what, (told_send(origin),)


def _may_be_gone(facts: Facts, send: Send) -> bool:
    place = facts.partition(send.topic, send.partition)
    return place.may_lack(place.offset_min(send), send.key, send.is_tombstone)


def nothing_hangs(facts: Facts, judged: Judged) -> Found:
    """When all is over, readers of committed records come to the end of every log: no transaction is open."""
    for place in facts.partitions.values():
        final = place.final
        if final is None or final.high_watermark < 0:
            continue
        judged.add(1)
        if final.end != final.high_watermark:
            what = f"committed records end at {final.end}, and the log at {final.high_watermark}"
            yield place, what, (told_final(place),)


def _told(one: Transaction, *sends: Send) -> tuple[str, ...]:
    ends = [_told_finish(finish) for finish in one.finishes] or [f"{one.name} was never ended"]
    return (*map(told_send, sends), *ends)


def _told_finish(finish: Finish) -> str:
    what = "commit" if finish.is_commit else "abort"
    asked = f"{finish.process} asked for the {what} of {finish.transaction} at {seconds(finish.invoked_ns)}"
    if finish.done_ns < 0:
        return f"{asked}, no answer"
    told = "ok" if finish.is_ok else f"{finish.outcome}: {finish.error}"
    return f"{asked}, {told} at {seconds(finish.done_ns)}"


def _told_init(init: Init) -> str:
    return f"{init.session} got {init.transactional_id} by {seconds(init.done_ns)}"
